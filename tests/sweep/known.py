"""Laws that know the answer: very small questions of linear models of two classes, by brute force over subsets."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from maxflip import Fate
from tests.sweep.answers import NEARESTS, PRICES, Answers
from tests.sweep.laws import Broken, law
from tests.sweep.models import Floats
from tests.sweep.questions import WAYS, Question, Rows
from tests.sweep.recount import is_free, keeps, limits_of

MOST_OF_ONE, MOST = 11, 5  # samples to be won, of one free feature and of several
SLACK = 1e-6  # by so much a budget must be met or missed for its subset to count: the guard moves flips by less


@dataclass(frozen=True, eq=False)
class Lines:
    """Everyone who can be won passes where slope . d >= lack, inside the box low <= d <= high.

    rows (c,)   slope, low, high (c, A) over the free features   lack (c,)
    """

    rows: Rows
    free: list[int]
    slope: Floats
    lack: Floats
    low: Floats
    high: Floats


def lines_of(question: Question) -> Lines | None:
    """From the plain model's answers alone: a log-odds, or decision value, is linear in x."""
    if not question.is_linear or question.model.k != 2 or len(question.model.members) > 1:
        return None
    if question.has_own or question.kinds:
        return None
    names, x = question.features, question.values
    barred = np.isin(question.ids, question.exclude)
    rows = np.flatnonzero((question.standing < question.required) & ~barred)
    free = [i for i in range(len(names)) if is_free(question, i)]
    if not len(rows):
        return None
    start = _log_odds(question, x[rows], rows)
    slope = np.zeros((len(rows), len(free)))
    for a, i in enumerate(free):
        step = np.zeros(x.shape[1])
        step[i] = 0.5 * (x[:, i].std() or 1.0)
        slope[:, a] = (_log_odds(question, x[rows] + step, rows) - start) / step[i]
    low, high = np.full(slope.shape, -np.inf), np.full(slope.shape, np.inf)
    for c, row in enumerate(rows.tolist()):
        for a, i in enumerate(free):
            least, most = limits_of(question, names[i], row)
            way = WAYS.get((question.directions or {}).get(names[i], ""), 0.0)
            low[c, a] = 0.0 if way > 0 else min(least - x[row, i], 0.0)
            high[c, a] = 0.0 if way < 0 else max(most - x[row, i], 0.0)
    if not (np.abs(start) < 25).all():
        return None  # so far out the plain model's probabilities have lost the digits of the log-odds
    return Lines(rows, free, slope, _needed(question) - start, low, high)


def _needed(question: Question) -> float:
    if question.model.is_decision:
        return question.required
    t = question.required
    return math.log(t / (1 - t)) if question.is_threshold else 2 * math.atanh(t)


def _log_odds(question: Question, x: Floats, rows: Rows) -> Floats:
    p = question.model.scores(x)[:, 0]
    size = p if question.model.is_decision else np.log(np.maximum(p, 1e-300))
    wanted = question.wanted[rows]
    return np.asarray(size[wanted] - size[~wanted])


def _draws(question: Question, free: list[int], d: Floats) -> dict[str, float]:
    """{budget: part of it that changes d (c, A) of some samples draw}; of budgets with a limit"""
    found = {}
    for name, budget in question.budgets.items():
        if budget.amount == math.inf or not budget.amount:
            continue
        if budget.cost == "count":
            drawn = float(len(d))
        else:
            power = 2 if budget.cost == "squared" else 1
            weights = np.array([budget.weights.get(question.features[i], 0.0) for i in free])
            drawn = float((np.abs(d) ** power @ weights).sum())
        found[name] = drawn / budget.amount
    return found


def _nobody_may(question: Question) -> bool:
    return any(b.cost == "count" and b.amount < 1 for b in question.budgets.values())


@law()
def one_free_feature_of_a_linear_model_gives_the_optimum(answers: Answers) -> Broken:
    """There everyone's cheapest flip is the same at all prices, and the best of all subsets is the optimum."""
    question = answers.question
    if question.has_function or question.groups is not None or question.include:
        return
    lines = lines_of(question)
    if lines is None or len(lines.free) != 1 or len(lines.rows) > MOST_OF_ONE or _nobody_may(question):
        return
    slope = lines.slope[:, 0]
    with np.errstate(divide="ignore"):
        d = np.where(slope != 0, lines.lack / np.where(slope == 0, 1.0, slope), np.inf)
    reachable = (d >= lines.low[:, 0] * (1 - SLACK)) & (d <= lines.high[:, 0] * (1 - SLACK)) & np.isfinite(d)
    worth = question.worths[lines.rows]
    best = 0.0
    for size in range(1, int(reachable.sum()) + 1):
        for who in itertools.combinations(np.flatnonzero(reachable).tolist(), size):
            total = math.fsum(worth[list(who)])
            if not keeps(question, lines.rows[list(who)].tolist()):
                continue
            if total > best and _fit(question, lines.free, d[list(who), None] * (1 + SLACK)):
                best = total
    for solver in (PRICES, *NEARESTS):
        plan = answers.plan(solver)
        if plan is not None and plan.worth < best * (1 - 1e-12):
            yield f"{solver} finds {plan.worth!r}, the optimum is {best!r}"
        if plan is not None and plan.bound is not None and plan.bound < best * (1 - 1e-12):
            yield f"{solver} has the bound {plan.bound!r}, the optimum is {best!r}"


def _fit(question: Question, free: list[int], d: Floats) -> bool:
    return all(part <= 1 - SLACK if name != "people" else part <= 1 for name, part in _draws(question, free, d).items())


@law(every=3)
def no_subset_that_fits_is_worth_more_than_the_bound(answers: Answers) -> Broken:
    """Several free features: whether a subset fits is a convex program."""
    question = answers.question
    if question.has_function or question.groups is not None or question.include or _nobody_may(question):
        return
    lines = lines_of(question)
    if lines is None or len(lines.free) < 2 or not 0 < len(lines.rows) <= MOST:
        return
    plan = answers.plan(PRICES)
    if plan is None or plan.bound is None:
        return
    worth = question.worths[lines.rows]
    lost = set(np.flatnonzero(plan.fates == Fate.UNREACHABLE).tolist())
    for size in range(1, len(lines.rows) + 1):
        for who in itertools.combinations(range(len(lines.rows)), size):
            unreachable = lost & set(lines.rows[list(who)].tolist())
            above = math.fsum(worth[list(who)]) > plan.bound and keeps(question, lines.rows[list(who)].tolist())
            if (above or (unreachable and size == 1)) and _fits_together(question, lines, list(who)):
                ids = [question.ids[j] for j in lines.rows[list(who)]]
                yield f"Prices has the bound {plan.bound!r}; {ids}, worth {math.fsum(worth[list(who)])!r}, fit together"


def _fits_together(question: Question, lines: Lines, who: list[int]) -> bool:
    """Minimise the largest share of a budget, over d = up - down with up, down >= 0."""
    shape = (len(who), len(lines.free))
    slope, lack, low, high = (part[who] for part in (lines.slope, lines.lack, lines.low, lines.high))
    size, cap = np.abs(slope), np.where(slope > 0, high, -low)
    reach = np.multiply(size, cap, out=np.zeros(shape), where=size > 0).sum(axis=1)
    if not (reach > lack * (1 + SLACK)).all():
        return False
    rows = []
    for budget in question.budgets.values():
        if budget.cost == "count":
            if len(who) > budget.amount:
                return False
        elif 0 < budget.amount < math.inf:
            weights = np.array([budget.weights.get(question.features[i], 0.0) for i in lines.free]) / budget.amount
            rows.append((weights, budget.cost == "squared"))
    if not rows:
        return True
    unit = np.maximum(np.abs(lack)[:, None] / np.maximum(np.abs(slope), 1e-9), 1e-9)  # of each change

    def split(v: Floats) -> tuple[Floats, Floats]:
        up, down = v[:-1].reshape(2, *shape)
        return up * unit, down * unit

    def spare(v: Floats) -> Floats:
        up, down = split(v)
        shares = [float((((up - down) ** 2 if squared else up + down) @ w).sum()) for w, squared in rows]
        return np.asarray(v[-1] - np.array(shares))

    def passing(v: Floats) -> Floats:
        up, down = split(v)
        return np.asarray((slope * (up - down)).sum(axis=1) - lack)

    start = np.clip(lack[:, None] * slope / (slope**2).sum(axis=1, keepdims=True), low, high)
    first = np.concatenate([np.maximum(start, 0).ravel() / unit.ravel(), np.maximum(-start, 0).ravel() / unit.ravel()])
    bounds = [(0.0, float(h)) for h in (high / unit).ravel()] + [(0.0, float(-h)) for h in (low / unit).ravel()]
    begun = np.append(first, 1.0)
    begun[-1] = 1.0 + max(0.0, -float(spare(np.append(first, 0.0)).min()))
    found = minimize(
        lambda v: v[-1],
        begun,
        bounds=[*bounds, (0.0, None)],
        constraints=[{"type": "ineq", "fun": spare}, {"type": "ineq", "fun": passing}],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-10},
    )
    # Not believed, but counted again.
    holds = bool((passing(found.x) >= -1e-9).all() and (spare(np.append(found.x[:-1], 1.0 - SLACK)) >= 0).all())
    up, down = split(found.x)
    return holds and bool(((up - down) >= low - 1e-9 * unit).all() and ((up - down) <= high + 1e-9 * unit).all())
