"""The constants of the searches for cheap flips: one frozen dataclass for each algorithm, and the one that is used.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic
    (reach)       measured with these values: docs/results/flips.md, "Within limits" (benchmarks/reach.py)
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
    """How a walk goes: the number of its steps, the length of a step (`stride`) and the rate at which the radius
    changes (`rate`). Each is given at the first and at the last step, relative to the radius. The length falls by a
    cosine, the rate falls geometrically.
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
    """`gradient`. As a whole: docs/results/flips.md, beside other methods. Touching up and following others: the
    ablations of docs/results/prices.md."""

    # Walk from the start. (the schedule as in DDN: standard; the numbers: not tuned)
    explore: Gait = Gait(steps=20, stride=(0.7, 0.01), rate=(0.3, 0.01))
    # Walk from where another sample's direction leads. (not tuned)
    follow: Gait = Gait(steps=20, stride=(0.3, 0.01), rate=(0.2, 0.01))
    # Walk from a flip, with small steps. (not tuned)
    refine: Gait = Gait(steps=20, stride=(0.1, 0.005), rate=(0.03, 0.003))
    # Walk from a flip in a crease of the surface. (ablations of docs/results/prices.md: wins 0.3 to 0.4 % of the flips)
    touch_up: Gait = Gait(steps=8, stride=(0.2, 0.005), rate=(0.03, 0.001))
    # The same, at prices that will hardly change any more. (not tuned)
    finish: Gait = Gait(steps=16, stride=(0.1, 0.005), rate=(0.03, 0.001))
    # First radius of a walk, as a multiple of the distance to the surface by the gradient at the start. (not tuned)
    first_radius: float = 1.5
    # Steps of a climb, at most. (not tuned)
    climb_steps: int = 40
    # Within limits: a climb ends after so many steps in a row that do not raise m. (reach)
    climb_patience: int = 4
    # A climb aims this many times as far as the tangent plane says. (not tuned)
    climb_overshoot: float = 1.2
    # Bisections before and in the middle of a search, where the flip will still change. (not tuned)
    brief_bisections: int = 3
    # Bisections before a walk from a flip. (not tuned)
    rough_bisections: int = 5
    # Bisections at the end. (not tuned)
    close_bisections: int = 10
    # SQP steps at the end of a search, at most. (not tuned)
    descents: int = 6
    # Weight of what m lacks in the merit of an SQP step: so many times the multiplier of the step ... (standard)
    merit_weight: float = 2.0
    # ... or, if the tangent plane is out of reach, so many times the price of its furthest corner. (not tuned)
    merit_weight_beyond: float = 10.0
    # Halvings of an SQP step that does not lower the merit, at most. (not tuned)
    halvings: int = 4
    # A flip lies in a crease if its tangent plane promises to save more than this part of its cost. (not tuned)
    creased: float = 1e-3
    # A descent has converged if the cost changes by less than this part. (not tuned)
    converged: float = 1e-4
    # A descent may end just in front of the surface: its end is lengthened by these parts. (not tuned)
    stretches: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)
    # Samples whose directions the others try, at most. (not tuned)
    leaders: int = 16
    # A direction is tried at this part of the length of the sample's own flip. (not tuned)
    leader_length: float = 0.9
    # It is walked if it promises a flip that costs less than this part of the sample's own. (not tuned)
    promising: float = 0.95
    # Samples without a flip try a leader's flip at these multiples. (not tuned)
    leader_multiples: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    # Keeps quotients finite. With a larger value the units of a flat model would matter. (float64)
    smallest: float = 1e-100


@dataclass(frozen=True, kw_only=True)
class TrustRegionSearch:
    """`trust`. As a whole: docs/results/kinds.md, the cells with absolute budgets."""

    # Gradients of a descent. (kinds)
    steps: int = 8
    # Radius t at first. (kinds)
    first_radius: float = 0.3
    # The steps compared for each gradient have these multiples of t as radius. (kinds)
    radii: tuple[float, ...] = (1.0, 0.4, 0.16)
    # The next t is this multiple of the radius taken, if the merit fell ... (standard)
    wider: float = 2.0
    # ... and this one if not. (standard)
    narrower: float = 0.5
    # A descent has converged at this t. (kinds)
    last_radius: float = 1e-3
    # Weight of the merit: so many times the least price of a unit of m ... (kinds)
    weight: float = 2.0
    # ... and at least this part of the weight of the step before. (kinds)
    weight_kept: float = 0.9
    # Steps aim beyond the tangent plane by this part of what m lacks ... (kinds)
    beyond: float = 0.3
    # ... and by at least this part of what a unit wins, so that rounding does not leave them just outside. (float64)
    inside: float = 1e-6
    # The unit of a first search buys so many times the cost of the flip that the tangent plane promises. (kinds)
    first_unit: float = 8.0
    # Curvature that makes a step unique: this part of an absolute price, per unit. (kinds)
    curvature: float = 1e-6
    # No unit is longer than so many spreads of the feature. (not tuned)
    longest_unit: float = 10.0
    # Bisections of the multiplier of a step. (not tuned)
    bisections: int = 16
    # Starts tried: flips of so many nearest samples ... (kinds)
    neighbours: int = 32
    # ... and of so many samples spaced evenly by cost. (kinds)
    others: int = 32
    # Their flips are scaled to cost this part of the sample's own. (not tuned)
    leader_cost: float = 0.9


@dataclass(frozen=True, kw_only=True)
class LastResortSearch:
    """`last_resort`. As a whole: docs/results/flips.md, "Within limits"; all values are those of that measurement."""

    # Corners of the limits that are tried, at most. (reach)
    corners: int = 64
    # Ends of other samples' flips that are tried, at most. (reach)
    others: int = 128
    # Without a limit a corner lies so many spreads of the feature away; it is half the widest width too. (reach)
    far: float = 10.0
    # Steps of an ascent. (reach)
    steps: int = 15
    # First and last step of an ascent, in widths of the limits. (reach)
    stride: tuple[float, float] = (0.3, 0.01)
    # Ascents of a sample, at most. (reach)
    ascents: int = 16
    # All ascents together may take so many gradients for each sample without a flip ... (reach)
    gradients_per_lost: int = 30
    # ... and so many for each sample searched. (reach)
    gradients_per_sample: int = 5


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """`grid`: flips at rounded values."""

    # Steps that raise m, at most. (not tuned)
    raises: int = 30
    # Steps that give spare room back, at most. (not tuned)
    lowers: int = 8
    # If these do not lead to a flip, these multiples of the change are rounded. (not tuned)
    longer: tuple[float, ...] = (1.03, 1.1, 1.25, 1.5, 2.0)
    # A value moves as if it had no step if one step changes m by at most this part of what is wanted. (not tuned)
    fine: float = 0.1
    # Such values aim for this multiple of what m lacks. (not tuned)
    overshoot: float = 1.001
    # A value this close to a multiple, in parts of a step, is on it. (float64)
    on_a_multiple: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class LinearSearch:
    """`linear`, `convex`, `halfspace` and `terms`: exact flips and proofs. tests/test_linear_exact.py asks for 1e-9."""

    # In logits: half-spaces that only guide the solver keep this far from the flip. (not tuned)
    guide_distance: float = 1.0
    # The model computes in its own dtype. If that rounds a flip back, it aims this much further. (float64)
    aims: tuple[float, ...] = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
    # Convex sets of which a union may be made. (not tuned)
    sets: int = 64
    # Price of easing the constraints, relative to crossing the dearest of them alone; tried in turn. (not tuned)
    easing_prices: tuple[float, ...] = (1e2, 1e5, 1e8, 1e11)
    # A squared price counts as 0 if it adds less than this part of the absolute one to the longest change that can be
    # needed. Otherwise (nu |g_i| - l_i) / (2 s_i) would be made of rounding errors. (float64)
    negligible_square: float = 1e-10
    # A proof of unreachability leaves this relative room for rounding. (float64)
    sure: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class InteriorPoint:
    """`interior`: Mehrotra's predictor-corrector, for a batch of programs. tests/test_linear_exact.py asks for 1e-9."""

    # A sample is done when cost and bound differ by this part. (float64)
    closed_gap: float = 3e-12
    # Part of the way to the boundary that a step takes: far from the solution, and near it. (standard)
    back_off: tuple[float, float] = (0.995, 0.999)
    # The products slack x dual aim for at least this share of the largest |missing| x dual. (not tuned)
    central: float = 0.1
    # No product falls below this share of their mean. (standard)
    least_share: float = 1e-3
    # Keeps slacks, duals and quotients positive. (float64)
    least: float = 1e-200
    # Every so many steps, samples that are done leave the batch. (not tuned)
    pause: int = 8
    # After so many steps without a feasible point, infeasibility is tested. (not tuned)
    doubt: int = 12
    # After so many steps without a feasible point a sample leaves, if the search is short ... (not tuned)
    hasty: int = 30
    # ... and if it is long: at very unlike prices the way to a small set is long. (not tuned)
    patient: int = 100
    # Further steps for samples that have met a feasible point. (not tuned)
    onward: int = 30
    # A system with at most so many rows, beyond two for each feature, is solved as it stands. (not tuned)
    spare_rows: int = 16
    # Iterative refinements of the solution if there are more rows. (not tuned)
    refinements: int = 3
    # Added to the diagonal (of ones) of a matrix that rounding has made singular. (float64)
    jitter: float = 1e-13
    # A point is feasible if h lacks no more than this, relative to 1 + |z|. (float64)
    rounding: float = 1e-15


@dataclass(frozen=True, kw_only=True)
class Pricing:
    """`prices` and `surface`, and prices of 1 / amount wherever they are made."""

    # Searches aim for so many guards beyond what is asked; the judge wants one. (not tuned)
    guards: float = 2.0
    # The guard of outputs near 1. Margins of decision values are counted in this unit. (float64)
    typical_guard: float = 1e-9
    # A feature whose budgets are all free would be changed without end. It costs this part of the dearest feature, both
    # measured per standard deviation of the cohort. (not tuned)
    free: float = 1e-9
    # Smaller budgets have the price of this one: 1 / 5e-324 is not finite. (float64)
    smallest_budget: float = 1e-100
    # Larger budgets count as unlimited. (float64)
    largest_budget: float = 1e100


GRADIENT = GradientSearch()
TRUST = TrustRegionSearch()
LAST_RESORT = LastResortSearch()
GRID = GridSearch()
LINEAR = LinearSearch()
INTERIOR = InteriorPoint()
PRICING = Pricing()
