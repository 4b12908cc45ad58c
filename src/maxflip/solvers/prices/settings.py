"""The constants of `Prices`: a frozen dataclass for each algorithm in it, and its instance.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic
    (gradients)   keeps Prices near 100 gradients per sample, a limit set in docs/results/kinds.md
    (ablations)   the ablations of docs/results/prices.md measure the gain with this value
    (kinds)       set while docs/results/kinds.md was measured; the page says that several settings were chosen by
                  trying variants on its cells, but not which
    (not kept)    measured, as the comment says, without a result that was kept
    (not tuned)   no measurement of this value alone is known

As a whole the solver is measured in docs/results/prices.md and docs/results/kinds.md. Gradients are counted per sample,
and every limit on them is multiplied by `Prices.effort`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stages:
    """`solver`: the stages of a solve, by number of samples."""

    # Searches for flips that fit into what a selection leaves, at most. (ablations: wins nothing on two problems)
    fills: int = 3
    # With more samples than this, prices are first estimated on some of them ... (not tuned)
    many: int = 10_000
    # ... namely about this many. (not tuned)
    some: int = 2000
    # With kinked costs, flips found at wrong prices are of little use later. So prices are estimated more carefully,
    # with more samples than this ... (kinds)
    many_kinked: int = 1500
    # ... on this part of them. (kinds)
    part_kinked: float = 0.1
    # Samples of a linear model on which prices are estimated; evaluating these costs little. (kinds)
    some_exact: int = 20_000
    # Relative gap at which column generation ends for these; filling and local search win most of the rest. (kinds)
    gap_exact: float = 5e-4
    # Number of samples up to which first flips are refined, so that they are as cheap as those of Nearest. (gradients)
    small: int = 128
    # Number of samples up to which all flips of Nearest are offered too, so that no plan is worse than its. (not tuned)
    compared: int = 200
    # Flips are improved in stages. First column generation reduces the relative gap between its mixture and D to this:
    # before following others' directions ... (not tuned)
    gap_to_follow: float = 3e-2
    # ... before following once more and touching up ... (not tuned)
    gap_to_mend_again: float = 2e-3
    # ... and before finishing. (not tuned)
    gap_to_finish: float = 1e-3
    # Rounds of the market after each stage, at most. (not tuned)
    rounds_between: int = 2
    # Gradients after which others' directions are not tried a second time ... (gradients)
    followed: int = 55
    # ... and after which flips are not finished. Before, finishing is repeated ... (gradients)
    sparing: int = 80
    # ... as long as a round raises D by more than this part. (not tuned)
    won: float = 1e-4
    # Gradients up to which flips are searched once more without known flips. (gradients)
    unspent: int = 52
    # Factor of all limits on gradients where changes go by steps, must be large or few. Each search takes more of them
    # then, and more searches are needed: whole steps make unlike flips of like prices. At 1, plans of 300 people stay
    # up to 9 % below the estimate, at 2 up to 1.8 %, at 3 up to 0.7 %. (the cells of docs/results/steps.md)
    effort_by_rules: float = 3.0
    # The search starts from an earlier plan's flips if more than this part of the samples has one ... (not tuned)
    pooled: float = 0.5
    # ... unless a budget has changed by more than this factor. (not tuned)
    factor: float = 2.0
    # Least first value of a whole budget at an earlier plan's prices, as a part of the most valuable one. (not tuned)
    lowest: float = 1e-6
    # Rounds of column generation over an earlier plan's flips, with kinked costs. (kinds)
    renewals: int = 2
    # If more than this part of the samples lacks a flip, those `not_found` in the earlier plan are skipped. (not tuned)
    retried: float = 0.05


@dataclass(frozen=True, kw_only=True)
class MarketRounds:
    """`market`: rounds of searching flips and clearing."""

    # x worth: samples with a dearer predicted flip are not searched again. (not tuned)
    reach: float = 2.0
    # The same, with flips from an earlier plan. (not tuned)
    renewed: float = 1.3
    # x worth: samples whose flip costs at most this count as picked, or nearly so. (not tuned)
    picked: float = 1.05
    # Rounds end if the predicted fall of D is less than this part. (not tuned)
    enough: float = 1e-4
    # Part of each budget that is offered, so that rounding cannot push a plan over it. (float64)
    offered: float = 1 - 1e-6
    # Largest relative change of a price within its range. (a convention of plan.price_ranges)
    steady: float = 0.1
    # A budget counts as used up if less than this part is left. (not tuned)
    left: float = 0.01
    # x typical worth: smaller rises of D are ignored. (not tuned)
    flat: float = 0.05
    # Backtracking: factor of a step that did not lower D ... (not tuned)
    shorter: float = 0.3
    # ... and the shortest step tried. (not tuned)
    shortest: float = 0.02


@dataclass(frozen=True, kw_only=True)
class Clearing:
    """`clearing`: Newton's method on the smoothed dual. Softness is the temperature T, as a part of each worth."""

    # Softness at the end. (not tuned)
    final: float = 0.01
    # Softnesses in turn, from rough prices ... (not tuned)
    annealed: tuple[float, ...] = (0.3, 0.1, 0.03, final)
    # ... from those of the round before ... (not tuned)
    warm: tuple[float, ...] = (final,)
    # ... from prices that cleared other budgets ... (kinds)
    near: tuple[float, ...] = (0.03, final)
    # ... and if D itself matters: at `final`, smoothing overprices a count by 0.5 %. (not kept)
    sharp: tuple[float, ...] = (final, 2e-3, 4e-4)
    # Newton steps at each softness, at most. (not tuned)
    steps: int = 30
    # x D: converged if the imbalance of demand and budgets is smaller. (not tuned)
    converged: float = 1e-6
    # x D: a halved step that lowers D by less counts as small. (kinds)
    small_gain: float = 1e-5
    # Consecutive small steps after which Newton's method has stalled. (kinds)
    small_gains: int = 3
    # x D: if the imbalance is still larger, a softness in between is inserted. (kinds)
    nearly_converged: float = 1e-2
    # Insertions, at most. (kinds)
    insertions: int = 6
    # Smallest ratio of two softnesses between which one is inserted. (kinds)
    insertion_factor: float = 1.05
    # A step is halved until D falls by this part of slope x step. (standard: Armijo)
    sufficient_fall: float = 1e-4
    # Halvings of a Newton step, at most. (not tuned)
    halvings: int = 12
    # Largest change of a log price in a step. (not tuned)
    longest_step: float = 2.0
    # x typical worth: least value of a whole budget, or of a quota for all samples. (not tuned)
    lowest: float = 1e-7
    # x typical worth: price of a quota to begin with. (not tuned)
    first_quota: float = 1e-2
    # A value below this multiple of the least one counts as a price of 0. (not tuned)
    low: float = 10.0


@dataclass(frozen=True, kw_only=True)
class ShardSearch:
    """`shard`: searches of some samples, and their planes."""

    # Smoothing: an absolute price l gets a squared one of this x softness x l / spread, so that demand changes smoothly
    # with the prices ("bent" prices; the true ones are "straight"). (not tuned)
    bend: float = 0.1
    # The surface has a kink if the cosine between its gradient and the cost's is smaller. (not tuned)
    kinked_cosine: float = 0.98
    # Descent steps of a search from a known flip. (not tuned)
    descents: int = 3
    # Gradients of a first search, with kinked costs. (kinds)
    first_steps: int = 8
    # x worth: with kinked costs, only flips that cost at least this ... (kinds)
    cheap: float = 0.3
    # ... and at most this are improved ... (kinds)
    dear: float = 2.0
    # ... or at most this, once other samples' flips were tried. (kinds)
    dear_later: float = 1.3
    # With more samples than this, some try others' directions first ... (not tuned)
    many: int = 1024
    # ... namely this many ... (not tuned)
    some: int = 256
    # ... and all follow if these win this part of their worth. (not tuned)
    pays: float = 1e-3
    # If at most this part of the samples lacks a flip, they are searched at other prices too. (not tuned)
    lost: float = 0.05
    # Latest searches whose flips are offered, besides those of the first. (not tuned)
    latest: int = 4


@dataclass(frozen=True, kw_only=True)
class FlipSearches:
    """`flip_shard`: rounds of destroy and repair in searches of models without gradients. One counts as a gradient."""

    # Of a first search. (not tuned)
    first: int = 12
    # Of a search from a known flip, for each descent that models with gradients make. (not tuned)
    repriced: int = 2
    # Of a search for samples whose flip costs about their worth. (not tuned)
    touched: int = 12


@dataclass(frozen=True, kw_only=True)
class ColumnGenerationLimits:
    """`column_generation`. As a whole: the ablations of docs/results/prices.md; without it 0.9 to 3.4 % are lost."""

    # With more samples, only those with a net gain near 0 offer several columns. (not tuned)
    few: int = 1000
    # Number of samples up to which every known flip stays a column. (not tuned)
    tiny: int = 100
    # x worth: how much dearer than its sample's cheapest flip a column may be. With more than `few` samples, also the
    # net gain up to which a sample offers several columns. (not tuned)
    band: float = 0.1
    # x worth: the same net gain in the final choice, which needs few columns beside the mixture's. (not tuned)
    choice_band: float = 0.02
    # x worth: samples with a larger net loss are not offered, if no mixture was computed. (not tuned)
    dearest: float = 0.5
    # x typical worth: the gap at which column generation ends ... (not tuned)
    closed_gap: float = 0.3
    # ... and in tiny plans. (not tuned)
    closed_gap_tiny: float = 1e-4
    # Part of each budget that mixtures may use. Averages that exhaust it exactly cause degenerate ties. (float64)
    used_share: float = 1 - 1e-8
    # Smaller parts of a flip count as 0. (float64)
    least_part: float = 1e-6
    # Rounds, at most ... (kinds)
    rounds: int = 20
    # ... and consecutive rounds without progress, at most. (kinds)
    patience: int = 3
    # Gradients after which no more flips that draw less are searched ... (gradients)
    spent_saving: int = 120
    # ... and none at other prices. (gradients)
    spent: int = 90
    # Relative gap: while it is wider, prices will still change ... (not tuned)
    rough_gap: float = 0.03
    # ... so each search makes only this many descents. (not tuned)
    rough_descents: int = 1
    # Smoothing (Wentges): the next search is this part of the way from the best prices to the program's dual prices.
    # (standard)
    half_way: float = 0.5
    # x worth: samples with a dearer flip are not searched there. (not tuned)
    nearby: float = 1.05
    # Latest searches whose flips are mixed: all. (a number that is never reached)
    every: int = 10**6
    # Filling: price updates, at most ... (not tuned)
    fill_turns: int = 5
    # ... number of flips nearest to fitting that determine the next prices ... (not tuned)
    fill_best: int = 5
    # ... and the least factor by which a price changes. (not tuned)
    fill_factor: float = 0.2
    # Least part of a budget that counts as left, so that 1 / left stays finite. (float64)
    least_left: float = 1e-6
    # Diving steps, at most; each fixes at least one fractional sample. (kinds)
    dives: int = 12
    # Samples of which the mixture takes more than this part are fixed together. (kinds)
    sure: float = 0.9
    # Rounds of search for flips that draw less, at most ... (kinds)
    savings: int = 4
    # ... and the least saving of a round, in budget shares. (kinds)
    least_saving: float = 1e-2
    # The same rounds in tiny plans ... (not tuned)
    savings_tiny: int = 40
    # ... and the same saving. (not tuned)
    least_saving_tiny: float = 1e-8
    # x typical worth: added to the prices of all budgets together, to find flips that draw less. (kinds)
    tilt: float = 0.02
    # x what a budget's thrift is worth: price of one budget that flips are to spare. (not tuned)
    askew: float = 10.0
    # An average that does not pass is lengthened by these factors. (kinds)
    stretches: tuple[float, ...] = (1.0, 1.003, 1.01, 1.03, 1.1)


@dataclass(frozen=True, kw_only=True)
class CuttingPlanes:
    """`bundle`: cutting planes in a box. As a whole: docs/results/kinds.md, linear models with absolute budgets."""

    # Evaluations of D, at most. (kinds)
    rounds: int = 150
    # Factor by which prices may change: at first, ... (kinds)
    width: float = 1.1
    # ... at most ... (kinds)
    widest: float = 1.5
    # ... and at least. (kinds)
    narrowest: float = 1.01
    # Its exponent after a step that lowers D ... (kinds)
    wider: float = 1.5
    # ... and after one that does not. (kinds)
    narrower: float = 0.9
    # Least fall of D, as a part of the predicted one, for the box to move. (standard: a serious step of bundle methods)
    serious: float = 0.1
    # x D: a smaller predicted fall ends it ... (kinds)
    closed_gap: float = 1e-4
    # ... unless the box is narrower than this. (kinds)
    open_width: float = 1.02
    # x D / m: largest value of a whole budget after a step, if its price was 0. (kinds)
    rise: float = 1e-3
    # x D / m: least price of an overdrawn budget when averages are weighted. (kinds)
    overdrawn: float = 1e-3


@dataclass(frozen=True, kw_only=True)
class MenuLimits:
    """`menu`: flips by actions and choices alone."""

    # Samples whose combinations are gone through together: enough for large batches of the model. (not tuned)
    chunk: int = 16_384
    # x worth: a flip that gains so much less than the sample's best is not offered to the choice. (not tuned)
    band: float = 0.1
    # x worth: combinations of levers that alone draw more than this at the prices are not searched. (not tuned)
    reach: float = 1.5
    # Up to so many pairs of a sample and a combination are searched anew at every price: in two of forty problems of up
    # to 12 people, following them lost a flip. With 600 pairs and more, counts were the same. (tests/test_actions.py)
    few: int = 500
    # x the cost of a sample's cheapest flip: dearer flips by other combinations are not followed to new prices. (not
    # tuned)
    followed: float = 1.5
    # x the whole budget: flips that draw more are not handed over, since draws of 1e19 made HiGHS give up. (not tuned)
    dearest: float = 1e6
    # x what levers draw, in proofs: rounding leaves out none of it. (floating point)
    rounded: float = 1 - 1e-12
    # Rounds of searches with levers beside changes of features. (not tuned)
    rounds: int = 4


STAGES = Stages()
MARKET = MarketRounds()
CLEARING = Clearing()
SHARD = ShardSearch()
FLIPS = FlipSearches()
COLUMNS = ColumnGenerationLimits()
PLANES = CuttingPlanes()
MENU = MenuLimits()
