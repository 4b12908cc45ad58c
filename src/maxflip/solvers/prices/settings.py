"""The constants of `Prices`: one frozen dataclass for each algorithm in it, and the one that is used.

Every comment ends with where the value comes from:

    (standard)    a usual value of the method in the literature
    (float64)     a tolerance of float64 arithmetic
    (gradients)   holds Prices near 100 gradients per sample, a bar of docs/results/kinds.md
    (ablations)   the ablations of docs/results/prices.md say what the part wins with this value
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
    """`solver`: which stages a solve has, and for which sizes."""

    # Searches for flips that fit into what a selection leaves over, at most. (ablations: wins nothing on two problems)
    fills: int = 3
    # With more samples than this, prices are first estimated on some of them ... (not tuned)
    many: int = 10_000
    # ... about so many. (not tuned)
    some: int = 2000
    # Where costs have kinks, flips found at wrong prices are of little use later. So prices are estimated with more
    # samples than this, more carefully ... (kinds)
    many_kinked: int = 1500
    # ... on this part of them. (kinds)
    part_kinked: float = 0.1
    # Samples of a linear model on which prices are estimated; evaluating these costs little. (kinds)
    some_exact: int = 20_000
    # Relative gap at which column generation ends there; filling and local search win most of the rest. (kinds)
    gap_exact: float = 5e-4
    # Up to so many samples, first flips are refined, so that they are as cheap as those of Nearest. (gradients)
    small: int = 128
    # Up to so many samples, all flips of Nearest are offered too, so that no plan is below its plans. (not tuned)
    compared: int = 200
    # Flips are mended in stages. Column generation first closes the relative gap between its mixture and D to this:
    # before following others ... (not tuned)
    gap_to_follow: float = 3e-2
    # ... before following once more and touching up ... (not tuned)
    gap_to_mend_again: float = 2e-3
    # ... and before finishing. (not tuned)
    gap_to_finish: float = 1e-3
    # Rounds of the market after each stage, at most. (not tuned)
    rounds_between: int = 2
    # With more gradients, the directions of others are not tried a second time. (gradients)
    followed: int = 55
    # With more gradients, flips are not finished. With fewer, finishing is repeated ... (gradients)
    sparing: int = 80
    # ... as long as a round raises D by more than this part of it. (not tuned)
    won: float = 1e-4
    # With so many gradients or fewer, there is room to search flips from nothing once more. (gradients)
    unspent: int = 52
    # Of the samples: if an earlier plan has flips of more, the search starts from them ... (not tuned)
    pooled: float = 0.5
    # ... unless a budget has become so many times larger or smaller. (not tuned)
    factor: float = 2.0
    # From an earlier plan's prices, the least that all of a budget is worth at first, as a part of the most valuable
    # one. (not tuned)
    lowest: float = 1e-6
    # Rounds of column generation over an earlier plan's flips, where costs have kinks. (kinds)
    renewals: int = 2
    # Of the samples: if more lack a flip, those that the earlier plan gave up on are skipped. (not tuned)
    retried: float = 0.05


@dataclass(frozen=True, kw_only=True)
class MarketRounds:
    """`market`: rounds of searching flips and clearing."""

    # x worth: samples whose flip would cost more are not searched again. (not tuned)
    reach: float = 2.0
    # The same, where flips are known from an earlier plan. (not tuned)
    renewed: float = 1.3
    # x worth: samples whose flip costs at most this count as picked, or nearly so. (not tuned)
    picked: float = 1.05
    # Rounds end when the model promises less than this part of D. (not tuned)
    enough: float = 1e-4
    # Of each budget: what is offered, so that rounding cannot push a plan over it. (float64)
    offered: float = 1 - 1e-6
    # Relative change of a price up to which it is said to hold. (a convention of plan.price_ranges)
    steady: float = 0.1
    # Of a budget: if less is left over, it counts as used up. (not tuned)
    left: float = 0.01
    # x typical worth: a smaller rise of D counts as none. (not tuned)
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
    # Softness from prices that are far off, ... (not tuned)
    annealed: tuple[float, ...] = (0.3, 0.1, 0.03, final)
    # ... from those of the round before, ... (not tuned)
    warm: tuple[float, ...] = (final,)
    # ... from prices that were right for other budgets, ... (kinds)
    near: tuple[float, ...] = (0.03, final)
    # ... and where D itself matters: at `final`, smoothing overprices a count by half a per cent. (not kept)
    sharp: tuple[float, ...] = (final, 2e-3, 4e-4)
    # Newton steps at each softness, at most. (not tuned)
    steps: int = 30
    # Of D: converged if demand and budgets differ by less. (not tuned)
    converged: float = 1e-6
    # Of D: a halved step that lowers it by less wins next to nothing. (kinds)
    small_gain: float = 1e-5
    # Stalled after so many such steps in a row. (kinds)
    small_gains: int = 3
    # Of D: if demand and budgets still differ by more, a softness between is inserted. (kinds)
    nearly_converged: float = 1e-2
    # Insertions, at most. (kinds)
    insertions: int = 6
    # None between softnesses closer than this factor. (kinds)
    insertion_factor: float = 1.05
    # A step is halved until D falls by this part of what its slope promises. (standard: Armijo)
    sufficient_fall: float = 1e-4
    # Halvings of a Newton step, at most. (not tuned)
    halvings: int = 12
    # A price changes by at most a factor of e to this power in a step. (not tuned)
    longest_step: float = 2.0
    # x typical worth: the lowest price makes the whole budget worth this much. (not tuned)
    lowest: float = 1e-7
    # A price below so many times that one is as good as none. (not tuned)
    low: float = 10.0


@dataclass(frozen=True, kw_only=True)
class ShardSearch:
    """`shard`: searches of some samples, and the model of their surfaces."""

    # Smoothing: an absolute price l gets a squared one of this x softness x l / spread, so that demand changes smoothly
    # with the prices ("bent" prices; the true ones are "straight"). (not tuned)
    bend: float = 0.1
    # The surface has a kink if the cosine of its gradient and the cost's normal is smaller. (not tuned)
    kinked_cosine: float = 0.98
    # Descent steps of a search from a known flip. (not tuned)
    descents: int = 3
    # Gradients of a first search, where costs have kinks. (kinds)
    first_steps: int = 8
    # x worth: where costs have kinks, only flips that cost at least this ... (kinds)
    cheap: float = 0.3
    # ... and at most this are mended ... (kinds)
    dear: float = 2.0
    # ... or this, once flips of others were tried. (kinds)
    dear_later: float = 1.3
    # With more samples than this, some try others' directions first ... (not tuned)
    many: int = 1024
    # ... so many ... (not tuned)
    some: int = 256
    # ... and all follow if these win this part of their worth. (not tuned)
    pays: float = 1e-3
    # Of the samples: if no more lack a flip, these are searched at other prices too. (not tuned)
    lost: float = 0.05
    # The flips of the latest so many searches are offered, besides those of the first. (not tuned)
    latest: int = 4


@dataclass(frozen=True, kw_only=True)
class ColumnGenerationLimits:
    """`column_generation`. As a whole: the ablations of docs/results/prices.md; without it 0.9 to 3.4 % are lost."""

    # With more samples, only those near the margin offer several columns. (not tuned)
    few: int = 1000
    # Up to so many samples, every flip seen stays a column. (not tuned)
    tiny: int = 100
    # x worth: how much dearer than its sample's cheapest flip a column may be. With more than `few` samples, also the
    # net gain up to which a sample offers several columns. (not tuned)
    band: float = 0.1
    # x worth: the same net gain in the final choice. It needs few rivals beside the mixture's columns. (not tuned)
    choice_band: float = 0.02
    # x worth: samples with a larger net loss are not offered, where no mixture was computed. (not tuned)
    dearest: float = 0.5
    # x typical worth: the gap at which column generation ends ... (not tuned)
    closed_gap: float = 0.3
    # ... and in tiny plans. (not tuned)
    closed_gap_tiny: float = 1e-4
    # Of each budget: what mixtures may use. Averages that exhaust a budget exactly cause degenerate ties. (float64)
    used_share: float = 1 - 1e-8
    # Smaller parts of a flip count as 0. (float64)
    least_part: float = 1e-6
    # Rounds, at most ... (kinds)
    rounds: int = 20
    # ... and rounds in a row without progress, after which it ends. (kinds)
    patience: int = 3
    # With more gradients, no more flips are searched that draw less. (gradients)
    spent_saving: int = 120
    # With more gradients, no more flips are searched at other prices. (gradients)
    spent: int = 90
    # Relative gap: while it is wider, prices will still change ... (not tuned)
    rough_gap: float = 0.03
    # ... and each search makes only so many descents. (not tuned)
    rough_descents: int = 1
    # Smoothing (Wentges): the next search is this part of the way from the best prices to the program's dual prices.
    # (standard)
    half_way: float = 0.5
    # x worth: samples whose flip costs more are not searched there. (not tuned)
    nearby: float = 1.05
    # Latest searches whose flips are mixed: all. (a number that is never reached)
    every: int = 10**6
    # Filling: price updates, at most ... (not tuned)
    fill_turns: int = 5
    # ... flips nearest to fitting that set the next prices ... (not tuned)
    fill_best: int = 5
    # ... and the least factor by which a price changes. (not tuned)
    fill_factor: float = 0.2
    # Of a budget: taken to be left at least, so that 1 / left stays finite. (float64)
    least_left: float = 1e-6
    # Diving steps, at most; each fixes at least one fractional sample. (kinds)
    dives: int = 12
    # Samples of which the mixture takes more are fixed together. (kinds)
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
    # Of the promised fall of D: with less the box does not move. (standard: a serious step of bundle methods)
    serious: float = 0.1
    # Of D: a smaller promise ends it ... (kinds)
    closed_gap: float = 1e-4
    # ... unless the box is narrower than this. (kinds)
    open_width: float = 1.02
    # Of D / m: what all of a budget that had no price may be worth after a step. (kinds)
    rise: float = 1e-3
    # Of D / m: least price of an overdrawn budget when averages are weighed. (kinds)
    overdrawn: float = 1e-3


STAGES = Stages()
MARKET = MarketRounds()
CLEARING = Clearing()
SHARD = ShardSearch()
COLUMNS = ColumnGenerationLimits()
PLANES = CuttingPlanes()
