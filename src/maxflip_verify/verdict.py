"""Audits a plan folder: reads every file once, runs the model again, applies the rules."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip_verify.derived import follow
from maxflip_verify.exact import Floats
from maxflip_verify.forms import FORMS, misfits
from maxflip_verify.inputs import Case, Columns, Model, complete, positions, read_case, read_columns, read_job
from maxflip_verify.networks import Network
from maxflip_verify.rules import (
    HELD,
    SHOWN,
    TOLD,
    Check,
    check,
    derived_rules,
    fate_rules,
    implied_rules,
    plan_rules,
    summary_rules,
)
from maxflip_verify.trees import read_trees
from maxflip_wall import Broken, Unreadable, is_safetensors, is_tree_file, load_model, read, reading, unique_keys

BATCH = 1024  # samples per call of the model
ALONE = 1000  # number of the narrowest flips that are also checked one at a time
TRIED = 256  # samples, evenly spaced, that give the scale of decision values for the guard


@dataclass(frozen=True)
class Audit:
    """All checks of one folder; str() is the output of `maxflip-verify`."""

    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[str, ...]:
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def passed(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        failed = sum(bool(check.findings) for check in self.checks)
        verdict = f"FAILED {failed} of {len(self.checks)} checks" if failed else f"passed {len(self.checks)} checks"
        lines = [f"{'FAIL' if c.findings else 'ok'}\t{c.name}" for c in self.checks]
        return "\n".join([*lines, *self.findings, f"not checked: {FORMS['unchecked']}", verdict])


def audit(
    folder: Path | str,
    *,
    cohort: Path | str | None = None,
    model: Path | str | None = None,
    static: Path | str | None = None,
) -> Audit:
    """Audit the plan in `folder`. Files given here replace those named in its summary."""
    folder = Path(folder)
    text = read(folder / "summary.json", follow_links=False)
    with reading("summary.json"):
        said = json.loads(text, object_pairs_hook=unique_keys)
    checks = [Check("summary.json: form", tuple(misfits(said, FORMS["summary"], "summary.json"))[:SHOWN])]
    if checks[0].findings:
        return Audit(tuple(checks))
    stated = said["inputs"] or {}
    paths = {key: folder / entry["path"] for key, entry in stated.items()} | {"job": folder / "job.toml"}
    paths |= {key: Path(path) for key, path in (("cohort", cohort), ("model", model), ("static", static)) if path}
    text = read(paths["job"], follow_links=False)
    job = read_job(text)
    needed = {"cohort", "model", "job", *(["static"] if "static" in job["cohort"] else [])}
    if missing := sorted(needed - paths.keys()):
        raise Unreadable(f"{folder}: its summary does not name all input files; give --{' and --'.join(missing)}")
    data = {key: text if key == "job" else read(path) for key, path in paths.items()}
    for key, entry in stated.items():
        found = sha256(data[key]).hexdigest()
        checks.append(check(f"summary.json: inputs: {key}", entry["sha256"] != found, entry["sha256"], found))
    checks.append(check("summary.json: inputs", bool(stated.keys() - needed), sorted(stated), sorted(needed)))
    names = {key: str(path) for key, path in paths.items()}
    found_in = data["model"], names["model"]
    loaded = _loaded(*found_in)
    case = read_case(complete(job, loaded), data, names)
    own = {column: "'double'" for draw in case.draws.values() for column in draw.own}
    forms = {"plan": FORMS["plan_of_sequences" if case.is_long else "plan"], "fates": FORMS["fates"] | own}
    plan, fates = (read_columns(read(folder / f"{key}.parquet", follow_links=False), key, forms[key]) for key in forms)
    plan |= _places(case, plan)
    on, base = _after_levers(case, plan)
    order = positions(case.ids, fates["id"])  # -1, the appended last entry, if a sample has no row
    fates |= {key: np.append(fates[key], "" if key == "fate" else np.nan)[order] for key in fates if key != "id"}
    fates |= _run(loaded, case, plan, base, fates["fate"] == "flipped", said.get("holds", {}))
    unit = fates["size"][np.linspace(0, len(case.ids) - 1, min(TRIED, len(case.ids))).astype(int)].max() or 1.0
    dtype = torch.float64 if isinstance(loaded, Network) else loaded.dtype
    eps, least = torch.finfo(dtype).eps, 1e-9 if dtype == torch.float64 else 1e-6
    checks += [*plan_rules(case, plan, on, base), *derived_rules(case, said)]
    if case.rules or case.levers.names:
        follows = read_columns(read(folder / "implied.parquet", follow_links=False), "implied", FORMS["implied"])
        checks += implied_rules(case, plan, on, base, follows | _places(case, follows))
    checks += fate_rules(case, plan, fates, said["guard"])
    return Audit((*checks, *summary_rules(case, plan, fates, said, (unit * least, unit * max(1e-3, 16 * eps)))))


def _loaded(data: bytes, name: str) -> Model:
    """The model in a file; what it is is told by its content."""
    if is_tree_file(data):
        return read_trees(data, name)
    return Network.parse(data, name).wide() if is_safetensors(data) else load_model(data, name)


def _places(case: Case, plan: Columns) -> Columns:
    """The value of the cohort that each row changes; -1 if there is none."""
    sample, place, step = positions(plan["id"], case.ids), positions(plan["feature"], case.columns), plan["step"]
    exists = (sample >= 0) & (place >= 0)
    known = exists & (step >= 0) & (step < np.diff(case.begin)[sample])
    row = np.where(known, case.begin[sample] + step, -1)
    time = plan.get("time", case.time[row])
    of_levers = exists & (place >= len(case.features))
    return {
        "sample": sample, "place": place, "exists": exists, "known": known, "row": row, "time": time, "lever": of_levers
    }  # fmt: skip


def _after_levers(case: Case, plan: Columns) -> tuple[NDArray[np.bool_], Floats]:
    """(n, L): which levers are on; (N, F): where the changes of features begin"""
    on = np.zeros((len(case.ids), len(case.levers.names)), dtype=bool)
    on[plan["sample"][plan["lever"]], plan["place"][plan["lever"]] - len(case.features)] = True
    return on, case.levers.after(case.start, on) if on.any() else case.start


def _run(
    model: Model, case: Case, plan: Columns, base: Floats, flipped: NDArray[np.bool_], holds: dict[str, Any]
) -> Columns:
    """Confidence before, after, and in every scenario: in batches, and one at a time for the narrowest flips."""
    free = plan["known"] & ~plan["lever"]
    moved, places = np.flatnonzero(flipped), (plan["row"][free], plan["place"][free])
    before, lead, size = _confidence(model, case, np.arange(len(case.ids)), case.start, BATCH)
    seen = {"before": before, "lead": lead, "size": size, "flipped": flipped}
    for name, done in _carried_out(case, (base, places), plan["change"][free], holds):
        end, after = base.copy(), np.full(len(case.ids), np.nan)
        end[places] += done
        follow(case.rules, case.start, end)
        after[moved] = _confidence(model, case, moved, end, BATCH)[0]
        skip_singles = isinstance(model, Network) or name.startswith(TOLD)
        closest = moved[np.argsort(after[moved])[: 0 if skip_singles else ALONE]]
        after[closest] = np.minimum(after[closest], _confidence(model, case, closest, end, 1)[0])
        seen[name] = after
    return seen


def _carried_out(case: Case, places: tuple[Floats, Any], change: Floats, holds: dict[str, Any]) -> Iterator[Any]:
    """(name, changes carried out) of each scenario: in full, those of must_hold, and those in summary.json."""
    yield "after", change
    held = case.job.get("must_hold", {})
    if "uptake" in held:
        shares = [held["uptake"] + (1.0 - held["uptake"]) * (k / 4) for k in range(4)]
        yield from ((f"{HELD}a share of {share!r}", share * change) for share in shares if share < 1)
    if "rounded" in held:
        yield f"{HELD}rounded values", _rounded(case, places, change, held["rounded"])
    yield from ((f"{TOLD}{share}", float(share) * change) for share in holds.get("uptake", {}))
    if holds:
        digits = {feature: 10.0 ** -min(max(decimals, 0), 100) for feature, decimals in holds["digits"].items()}
        yield f"{TOLD}rounded", _rounded(case, places, change, digits)


def _rounded(case: Case, places: tuple[Floats, Any], change: Floats, steps: dict[str, float]) -> Floats:
    base, at = places
    step, start = np.array([float(steps.get(name, 0)) for name in case.features])[at[1]], base[at]
    unit = np.where(step > 0, step, 1.0)
    with np.errstate(all="ignore"):
        return np.where((step > 0) & (change != 0), unit * np.rint((start + change) / unit) - start, change)


def _outputs(model: Model, case: Case, who: NDArray[np.intp], points: Floats) -> Floats:
    """(len(who), k): outputs of the model"""
    if not isinstance(model, Network):
        return model.outputs(points[who])
    with np.errstate(all="ignore"):
        rows = [slice(case.begin[j], case.begin[j + 1]) for j in who]
        each = zip(who, rows, strict=True)
        return np.array([model.logits(*_seen(points[row]), case.time[row], case.static[j]) for j, row in each])


def _seen(values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(T, F): values, 0 where nothing was measured, and whether something was"""
    observed = ~np.isnan(values)
    return np.where(observed, values, 0.0), observed


def _confidence(model: Model, case: Case, who: NDArray[np.intp], points: Floats, batch: int) -> list[Floats]:
    """Confidence; lead of the most likely wanted class (both NaN if the output is not finite); size of the output."""
    wanted, p = case.wanted[who], np.empty(case.wanted[who].shape)
    with reading(f"the model, on a batch of {batch}"):
        for i in range(0, len(who), batch):
            output = _outputs(model, case, who[i : i + batch], points)
            if output.shape != p[i : i + batch].shape:
                raise Broken(f"its output is {output.shape}, not {p[i : i + batch].shape}")
            p[i : i + batch] = output
    finite, own_units = np.isfinite(p).all(axis=1), case.job["model"]["output"] == "decision"
    size = (
        np.where(finite, np.abs(p).max(axis=1) * (1 - 1e-6), 0.0) if own_units else np.ones(len(p))
    )  # less, to allow for rounding
    with np.errstate(invalid="ignore"):
        if case.job["model"]["output"] == "logits":
            p = (e := np.exp(p - p.max(axis=1, keepdims=True))) / e.sum(axis=1, keepdims=True)
        lead = np.where(wanted, p, -np.inf).max(axis=1) - np.where(wanted, -np.inf, p).max(axis=1)
    confidence = lead if "margin" in case.job["goal"] else np.where(wanted, p, 0.0).sum(axis=1)
    return [np.where(finite, confidence, np.nan), np.where(finite, lead, np.nan), size]
