"""Prices on a menu: all flips by levers are known, so the linear program over them gives the prices and a proved bound.

OPT <= D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda)),   C_j(lambda): the cheapest of all flips of j

Quotas are rows of it too, whose prices change what samples are worth (`solver`).
"""

from __future__ import annotations

import math
import time

import numpy as np

from maxflip._util.types import Floats, Mask, Rows
from maxflip.plan.bracket import ROUNDING, Ceiling, most_allowed
from maxflip.problem.problem import Problem
from maxflip.search.menu import MenuFlips, Ordered, as_changes, menu_flips, payable
from maxflip.select.choose import in_order_of_appearance, unit_of
from maxflip.select.relaxation import Candidates, relaxed
from maxflip.select.settings import CHOICE
from maxflip.solvers.base import Proposal, Run
from maxflip.solvers.prices.market import rounding_of, traded
from maxflip.solvers.prices.settings import MENU


def propose(problem: Problem, run: Run) -> Proposal:
    """Candidates near the best at the final prices, with the bound."""
    began = time.monotonic()
    rows = run.candidates_wanted(problem)
    ordered = Ordered.of(problem)
    parts = run.engine.map(
        lambda chunk: menu_flips(problem, chunk, ordered),
        problem.chunks(rows, MENU.chunk),
        stage="Trying actions and choices",
        watch=run.watch,
    )
    flips = MenuFlips.all(parts) if parts else menu_flips(problem, rows, ordered)
    changes = flips.changes(problem)
    draws, paid = problem.bill(flips.rows, changes).consumption, payable(problem, flips.rows, changes)
    prices, of_quotas = _prices(problem, flips.rows[paid], draws[paid])
    gain = problem.quotas.worth(problem.worth, of_quotas)[flips.rows] - draws @ prices
    offered = flips.sure & paid & _near(problem, flips.rows, np.where(paid, gain, -np.inf))
    ceiling = _ceiling(problem, flips.rows[paid], gain[paid], prices, of_quotas)
    amounts = {name: budget.amount for name, budget in problem.budgets.items()}
    return Proposal(
        rows=flips.rows[offered],
        changes=as_changes(problem, flips.switches[offered]),
        known=np.unique(flips.rows[flips.sure & paid]),
        unreachable=np.setdiff1d(rows, flips.rows[paid]),
        prices=dict(zip(problem.ledger.names, prices.tolist(), strict=True)),
        quota_prices=of_quotas,
        bound=most_allowed([ceiling], amounts, problem.worth),
        ceilings=(
            _ceiling(problem, flips.rows, gain, prices, of_quotas),
        ),  # at larger budgets, all flips may be paid for
        trace={
            "step": ["actions"],
            "searched": [len(rows)],
            "found": [len(flips.rows)],
            "forwards": [flips.asked],
            "seconds": [time.monotonic() - began],
        },
    )


def _prices(problem: Problem, rows: Rows, draws: Floats) -> tuple[Floats, Floats]:
    """(m,) of budgets, (Q,) of quotas: dual prices of the linear program over all flips; 0 for unlimited budgets"""
    prices, quotas = np.zeros(len(problem.ledger.names)), problem.quotas
    sold, of_quotas = traded(problem), np.zeros(len(quotas))
    if not (sold.any() or len(quotas)) or not len(rows):
        return prices, of_quotas
    amounts, worth = problem.ledger.amounts[sold], problem.worth[rows]
    unit, must = unit_of(worth), np.isin(rows, problem.include)
    kept = (worth > 0) | must | np.asarray((quotas.coefficients < 0).any(axis=0))[rows]
    if not kept.any():
        return prices, of_quotas
    sample = in_order_of_appearance(rows[kept])
    share = np.hstack([draws[kept][:, sold] / amounts, quotas.coefficients[:, rows[kept]].T])
    both = {"quotas": quotas.amounts, "steps": quotas.steps}
    best = relaxed(Candidates(worth[kept] / unit, share, sample, must[kept], **both))
    if best is not None:  # None: those that must be picked, or whom quotas ask for, do not fit, which `choose` refuses
        prices[sold] = unit * best.prices[: sold.sum()] / amounts
        of_quotas = unit * best.prices[sold.sum() :]
    return prices, of_quotas


def _near(problem: Problem, rows: Rows, gain: Floats) -> Mask:
    """Flips that the best selection may need: those about as good as the sample's best, if it may be picked at all.
    Anybody may be needed to keep a quota.

    Of few samples, all that the best selection may have: the program over shares of flips has a best solution with at
    most one divided sample per budget, and without these it is a selection. So whatever loses more than they are worth
    is not the best. Without those who must be picked, or some whom a quota asks for, it would be none.
    """
    best = np.full(len(problem), -np.inf)
    np.maximum.at(best, rows, gain)
    if np.isfinite(best).sum() <= CHOICE.exact:
        needs_some = len(problem.include) > 0 or len(problem.quotas) > 0
        most = np.inf if needs_some else traded(problem).sum() * problem.worth.max()
        return np.asarray(np.isfinite(gain) & (np.maximum(best[rows], 0.0) - gain <= most * (1 + ROUNDING)))
    band = MENU.band * problem.worth[rows]
    wanted = (best[rows] >= -band) | np.isin(rows, problem.include) | bool(problem.quotas.asked)
    return np.asarray(wanted & (gain >= best[rows] - band))


def _ceiling(problem: Problem, rows: Rows, gain: Floats, prices: Floats, of_quotas: Floats) -> Ceiling:
    """D as a function of the budgets. Proved, because all flips are known."""
    best = np.full(len(problem), -np.inf)
    np.maximum.at(best, rows, gain)
    must = np.zeros(len(problem), dtype=bool)
    must[problem.include] = True
    parts = np.where(np.isneginf(best), 0.0, np.where(must, best, np.maximum(best, 0.0))).tolist()
    parts += (of_quotas * problem.quotas.amounts).tolist()
    rest = math.fsum(parts) + ROUNDING * math.fsum(problem.worth[rows].tolist()) + rounding_of(problem, of_quotas)
    closed = frozenset(name for name, budget in problem.budgets.items() if budget.amount == 0)
    return Ceiling(dict(zip(problem.ledger.names, prices.tolist(), strict=True)), rest, proved=True, closed=closed)
