"""Laws of files: what is saved is what is read, a job asks what its problem asked, and the auditor agrees."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import numpy as np
import torch

import maxflip_verify
from maxflip import Plan, Problem, solve
from maxflip._util.events import silent
from maxflip.io.job.read import read_job
from maxflip.networks import save_network
from tests.jobs import export
from tests.sweep.answers import Answers, by_id
from tests.sweep.laws import Broken, law
from tests.sweep.models import Model

SAME = ("worth", "count", "spend", "prices", "bound", "estimate", "status", "guard", "below_margin", "notices")


@law(every=8)
def a_saved_plan_is_read_back_as_it_was(answers: Answers) -> Broken:
    plan = answers.plan(answers.best_solver)
    if plan is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "plan")
        again = Plan.load(Path(folder) / "plan")
    for name in SAME:
        if getattr(again, name) != getattr(plan, name):
            yield f"{name}: {getattr(again, name)!r} instead of {getattr(plan, name)!r}"
    if not np.array_equal(again.fates, plan.fates):
        yield "fates are others"
    told = [[(q.quota, q.members.tolist(), q.count, q.price, q.cost) for q in one.quotas] for one in (plan, again)]
    if told[0] != told[1]:
        yield f"quotas: {told[1]} instead of {told[0]}"
    wanted = by_id(plan)
    for who, change in by_id(again).items():
        if not np.array_equal(change, wanted[who]):
            yield f"{who} changes by {change.tolist()} instead of {wanted[who].tolist()}"


@law(every=30)
def a_job_asks_what_its_problem_asked_and_the_auditor_agrees(answers: Answers) -> Broken:
    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None or question.has_function or question.groups is not None:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = _written(question.model, len(question.features), folder)
        if model is None:
            return
        plan.save(folder / "plan", problem=answers.problem, model=model)
        audit = maxflip_verify.audit(folder / "plan")
        if not audit.passed:
            yield f"the auditor finds: {audit.findings}"
        again = solve(_problem_of(folder / "plan" / "job.toml"), solver)
    ours, theirs = by_id(plan), by_id(again)
    if ours.keys() != theirs.keys():
        yield f"the job picks {again.count} of worth {again.worth!r} instead of {plan.count} of worth {plan.worth!r}"
    elif not all(np.allclose(theirs[who], change, rtol=1e-9, atol=1e-12) for who, change in ours.items()):
        yield "the job changes somebody otherwise"


def _written(model: Model, width: int, folder: Path) -> Path | None:
    """The model as a file, where a job can name one."""
    member = model.members[0]
    if len(model.members) > 1 or member.temperature != 1.0 or model.kind == "ridge":  # which no job can name
        return None
    if member.estimator is not None:
        importlib.import_module("skops.io").dump(member.estimator, folder / "model.skops")
        return folder / "model.skops"
    assert member.module is not None
    if model.kind == "grud":
        save_network(member.module, folder / "model.safetensors")  # type: ignore[arg-type]
        return folder / "model.safetensors"
    if model.kind in ("total", "recurrent"):
        return None
    dtype = next(member.module.parameters()).dtype
    with torch.random.fork_rng(devices=[]):
        export(member.module, folder / "model.pt2", features=width, dtype=dtype)
    return folder / "model.pt2"


def _problem_of(path: Path) -> Problem:
    job = read_job(path)
    classifier = job.load_classifier(silent)
    return job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
