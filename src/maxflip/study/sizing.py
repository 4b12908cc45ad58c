"""Budgets as shares of the consumption of flipping everyone: the paper's small, middle and large budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from maxflip._util.events import Watch
from maxflip._util.messages import shown
from maxflip.data.tables import is_listing
from maxflip.errors import InputError
from maxflip.plan.plan import Fate, Plan
from maxflip.problem.budgets import Budget
from maxflip.problem.problem import Problem
from maxflip.solvers import KL
from maxflip.solving import solve

SHARES = (0.4, 0.6, 0.8)  # of the consumption: small, middle and large budgets
WEIGHTS = (0.0, 0.01, 0.1, 1.0)  # values of the option `a` of KL that are tried


@dataclass(frozen=True, eq=False)
class Sizing:
    """plan: of KL with unlimited budgets   a: its weight of the squared distance   budgets: {share: {name: Budget}}

    `problem.changed(budgets=sizing.budgets[0.4])` is the problem with the small budgets.
    """

    plan: Plan
    a: float
    budgets: Mapping[float, Mapping[str, Budget]]

    @property
    def is_everyone(self) -> bool:
        """Whether the unlimited plan flips everyone who can be flipped."""
        counts = self.plan.fate_counts()
        return counts[Fate.LEFT_OUT] + counts[Fate.NOT_FOUND] + counts[Fate.UNUSABLE] == 0


def size_budgets(
    problem: Problem,
    shares: Sequence[float] = SHARES,
    solver: KL | None = None,
    *,
    weights: Sequence[float] = WEIGHTS,
    seed: int = 0,
    watch: Watch | None = None,
) -> Sizing:
    """B_r = share x consumption of budget r by the samples that an unlimited run of KL flips.

    problem  its amounts are replaced, except budgets of 0 and count budgets, which stay as they are
    shares   shares of that consumption, > 0
    solver   the KL to run; None: KL()
    weights  values of its option `a`. The one with the greatest worth is taken; ties are broken by the smallest sum
             over the budgets of consumption / largest consumption of any value
    """
    if not is_listing(shares):
        raise InputError(f"shares: got {shown(shares)}; wanted a list of finite numbers > 0.")
    bad = [s for s in shares if isinstance(s, bool) or not isinstance(s, (int, float)) or not 0 < s < math.inf]
    if bad or not len(shares):
        raise InputError(f"shares: got {shown(bad[0]) if bad else 'none'}; wanted finite numbers > 0.")
    if not len(weights):
        raise InputError("weights: got none; wanted numbers >= 0.")
    sized = [name for name, budget in problem.budgets.items() if budget.cost != "count" and budget.amount > 0]
    unlimited = problem.changed(budgets=dict.fromkeys(sized, math.inf))
    used = solver or KL()
    plans = {a: solve(unlimited, replace(used, a=a), seed=seed, watch=watch) for a in weights}
    most = {name: max(plan.spend[name] for plan in plans.values()) for name in sized}

    def rank(a: float) -> tuple[float, float]:
        return -plans[a].worth, sum(plans[a].spend[name] / most[name] for name in sized if most[name] > 0)

    best = min(weights, key=rank)
    needed = plans[best].spend
    budgets = {
        float(share): {name: replace(problem.budgets[name], amount=share * needed[name]) for name in sized}
        for share in shares
    }
    return Sizing(plans[best], best, budgets)
