"""Claims on the budget experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product

from research.evidence.claims.claim import Claim
from research.evidence.claims.places import OTHERS, SAMPLED, by_place, by_seed, mean, name_of, tuned
from research.evidence.gains import FOUR, WHERE
from research.evidence.results import Row
from research.experiments.cohorts import MARGIN
from research.experiments.protocol import BUDGETS

SEVERAL_WANTED = ("oulad",)  # of students the best two classes may both be wanted: their gap says nothing of the margin


def _of_four(
    rows: list[Row],
    says: str,
    rule: str,
    of: str,
    lead: Callable[[Mapping[str, float]], float],
    form: str = ".3g",
) -> Claim:
    """lead: above 0 where the claim holds"""
    claim = Claim(says, rule)
    for place, found in by_place(rows, WHERE, of).items():
        four = {solver: mean(found[solver]) for solver in FOUR}
        leads = [lead({solver: found[solver][seed] for solver in FOUR}) for seed in found["KL"]]
        claim.tried(name_of(place), lead(four) > 0, four, form, decides=leads)
    return claim


def _of_pairs(rows: list[Row], says: str, rule: str, of: str, sign: int, form: str) -> Claim:
    """BCMS and CCMS, each beside KL and MS. sign: 1 where theirs must be more, -1 where it must be less"""
    claim = Claim(says, rule)
    for place, found in by_place(rows, WHERE, of).items():
        for ours, other in product(SAMPLED, OTHERS):
            pair = {name: mean(found[name]) for name in (ours, other)}
            ahead = [sign * (found[ours][seed] - found[other][seed]) for seed in found[ours]]
            holds = sign * (pair[ours] - pair[other]) > 0
            claim.tried(name_of(place), holds, pair, form, f"{ours} beside {other}", ahead)
    return claim


def of_budgets(rows: Iterable[Row]) -> list[Claim]:
    four = tuned(rows)
    return [
        _of_pairs(
            four,
            "BCMS and CCMS flip more samples than KL and MS.",
            "it flips more than the other",
            "count",
            1,
            ".1f",
        ),
        _of_pairs(
            four,
            "Their consumption per flip is lower.",
            "it draws less per flip than the other",
            "consumption_per_picked",
            -1,
            ".3g",
        ),
        _larger(four),
        _of_pairs(
            four,
            "They leave less of the budgets unspent.",
            "it leaves a smaller part than the other",
            "unspent",
            -1,
            ".2f",
        ),
        _gaps(four),
        _of_four(
            [row for row in four if row["dataset"] == "icu"],
            "Patients in intensive care: KL uses a bigger portion of the budgets than the others.",
            "it uses more than all three",
            "spent",
            lambda c: c["KL"] - max(c[s] for s in ("MS", *SAMPLED)),
            ".2f",
        ),
        _of_four(
            four,
            "BCMS is the best of the four, CCMS a close second.",
            "BCMS flips more than CCMS, CCMS more than MS and KL",
            "count",
            lambda c: min(c["BCMS"] - c["CCMS"], c["CCMS"] - max(c[s] for s in OTHERS)),
            ".1f",
        ),
    ]


def _larger(rows: Iterable[Row]) -> Claim:
    claim = Claim(
        "A larger budget flips more, for all algorithms.",
        "it flips never fewer with the next larger budget, and more with the largest than with the smallest",
    )
    by_size = by_seed(rows, ("dataset", "budget_source", "solver"), "count", "budget")
    for (dataset, source, solver), found in by_size.items():
        if set(BUDGETS) <= set(found):
            sizes = {budget: mean(found[budget]) for budget in BUDGETS}
            first, *_, last = BUDGETS
            holds = list(sizes.values()) == sorted(sizes.values()) and sizes[last] > sizes[first]
            more = [found[last][seed] - found[first][seed] for seed in found[first]]
            claim.tried(name_of((dataset, source)), holds, sizes, ".1f", solver, more)
    return claim


def _gaps(rows: Iterable[Row]) -> Claim:
    claim = Claim(
        "Their prediction gap is smaller than KL's, yet above the margin.", f"it is between {MARGIN} and KL's"
    )
    with_one = [row for row in rows if row["dataset"] not in SEVERAL_WANTED]
    for place, found in by_place(with_one, WHERE, "prediction_gap").items():
        for solver in SAMPLED:
            pair = {name: mean(found[name]) for name in (solver, "KL")}
            inside = [min(own - MARGIN, found["KL"][seed] - own) for seed, own in found[solver].items()]
            claim.tried(name_of(place), MARGIN < pair[solver] < pair["KL"], pair, ".2f", solver, inside)
    return claim
