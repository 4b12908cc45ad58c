"""Gains and losses from rows that are made up."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.stats import t as student

from research.evidence.gains import BEST, cells_by_size, compared, full_cells, gained, gains, standing
from research.evidence.intervals import averaged, paired, with_interval


def row(seed: int, solver: str, count: int, **more: Any) -> dict[str, Any]:
    protocol = "own" if solver in ("Prices", "Nearest") else "tuned"
    return {
        "dataset": "icu",
        "budget_source": "binding",
        "budget": "small",
        "allocation": "joint",
        "protocol": protocol,
        "seed": seed,
        "solver": solver,
        "count": count,
        "estimate": None,
    } | more


def test_the_interval_is_students() -> None:
    """1, 2, 6: mean 3, standard deviation sqrt(7), t(0.975; 2) = 4.302653"""
    found = paired([1.0, 2.0, 6.0])
    half = 4.302653 * math.sqrt(7.0) / math.sqrt(3.0)
    assert (found.mean, found.pairs) == (3.0, 3)
    assert found.low == pytest.approx(3.0 - half, abs=1e-5)
    assert found.high == pytest.approx(3.0 + half, abs=1e-5)


def test_one_pair_has_no_interval() -> None:
    found = paired([2.0])
    assert (found.mean, found.pairs) == (2.0, 1)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert paired([]).pairs == 0


def test_groups_that_are_given_are_averaged_without_how_far_they_lie_apart() -> None:
    """0, 2 (mean 1, variance of the mean 1) and 99, 100, 104 (mean 101, variance of the mean 7/3): mean 51, its
    variance (1 + 7/3) / 4, and (10/3)^2 / (1/1 + (7/3)^2 / 2) = 2.98507 degrees of freedom"""
    found = averaged([[0.0, 2.0], [99.0, 100.0, 104.0]])
    assert (found.mean, found.pairs) == (51.0, 5)
    assert found.high - found.mean == pytest.approx(student.ppf(0.975, 2.98507) * math.sqrt(10.0 / 12.0), abs=1e-4)
    assert math.isnan(averaged([[0.0, 2.0], [5.0]]).high)
    assert averaged([[2.0, 2.0], [], [4.0, 4.0]]).low == 3.0


def test_gains_are_paired_by_seed_and_in_percent_of_the_other() -> None:
    rows = [row(0, "Prices", 12), row(1, "Prices", 30), row(0, "BCMS", 10), row(1, "BCMS", 20), row(2, "BCMS", 99)]
    (gain,) = gains(rows, [("Prices", "BCMS"), ("Prices", "KL")])
    assert gain.where == ("icu", "binding", "small")
    assert (gain.count.mean, gain.count.pairs) == (6.0, 2)
    assert gain.percent.mean == pytest.approx(35.0)


def test_a_count_of_nothing_has_no_percentage() -> None:
    (gain,) = gains([row(0, "Prices", 3), row(0, "KL", 0)], [("Prices", "KL")])
    assert (gain.count.mean, gain.count.pairs) == (3.0, 1)
    assert gain.percent.pairs == 0


def test_runs_with_the_papers_settings_and_groups_take_no_part() -> None:
    rows = [row(0, "Prices", 5), row(0, "KL", 4)]
    more = [row(0, "KL", 9, protocol="paper"), row(0, "KL", 9, allocation="proportional")]
    assert compared([*rows, *more]) == rows


def test_an_interval_in_words() -> None:
    assert with_interval(paired([1.0, 3.0]), "+.1f") == "+2.0 ± 12.7"
    assert with_interval(paired([2.0]), ".1f") == "2.0"
    assert with_interval(paired([]), ".1f") == ""


def test_an_interval_that_leaves_out_zero_has_a_sign() -> None:
    assert paired([1.0, 1.1]).sign == 1
    assert paired([-1.0, -1.1]).sign == -1
    assert paired([1.0, -1.0, 0.5]).sign == 0
    assert paired([1.0]).sign == 0


def all_six(seed: int, **counts: int) -> list[dict[str, Any]]:
    others = dict.fromkeys(("MS", "BCMS", "CCMS", "KL", "Nearest", "Prices"), 1)
    return [row(seed, solver, count) for solver, count in (others | counts).items()]


def test_a_gain_is_of_the_cells_that_have_both() -> None:
    """Seed 0: 30 beside 10 + 10. Of seed 1 the large budget has no KL: 30 beside 20."""
    rows = [row(0, "Prices", 15), row(0, "KL", 10)]
    rows += [row(0, "Prices", 15, budget="large"), row(0, "KL", 10, budget="large")]
    rows += [row(1, "Prices", 30), row(1, "KL", 20), row(1, "Prices", 999, budget="large")]
    assert gained(rows, "Prices", "KL") == {"icu": pytest.approx([50.0, 50.0])}


def test_the_best_of_the_four_is_another_one_in_every_cell() -> None:
    rows = all_six(0, Prices=30, MS=20) + all_six(1, Prices=30, KL=10, Nearest=29)
    assert gained(rows, "Prices", BEST) == {"icu": pytest.approx([50.0, 200.0])}
    assert gained([r for r in rows if r["solver"] != "CCMS"], "Prices", BEST) == {}


def test_cells_in_which_another_is_better_are_named() -> None:
    def estimated(rows: list[dict[str, Any]], estimate: float) -> list[dict[str, Any]]:
        return [r | {"estimate": estimate} for r in rows]

    rows = (
        estimated(all_six(0, Prices=5, BCMS=7), 5.9)
        + estimated(all_six(1, Prices=5, CCMS=6), 7.2)
        + all_six(2, Prices=8, CCMS=8)
        + all_six(3, Prices=8, CCMS=7)
        + [row(4, "Prices", 1), row(4, "BCMS", 9)]  # not all six: it waits
    )
    found = standing(full_cells(rows))
    assert (found.alone, found.tied) == (1, 1)
    first, second = found.losses
    assert (first.where, first.prices, first.best, first.count) == (("icu", 0, "binding", "small"), 5, "BCMS", 7)
    assert (second.where[1], second.best) == (1, "CCMS")


def test_cells_of_the_smallest_set_are_counted_once() -> None:
    """Of 300 samples one cell, of 600 two scalings with two starts; Nearest, which flips the most, has no warm one, but
    what it found stands beside those too."""
    counts = {"BCMS": 5, "CCMS": 6, "KL": 5, "Nearest": 9, "Prices": 8}
    rows = [
        row(0, solver, count) | {"n": n, "scaling": scaling, "start": start}
        for solver, count in counts.items()
        for n in (300, 600)
        for scaling in ("fixed", "scaled")
        for start in ("random", "warm")
        if (solver, start) != ("Nearest", "warm")
    ]
    found = standing(cells_by_size([*rows, *(r | {"allocation": "proportional", "n": 10} for r in rows)]))
    assert (found.alone, found.tied) == (0, 0)
    assert {loss.where for loss in found.losses} == {
        ("icu", 0, "fixed", "random", 300),
        ("icu", 0, "fixed", "random", 600),
        ("icu", 0, "fixed", "warm", 600),
        ("icu", 0, "scaled", "random", 600),
        ("icu", 0, "scaled", "warm", 600),
    }
    assert {loss.best for loss in found.losses} == {"Nearest"}
