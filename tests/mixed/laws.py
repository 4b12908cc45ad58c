"""What holds for the plan of every question, and how much of the optimum it reaches."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import maxflip_verify
from maxflip import Nearest, Plan, Problem, ProblemError, solve
from tests.jobs import export
from tests.mixed import free, reference
from tests.mixed.questions import Question, ask
from tests.mixed.recount import faults
from tests.mixed.reference import Optimum

AUDITED = 25  # every so manieth plan is saved and audited
BESIDE_NEAREST = 3  # every so manieth plan is compared with that of Nearest


@dataclass
class Outcome:
    """worth, bound: of the plan, None without one   failures: laws that are broken, in words"""

    question: Question
    optimum: Optimum
    worth: float | None = None
    bound: float | None = None
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        return f"{self.question.sort}, {'linear' if self.question.network.is_linear else 'network'}"

    @property
    def ratio(self) -> float | None:
        """Of what is surely the optimum; None where nobody can be won"""
        best = self.optimum.at_least
        return None if self.worth is None or best <= 0 else min(self.worth / best, 1.0)


def outcome(seed: int) -> Outcome:
    question = ask(seed)
    found = Outcome(question, free.optimum(question) if question.free else reference.optimum(question))
    began = time.process_time()
    try:
        problem = question.problem()
        plan = solve(problem)
    except ProblemError as error:
        if found.optimum.at_least >= 0 or "quota" not in str(error):
            found.failures.append(f"refused: {error}")
        return found
    except Exception as error:  # whatever it is, it is a failure to report
        found.failures.append(f"{type(error).__name__}: {error}")
        return found
    finally:
        found.seconds = time.process_time() - began
    found.worth, found.bound = plan.worth, plan.bound
    found.failures += [*faults(question, plan), *_of_bounds(found)]
    if seed % BESIDE_NEAREST == 0:
        found.failures += _of_nearest(problem, plan)
    if seed % AUDITED == 0:
        found.failures += _of_the_auditor(question, problem, plan)
    return found


def _of_bounds(found: Outcome) -> Iterator[str]:
    worth, bound, optimum = found.worth or 0.0, found.bound, found.optimum
    if bound is not None and bound < optimum.at_least:
        yield f"the bound {bound!r} is below the optimum {optimum.at_least!r}"
    if worth > optimum.at_most:
        yield f"the plan is worth {worth!r}, and the optimum is {optimum.at_most!r}"
    if found.question.sort == "menu":
        if bound is None:
            yield "a menu without a bound"
        if worth < optimum.at_least - 1:
            yield f"a menu's plan is worth {worth!r}, and the optimum is {optimum.at_least!r}"


def _of_nearest(problem: Problem, plan: Plan) -> Iterator[str]:
    try:
        nearest = solve(problem, Nearest())
    except ProblemError as error:
        if not problem.quotas.demanding:
            yield f"Nearest: {error}"
        return
    if nearest.worth > plan.worth:
        yield f"Nearest reaches {nearest.worth!r}, Prices {plan.worth!r}"


def _of_the_auditor(question: Question, problem: Problem, plan: Plan) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export(
            question.network.module(),
            folder / "model.pt2",
            features=len(question.features),
            dtype=problem.classifier.dtype,
        )
        plan.save(folder / "plan", problem=problem, model=folder / "model.pt2")
        audit = maxflip_verify.audit(folder / "plan")
    if not audit.passed:
        yield f"the auditor finds: {audit.findings}"


def mean_ratio(outcomes: list[Outcome]) -> float:
    ratios = [one.ratio for one in outcomes if one.ratio is not None]
    return math.fsum(ratios) / len(ratios) if ratios else math.nan
