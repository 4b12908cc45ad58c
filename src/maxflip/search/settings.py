"""The constants of the searches for cheap flips: one frozen dataclass for each algorithm, and the one that is used.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic
    (reach)       measured with these values: docs/results/flips.md, "Within limits" (research/benchmarks/reach.py)
    (kinds)       set while docs/results/kinds.md was measured; the page says that several settings were chosen by
                  trying variants on its cells, but not which
    (not tuned)   no measurement of this value alone is known

The docstring of a class names the page that measures the algorithm as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Gait:
    """The schedule of a walk: number of steps, length of a step (`stride`) and change of the radius in a step (`rate`).

    Stride and rate are given at the first and the last step, relative to the radius. The stride falls like a cosine,
    the rate geometrically.
    """

    steps: int
    stride: tuple[float, float]
    rate: tuple[float, float]

    def at(self, k: int) -> tuple[float, float]:
        part = k / self.steps
        first, last = self.stride
        length = last + (first - last) * (1 + math.cos(math.pi * part)) / 2
        return length, self.rate[0] * (self.rate[1] / self.rate[0]) ** part


@dataclass(frozen=True, kw_only=True)
class GradientSearch:
    """`gradient`. As a whole: docs/results/flips.md. `touch_up`, `follow`: the ablations of docs/results/prices.md."""

    # Walk from the start. (the schedule as in DDN: standard; the numbers: not tuned)
    explore: Gait = Gait(steps=20, stride=(0.7, 0.01), rate=(0.3, 0.01))
    # Walk from a point in the direction of another sample's flip. (not tuned)
    follow: Gait = Gait(steps=20, stride=(0.3, 0.01), rate=(0.2, 0.01))
    # Walk from a flip, with small steps. (not tuned)
    refine: Gait = Gait(steps=20, stride=(0.1, 0.005), rate=(0.03, 0.003))
    # Walk from a flip in a crease of the surface. (ablations of docs/results/prices.md: wins 0.3 to 0.4 % of the flips)
    touch_up: Gait = Gait(steps=8, stride=(0.2, 0.005), rate=(0.03, 0.001))
    # The same, at prices that are nearly final. (not tuned)
    finish: Gait = Gait(steps=16, stride=(0.1, 0.005), rate=(0.03, 0.001))
    # First radius of a walk, as a multiple of the distance to the tangent plane at the start. (not tuned)
    first_radius: float = 1.5
    # Steps of a climb, at most. (not tuned)
    climb_steps: int = 40
    # With limits: consecutive steps without a rise of m after which a climb ends. (reach)
    climb_patience: int = 4
    # Length of a climbing step, as a multiple of the distance to the tangent plane. (not tuned)
    climb_overshoot: float = 1.2
    # Bisections while the flip will still change. (not tuned)
    brief_bisections: int = 3
    # Bisections before a walk from a flip. (not tuned)
    rough_bisections: int = 5
    # Bisections at the end. (not tuned)
    close_bisections: int = 10
    # SQP steps at the end of a search, at most. (not tuned)
    descents: int = 6
    # Weight of max(0, -m) in the merit of an SQP step: this multiple of the multiplier of the step ... (standard)
    merit_weight: float = 2.0
    # ... or, if limits do not allow the tangent plane, of the cost of the furthest corner / |m|. (not tuned)
    merit_weight_beyond: float = 10.0
    # Halvings of an SQP step that does not lower the merit, at most. (not tuned)
    halvings: int = 4
    # A flip lies in a crease if its tangent plane promises to save more than this part of its cost. (not tuned)
    creased: float = 1e-3
    # A descent has converged if the cost changes by less than this part. (not tuned)
    converged: float = 1e-4
    # Changes that end just before the surface are lengthened by these parts. (not tuned)
    stretches: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)
    # Samples whose flips others try ("leaders"), at most. (not tuned)
    leaders: int = 16
    # A leader's direction is tried at this part of the length of the sample's own flip. (not tuned)
    leader_length: float = 0.9
    # The sample walks from there if the promised flip costs less than this part of its own. (not tuned)
    promising: float = 0.95
    # Samples without a flip try a leader's flip at these multiples. (not tuned)
    leader_multiples: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    # Lower limit of divisors. A larger value would depend on the units of a flat model. (float64)
    smallest: float = 1e-100


@dataclass(frozen=True, kw_only=True)
class TrustRegionSearch:
    """`trust`. As a whole: docs/results/kinds.md, the cells with absolute budgets."""

    # Gradients of a descent. (kinds)
    steps: int = 8
    # First radius t. (kinds)
    first_radius: float = 0.3
    # Radii of the steps compared for each gradient, as multiples of t. (kinds)
    radii: tuple[float, ...] = (1.0, 0.4, 0.16)
    # The next t is this multiple of the radius taken, if the merit fell ... (standard)
    wider: float = 2.0
    # ... and this one if not. (standard)
    narrower: float = 0.5
    # A descent has converged at this t. (kinds)
    last_radius: float = 1e-3
    # Weight of max(0, -m) in the merit: this multiple of the least cost of one unit of m ... (kinds)
    weight: float = 2.0
    # ... and at least this part of the weight in the step before. (kinds)
    weight_kept: float = 0.9
    # Steps aim beyond the tangent plane by this part of max(0, -m) ... (kinds)
    beyond: float = 0.3
    # ... and by at least this part of the rise of m per unit, so that rounding does not leave m < 0. (float64)
    inside: float = 1e-6
    # Cost of a unit in a first search, as a multiple of the cost of the tangent plane's flip. (kinds)
    first_unit: float = 8.0
    # Squared price that makes a step unique: this part of the absolute price, per unit. (kinds)
    curvature: float = 1e-6
    # Longest unit, in spreads of the feature. (not tuned)
    longest_unit: float = 10.0
    # Bisections of the multiplier of a step. (not tuned)
    bisections: int = 16
    # Starts tried: flips of this many nearest neighbours ... (kinds)
    neighbours: int = 32
    # ... and of this many samples, evenly spaced by cost. (kinds)
    others: int = 32
    # Their flips are scaled to cost this part of the sample's own. (not tuned)
    leader_cost: float = 0.9


@dataclass(frozen=True, kw_only=True)
class LastResortSearch:
    """`last_resort`. As a whole: docs/results/flips.md, "Within limits"; all values are those of that measurement."""

    # Corners of the limits that are tried, at most. (reach)
    corners: int = 64
    # End points of other samples' flips that are tried, at most. (reach)
    others: int = 128
    # Distance of a corner without a limit, in spreads; widths count as at most twice this. (reach)
    far: float = 10.0
    # Steps of an ascent. (reach)
    steps: int = 15
    # First and last step of an ascent, in widths of the limits. (reach)
    stride: tuple[float, float] = (0.3, 0.01)
    # Ascents of a sample, at most. (reach)
    ascents: int = 16
    # Gradients of all ascents together, at most, for each sample without a flip ... (reach)
    gradients_per_lost: int = 30
    # ... and for each sample searched. (reach)
    gradients_per_sample: int = 5


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """`grid`: flips at rounded values."""

    # A flip that was computed has m = 0, which rounding may put so far below; a guard is far more. (float64)
    rounding: float = 1e-12
    # Iterations that raise m, at most. (not tuned)
    raises: int = 30
    # Iterations that lower the cost, at most. (not tuned)
    lowers: int = 8
    # If no flip is found, these multiples of the change are rounded. (not tuned)
    longer: tuple[float, ...] = (1.03, 1.1, 1.25, 1.5, 2.0)
    # A value is not coarse if its spacing changes m by at most this part of the wanted change of m. (not tuned)
    fine: float = 0.1
    # Such values aim for this multiple of -m. (not tuned)
    overshoot: float = 1.001
    # A value is on a multiple if it is this close, in parts of the spacing. (float64)
    on_a_multiple: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class FewSearch:
    """`few`: flips that change few features."""

    # Choices of features that are tried, at most, each at the flip by those before. (not tuned)
    rounds: int = 3
    # SQP steps with the features that were chosen, at most. (not tuned)
    descents: int = 4


@dataclass(frozen=True, kw_only=True)
class PlaneSearch:
    """`plane`: changes onto tangent planes that may be stored."""

    # Multipliers at which changes are compared ... (not tuned)
    multipliers: int = 24
    # ... the least of them, as a part of the largest ... (not tuned)
    least_multiplier: float = 1e-3
    # ... which is this multiple of what the longest change that can be needed takes. (not tuned)
    beyond: float = 2.0


@dataclass(frozen=True, kw_only=True)
class ExchangeSearch:
    """`exchange`: cheaper flips by pairs of moves."""

    # Exchanges of a sample, at most. (not tuned)
    turns: int = 8
    # Pairs that are judged in a turn, the cheapest ones. (not tuned)
    tried: int = 16
    # Slots among which pairs are made, at most. (not tuned)
    slots: int = 32
    # Pairs that are computed at a time, at most. (not tuned)
    pairs: int = 500_000
    # A pair saves at least this part of the cost. (float64)
    least_saving: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class TidySearch:
    """`tidy`: flips without trifles."""

    # What a flip with fewer changes may cost more, as a part of its cost: what Problem(tidy=) promises.
    dearer: float = 0.01
    # Sets of changes that are tried, at most. (not tuned)
    turns: int = 6
    # Steps of the bisection for the shortest flip. (not tuned)
    halvings: int = 8
    # Changes become longer by this factor at most. (reach)
    longest: float = 1e6
    # Flips of a batch, at most. (not tuned)
    chunk: int = 4096
    # Without gradients: rounds of repair among the changes that are left. (not tuned)
    restarts: int = 2


@dataclass(frozen=True, kw_only=True)
class LinearSearch:
    """`linear`, `convex`, `halfspace` and `terms`: exact flips and proofs. tests/test_linear_exact.py asks for 1e-9."""

    # In logits: implied half-spaces, which only guide the solver, are moved out by this. (not tuned)
    guide_distance: float = 1.0
    # Additional required lead, tried in turn until the model, which rounds, accepts the flip. (float64)
    aims: tuple[float, ...] = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
    # Convex sets whose union is searched, at most. (not tuned)
    sets: int = 64
    # Price of relaxing the constraints, in costs of crossing the dearest of them alone; tried in turn. (not tuned)
    relaxing_prices: tuple[float, ...] = (1e2, 1e5, 1e8, 1e11)
    # A squared price counts as 0 if, at the longest change that can be needed, it adds less than this part of the
    # absolute one. Otherwise (nu |g_i| - l_i) / (2 s_i) would consist of rounding errors. (float64)
    negligible_square: float = 1e-10
    # A proof of unreachability leaves this relative room for rounding. (float64)
    sure: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class InteriorPoint:
    """`interior`: Mehrotra's predictor-corrector, for a batch of programs. tests/test_linear_exact.py asks for 1e-9."""

    # A sample is done when cost and bound differ by this part. (float64)
    closed_gap: float = 3e-12
    # Length of a step, as a part of the way to the boundary: far from the solution, and near it. (standard)
    back_off: tuple[float, float] = (0.995, 0.999)
    # Least target of the products slack x dual, as a share of the largest primal residual x dual. (not tuned)
    central: float = 0.1
    # Least product slack x dual, as a share of their mean. (standard)
    least_share: float = 1e-3
    # Lower limit of slacks, duals and divisors. (float64)
    least: float = 1e-200
    # Iterations after which finished samples are removed from the batch. (not tuned)
    pause: int = 8
    # Iterations without a feasible point after which infeasibility is tested. (not tuned)
    doubt: int = 12
    # Iterations without a feasible point after which a sample is dropped: in a short search ... (not tuned)
    hasty: int = 30
    # ... and in a long one, which small sets need at very unequal prices. (not tuned)
    patient: int = 100
    # Further iterations for samples that have a feasible point. (not tuned)
    onward: int = 30
    # A system of at most 2 x features + this many rows is solved whole. (not tuned)
    spare_rows: int = 16
    # Iterative refinements if there are more rows. (not tuned)
    refinements: int = 3
    # Added to the diagonal (of ones) of a numerically singular matrix. (float64)
    jitter: float = 1e-13
    # A point is feasible if h >= -this, relative to 1 + |z|. (float64)
    rounding: float = 1e-15


@dataclass(frozen=True, kw_only=True)
class TreeSearch:
    """`trees`: flips through tree ensembles. As a whole: research/benchmarks/tree_flips.py.

    Measured there on 60 samples of credit_default and of HELOC each, LightGBM and random forest, 300 trees of depth 6,
    at two price vectors, beside beam 64 with 300 rounds: (trees). A round of repair takes 0.4 to 1.3 ms.
    """

    # Rounds of destroy and repair. With 8 and 30, costs in total are 0 to 19 % and 0 to 1.5 % above the best known, in
    # half of the eight cells 1.5 and 0.2 %. (trees)
    restarts: int = 30
    # States of the beam; 0: no beam. It finds what no single move shows: of one sample in 60 of credit_default the walk
    # alone found a flip that cost 100 times as much. It takes as long as 4 rounds. (trees)
    beam: int = 4
    # Part of the cost of the flip that is added to the cost of each move where moves are compared, at most. So walks
    # are shorter. At 0.1 a round takes twice as long, with the same costs. (trees)
    pad: float = 0.5
    # A walk ends where it costs more than this times the best flip, which moves back may still undercut. (not tuned)
    dearer: float = 1.2
    # Part of the changes that a round takes back: from, to. From 0.3 to 0.7, a round takes half as long again. (trees)
    taken_back: tuple[float, float] = (0.1, 0.5)
    # Every so many rounds, a walk begins anew at random cells. (the known answers of tests/trees)
    anew: int = 6
    # Without a flip, so many times as many rounds, until there is one. (the same)
    lost: int = 4
    # Guards by which flips exceed the required confidence, tried in turn: sums of float32 round. (float64)
    guards: tuple[float, ...] = (2.0, 20.0, 200.0)
    # A proof of unreachability leaves this relative room for rounding, in float32 too. (float64)
    sure: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class Pricing:
    """`prices`, `surface`, and all prices 1 / amount."""

    # Guards by which searches exceed the required confidence; the judge requires one. (not tuned)
    guards: float = 2.0
    # The guard of outputs near 1. m of decision values is scaled as if they had it. (float64)
    typical_guard: float = 1e-9
    # Price of a feature whose budgets are all free, as a part of the dearest feature's, both per standard deviation. At
    # price 0 it would change without end. (not tuned)
    free: float = 1e-9
    # Smaller budgets get the price of this one: 1 / 5e-324 is not finite. (float64)
    smallest_budget: float = 1e-100
    # Larger budgets count as unlimited. (float64)
    largest_budget: float = 1e100


GRADIENT = GradientSearch()
TRUST = TrustRegionSearch()
LAST_RESORT = LastResortSearch()
GRID = GridSearch()
FEW = FewSearch()
PLANE = PlaneSearch()
EXCHANGE = ExchangeSearch()
TIDY = TidySearch()
LINEAR = LinearSearch()
INTERIOR = InteriorPoint()
TREES = TreeSearch()
PRICING = Pricing()
