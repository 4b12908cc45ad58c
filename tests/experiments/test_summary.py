"""Gains and losses from rows that are made up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from evidence.files import made_here, write
from experiments.summary import gains, gains_of_prices, gains_over_kl, losses, losses_of_prices, paired


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
    rows = [
        row(0, "Prices", 5),
        row(0, "KL", 4),
        row(0, "KL", 9, protocol="paper"),
        row(0, "KL", 9, allocation="proportional"),
    ]
    (gain,) = gains(rows, [("Prices", "KL")])
    assert gain.count.mean == 1.0
    assert losses(rows) == []


def test_cells_in_which_another_is_better_are_named_with_their_cause() -> None:
    rows = [
        row(0, "Prices", 5, estimate=5.9),
        row(0, "BCMS", 7),
        row(1, "Prices", 5, estimate=7.2),
        row(1, "CCMS", 6),
        row(2, "Prices", 8, estimate=8.0),
        row(2, "CCMS", 8),
    ]
    first, second = losses(rows)
    assert (first.where[-1], first.prices, first.best, first.count) == (0, 5, "BCMS", 7)
    assert first.cause.startswith("search")
    assert (second.where[-1], second.best) == (1, "CCMS")
    assert second.cause.startswith("selection")


def test_they_are_read_from_the_result_file(tmp_path: Path) -> None:
    rows = [row(0, "Prices", 5, estimate=5.9), row(0, "BCMS", 7), row(0, "KL", 4), row(0, "MS", 5)]
    write("budget", rows, made_here("test"), tmp_path)
    assert {(g.over, g.count.mean) for g in gains_of_prices(tmp_path)} == {("BCMS", -2.0), ("KL", 1.0)}
    assert {(g.solver, g.percent.mean) for g in gains_over_kl(tmp_path)} == {("BCMS", 75.0), ("MS", 25.0)}
    assert [loss.best for loss in losses_of_prices(tmp_path)] == ["BCMS"]
