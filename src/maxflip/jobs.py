"""From a job file to an audited plan folder: nothing is released that the auditor has not passed."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import maxflip_verify
import maxflip_wall
from maxflip.demo import is_demo, write_demo_inputs
from maxflip.errors import OutputError, VerifyError
from maxflip.files.atomic import write_bytes
from maxflip.files.job import Job, read_job
from maxflip.files.plan_folder import check_target, staged, write_plan
from maxflip.pipeline import solve
from maxflip.plan import Plan
from maxflip.watch import Finished, Started, Watch


@dataclass(frozen=True, eq=False)
class Released:
    """A plan that stands in its folder, and the audit that it passed there."""

    plan: Plan
    folder: Path
    audit: maxflip_verify.Audit


def run_job(path: Path, folder: Path, *, overwrite: bool, watch: Watch) -> Released:
    job = read_job(path)
    check_target(folder, overwrite=overwrite)
    plan = _solve(job, watch)
    with staged(folder, overwrite=overwrite) as stage:
        audit = _written(plan, job, stage, folder, watch)
    return Released(plan, folder, audit)


def run_demo(folder: Path, watch: Watch) -> Released:
    """The embedded default; cohort and model stay inside the plan folder, so that it can be moved and audited whole."""
    ours = folder.is_dir() and is_demo(folder)
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise OutputError(f"{folder}: exists and is no earlier demo. Name another folder with --out.")
    check_target(folder, overwrite=ours)
    with staged(folder, overwrite=ours) as stage:
        watch(Started("Training a small network", 1))
        job = read_job(write_demo_inputs(stage))
        watch(Finished("Training a small network"))
        plan = _solve(job, watch)
        audit = _written(plan, job, stage, folder, watch)
    return Released(plan, folder, audit)


def _solve(job: Job, watch: Watch) -> Plan:
    classifier = job.load_classifier(watch)
    job = job.with_classes_of(classifier)
    problem = job.problem(job.read_cohort(), classifier)
    return solve(problem, job.solver, seed=job.seed, watch=watch, allocation=job.allocation, groups=job.groups)


def _written(plan: Plan, job: Job, stage: Path, folder: Path, watch: Watch) -> maxflip_verify.Audit:
    """The plan's files, and the audit of their bytes; a plan that fails is set aside with the reason, not released."""
    write_plan(plan, stage, job.files)
    watch(Started("Auditing the plan", 1))
    try:
        audit = maxflip_verify.audit(stage)
    except maxflip_wall.Unreadable as error:
        raise VerifyError(f"The auditor cannot read what the plan was made from, so it is withheld: {error}") from error
    watch(Finished("Auditing the plan"))
    if not audit.passed:
        reason = "\n".join(audit.findings) + "\n"
        mark = hashlib.sha256(reason.encode()).hexdigest()[:8]
        aside = folder.absolute().with_name(f"rejected-{mark}")
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(stage, aside)
        write_bytes(aside / "reason.txt", reason.encode())
        raise VerifyError([f"The plan did not pass its audit and is withheld; see {aside}.", *audit.findings])
    return audit
