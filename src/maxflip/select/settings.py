"""The constants of the choice: a frozen dataclass for each algorithm, and its instance.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic, or of HiGHS
    (scale)       measured with these values: docs/results/scale.md, "Choosing" (research/benchmarks/choose.py)
    (kinds)       set while docs/results/kinds.md was measured; the page says that several settings were chosen by
                  trying variants on its cells, but not which
    (not kept)    measured, as the comment says, without a result that was kept
    (not tuned)   no measurement of this value alone is known
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Programs:
    """`milp`: options of HiGHS."""

    # Feasibility tolerance of a row. HiGHS allows no less than 1e-10. (float64)
    tolerance: float = 1e-9
    # What whole candidates may miss a quota by: less than one person, more than sums of a million terms are rounded by.
    # (float64)
    loose: float = 1e-6
    # Smaller coefficients are left out of a program. (float64)
    smallest_coefficient: float = 1e-12


@dataclass(frozen=True, kw_only=True)
class BandChoice:
    """`choose`. As a whole: docs/results/scale.md, "Choosing"."""

    # Nodes of branch and bound, at most. (not tuned)
    nodes: int = 500
    # Samples in the first band ... (not tuned)
    band: int = 100
    # ... and additional ones per budget. (not tuned)
    band_per_budget: int = 10
    # A band that does not meet the bound is widened by this factor. (not tuned)
    band_growth: int = 8
    # Widest band, once a feasible selection is known. (not tuned)
    widest_band: int = 2000
    # Rounds of cuts against selections that exceed a budget by a rounding error, at most. (not tuned)
    cut_rounds: int = 100
    # With more than `exact` samples, the budget is reduced by this part instead. (float64: 4 tolerances of HiGHS)
    less: float = 4 * Programs().tolerance
    # Number of samples up to which branch and bound runs without local search ... (not tuned)
    few: int = 40
    # ... and up to which the optimum itself is sought. (scale)
    exact: int = 300
    # Samples that local search may change, as a multiple of the first band. (not tuned)
    local_bands: int = 2
    # With more budgets, branch and bound hardly closes the gap that local search leaves ... (kinds)
    branched_budgets: int = 8
    # ... so a selection worth this part of the bound is enough. (kinds)
    nearly: float = 0.99
    # x worth: candidates that cost this much more than their sample's cheapest are dropped. (not tuned)
    rival: float = 0.05
    # x worth: candidates with a larger net loss are dropped. (not tuned)
    dear: float = 0.5
    # Two candidates of a sample are near-duplicates if their shares, over the sample's largest share, round to the same
    # multiples of this. (not tuned)
    alike: float = 0.1
    # Among flips with equal fees, changes count as at most this part of a budget. (not tuned)
    tie: float = 1e-6
    # Relative gap accepted with more than `few` samples, if worths are not whole. (kinds)
    fine_gap: float = 1e-5
    # Aims that local search tries. (not tuned)
    aims: int = 5
    # Least distance of two aims, as a part of the bound, if worths are not whole. (not tuned)
    aim_distance: float = 1e-3
    # Numbers summed exactly, at most, to test insertions that exceed a budget only by rounding. (not tuned)
    exact_terms: int = 1_000_000
    # Relative gap of the relaxation accepted if a selection is known and samples are many. (not tuned)
    rough_gap: float = 3e-4
    # Share of the usual steps of local search if an earlier plan is feasible. (not tuned)
    effort_again: float = 0.25
    # Worths up to 2 to this power are not scaled. With 20, HiGHS's simplex gave up on worths of 1 to 1e6. (not kept)
    ordinary_exponent: int = 10


@dataclass(frozen=True, kw_only=True)
class LocalSearch:
    """`local_search`: tabu search and exchanges. As a whole: docs/results/scale.md, "Choosing"."""

    # Steps of a tabu search, at most. (scale)
    steps: int = 4000
    # Numbers evaluated in it, at most. (scale)
    work: int = 10**8
    # Part of the steps after which a search ends that has found `enough` but not `aim`. (scale)
    for_the_aim: float = 0.2
    # Tolerance, as a part of a budget. The caller checks budgets exactly. (float64)
    rounding: float = 1e-12
    # Least scale of a budget, as a part of the highest price, since budgets with price 0 must be kept too. (not tuned)
    least_price: float = 1e-3
    # Tabu tenure, in steps ... (standard)
    tenure: int = 4
    # ... plus a varying number below this. (standard)
    tenure_range: int = 11
    # At a local minimum this part of the mean weight is added to the weights of violated terms. (not tuned)
    weight_step: float = 0.1
    # A candidate counts as taken whole if more than 1 minus this is taken ... (float64)
    whole: float = 1e-6
    # ... or more than this, if its sample must be picked. (not tuned)
    half: float = 0.5
    # x worth: a candidate with a larger net loss is not exchanged. (not tuned)
    near: float = 0.5
    # Passes of exchanges over the candidates, at most. (not tuned)
    passes: int = 5
    # Candidates tried in a pass, in order of net gain. (not tuned)
    line: int = 500


@dataclass(frozen=True, kw_only=True)
class CoreRelaxation:
    """`relaxation`: the linear relaxation, solved on a core: the samples whose best option is in doubt at known prices.

    tests/test_choose.py compares it with the whole program.
    """

    # Number of samples up to which the program is solved whole. (not tuned)
    small: int = 4000
    # Prices are first estimated on every 8th sample. (not tuned)
    part: int = 8
    # Samples in doubt in the first core. The program of four times as many took ten times as long. (not kept)
    core: int = 250
    # A core that does not close the gap grows by this factor. (not tuned)
    core_growth: int = 2
    # Price of overspending a budget in the core's program, as a multiple of its price. (not tuned)
    overspending: float = 4.0
    # Most samples in a core, at known prices. (not tuned)
    widest_core: int = 16_000
    # Number of candidates up to which the whole program takes seconds ... (not tuned)
    moderate: int = 30_000
    # ... and the most samples in a core in that case. (not tuned)
    narrow_core: int = 2000
    # x worth, for all of a budget: a price that only decides which candidate draws less. (not tuned)
    tiny_price: float = 1e-6
    # Newton steps, at most. (not tuned)
    newton_steps: int = 5
    # A Newton step that does not lower L is divided by this. (not tuned)
    step_division: int = 4
    # Shortest Newton step tried, as a part of the full one. (not tuned)
    shortest_step: float = 1e-3
    # Samples with smaller odds are left out of the curvature. (not tuned)
    least_odds: float = 1e-3
    # Samples in doubt, in square roots of the number of samples: at prices estimated on a part ... (not tuned)
    doubtful: float = 40.0
    # ... and at known prices. (not tuned)
    less_doubtful: float = 10.0
    # Their number is divided by this from one smoothing to the next ... (not tuned)
    doubt_division: int = 4
    # ... down to the first core divided by this. (not tuned)
    doubt_end: int = 20
    # Least first value of a whole budget, as a part of all worths / number of budgets: at prices of 0 all candidates of
    # a sample are equal. (not tuned)
    first_prices: float = 1e-3
    # Samples whose lead is more smoothing widths than this are left out of Newton steps. (not tuned)
    far: float = 10.0
    # Iterations of the active set method, at most. (not tuned)
    turns: int = 30
    # Of the largest pull: a smaller gain is rounding. (float64)
    rounding: float = 1e-12
    # With more samples than this ... (not tuned)
    many: int = 20_000
    # ... this relative gap is accepted ... (not tuned)
    nearly_closed_gap: float = 1e-6
    # ... and else this one, which rounding explains. (float64)
    closed_gap: float = 1e-9


@dataclass(frozen=True, kw_only=True)
class Scarcity:
    """`scarcity`: when a budget does not bind."""

    # What is left is at least this multiple of what one more sample needs. (not tuned)
    samples_left: float = 2.0
    # At least this part of the budget is left: 10 % less would change nothing. (not tuned)
    unused: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Thrift:
    """`thrift`: of selections of the same worth, one that draws little."""

    # Number of samples up to which a 0/1 program is solved to its optimum. (not tuned)
    few: int = 40
    # Nodes of branch and bound, at most. 2000 won nothing in worth on 72 problems of 15 to 40 samples; their plans drew
    # 0.007 % less on average, 0.44 % at most; all of solving took 29 % longer. (not kept)
    nodes: int = 500
    # e, in units of the least worth / total draw of a picked candidate: at 1 that one would be worth nothing. (kinds)
    tilts: tuple[float, ...] = (0.9, 0.1, 0.01)
    # If more than this part of every budget is used, only single exchanges are tried. (not tuned)
    used_up: float = 0.9
    # Picked candidates for which an exchange is sought, at most. (not tuned)
    exchanged: int = 400
    # A smaller saving is rounding. (float64)
    least_saving: float = 1e-12
    # Relative tolerance of worths: sums in another order round differently. (float64)
    worth_tolerance: float = 1e-12


@dataclass(frozen=True, kw_only=True)
class Tidying:
    """`tidy`: flips with fewer changes within the same budgets."""

    # What thrift adds to the prices of budgets, as a part of what the selection costs at these. (not tuned)
    tilt: float = 0.01
    # The part of every budget that is left alone: sums are decided exactly afterwards. (float64)
    kept: float = 1e-9
    # Flips for which there is no room are skipped, at most so many. (not tuned)
    skips: int = 200


@dataclass(frozen=True, kw_only=True)
class TwinFlips:
    """`twins`: which samples are alike, and which flips they share."""

    # Confidences are rounded to multiples of this many guards before they are compared. (float64)
    same_confidence: float = 100.0
    # Flips shared by a group of twins, at most: those that draw least. (not tuned)
    shared: int = 8
    # Flips are rounded to multiples of this part of the largest change before duplicates are removed. (not tuned)
    same_change: float = 1e-6


PROGRAMS = Programs()
CHOICE = BandChoice()
LOCAL_SEARCH = LocalSearch()
RELAXATION = CoreRelaxation()
SCARCITY = Scarcity()
THRIFT = Thrift()
TIDYING = Tidying()
TWINS = TwinFlips()
