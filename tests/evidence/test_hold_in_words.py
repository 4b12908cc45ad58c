"""What docs/hold.md says in words, which nothing renders: each sentence, asked of the result files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from experiments.hold.cases import AS_CLOSE, ENSEMBLE, MARGINS
from experiments.hold.kinds import ANOTHER
from experiments.hold.points import KINDS, SOLVERS, Result, difference, number_of, of_kind, point, read, share_of

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
