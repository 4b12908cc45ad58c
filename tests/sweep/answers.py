"""What the solvers say to a question, each asked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, ProblemError, solve
from tests.sweep.questions import Question

PRICES, NEAREST, UNIT = Prices(), Nearest(), Nearest(prices="unit")
NEARESTS = (NEAREST, UNIT)
PAPER = (
    MS.scale_free(outer=2, inner=15, optimizer="adam", keep_moving=True),
    BCMS.scale_free(outer=2, inner=15, optimizer="adam", draws=5),
    CCMS.scale_free(outer=2, inner=15, optimizer="adam", draws=5, choices=0.25, alpha=1e-4),
    KL.scale_free(outer=2, inner=15, optimizer="adam"),
)


@dataclass(eq=False)
class Answers:
    """The question, its problem and its plans.   paper: whether one of the paper's solvers is asked too, by turns

    A solver may say that those who must be picked, or whom a quota asks for, cannot be (ProblemError). Then it has no
    plan, and `refused` says why.
    """

    question: Question
    paper: bool = False
    refused: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Plan | None] = field(default_factory=dict)

    @cached_property
    def problem(self) -> Problem:
        return self.question.problem()

    @property
    def solvers(self) -> tuple[Any, ...]:
        paper = self.paper and not self.question.kinds
        first = NEARESTS if self.question.has_function else (PRICES, *NEARESTS)
        return (*first, *([PAPER[self.question.seed // 10 % len(PAPER)]] if paper else []))

    def plan(self, solver: Any) -> Plan | None:
        name = repr(solver)
        if name not in self._known:
            try:
                self._known[name] = solve(self.problem, solver, **self.question.allocation())
            except ProblemError as error:
                if not self.question.may_be_refused:
                    raise
                self._known[name], self.refused[name] = None, str(error)
        return self._known[name]

    @property
    def best_solver(self) -> Any:
        """The one that the laws about several solves are asked of."""
        return NEAREST if self.question.has_function else PRICES

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """(solver, its plan) of every solver that has one"""
        for solver in self.solvers:
            plan = self.plan(solver)
            if plan is not None:
                yield type(solver).__name__ + ("(unit)" if solver is UNIT else ""), plan


def by_id(plan: Plan) -> dict[str, Any]:
    """{id: change} of everyone picked"""
    return {str(i): np.asarray(d) for i, d in zip(plan.ids, plan.changes, strict=True)}
