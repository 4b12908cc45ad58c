"""The plan folder of docs/formats.md: written completely into a staging folder beside the target, then renamed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import maxflip_verify
import maxflip_wall
from maxflip._util.atomic import output_errors, put_bytes, sync_folder
from maxflip._util.messages import listed
from maxflip.errors import InputError, OutputError, VerifyError, as_ours
from maxflip.io.changes import changes_table, implied, implied_table, pool_table, pooled, slotted
from maxflip.io.insight_file import insight_bytes, parse_insight
from maxflip.io.job.write import relative_path, write_job
from maxflip.io.opening import Origin, missing_file, open_file, read_file
from maxflip.io.own_columns import own_columns
from maxflip.io.summary import FORMAT, read_summary, summary_table
from maxflip.plan.plan import Fate, Plan
from maxflip.problem.problem import Problem
from maxflip.report import is_report
from maxflip.report.page import check_people, page
from maxflip.study.insight import Insight, People

BLOCK = 1 << 20  # bytes that are hashed at a time
INSIGHT = "insight.json"
POOL = "pool.parquet"
IMPLIED = "implied.parquet"
FATES = 5  # columns of fates.parquet before those of budgets
FILES = ("summary.json", "plan.parquet", "fates.parquet", "trace.parquet", "report.html")
INPUTS = ("cohort", "model", "job", "static")  # static: for some cohorts of sequences
OURS = {
    *FILES,
    INSIGHT,
    POOL,
    IMPLIED,
    "job.toml",
    "cohort.parquet",
    "static.parquet",
    "model.pt2",
}  # inputs may be inside, as those of the demo


def save_plan(
    plan: Plan,
    folder: str | Path,
    *,
    inputs: Mapping[str, str | Path] | None = None,
    overwrite: bool = False,
    insight: Insight | None = None,
    people: People = "full",
    pool: bool = False,
) -> None:
    """Save a plan. `inputs` maps "cohort", "model", "job" and, if there is one, "static" to the files that the plan was
    made from, so that it can be audited."""
    unknown = sorted(set(inputs or {}) - set(INPUTS))
    if unknown or (inputs and not set(inputs) >= {"cohort", "model", "job"}):
        raise InputError(
            "inputs: give the paths of cohort, model and job, all three, and of static, where there is one; got "
            f"{sorted(inputs or {})}."
        )
    if inputs:
        _refuse_functions(plan, "inputs")
    target = Path(folder)
    check_target(target, overwrite=overwrite)
    paths = {name: Path(path) for name, path in (inputs or {}).items()}
    job = read_file(given, str(given)).data if (given := paths.pop("job", None)) is not None else None
    origins = _origins(paths)
    with staged(target, overwrite=overwrite) as stage:
        write_plan(plan, stage, origins, insight, people, job=job, pool=pool)


def save_asked(
    plan: Plan,
    folder: str | Path,
    *,
    problem: Problem,
    model: str | Path,
    overwrite: bool,
    insight: Insight | None,
    people: People,
    pool: bool,
) -> None:
    """Save a plan with the problem's cohort and a job that states the problem, so that it can be audited."""
    _refuse_functions(plan, "problem and model")
    if plan.solver.labelled:
        raise InputError(
            "problem and model: this plan's groups were given by labels, and a job can only have groups of similar "
            "lengths. Save it without problem and model."
        )
    target, file = Path(folder), Path(model)
    if not file.is_file():
        raise InputError(f"{model}: {missing_file(file, str(model))}")
    if not np.array_equal(problem.cohort.ids, plan.all_ids) or problem.cohort.features != plan.features:
        raise InputError(
            "problem: has other samples or features than the plan. Give the one that the plan was made for."
        )
    if problem.budgets != plan.budgets or not plan.answers(problem):
        raise InputError(
            "problem: asks something else than what the plan answers. Give the one that the plan was made for; after "
            "`resolve` or `frontier` that is problem.changed(budgets=..., margin=...)."
        )
    check_target(target, overwrite=overwrite)
    with staged(target, overwrite=overwrite) as stage:
        files, as_in_job = write_job(problem, plan, file, stage)
        write_plan(as_in_job, stage, _origins(files), insight, people, pool=pool)
        _audited(stage)


def _refuse_functions(plan: Plan, asked_for: str) -> None:
    faults = [
        f"budgets.{name}: a job file cannot contain {b.cost_name}, so a plan with it cannot be audited. Save it "
        f"without {asked_for}."
        for name, b in plan.budgets.items()
        if b.is_function
    ]
    if faults:
        raise InputError(faults)


def _audited(stage: Path) -> None:
    """Raise an error if the files do not pass the audit, so that they are not saved."""
    try:
        audit = maxflip_verify.audit(stage)
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:
        raise as_ours(error) from error
    if not audit.passed:
        raise VerifyError(["The plan does not pass its audit with this problem and model.", *audit.findings])


def write_plan(
    plan: Plan,
    folder: Path,
    inputs: Mapping[str, Origin],
    insight: Insight | None = None,
    people: People = "full",
    *,
    job: bytes | None = None,
    pool: bool = False,
) -> None:
    """Write all files of a plan into an existing folder.

    inputs: the files as they were read; paths and hashes go to summary.json
    job: the bytes of the job, to be copied; None if it is in `inputs`   pool: write all known flips too
    """
    if job is not None:
        put_bytes(folder / "job.toml", job)
        inputs = {**inputs, "job": Origin(folder / "job.toml", hashlib.sha256(job).hexdigest())}
    stated = {name: _stated(folder, inputs[name]) for name in INPUTS if name in inputs} or None
    plan = replace(plan, inputs={name: entry["sha256"] for name, entry in (stated or {}).items()})
    put_bytes(folder / "plan.parquet", _parquet(changes_table(plan)))
    if plan.implied is not None:
        put_bytes(folder / IMPLIED, _parquet(implied_table(plan)))
    put_bytes(folder / "fates.parquet", _parquet(_fates_table(plan)))
    put_bytes(folder / "trace.parquet", _parquet(pa.table({k: list(v) for k, v in plan.trace.items()})))
    put_bytes(folder / "report.html", page(plan, insight, people))
    table = summary_table(plan, stated) | ({} if people == "full" else {"people": people})
    if insight is not None:
        beside = insight_bytes(insight)
        put_bytes(folder / INSIGHT, beside)
        table["insight"] = hashlib.sha256(beside).hexdigest()
    if pool:
        flips = _parquet(pool_table(plan.flips, plan.all_ids, plan.features))
        put_bytes(folder / POOL, flips)
        table["pool"] = hashlib.sha256(flips).hexdigest()
    summary = json.dumps(table, indent=2, ensure_ascii=False, allow_nan=False)
    put_bytes(folder / "summary.json", (summary + "\n").encode())


def load_plan(folder: str | Path) -> Plan:
    """The saved plan; InputError if the folder is not a plan folder."""
    place = Path(folder)
    try:
        missing = [name for name in FILES if name != "report.html" and not (place / name).is_file()]
        if missing:
            raise InputError(f"{place}: is not a plan folder; it has no {' and no '.join(missing)}.")
        summary = json.loads((place / "summary.json").read_text(encoding="utf-8"))
        changes = pq.read_table(place / "plan.parquet")
        fates = pq.read_table(place / "fates.parquet")
        trace = pq.read_table(place / "trace.parquet").to_pydict()
        if summary["format"] != FORMAT:
            raise InputError(
                f"{place}: plan format {summary['format']!r}; this version reads format {FORMAT}. Read it with the "
                f"version that wrote it, or solve its job again."
            )
        return _assemble(summary, changes, fates, trace, _read_pool(place, summary), _read_implied(place, summary))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        if isinstance(error, PermissionError):
            raise OutputError(f"{place}: cannot be read: {error.strerror}. Check its permissions.") from error
        raise InputError(f"{place}: is not a readable plan folder: {error}") from error


def _read_pool(place: Path, summary: Mapping[str, Any]) -> pa.Table | None:
    if "pool" not in summary:
        return None
    if not (place / POOL).is_file():
        raise InputError(f"{place}: has no {POOL}, which its summary.json names. Save the plan again.")
    data = (place / POOL).read_bytes()
    if hashlib.sha256(data).hexdigest() != summary["pool"]:
        raise InputError(
            f"{place / POOL}: is not the file that the plan was saved with: its SHA-256 differs from that in "
            "summary.json. Save the plan again."
        )
    return pq.read_table(io.BytesIO(data))


def _read_implied(place: Path, summary: Mapping[str, Any]) -> pa.Table | None:
    """The table of a plan with derived features, actions or choices"""
    question = summary.get("question", {})
    if not question.get("derived") and not question.get("menu"):
        return None
    if not (place / IMPLIED).is_file():
        raise InputError(f"{place}: has no {IMPLIED}, though features follow from others. Solve the job again.")
    return pq.read_table(place / IMPLIED)


def load_people(folder: str | Path) -> People:
    """How the folder's report shows single samples."""
    place = Path(folder)
    try:
        people: People = json.loads((place / "summary.json").read_text(encoding="utf-8")).get("people", "full")
        check_people(people)
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{place}: is not a readable plan folder: summary.json: {error}") from error
    return people


def load_insight(folder: str | Path, plan: Plan | None = None) -> Insight | None:
    """The insight saved with the plan; None if there is none."""
    place = Path(folder)
    plan = load_plan(place) if plan is None else plan
    try:
        stated = json.loads((place / "summary.json").read_text(encoding="utf-8")).get("insight")
        if stated is None:
            return None
        if not (place / INSIGHT).is_file():
            raise InputError(f"{place}: has no {INSIGHT}, which its summary.json names. Solve the job again.")
        data = (place / INSIGHT).read_bytes()
    except OSError as error:
        raise OutputError(f"{place / INSIGHT}: cannot be read: {error.strerror}. Check its permissions.") from error
    if hashlib.sha256(data).hexdigest() != stated:
        raise InputError(
            f"{place / INSIGHT}: is not the file that the plan was saved with: its SHA-256 differs from that in "
            "summary.json. Solve the job again."
        )
    return parse_insight(data, plan, str(place / INSIGHT))


def check_target(folder: Path, *, overwrite: bool) -> None:
    """Check before the work begins, as far as possible, that the folder can be written afterwards."""
    with output_errors(folder):
        parent = folder.absolute().parent
        if not parent.is_dir():
            raise OutputError(f"{folder}: its parent folder {parent} does not exist. Create it first.")
        if folder.is_symlink():
            raise OutputError(f"{folder}: is a symbolic link. Name the folder itself.")
        if folder.exists():
            if not folder.is_dir():
                raise OutputError(f"{folder}: is a file. Name a folder.")
            _refuse_to_replace(folder, overwrite=overwrite)
        # Permissions, read-only file systems and too long names show only when a folder is made.
        probe = Path(tempfile.mkdtemp(dir=parent, prefix=f".{folder.name}.partial-"))
        probe.rmdir()


def check_page(page: Path) -> None:
    """A report may overwrite a report, but no other file."""
    with output_errors(page):
        if page.exists() and not page.is_dir():
            with page.open("rb") as file:
                if not is_report(file.read(4096)):
                    raise OutputError(f"{page}: is not a report. Overwrite it (--overwrite), or name another file.")


def _refuse_to_replace(folder: Path, *, overwrite: bool) -> None:
    """Refuse to replace a folder unless it is empty or, with `overwrite`, contains only a plan."""
    inside = sorted(path.name for path in folder.iterdir())
    foreign = [name for name in inside if name not in OURS]
    if foreign:
        raise OutputError(
            f"{folder}: contains files that are not part of a plan: {listed(foreign, 5)}. Name another folder."
        )
    if inside and not overwrite:
        raise OutputError(
            f"{folder}: already contains a plan. Overwrite it (--overwrite, or overwrite=True), or name another folder."
        )


@contextmanager
def staged(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """A new folder beside `folder` to write into. It is renamed to `folder` at the end, unless there was an error."""
    with output_errors(folder):
        place = folder.absolute()
        stage = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.partial-"))
        try:
            yield stage
            sync_folder(stage)
            _take_name(stage, place, overwrite=overwrite)
        finally:
            if stage.exists():
                shutil.rmtree(stage, ignore_errors=True)


def _take_name(stage: Path, place: Path, *, overwrite: bool) -> None:
    """Rename `stage` to `place`. The old folder is kept until then, and restored if that fails."""
    old = stage.with_name(stage.name.replace(".partial-", ".old-"))
    try:
        if place.exists():
            _refuse_to_replace(place, overwrite=overwrite)
            os.replace(place, old)
        os.replace(stage, place)
        sync_folder(place.parent)
    except BaseException:  # signals too; the names show how far it came
        if place.exists() and not stage.exists():
            place.rename(stage)
        if old.exists():
            old.rename(place)
        raise
    if old.exists():
        shutil.rmtree(old, ignore_errors=True)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _fates_table(plan: Plan) -> pa.Table:
    after = np.full(len(plan.fates), np.nan)
    after[plan.selected] = plan.confidence_after
    flipped = plan.fates == Fate.FLIPPED
    return pa.table(
        {
            "id": pa.array(plan.all_ids, pa.string()),
            "fate": pa.array(plan.fates, pa.string()),
            "worth": pa.array(plan.worths, pa.float64()),
            "confidence_before": pa.array(plan.confidence_before, pa.float64()),
            "confidence_after": pa.array(after, pa.float64(), mask=~flipped),
            **{name: pa.array(values, pa.float64()) for name, values in own_columns(plan.budgets).items()},
        }
    )


def _stated(folder: Path, origin: Origin) -> dict[str, str]:
    return {"path": relative_path(folder, origin.path), "sha256": origin.sha256}


def _origins(paths: Mapping[str, Path]) -> dict[str, Origin]:
    """The files as they are on disk now: for a plan made in Python, nothing else is known."""
    found = {}
    for name, path in paths.items():
        with open_file(path, str(path)) as file:
            digest = hashlib.sha256()
            while block := file.read(BLOCK):
                digest.update(block)
        found[name] = Origin(path, digest.hexdigest())
    return found


def _assemble(
    summary: dict[str, Any],
    changes: pa.Table,
    fates: pa.Table,
    trace: dict[str, Any],
    flips: pa.Table | None,
    follows: pa.Table | None,
) -> Plan:
    stated = read_summary(summary, {name: fates[name].to_numpy() for name in fates.column_names[FATES:]})
    features = stated["features"]
    all_ids = np.array(fates["id"].to_pylist(), dtype=object)
    fate = np.array([Fate(name) for name in fates["fate"].to_pylist()], dtype=object)
    selected = np.flatnonzero(fate == Fate.FLIPPED)
    of_slots = slotted(changes, all_ids[selected], features, summary)
    return Plan(
        **stated,
        all_ids=all_ids,
        selected=selected,
        moves=of_slots.moves,
        before=of_slots.before,
        places=of_slots.places,
        fates=fate,
        worths=fates["worth"].to_numpy(),
        confidence_before=fates["confidence_before"].to_numpy(),
        confidence_after=fates["confidence_after"].to_numpy()[selected],
        trace=trace,
        pool=None if flips is None else pooled(flips, all_ids, features, summary),
        implied=None if follows is None else implied(follows, all_ids[selected], features),
    )
