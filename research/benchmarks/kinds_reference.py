"""What the best plan is worth, about, by a search that shares nothing with Prices: for research/benchmarks/kinds.py.

    OPT <= D(lambda) = sum_r lambda_r B_r + sum_j max(0, v_j - C_j(lambda))        for every lambda >= 0

C_j(lambda) is what the cheapest flip of sample j costs at these prices. Here it is the cheapest that anybody found: by
the search below, again and again from other starts, and in the plans of all solvers. D is then made least over the
prices. It is an estimate: if still cheaper flips exist, it is too low. Otherwise it is too high, since no plan of whole
samples reaches D exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp, minimize
from scipy.sparse import csr_array

from maxflip import Problem
from maxflip.search import FeaturePrices
from maxflip.search.surface import Surface
from research.benchmarks.prices_cases import Floats, Rows

STEPS = 60
FIRST, LAST = 1.0, 1e-4  # how far a step may go in a feature: parts of what a sample's whole worth buys of it alone
FURTHEST = 5.0  # ... and of the feature's standard deviations
FLAT = 1e-4  # of an absolute price: the bend that it is given, so that every step has one answer
BISECTIONS = 40
SOFT = (0.1, 0.03, 0.01, 0.003, 0.001)  # of a worth: how wide the corners of D are rounded, one after the other
NOTHING = 1e-7  # of all worths: a budget that is worth less as a whole may as well be free
BAND = 0.1  # of its worth: what a flip may cost more than the best of its sample and be offered to the 0/1 program
CHUNK = 5000  # samples searched at a time
NEAR = 2.5  # of its worth: a sample whose flips cost more is not searched again


@dataclass(eq=False)
class Pool:
    """Flips that anybody found: rows (c,), changes (c, F), and what they draw of each budget, (c, m).

    some: the samples that are asked about, and share as small a part of each budget, `amounts`; None: all samples
    """

    problem: Problem
    some: Rows | None = None
    rows: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    changes: Floats = field(init=False)
    drawn: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.members = np.arange(len(self.problem)) if self.some is None else self.some
        self.amounts = len(self.members) / len(self.problem) * self.problem.ledger.amounts
        self.changes = np.empty((0, self.problem.width))
        self.drawn = np.empty((0, len(self.amounts)))

    def add(self, rows: Rows, changes: Floats) -> None:
        """Kept in the order of rows, so that the flips of one sample stand together."""
        rows = np.concatenate([self.rows, rows])
        order = np.argsort(rows, kind="stable")
        drawn = self.problem.ledger.consumption(changes)
        self.changes = np.concatenate([self.changes, changes])[order]
        self.drawn = np.concatenate([self.drawn, drawn])[order]
        self.rows = rows[order]

    def of(self, which: NDArray[np.bool_], members: Rows | None = None) -> Pool:
        """With these of the flips alone, (c,)."""
        part = Pool(self.problem, self.members if members is None else members)
        part.rows, part.changes, part.drawn = self.rows[which], self.changes[which], self.drawn[which]
        return part

    def without_the_dear(self, prices: Floats, most: float) -> Pool:
        """Without flips that cost so many worths more than the best of their sample, at these prices."""
        cost = self.drawn @ prices
        cheapest = np.full(len(self.problem), np.inf)
        np.minimum.at(cheapest, self.rows, cost)
        return self.of(cost <= cheapest[self.rows] + most * self.problem.worth[self.rows])

    def cheapest(self, prices: Floats) -> tuple[Floats, Floats]:
        """(n,), (n, F): each sample's cheapest cost, inf where there is no flip, and that flip"""
        cost = self.drawn @ prices
        order = np.lexsort((cost, self.rows))
        rows, first = np.unique(self.rows[order], return_index=True)
        costs, changes = np.full(len(self.problem), np.inf), np.zeros((len(self.problem), self.problem.width))
        costs[rows], changes[rows] = cost[order][first], self.changes[order][first]
        return costs, changes

    def gains(self, prices: Floats) -> Floats:
        """(n,): what each sample adds to D"""
        return np.maximum(self.problem.worth - self.cheapest(prices)[0], 0.0)

    def dual(self, prices: Floats) -> float:
        return float(prices @ self.amounts + self.gains(prices)[self.members].sum())

    def least(self, start: Floats, factor: float) -> Floats:
        """(m,): the prices at which D is least, no further from start than a factor: with rounded corners, by a
        quasi-Newton method, ever less rounded."""
        amounts, worth = self.amounts, self.problem.worth
        _, begin, sample = np.unique(self.rows, return_index=True, return_inverse=True)
        whole, own = float(worth.sum()), worth[self.rows]
        share = self.drawn / amounts
        q, best = start * amounts / whole, start
        bounds = [(a / factor if a > NOTHING else 0.0, max(a, NOTHING) * factor) for a in q.tolist()]
        for soft in SOFT:
            width = soft * own

            def rounded(q: Floats, width: Floats = width) -> tuple[float, Floats]:
                gain = (own - share @ (q * whole)) / width
                most = np.maximum(np.maximum.reduceat(gain, begin), 0.0)
                part = np.exp(gain - most[sample])
                total = np.exp(-most) + np.add.reduceat(part, begin)
                value = (width[begin] * (most + np.log(total))).sum()
                slope = 1.0 - (part / total[sample]) @ share
                return float(q.sum() + value / whole), slope

            q = minimize(rounded, q, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300}).x
            prices = q * whole / amounts
            if self.dual(prices) < self.dual(best):
                best = prices
        return best


def units(surface: Surface, worth: torch.Tensor, spread: Floats) -> torch.Tensor:
    """(B, A): how much of one feature alone the whole worth of a sample buys: s y^2 + l y = v, solved for y."""
    s, l, v = surface.rates.up.squared, surface.rates.up.absolute, worth[:, None]  # noqa: E741
    bought = 2 * v / (l + (l**2 + 4 * s * v).sqrt())
    return torch.minimum(bought, FURTHEST * torch.as_tensor(spread)[None])


def cheapest_beyond(
    g: torch.Tensor,
    r: torch.Tensor,
    s: torch.Tensor,
    l: torch.Tensor,  # noqa: E741
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """(B, A): min sum_i s_i d_i^2 + l_i |d_i|  s.t.  g . d >= r, low <= d <= high; the furthest corner where none is.

    In the directions of g, y_i = sign(g_i) d_i: y(nu) = clip((nu |g| - l)^+ / (2 s)) grows with nu, which is found by
    bisection on a scale of logarithms.
    """
    size = g.abs()
    least = torch.where(g > 0, low, -high)
    most = torch.where(g > 0, high, -low)
    slope, offset, floor = size / (2 * s), -l / (2 * s), least.clamp_min(0.0)

    def at(nu: torch.Tensor) -> torch.Tensor:
        return torch.addcmul(offset, nu[:, None], slope).clamp(floor, most)

    last = torch.where(size > 0, (l + 2 * s * most.clamp_min(0.0)) / size, 0.0)  # where y_i is at its end
    enough = 2 * last.amax(dim=1).clamp_min(1e-300)
    short = enough * 1e-20
    for _ in range(BISECTIONS):
        middle = (enough * short).sqrt()
        reached = torch.einsum("bi,bi->b", size, at(middle)) >= r
        enough, short = torch.where(reached, middle, enough), torch.where(reached, short, middle)
    return torch.sign(g) * at(enough)


@dataclass(eq=False)
class Found:
    """cost (B,), inf where there is no flip; change (B, A)"""

    cost: torch.Tensor
    change: torch.Tensor

    def record(self, at: torch.Tensor, change: torch.Tensor, cost: torch.Tensor, passes: torch.Tensor) -> None:
        better = passes & (cost < self.cost[at])
        self.cost[at[better]], self.change[at[better]] = cost[better], change[better]


def walk(
    surface: Surface, unit: torch.Tensor, start: torch.Tensor, found: Found, steps: int = STEPS, first: float = FIRST
) -> None:
    """From start (B, A): the surface is replaced by its tangent plane where one stands, the cheapest change beyond the
    plane is taken as far as a step may go, and steps become ever shorter. Records what passes."""
    everyone = torch.arange(len(start))
    s, l = surface.rates.up.squared, surface.rates.up.absolute  # noqa: E741
    bent = torch.where(s > FLAT * l / unit, s.expand_as(unit), FLAT * l / unit)
    d, lift = start.clone(), torch.zeros(len(start), dtype=torch.float64)
    for k in range(steps + 1):
        m, g = surface.margin_and_gradient(d, everyone)
        found.record(everyone, d, (s * d**2 + l * d.abs()).sum(1), m >= 0)
        if k == steps:
            return
        # Behind a plane that was not enough, a little further the next time.
        lift = torch.where((m < 0) & (k > 0) & torch.isfinite(m), torch.maximum(0.5 * lift, -1.2 * m), 0.5 * lift)
        lift = torch.minimum(lift, 0.3 * g.norm(dim=1) * unit.norm(dim=1)) if k == 0 else lift
        length = first * (LAST / first) ** (k / steps) * unit
        low, high = torch.maximum(surface.low, d - length), torch.minimum(surface.high, d + length)
        d = cheapest_beyond(g, (g * d).sum(1) - m + (lift if k % 2 else 0.0), bent, l, low, high)


def search(
    problem: Problem, rows: Rows, prices: Floats, starts: int, seed: int, known: Floats, steps: int = STEPS
) -> tuple[Rows, Floats]:
    """Flips of these rows at these prices: (c,), (c, F). From nothing, from what is known (B, F), and `starts` times
    from random changes and from other samples' flips in turn."""
    surface = Surface(problem, rows, FeaturePrices.at(problem, prices))
    worth = torch.as_tensor(np.maximum(problem.worth[rows] - prices @ problem.ledger.flat, 0.01 * problem.worth[rows]))
    unit = units(surface, worth, problem.spread)
    shape = surface.low.shape
    found = Found(torch.full(shape[:1], torch.inf, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64))
    draw = torch.Generator().manual_seed(seed)
    begin = torch.as_tensor(known[:, problem.actionable])
    if starts or not known.any(axis=1).all():
        walk(surface, unit, torch.zeros(shape, dtype=torch.float64), found, steps)
    if known.any():
        walk(surface, unit, begin, found, steps, first=0.1 * FIRST)
    for number in range(starts):
        if number % 2 and torch.isfinite(found.cost).any():
            others = torch.nonzero(torch.isfinite(found.cost)).flatten()
            start = found.change[others[torch.randint(len(others), shape[:1], generator=draw)]]
        else:
            some = torch.rand(shape, generator=draw, dtype=torch.float64) < 0.5
            start = some * unit * torch.randn(shape, generator=draw, dtype=torch.float64)
        walk(surface, unit, start.clamp(surface.low, surface.high), found, steps, (1.0, 1.0, 0.3, 0.3)[number % 4])
    has = torch.isfinite(found.cost).numpy()
    changes = np.zeros((int(has.sum()), problem.width))
    changes[:, problem.actionable] = found.change.numpy()[has]
    return rows[has], problem.settle(rows[has], changes)


@dataclass(frozen=True)
class Reference:
    """value: D at its least, by the cheapest flips known   error: its standard error, where only some were searched for
    long   least: D at prices where nobody has searched, so perhaps too low   shaved: what the long search left of the
    cost of the short one's flips, on average   whole: the worth of the best plan that a 0/1 program makes of all flips
    """

    value: float
    error: float
    least: float
    shaved: float
    whole: float | None


FEW = 600  # samples that are all searched for long
SOME = 3000  # samples among whom prices are looked for, where there are more
DRAWN = 300  # samples that are searched for long, where not all are
SHORT_STEPS = 25


@dataclass(frozen=True)
class Effort:
    """few_rounds, rounds: of prices, among few and among many   long_rounds, long_starts: the last of them among few,
    and starts there   longest_starts: of a draw from many   seconds: that the 0/1 program may take"""

    few_rounds: int
    rounds: int
    long_rounds: int
    long_starts: int
    longest_starts: int
    seconds: float


FULL, QUICK = Effort(20, 8, 4, 10, 40, 20.0), Effort(8, 3, 2, 4, 12, 5.0)
WIDE, NARROW = 1.5, 1.02  # by which factor prices may change in a round, at first and when they are nearly right
WIDEST = 100.0  # ... and at first where nothing is known of them
SHRINK = 0.6  # its exponent, where that led astray
LITTLE = 1e-5  # of all worths: what a budget without a price is worth at first


def reference(
    problem: Problem,
    known: Sequence[tuple[Rows, Floats]],
    prices_of_plan: Mapping[str, float] | None,
    effort: Effort = FULL,
    seed: int = 0,
) -> Reference:
    """known: flips of plans   prices_of_plan: where to begin   Nobody passes at the start."""
    pool, prices = Pool(problem), first_prices(problem, prices_of_plan)
    factor = WIDE if _says_something(prices_of_plan) else WIDEST
    for rows, changes in known:
        pool.add(rows, changes)
    if len(problem) <= FEW:
        prices = priced(pool, prices, effort.few_rounds, 0, seed, factor=factor)
        prices = priced(pool, prices, effort.long_rounds, effort.long_starts, seed + 100, factor=NARROW)
        least = pool.dual(pool.least(prices, WIDE))
        found = Reference(pool.dual(prices), 0.0, least, 1.0, whole_plan(pool, prices, effort.seconds))
    else:
        found = _of_many(pool, prices, effort, seed, factor)
    cap = most_by_count(problem)
    return found if found.value <= cap else replace(found, value=cap, error=0.0)


def most_by_count(problem: Problem) -> float:
    """D where a count of people alone has a price: what as many as may be picked are worth, those worth most."""
    caps = problem.ledger.amounts[problem.ledger.counts]
    return float(np.sort(problem.worth)[::-1][: int(min(caps.min(initial=np.inf), len(problem)))].sum())


def first_prices(problem: Problem, told: Mapping[str, float] | None) -> Floats:
    """(m,): those of a plan, and a little where it has none; any prices make a D that is not too low. Without a plan,
    those at which all budgets together are worth half of what all samples are."""
    amounts, whole = problem.ledger.amounts, float(problem.worth.sum())
    if told is None or not any(told.values()):
        return np.asarray(0.5 * whole / len(amounts) / amounts)
    return np.maximum([told[name] for name in problem.ledger.names], LITTLE * whole / amounts)


def _says_something(prices: Mapping[str, float] | None) -> bool:
    return prices is not None and any(prices.values())


def priced(
    pool: Pool, prices: Floats, rounds: int, starts: int, seed: int, steps: int = STEPS, factor: float = WIDE
) -> Floats:
    """The best prices that were searched at. Each round searches at those where D would be least if no other flips
    existed, no further from the best prices than a factor, which shrinks where that led astray."""
    look(pool, pool.members, prices, starts, seed, steps)
    for number in range(rounds):
        there = pool.least(prices, factor)
        look(pool, pool.members, there, starts, seed + number, steps)
        if pool.dual(there) < pool.dual(prices):
            prices = there
        else:
            factor = factor**SHRINK
    return prices


def look(pool: Pool, rows: Rows, prices: Floats, starts: int, seed: int, steps: int = STEPS) -> None:
    """The flips of these rows at these prices go into the pool, but for those that cost far too much."""
    costs, known = pool.cheapest(prices)
    near = rows[~np.isfinite(costs[rows]) | (costs[rows] <= NEAR * pool.problem.worth[rows])]
    has = np.isfinite(costs[near])
    for which in (near[has], near[~has]):
        for begin in range(0, len(which), CHUNK):
            some = which[begin : begin + CHUNK]
            pool.add(*search(pool.problem, some, prices, starts, seed, known[some], steps))


def _of_many(pool: Pool, prices: Floats, effort: Effort, seed: int, factor: float) -> Reference:
    """D by the flips of a short search for everyone, plus what a long search of a random draw adds to it, times how
    many samples each of the draw stands for. Where both find the same flips the draw adds no noise."""
    problem = pool.problem
    n, rng = len(problem), np.random.default_rng([seed, 23])
    look(pool, pool.members, prices, 0, seed, SHORT_STEPS)
    if n > SOME:
        members = np.sort(rng.permutation(n)[:SOME])
        some = pool.of(np.isin(pool.rows, members), members)
        there = priced(some, prices, effort.rounds, 0, seed, SHORT_STEPS, factor)
        look(pool, pool.members, there, 0, seed, SHORT_STEPS)
        prices = min(prices, there, key=pool.dual)
    else:
        prices = priced(pool, prices, effort.rounds, 0, seed, SHORT_STEPS, factor)
    drawn = np.sort(rng.permutation(n)[:DRAWN])
    before, short = pool.gains(prices), pool.cheapest(prices)[0][drawn]
    value = pool.dual(prices)
    look(pool, drawn, prices, effort.longest_starts, seed + 100)
    won = (pool.gains(prices) - before)[drawn]
    long = pool.cheapest(prices)[0][drawn]
    matter = np.isfinite(short) & (long < problem.worth[drawn])
    error = n * won.std(ddof=1) / np.sqrt(len(drawn)) * np.sqrt(1 - len(drawn) / n)
    shaved = float((long[matter] / short[matter]).mean()) if matter.any() else 1.0
    return Reference(value + n * float(won.mean()), float(error), pool.dual(pool.least(prices, WIDE)), shaved, None)


def whole_plan(pool: Pool, prices: Floats, seconds: float) -> float:
    """At most one flip of each sample within all budgets, by HiGHS."""
    pool = pool.without_the_dear(prices, BAND)
    problem = pool.problem
    worth = problem.worth[pool.rows] / problem.worth.max()
    rows, sample = np.unique(pool.rows, return_inverse=True)
    one = csr_array((np.ones(len(sample)), (sample, np.arange(len(sample)))), shape=(len(rows), len(sample)))
    share = csr_array(pool.drawn.T / problem.ledger.amounts[:, None])
    found = milp(
        -worth,
        integrality=np.ones(len(worth)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(one, ub=1), LinearConstraint(share, ub=1 - 1e-9)],
        options={"time_limit": seconds, "mip_rel_gap": 1e-5},
    )
    if found.x is None:
        return 0.0
    chosen = np.flatnonzero(found.x > 0.5)
    if not problem.ledger.fits(pool.changes[chosen]):
        return 0.0
    return float(problem.worth[pool.rows[chosen]].sum())
