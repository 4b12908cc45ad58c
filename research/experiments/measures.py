"""What is measured of a plan, as the paper's figures have it; every reading of its text that is left open, twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from maxflip import Plan, Problem
from maxflip.judge import scores_after


def measured(problem: Problem, plan: Plan) -> dict[str, Any]:
    """One row's worth of numbers.

    Consumption is in squared standard deviations of each feature, summed over features: their own units cannot be
    added.
    """
    sizes = spreads(problem)
    unspent = unspent_share(plan)
    return {
        "n": len(problem),
        "count": plan.count,
        "worth": plan.worth,
        "estimate": plan.estimate,
        "bound": plan.bound,
        "consumption_per_picked": standard(plan.spend, sizes) / plan.count if plan.count else None,
        "consumption_per_perturbed": perturbed(plan, sizes, len(problem)),
        "unspent": unspent,
        "spent": None if unspent is None else 1.0 - unspent,
        "prediction_gap": prediction_gap(problem, plan),
        "gradients": gradients(plan) / len(problem),
        "seconds": plan.seconds,
        "iterations_made": iterations(plan),
        "notices": " ".join(plan.notices[len(problem.notices) :]),
    }


def spreads(problem: Problem) -> dict[str, float]:
    """Feature -> standard deviation over all values measured in the cohort."""
    owners = problem.slots.feature[problem.actionable]
    return {problem.cohort.features[i]: float(s) for i, s in zip(owners, problem.spread, strict=True)}


def standard(spend: Mapping[str, float], sizes: Mapping[str, float]) -> float:
    """sum_i spend_i / spread_i^2, of budgets that bear the names of their features"""
    return math.fsum(amount / sizes[name] ** 2 for name, amount in spend.items() if amount)


def unspent_share(plan: Plan) -> float | None:
    """Mean over the budgets with B > 0 of (B - spend) / B; None where no budget is finite"""
    parts = [1.0 - plan.spend[name] / b.amount for name, b in plan.budgets.items() if 0 < b.amount < math.inf]
    return float(np.mean(parts)) if parts else None


def perturbed(plan: Plan, sizes: Mapping[str, float], n: int) -> float | None:
    """What all samples draw that were moved, picked or not, per sample; known of the paper's four alone.

    Of the iterate that gave the plan: the first of the best; of groups, each has its own.
    """
    if "drawn: " + next(iter(plan.budgets)) not in plan.trace:
        return None
    drawn = dict.fromkeys(plan.budgets, 0.0)
    for rows in _groups(plan):
        best = max(rows, key=lambda row: plan.trace["worth"][row])
        for name in drawn:
            drawn[name] += plan.trace[f"drawn: {name}"][best]
    return standard(drawn, sizes) / n


def prediction_gap(problem: Problem, plan: Plan) -> float | None:
    """Mean over the picked of the best minus the second best probability"""
    if not plan.count:
        return None
    with problem.classifier.borrowed():
        best = scores_after(problem, plan.selected, plan.moves).topk(2, dim=2).values
    return float((best[..., 0] - best[..., 1]).mean())


def gradients(plan: Plan) -> float:
    """Samples times gradients; the trace counts them up, in every group from 0"""
    if "gradients" not in plan.trace:
        return 0.0
    return float(sum(plan.trace["gradients"][rows[-1]] for rows in _groups(plan)))


def iterations(plan: Plan) -> int:
    """Inner iterations of the paper's four; rounds of the others"""
    trace = plan.trace
    return int(sum(trace["inner"])) if "inner" in trace else len(next(iter(trace.values()), ()))


def _groups(plan: Plan) -> list[list[int]]:
    """Rows of the trace, by group"""
    length = len(next(iter(plan.trace.values()), ()))
    labels = plan.trace.get("group", [0] * length)
    return [[row for row in range(length) if labels[row] == group] for group in dict.fromkeys(labels)]


def of_iterations(plan: Plan) -> list[dict[str, Any]]:
    """A row per outer iteration of one of the paper's four, in one pool"""
    names = {
        "outer": "outer",
        "count": "selected",
        "confident": "confident",
        "mean_lambda": "mean_lambda",
        "mean_mu": "mean_mu",
        "grad_lambda": "slope_lambda",
        "grad_mu": "slope_mu",
        "lagrangian": "lagrangian",
        "prediction_gap": "gap",
        "gradients": "gradients",
        "seconds": "seconds",
        "seconds_inner": "seconds_inner",
    }
    rows = range(len(plan.trace.get("outer", ())))
    return [{ours: plan.trace[theirs][row] for ours, theirs in names.items()} for row in rows]


def of_prices(plan: Plan) -> list[dict[str, Any]]:
    """A row per budget: what there was, what was spent, what one more unit would buy"""
    if plan.prices is None:
        return []
    return [
        {"feature": name, "amount": b.amount, "spend": plan.spend[name], "price": plan.prices[name]}
        for name, b in plan.budgets.items()
    ]
