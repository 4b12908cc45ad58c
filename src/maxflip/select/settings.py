"""The constants of the choice: one frozen dataclass for each algorithm, and the one that is used.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic, or of HiGHS
    (scale)       measured with these values: docs/results/scale.md, "Choosing" (benchmarks/choose.py)
    (kinds)       set while docs/results/kinds.md was measured; the page says that several settings were chosen by
                  trying variants on its cells, but not which
    (not kept)    measured, as the comment says, without a result that was kept
    (not tuned)   no measurement of this value alone is known
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Programs:
    """`milp`: what HiGHS is told."""

    # Feasibility tolerance of a row. HiGHS allows no less than 1e-10. (float64)
    tolerance: float = 1e-9
    # Smaller coefficients are left out of a program. (float64)
    smallest_coefficient: float = 1e-12


@dataclass(frozen=True, kw_only=True)
class BandChoice:
    """`choose`. As a whole: docs/results/scale.md, "Choosing"."""

    # Nodes of branch and bound, at most. (not tuned)
    nodes: int = 500
    # Samples in the first band ... (not tuned)
    band: int = 100
    # ... and so many more for each budget. (not tuned)
    band_per_budget: int = 10
    # A band that does not meet the bound is widened by this factor. (not tuned)
    band_growth: int = 8
    # Once a feasible selection is known, the band does not get wider than this. (not tuned)
    widest_band: int = 2000
    # Rounds of cuts against selections that exceed a budget by a rounding error, at most. (not tuned)
    cut_rounds: int = 100
    # With more than `exact` samples, such a selection shrinks the budget by this part. (float64: 4 tolerances of HiGHS)
    less: float = 4 * Programs().tolerance
    # Up to so many samples, branch and bound runs without local search. (not tuned)
    few: int = 40
    # Up to so many samples the optimum itself is sought. (scale)
    exact: int = 300
    # Local search may change so many times the samples of the first band. (not tuned)
    local_bands: int = 2
    # With more budgets than this, branch and bound hardly closes the gap that local search leaves. (kinds)
    branched_budgets: int = 8
    # Then a selection worth this part of the bound is enough. (kinds)
    nearly: float = 0.99
    # x worth: candidates that cost so much more than their sample's cheapest are dropped. (not tuned)
    rival: float = 0.05
    # x worth: candidates that cost so much more than their worth are dropped. (not tuned)
    dear: float = 0.5
    # Two candidates of a sample are duplicates if their draws round to the same multiples of this part of the largest
    # share that the sample draws. (not tuned)
    alike: float = 0.1
    # Of the bound: gap that is accepted beyond `few` samples, if worths are not whole. (kinds)
    fine_gap: float = 1e-5
    # Targets that local search tries. (not tuned)
    aims: int = 5
    # Of the bound: least distance of two targets, if worths are not whole. (not tuned)
    aim_distance: float = 1e-3
    # Numbers summed exactly, at most, for insertions that exceed a budget only by rounding. (not tuned)
    exact_terms: int = 1_000_000
    # Of the bound: gap of the relaxation that is accepted if a selection is known and samples are many. (not tuned)
    rough_gap: float = 3e-4
    # Worths up to 2 to this power stay as they are. With 20, HiGHS's simplex gave up on worths of 1 to 1e6. (not kept)
    ordinary_exponent: int = 10


@dataclass(frozen=True, kw_only=True)
class LocalSearch:
    """`local_search`: tabu search and exchanges. As a whole: docs/results/scale.md, "Choosing"."""

    # Steps of a tabu search, at most. (scale)
    steps: int = 4000
    # Numbers that it evaluates, at most. (scale)
    work: int = 10**8
    # A search that has found `enough` tries for `aim` up to this part of its steps. (scale)
    for_the_aim: float = 0.2
    # Of a budget: tolerance of this search. The caller checks budgets exactly. (float64)
    rounding: float = 1e-12
    # Least weight of a budget, as a part of the highest price: a budget with price 0 must be kept too. (not tuned)
    least_price: float = 1e-3
    # Tabu tenure, in steps ... (standard)
    tenure: int = 4
    # ... plus a varying number below this. (standard)
    tenure_range: int = 11
    # At a local minimum this part of the mean weight is added to the weights of violated terms. (not tuned)
    weight_step: float = 0.1
    # A part above 1 minus this counts as taken whole. (float64)
    whole: float = 1e-6
    # Of a sample that must be picked, a part above this counts as taken. (not tuned)
    half: float = 0.5
    # x worth: a candidate with a larger net loss is not exchanged. (not tuned)
    near: float = 0.5
    # Passes of exchanges over the candidates, at most. (not tuned)
    passes: int = 5
    # Candidates tried in a pass, in order of net gain. (not tuned)
    line: int = 500


@dataclass(frozen=True, kw_only=True)
class CoreRelaxation:
    """`relaxation`: the linear relaxation by a core. tests/test_choose.py compares it with the whole program."""

    # Up to so many samples, the program is solved whole. (not tuned)
    small: int = 4000
    # Prices are first estimated on every so manyth sample. (not tuned)
    part: int = 8
    # Samples in doubt in the first core. The program of four times as many took ten times as long. (not kept)
    core: int = 250
    # A core that does not close the gap grows by this factor. (not tuned)
    core_growth: int = 2
    # Outside the core samples may overspend; more of a budget costs so many times its price. (not tuned)
    overspending: float = 4.0
    # At prices of a market a core has at most so many samples. (not tuned)
    widest_core: int = 16_000
    # Up to so many candidates the whole program takes seconds; then a core ... (not tuned)
    moderate: int = 30_000
    # ... has at most so many samples. (not tuned)
    narrow_core: int = 2000
    # x worth for all of a budget: a price that only tells which candidate draws less. (not tuned)
    tiny_price: float = 1e-6
    # Newton steps, at most. (not tuned)
    newton_steps: int = 5
    # A Newton step that does not lower L is divided by this. (not tuned)
    step_division: int = 4
    # Shortest part of a Newton step that is tried. (not tuned)
    shortest_step: float = 1e-3
    # Samples with smaller odds add nothing to the curvature. (not tuned)
    least_odds: float = 1e-3
    # Samples in doubt at prices estimated on a part, in square roots of their number ... (not tuned)
    doubtful: float = 40.0
    # ... and at prices of a market. (not tuned)
    less_doubtful: float = 10.0
    # From one smoothing to the next, so many times fewer samples are in doubt ... (not tuned)
    doubt_division: int = 4
    # ... down to this part of the first core: 1 / 20. (not tuned)
    doubt_end: int = 20
    # Least estimated price of all of a budget, as a part of all worths over the number of budgets: at prices of 0 all
    # candidates of a sample are alike. (not tuned)
    first_prices: float = 1e-3
    # Samples that are decided by so many widths of a rounded corner are left out of a step. (not tuned)
    far: float = 10.0
    # Turns of the search for the prices that are 0, at most. (not tuned)
    turns: int = 30
    # Of the largest pull: a smaller gain is rounding. (float64)
    rounding: float = 1e-12
    # With more samples than this a part of one may be missed ... (not tuned)
    many: int = 20_000
    # ... and this part of the bound is an accepted gap. (not tuned)
    nearly_closed_gap: float = 1e-6
    # Of the bound: a gap that rounding explains. (float64)
    closed_gap: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class Scarcity:
    """`scarcity`: when a budget does not bind."""

    # At least so many times what one more sample needs is left. (not tuned)
    samples_left: float = 2.0
    # At least this part of the budget is left, so a tenth less of it would change nothing. (not tuned)
    unused: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Thrift:
    """`thrift`: of selections of the same worth one that draws little."""

    # Up to so many samples a 0/1 program is solved to its optimum. (not tuned)
    few: int = 40
    # Nodes of branch and bound, at most. 2000 won nothing in worth on 72 problems of 15 to 40 samples; their plans drew
    # 0.007 % less on average, 0.44 % at most; all of solving took 29 % longer. (not kept)
    nodes: int = 500
    # e, in units of the least worth per draw of the picked: at 1 that sample would be worth nothing. (kinds)
    tilts: tuple[float, ...] = (0.9, 0.1, 0.01)
    # If more than this part of every budget is drawn, only single exchanges are tried. (not tuned)
    used_up: float = 0.9
    # Picked samples for which an exchange is sought, those that draw most first. (not tuned)
    exchanged: int = 400
    # A smaller saving is rounding. (float64)
    least_saving: float = 1e-12
    # Relative tolerance on the worth: sums in another order round differently. (float64)
    worth_tolerance: float = 1e-12


@dataclass(frozen=True, kw_only=True)
class TwinFlips:
    """`twins`: which samples are alike, and which flips they share."""

    # In guards: step to which confidences are rounded before they are compared. (float64)
    same_confidence: float = 100.0
    # Flips shared by a group of twins, at most: those that draw least. (not tuned)
    shared: int = 8
    # Relative step to which flips are rounded before duplicates are removed. (not tuned)
    same_change: float = 1e-6


PROGRAMS = Programs()
CHOICE = BandChoice()
LOCAL_SEARCH = LocalSearch()
RELAXATION = CoreRelaxation()
SCARCITY = Scarcity()
THRIFT = Thrift()
TWINS = TwinFlips()
