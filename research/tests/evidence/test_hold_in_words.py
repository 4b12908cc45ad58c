"""What docs/hold.md and docs/results/hold.md say in words, which nothing renders: each sentence, asked of the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import pytest

from research.evidence.intervals import paired
from research.evidence.renderers.hold import AGAIN, FIXED, Way, more_flipped, ways
from research.evidence.results import Results
from research.experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS
from research.experiments.hold.kinds import ANOTHER
from research.experiments.hold.points import (
    KINDS,
    SOLVERS,
    Result,
    difference,
    number_of,
    of_kind,
    point,
    read,
    share_of,
)

MARGIN_ROWS = Results().rows("hold_margin")
PLANS = ways(MARGIN_ROWS)
SUGGESTED = {models: PLANS[Way(models, AGAIN, None)] for models in (1, 3, 5)}
Value = Callable[[Sequence[dict[str, Any]]], float | None]
RESULTS = {result.dataset: result for result in read()}
CREDIT, PATIENTS = RESULTS["credit"], RESULTS["icu"]


def signs(result: Result, first: str, second: str, value: Value) -> list[int]:
    """At each margin, of all numbers in the interval of the difference"""
    found = [difference(result, margin, first, second, value) for margin in MARGINS]
    assert None not in found
    return [mean.sign for mean in found if mean is not None]


@pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != ANOTHER])
def test_a_margin_makes_flips_hold_in_networks_of_the_same_kind(result: Result, kind: str) -> None:
    held = [at.share.value for margin in MARGINS if (at := point(of_kind(result, kind), "Prices", margin)) is not None]
    assert held == sorted(held)
    assert held[-1] > 0.95


def test_in_models_of_another_kind_it_does_so_for_credit_customers_and_not_for_patients() -> None:
    assert signs(of_kind(CREDIT, ANOTHER), "Prices", AS_CLOSE, share_of) == [-1, 0, 0, 0]
    apart = of_kind(PATIENTS, ANOTHER)
    assert signs(apart, "Prices", AS_CLOSE, share_of) == [-1] * len(MARGINS)
    gaps = [mean.value for margin in MARGINS if (mean := difference(apart, margin, "Prices", AS_CLOSE, share_of))]
    assert gaps == sorted(gaps, reverse=True)  # it does not shrink
    for margin in MARGINS:
        at = point(apart, "Prices", margin)
        assert at is not None
        assert at.won is not None
        assert at.anyway > 0.5 > at.won
    assert signs(apart, ENSEMBLE, "Prices", share_of) == [0] * len(MARGINS)
    assert signs(apart, ENSEMBLE, "Prices", number_of) == [-1] * len(MARGINS)


@pytest.mark.parametrize("result", RESULTS.values(), ids=list(RESULTS))
def test_the_number_that_holds_is_largest_between_but_for_kl(result: Result) -> None:
    best = {}
    for solver in SOLVERS:
        numbers = {m: at.number.value for m in MARGINS if (at := point(result, solver, m)) is not None}
        best[solver] = max(numbers, key=lambda margin: numbers[margin])
    assert best["KL"] == 0.0
    between = [solver for solver, margin in best.items() if margin in MARGINS[1:3]]
    assert 2 * len(between) > len(best)


def test_on_average_over_judges() -> None:
    assert signs(CREDIT, "Prices", AS_CLOSE, share_of) == [0] * len(MARGINS)
    assert signs(of_kind(CREDIT, "seed"), "Prices", AS_CLOSE, share_of)[0] == -1
    assert signs(PATIENTS, "Prices", AS_CLOSE, share_of) == [-1] * len(MARGINS)
    for result in (CREDIT, PATIENTS):
        assert [sign > 0 for sign in signs(result, ENSEMBLE, "Prices", number_of)] == [True, False, False, False]


def test_beside_other_solvers_without_a_margin() -> None:
    assert signs(PATIENTS, "Prices", "CCMS", share_of)[0] == -1
    assert signs(PATIENTS, "Prices", "CCMS", number_of)[0] == -1
    assert signs(PATIENTS, "Prices", "MS", number_of)[0] == 0


# --- the recipe


def shares(rows: Sequence[dict[str, Any]], *, same_kind: bool) -> dict[int, list[float]]:
    """By cohort: of the flips, the share that holds in each fresh model"""
    found: dict[int, list[float]] = {}
    for row in rows:
        if (row["kind"] != "another") == same_kind:
            found.setdefault(row["cohort"], []).append(row["held"] / row["count"])
    return found


def mean_share(rows: Sequence[dict[str, Any]], *, same_kind: bool) -> float:
    return fmean(map(fmean, shares(rows, same_kind=same_kind).values()))


def test_without_a_margin_many_fall_and_a_margin_makes_them_hold() -> None:
    fixed = [PLANS[Way(1, FIXED, margin)] for margin in MARGINS]
    held = [mean_share(rows, same_kind=True) for rows in fixed]
    assert held == sorted(held)
    assert held[0] < 0.6
    assert held[-1] > 0.95
    counts = [fmean(row["count"] for row in rows) for rows in fixed]
    assert counts == sorted(counts, reverse=True)


def test_by_the_suggested_margin_fewer_are_flipped_and_about_as_many_hold() -> None:
    plain = PLANS[Way(1, FIXED, 0.0)]
    assert fmean(row["count"] for row in SUGGESTED[1]) < fmean(row["count"] for row in plain)
    by_cohort = [
        fmean(row["held"] for row in SUGGESTED[1] if row["cohort"] == cohort)
        - fmean(row["held"] for row in plain if row["cohort"] == cohort)
        for cohort in {row["cohort"] for row in plain}
    ]
    assert paired(by_cohort).sign == 0
    assert abs(fmean(by_cohort)) < 1


@pytest.mark.parametrize("same_kind", [True, False])
@pytest.mark.parametrize("models", SUGGESTED)
def test_what_was_suggested_holds_on_average_and_in_the_worst_model_a_little_less(models: int, same_kind: bool) -> None:
    assert all(row["reached"] for row in SUGGESTED[models])
    assert round(mean_share(SUGGESTED[models], same_kind=same_kind), 2) >= 0.9
    worst = fmean(map(min, shares(SUGGESTED[models], same_kind=same_kind).values()))
    assert 0.8 < worst < 0.9


def test_the_margin_that_suffices_differs_and_an_ensemble_needs_a_smaller_one() -> None:
    margins = {models: {row["cohort"]: row["margin"] for row in rows} for models, rows in SUGGESTED.items()}
    assert max(margins[1].values()) > 3 * min(margins[1].values())
    for models in (3, 5):
        assert paired(margins[models][cohort] - margin for cohort, margin in margins[1].items()).sign == -1


def test_whether_an_ensemble_then_moves_more_people_is_not_clear() -> None:
    assert paired(more_flipped(MARGIN_ROWS)).sign == 0


def test_another_kind_is_passed_by_customers_and_by_patients_at_no_margin() -> None:
    assert mean_share(PLANS[Way(1, FIXED, 0.5)], same_kind=False) > 0.9
    for solver in ("Prices", ENSEMBLE):
        for margin in MARGINS:
            at = point(of_kind(PATIENTS, ANOTHER), solver, margin)
            assert at is not None
            assert at.share.value < 0.8
