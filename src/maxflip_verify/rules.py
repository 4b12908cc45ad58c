"""The rules of docs/formats.md, each as a Check. Tolerances are 0 except for outputs of the model."""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Any

import numpy as np

from maxflip_verify.derived import follow, implied, off_at_start
from maxflip_verify.exact import consumption
from maxflip_verify.grid import sizes_and_misses
from maxflip_verify.inputs import Case, Columns
from maxflip_verify.levers import Formula, uses_of

FATES = [
    "already",
    "left_out",
    "not_found",
    "unreachable",
    "unusable",
]  # without "flipped", which is `count` in the summary
HELD = "must_hold: "  # prefix of scenarios in which flips must pass
TOLD = "holds: "  # prefix of scenarios for which summary.json states how many flips pass
ROUNDING = 1e-12  # largest difference between two float64 softmaxes
SHOWN = 100  # findings listed per check


@dataclass(frozen=True)
class Check:
    """One rule and its violations."""

    name: str
    findings: tuple[str, ...]


def check(name: str, wrong: Any, got: Any, wanted: Any, place: Callable[[int], str] = lambda _: "") -> Check:
    """A finding for every position where `wrong` is true; `got` and `wanted` are arrays or single values."""
    places = np.flatnonzero(wrong).tolist()
    found = [f"{name}{place(i)}: got {_at(got, i)!r}, wanted {_at(wanted, i)}" for i in places[:SHOWN]]
    return Check(name, (*found, *[f"{name}: and {len(places) - SHOWN} more"][: len(places) > SHOWN]))


def _at(value: Any, i: int) -> Any:
    return value[i : i + 1].tolist()[0] if isinstance(value, np.ndarray) else value


def plan_rules(case: Case, plan: Columns, on: Any, base: Any) -> Iterator[Check]:
    """The rows are in order, and each changes a value of the cohort, or turns a lever on, as the job allows.

    on (n, L): levers that are on   base (N, F): where changes of features begin
    """

    def place(i: int) -> str:
        at = f", step {plan['step'][i]}" if case.is_long else ""
        return f": id {plan['id'][i]!r}{at}, feature {plan['feature'][i]!r}"

    features, limits, change = case.columns, case.job.get("limits", {}), plan["change"]
    exists, known, step, row = plan["exists"], plan["known"], plan["step"], plan["row"]
    more, whose = [(0, 0), (0, len(case.levers.names))], (plan["sample"], plan["place"])
    start, begin = (np.pad(values, more)[row, plan["place"]] for values in (case.start, base))
    lower = np.pad(case.lower, more, constant_values=-np.inf)[whose]
    upper = np.pad(case.upper, more, constant_values=np.inf)[whose]
    last = np.diff(case.begin)[plan["sample"]] - 1
    low, high = np.minimum(lower, begin), np.maximum(upper, begin)
    paid = [draw.inside[plan["sample"]] & np.isin(plan["place"], draw.weighed) for draw in case.draws.values()]
    costly = [i for draw in case.draws.values() for i in draw.weighed]
    frozen = ~np.any(paid, axis=0) & ~(plan["lever"] & ~np.isin(plan["place"], costly))
    sign = [{"up": 1, "down": -1}.get(limits.get(feature, {}).get("direction"), 0) for feature in features]
    with np.errstate(all="ignore"):
        end, backward = begin + change, change * np.array(sign)[plan["place"]] < 0
    behind = np.diff(row * len(features) + plan["place"], prepend=-1) <= 0
    steps = np.array([f"0 to {n}" for n in last], dtype=object)
    size, whole = sizes_and_misses(begin, change, case.step, plan["place"])
    least, has_step = case.smallest[plan["place"]], case.step[plan["place"]] > 0
    for what, wrong, got, wanted in (
        ("id and feature", ~exists, "unknown", "in the cohort and the job"),
        ("order", known & behind, "out of order or twice", "samples, then steps, then features, in order"),
        ("step", exists & ~known, step, steps),
        ("time", known & (plan["time"] != case.time[row]), plan["time"], case.time[row]),
        ("lever", plan["lever"] & (change != 1), change, "1, as an action or a switch is carried out as a whole"),
        ("measured", known & np.isnan(start), change, "no change, as nothing was measured there"),
        ("steps", known & ~case.may_change[row], change, "no change, as the job leaves this step alone"),
        ("before", known & (plan["before"].view(np.int64) != start.view(np.int64)), plan["before"], start),
        ("change", known & (~np.isfinite(change) | (change == 0)), change, "finite and not 0"),
        ("frozen", known & frozen, change, "no change, as no budget of the sample weighs the feature"),
        ("direction", known & backward, change, "no change against the job's direction"),
        ("grid", known & has_step & (change != whole), change, whole),
        ("smallest", known & (size < least), change, least),
        ("limits", known & ~((low <= end) & (end <= high) & np.isfinite(end)), end, np.column_stack((low, high))),
    ):
        yield check("plan.parquet: " + what, wrong, got, wanted, place)
    if case.levers.names:
        yield from _lever_rules(case, on, base)


def _lever_rules(case: Case, on: Any, base: Any) -> Iterator[Check]:
    """Everyone may get the levers that are on, and these lead no feature out of its limits or against its direction."""
    limits, ids = case.job.get("limits", {}), case.ids
    sign = np.array([{"up": 1, "down": -1}.get(limits.get(name, {}).get("direction"), 0) for name in case.features])
    low, high = np.minimum(case.lower, case.start), np.maximum(case.upper, case.start)
    beyond = ((base < low) | (base > high) | ((base - case.start) * sign < 0)).any(axis=1)
    given = np.array([str([case.levers.names[i] for i in np.flatnonzero(own)]) for own in on], dtype=object)
    wanted = "actions and switches that this person may get, together"
    yield check("plan.parquet: actions", case.levers.faults(on), given, wanted, lambda j: f": id {ids[j]!r}")
    inside = "actions that keep features inside their limits"
    yield check("plan.parquet: limits after actions", beyond, given, inside, lambda j: f": id {ids[j]!r}")


def derived_rules(case: Case, said: dict[str, Any]) -> Iterator[Check]:
    """The expressions are those of the job, and the cohort's own columns are what they say."""
    given, start = case.job.get("derived", {}), case.start
    stated = said.get("question", {}).get("derived", {})
    yield check("summary.json: derived", stated != given, stated, given)
    for rule in case.rules:
        off, computed = off_at_start(rule, start)
        name = f"cohort: derived {case.features[rule.place]!r}"
        yield check(name, off, start[:, rule.place], computed, lambda row: f": {case.whose(row)}")


def implied_rules(case: Case, plan: Columns, on: Any, base: Any, follows: Columns) -> Iterator[Check]:
    """implied.parquet has what follows from the changes, all of it and nothing else.   on, base: as in plan_rules"""
    free = plan["known"] & ~plan["lever"]
    end, changed = base + 0.0, (plan["row"][free], plan["place"][free])
    with np.errstate(all="ignore"):
        end[changed] += plan["change"][free]
    touched = np.zeros(case.start.shape, dtype=bool) if case.is_long else case.levers.touched(on, len(case.features))
    row, place = implied(case.rules, touched, case.start, follow(case.rules, case.start, end))
    values, width = end[row, place], len(case.features)
    wanted = row * width + place
    got = np.where(follows["known"], follows["row"] * width + follows["place"], -1)

    def of(i: int) -> str:
        return f": {case.whose(row[i])}, feature {case.features[place[i]]!r}"

    def told(i: int) -> str:
        return f": id {follows['id'][i]!r}, step {follows['step'][i]}, feature {follows['feature'][i]!r}"

    yield check("implied.parquet: rows", ~np.isin(wanted, got), "no row", values, of)
    yield check("implied.parquet: finite", ~np.isfinite(values), values, "finite", of)
    yield check("implied.parquet: stray", ~np.isin(got, wanted), "a row", "none, as nothing follows there", told)
    yield check("implied.parquet: order", np.diff(got, prepend=-1) <= 0, "out of order or twice", "in order", told)
    stands, at = np.isin(got, wanted), (follows["row"], follows["place"])
    for key, true in (("before", case.start[at]), ("after", end[at])):
        off = stands & (follows[key].view(np.int64) != true.view(np.int64))
        yield check(f"implied.parquet: {key}", off, follows[key], true, told)


def fate_rules(case: Case, plan: Columns, fates: Columns, guard: float) -> Iterator[Check]:
    """Every sample has a row; its fate agrees with the plan, the job and a new run of the model."""
    goal, fate, flipped, ids = case.job["goal"], fates["fate"], fates["flipped"], np.array(case.ids, dtype=object)
    before, after, need = fates["before"], fates["after"], goal.get("margin", goal.get("threshold"))
    already, usable = fate == "already", fate != "unusable"
    include, exclude = (np.isin(ids, np.array(goal.get(key, []), dtype=object)) for key in ("include", "exclude"))
    unknown = sorted(set(goal.get("include", [])) - set(case.ids))
    yield check("job.toml: include", bool(unknown), unknown, "ids of the cohort")
    odd = [pair for pair in zip_longest(fates["id"], case.ids) if pair[0] != pair[1]][:SHOWN]
    yield check("fates.parquet: ids", bool(odd), [got for got, _ in odd], [wanted for _, wanted in odd])
    counts = plan["exists"] & ~(plan["lever"] & (plan["place"] < len(case.features) + case.levers.actions))
    pairs = np.unique(np.stack([plan["sample"], plan["place"]])[:, counts], axis=1)
    changed, most = np.bincount(pairs[0], minlength=len(ids)), goal.get("most_changes", len(case.features))
    off = {key: ~(np.abs(fates[f"confidence_{key}"] - fates[key]) <= guard + ROUNDING) for key in ("before", "after")}
    off["before"] &= ~(np.isnan(before) & np.isnan(fates["confidence_before"]))
    finite = np.isfinite(before) & (exclude | (before >= need + guard))  # excluded samples are not searched for a flip
    held = [key for key in fates if key.startswith(HELD)]
    for what, wrong, got, wanted in (
        *((key, flipped & ~(fates[key] >= need), fates[key], f"confidence of at least {need}") for key in held),
        ("fate", ~np.isin(fate, [*FATES, "flipped"]), fate, "a known one"),
        ("plan", flipped != np.isin(np.arange(len(ids)), plan["sample"]), fate, "flipped if and only if changed"),
        ("most_changes", changed > most, changed, f"at most {most}"),
        ("include", include & ~flipped & ~already, fate, "flipped or already"),
        ("exclude", exclude & np.isin(fate, ["flipped", "not_found"]), fate, "left_out, unreachable or already"),
        ("worth", fates["worth"] != case.worth, fates["worth"], case.worth),
        *((key, fates[key] != own, fates[key], own) for draw in case.draws.values() for key, own in draw.own.items()),
        ("not flipped", ~flipped & ~np.isnan(fates["confidence_after"]), fates["confidence_after"], "null"),
        ("flipped", flipped & ~(after >= need), after, f"confidence of at least {need}"),
        ("guard", flipped & (fates["confidence_after"] < need + guard), fates["confidence_after"], f"{need} + {guard}"),
        ("unusable", ~usable & finite, before, "an output that is not finite"),
        ("already", already & ~(before >= need - guard), before, f"confidence of at least {need}"),
        ("start", usable & ~already & ~(before < need + guard), before, f"confidence below {need}"),
        ("confidence_before", off["before"], fates["confidence_before"], before),
        ("confidence_after", flipped & off["after"], fates["confidence_after"], after),
    ):
        yield check(f"fates.parquet: {what}", wrong, got, wanted, lambda i: f": id {ids[i]!r}")


def quota_rules(case: Case, fates: Columns, said: dict[str, Any]) -> Iterator[Check]:
    """The plan keeps every quota, counted in whole people; the summary states the quotas of the job and who is in them.

    A share is the decimal number that is written: 4 of 10 people are at least 0.4 of them.
    """
    flipped, quotas, told = fates["flipped"], case.job.get("quotas", []), said.get("quotas", [])
    yield check("summary.json: quotas", len(told) != len(quotas), len(told), len(quotas))
    told = told if len(told) == len(quotas) else []
    for number, (quota, inside) in enumerate(zip(quotas, case.groups, strict=True), start=1):
        picked, count = int(flipped.sum()), int((flipped & inside).sum())
        for side, sign in (("at_least", -1), ("at_most", 1)):
            if side in quota:
                amount = quota[side]
                bound = Fraction(repr(amount)) * picked if type(amount) is float else amount
                got, wanted = f"{count} of the {picked} flipped", f"{side.replace('_', ' ')} {amount!r}"
                yield check(f"fates.parquet: quota {number}: {side}", sign * (count - bound) > 0, got, wanted)
        stated = {**quota, "members": np.flatnonzero(inside).tolist(), "count": count}
        if "ids" in stated:
            stated["ids"] = sorted(set(stated["ids"]))
        states = {key: value for key, value in told[number - 1].items() if key not in ("price", "cost")} if told else {}
        yield check(f"summary.json: quota {number}", not _states(states, stated), states, stated)


def _states(got: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether they are equal. Of bounds 1, which is one person, is not 1.0, which is everybody."""
    return got == wanted and all(
        type(got[side]) is type(wanted[side]) for side in wanted.keys() & {"at_least", "at_most"}
    )


def summary_rules(case: Case, plan: Columns, fates: Columns, said: dict[str, Any], guards: Any) -> Iterator[Check]:
    """The plan keeps every budget exactly; the numbers and claims of the summary agree with the files."""
    count, worth = int(fates["flipped"].sum()), math.fsum(case.worth[fates["flipped"]])
    solver, units = case.job.get("solver", {}), case.job["cohort"].get("units", {})
    wanted = {"features": case.columns, "units": units, "seed": solver.get("seed", 0), "cohort": len(case.ids)}
    wanted |= {"count": count, "worth": worth} | {fate: int((fates["fate"] == fate).sum()) for fate in FATES}
    budgets, finite = case.job["budgets"], plan["known"] & np.isfinite(plan["change"])
    yield check("summary.json: budgets", said["budgets"].keys() != budgets.keys(), [*said["budgets"]], [*budgets])
    for name, terms in budgets.items():
        amount, cost, draw = terms["amount"], terms.get("cost", "squared"), case.draws[name]
        change, fees = plan["change"][finite], draw.fee[fates["flipped"] & draw.inside]
        weights = draw.weights(plan["sample"][finite], plan["place"][finite], change)
        used = consumption(weights, change, squared=cost == "squared")
        used += consumption(np.ones(len(fees)), fees, squared=False)
        spent = float(min(used, Fraction(sys.float_info.max)))
        yield check(f"plan.parquet: budget {name!r}", used > amount, f"exactly about {spent!r}", f"at most {amount!r}")
        uses = {key: None if isinstance(use, Formula) else use for key, use in uses_of(case.job, name).items()}
        stated = {"amount": "inf" if amount == math.inf else amount, "cost": cost, "spent": spent, "uses": uses}
        stated |= {key: terms[key] for key in ("fee", "only") if key in terms}
        if "ids" in terms.get("only", {}):
            stated["only"] = {"ids": sorted(set(terms["only"]["ids"]))}
        entry = {key: value for key, value in said["budgets"].get(name, {}).items() if not key.startswith("price")}
        got = {key: entry.get(key) for key in stated | entry}
        yield check(f"summary.json: budget {name!r}", got != stated, got, stated)
    yield from quota_rules(case, fates, said)
    free = [budget["price"] for budget in said["budgets"].values() if budget["amount"] == "inf" and budget["price"]]
    yield check("summary.json: price", bool(free), free, "0 or null, as nothing limits it")
    need = case.job["goal"].get("margin", case.job["goal"].get("threshold"))
    for name in (key for key in fates if key.startswith(TOLD)):
        got = said["holds"]["rounded"] if name == f"{TOLD}rounded" else said["holds"]["uptake"][name[len(TOLD) :]]
        few, many = (int((fates[name] >= need + side * said["guard"]).sum()) for side in (1, -1))
        yield check(f"summary.json: {name}", not few <= got <= many, got, f"{few} to {many}")
    if "must_hold" in case.job or "must_hold" in said:
        wanted["must_hold"] = case.job.get("must_hold") or None
    if case.is_long:
        wanted |= {"kind": "sequences", "lengths": np.diff(case.begin)[fates["flipped"]].tolist()}
    stray = sorted({"kind", "lengths"} & said.keys() - wanted.keys())
    yield check("summary.json: of sequences", bool(stray), stray, "nothing of the kind, as the cohort is a table")
    for key, value in wanted.items():
        yield check(f"summary.json: {key}", said.get(key) != value, said.get(key), value)
    used = said["solver"]
    other = [key for key, value in solver.get("options", {}).items() if used["options"].get(key, key) != value]
    named = used["name"].lower() == solver.get("name", "prices").replace("_", "")
    divided = used["groups"] is not None
    alike = divided == (solver.get("allocation", "joint") == "proportional") and used["groups"] in (
        None,
        solver.get("groups"),
    )
    yield check("summary.json: solver", bool(other) or not (named and alike), used, f"the job's, {solver}")
    guard, below, bound, status = (said[key] for key in ("guard", "below_margin", "bound", "status"))
    least, most = (int(((fates["fate"] != "already") & (fates["lead"] > near)).sum()) for near in (guard, -guard))
    claim = "optimal" if bound == worth else "open" if (bound, said["estimate"]) != (None, None) else "feasible"
    yield check("summary.json: below_margin", not least <= below <= most, below, f"{least} to {most}")
    yield check("summary.json: bound", bound is not None and bound < worth, bound, f"at least the worth, {worth!r}")
    yield check("summary.json: status", status != claim, status, repr(claim))
    yield check("summary.json: guard", not guards[0] <= guard <= guards[1], guard, f"{guards[0]} to {guards[1]}")
