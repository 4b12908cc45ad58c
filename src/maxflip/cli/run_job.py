"""From a job file to an audited plan folder: nothing is released that the auditor has not passed."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import maxflip_verify
import maxflip_wall
from maxflip._util.atomic import write_bytes
from maxflip._util.events import Finished, Notice, Started, Watch
from maxflip.cli.demo import is_demo, write_demo_inputs
from maxflip.errors import InputError, MaxflipError, OutputError, Terminated, VerifyError
from maxflip.io.job.read import Job, read_job
from maxflip.io.job.write import relative_path
from maxflip.io.plan_folder import check_target, staged, write_plan
from maxflip.plan.plan import Plan
from maxflip.problem.problem import Problem
from maxflip.solvers import Grouped, Solver
from maxflip.solving import solve
from maxflip.study.insight import Insight, People
from maxflip.study.look import look
from maxflip.study.outlook import outlook_of


@dataclass(frozen=True, eq=False)
class Released:
    """A plan in its folder, and the audit that it has passed."""

    plan: Plan
    folder: Path
    audit: maxflip_verify.Audit


@dataclass(frozen=True, eq=False)
class _Answer:
    """signal: received while the insight was computed. The plan was finished before and is kept"""

    plan: Plan
    insight: Insight
    signal: BaseException | None = None


def run_job(
    asked: Path | Job, folder: Path, *, overwrite: bool, watch: Watch, people: People | None = None
) -> Released:
    """asked: a job file, or the job read from it   people: what the report shows of single samples; None: as in the
    job"""
    job = asked if isinstance(asked, Job) else read_job(asked)
    check_target(folder, overwrite=overwrite)
    answer = _solve(job, watch)
    with staged(folder, overwrite=overwrite) as stage:
        audit = _written(answer, job, stage, folder, watch, people)
    return _released(answer, folder, audit)


def run_demo(folder: Path, watch: Watch) -> Released:
    """The demo. Cohort and model stay in the plan folder, so that it can be moved and still be audited."""
    ours = folder.is_dir() and is_demo(folder)
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise OutputError(f"{folder}: exists and is no earlier demo. Name another folder with --out.")
    check_target(folder, overwrite=ours)
    with staged(folder, overwrite=ours) as stage:
        watch(Started("Training a small network", 1))
        job = read_job(write_demo_inputs(stage))
        watch(Finished("Training a small network"))
        answer = _solve(job, watch)
        audit = _written(answer, job, stage, folder, watch)
    return _released(answer, folder, audit)


def _released(answer: _Answer, folder: Path, audit: maxflip_verify.Audit) -> Released:
    if answer.signal is not None:  # the sender expects the program to end by that signal
        raise answer.signal
    return Released(answer.plan, folder, audit)


def _solve(job: Job, watch: Watch) -> _Answer:
    classifier = job.load_classifier(watch)
    job = job.with_classes_of(classifier)
    reading, reference = job.read_cohort(), job.read_reference()
    problem = job.problem(reading, classifier)
    judges = job.load_judges(problem)
    solver = job.solver if job.groups is None else Grouped(job.solver, job.groups)
    try:
        plan = solve(problem, solver, seed=job.seed, watch=watch)
    except InputError as error:  # such as prices of budgets that the problem does not have
        raise type(error)(job.told(error.faults)) from error
    ask = partial(look, problem, scales=None, group=job.group(reading), reference=reference, judges=judges)
    return _looked(plan, problem, solver, job.scales(len(problem)), ask, watch)


def _looked(
    plan: Plan,
    problem: Problem,
    solver: Solver,
    scales: Sequence[float] | None,
    ask: Callable[..., Insight],
    watch: Watch,
) -> _Answer:
    """Add the insight. If that fails, the finished plan is kept, and the report says that something is missing.

    The reason is only passed to `watch`, since it may name samples that the report does not show.
    """
    insight = Insight()
    signal: BaseException | None = None
    try:
        insight = ask(plan)
        if scales is not None:
            ahead, better = outlook_of(problem, plan, scales, solver=solver, watch=watch)
            looked = ask(better) if better.worth > plan.worth else insight
            plan, insight = better, replace(looked, frontier=ahead, plan=better)
        return _Answer(plan, insight)
    except (KeyboardInterrupt, Terminated) as came:
        signal, ended, reason = came, "was interrupted", "interrupted."
    except MaxflipError as error:
        ended, reason = "ended with an error", error.problems[0]
    watch(Notice(f"{reason} The plan is audited and released; its report lacks some of what was asked for."))
    text = f"Some sections that were asked for are missing: computing them {ended}."
    return _Answer(plan, replace(insight, notices=(*insight.notices, text)), signal)


def _written(
    answer: _Answer, job: Job, stage: Path, folder: Path, watch: Watch, people: People | None = None
) -> maxflip_verify.Audit:
    """Write the plan's files and audit them. A plan that fails is set aside with the reason, not released."""
    write_plan(answer.plan, stage, job.origins, answer.insight, people or job.report.people, job=job.file.data)
    watch(Started("Auditing the plan", 1))
    try:
        audit = maxflip_verify.audit(stage)
    except (maxflip_wall.Refused, maxflip_wall.Unreadable) as error:  # Refused: the file is not the one that was solved
        withheld = "The auditor cannot read what the plan was made from, so it is withheld"
        raise VerifyError([f"{withheld}: {_as_named(str(error), job, stage)}", *_changed(job)]) from error
    watch(Finished("Auditing the plan"))
    if not audit.passed:
        reason = "\n".join(audit.findings) + "\n"
        mark = hashlib.sha256(reason.encode()).hexdigest()[:8]
        aside = folder.absolute().with_name(f"rejected-{mark}")
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(stage, aside)
        write_bytes(aside / "reason.txt", reason.encode())
        withheld = f"The plan did not pass its audit and is withheld; see {aside}."
        raise VerifyError([withheld, *_changed(job), *audit.findings])
    return audit


def _as_named(sentence: str, job: Job, stage: Path) -> str:
    """The auditor's sentence, with the job's path of each file instead of the path from the staging folder."""
    for origin in job.origins.values():
        sentence = sentence.replace(str(stage / relative_path(stage, origin.path)), str(origin.path))
    return sentence


def _changed(job: Job) -> list[str]:
    """A sentence for each file of the job that was changed, moved or deleted since it was read."""
    found = []
    for origin in job.origins.values():
        try:
            same = hashlib.sha256(maxflip_wall.read(origin.path)).hexdigest() == origin.sha256
        except maxflip_wall.Unreadable:
            same = False
        if not origin.path.exists():
            found.append(_LOST.format(origin.path))
        elif not same:
            found.append(_CHANGED.format(origin.path))
    return found


_LOST = "{}: was deleted or moved while the job was solved. Put it back, and run it again."
_CHANGED = "{}: was changed while the job was solved. Run it again when nobody writes to it."
