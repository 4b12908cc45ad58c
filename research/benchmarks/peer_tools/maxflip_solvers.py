"""maxflip itself, asked like everybody else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxflip import Nearest, Prices, solve
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.solvers import Solver
from research.benchmarks.peer_tools.problems import of_shape, problem_of
from research.benchmarks.peer_tools.question import Question
from research.benchmarks.peer_tools.running import Answer, Method, main


def shortest(question: Question) -> Callable[[], Answer]:
    """Everybody's cheapest flip at unit prices: what Nearest(prices="unit") chooses among, whatever the budgets."""
    width = question.x.shape[1]
    problem = problem_of(question, question.x, np.ones(width))
    units = np.ones((~question.frozen).sum())

    def answered() -> Answer:
        flips = cheapest_flips(problem, np.arange(len(problem)), FeaturePrices(units, 0 * units))
        return Answer(np.where(flips.found[:, None], flips.changes, np.nan))

    return answered


def planned(solver: Solver) -> Method:
    """Each shape of budgets solved; what the plans change."""

    def prepared(question: Question) -> Callable[[], Answer]:
        problems = {s: of_shape(question, s) for s in np.flatnonzero(question.members.any(axis=1)).tolist()}

        def answered() -> Answer:
            changes = np.full((len(question.shapes), *question.x.shape), np.nan)
            for s, problem in problems.items():
                plan = solve(problem, solver)
                changes[s, np.flatnonzero(question.members[s])[plan.selected]] = plan.moves
            return Answer(changes)

        return answered

    return prepared


METHODS: dict[str, Method] = {
    "Nearest, unit prices": shortest,
    "Nearest, 1/B": planned(Nearest()),
    "Prices": planned(Prices()),
}

if __name__ == "__main__":
    main("maxflip", METHODS)
