"""What renderers work out themselves, on small made-up files with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.evidence.files import Made, write
from research.evidence.renderers.prices import interval
from research.evidence.rendering import rendered
from research.evidence.results import Results

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)


def network(cohort: int, count: int, **other: Any) -> dict[str, Any]:
    """A reference of 1000, a better Nearest of 800."""
    row = {"model": "ReLU", "cohort": cohort, "shape": "20 %, even", "unit": 700, "nearest": 800, "count": count}
    row |= {"estimate": 1000.0, "gradients": 50.0, "forwards": 40.0, "seconds": 2.0, "reference_dual": 1000.0}
    row |= {"reference_value": 1000.0, "reference_over": 1.0, "reference_missed": 0, "reference_methods": {"DDN": 1.5}}
    return row | other


def linear(count: int, bound: float) -> dict[str, Any]:
    row = {"model": "logistic", "samples": 12, "samples_found": 20, "budgets": 3, "shape": "40 %", "unit": 5}
    return row | {
        "nearest": 6,
        "count": count,
        "bound": bound,
        "seconds_nearest": 0.1,
        "seconds": 0.2,
        "gradients": 0.0,
    }


def grown(samples: int, seconds: float, exponent: float | None) -> dict[str, Any]:
    row = {"samples": samples, "open": samples // 2, "count": samples // 4, "of_estimate": 0.999, "seconds": seconds}
    row |= {"processor_seconds": seconds, "choosing_processor_seconds": 0.1, "pass_seconds": 0.01, "passes": 100.0}
    return row | {
        "processor_passes": 90.0,
        "gradients": 20.0,
        "peak_gib": 0.5,
        "exponent_from_the_size_before": exponent,
    }


def on_gpu(samples: int, seconds: float) -> dict[str, Any]:
    row = {"samples": samples, "open": 9, "count": 8, "of_estimate": 0.99999, "seconds": seconds, "passes": 7.0}
    return row | {"gpu_gib": 3.0, "main_gib": 2.0, "stages": {"flips": 1.0}}


def bars(folder: Path, counts: list[int], gpu_seconds: float = 2.0) -> dict[str, tuple[str, str]]:
    """What prices.short says to each bar."""
    write("prices_linear", [linear(100, 100.0), linear(50, 50.0)], MADE, folder)
    write("prices_networks", [network(k, count) for k, count in enumerate(counts)], MADE, folder)
    write("prices_growth", [grown(1000, 1.0, None), grown(10_000, 10.0, 1.0)], MADE, folder)
    write("prices_gpu", [on_gpu(1_000_000, gpu_seconds), on_gpu(10_000_000, 20.0)], MADE, folder)
    lines = rendered("prices.short", Results(folder)).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {bar.split(":")[0].split(" samples in")[0]: (measured, verdict) for bar, measured, verdict in cells}


def test_bars_of_prices(tmp_path: Path) -> None:
    said = bars(tmp_path, [998, 995])
    assert said["linear"] == ("equal in all 2 problems", "met")
    assert said["never below a Nearest"] == (
        "in none of 2 problems (gains from 24.6 to 25 %, by network and shape)",
        "met",
    )
    assert said["networks"] == ("2 of 2 problems, the least 99.50 %", "met")
    assert said["10,000"] == ("90 by processor time, 100 by the clock (10.0 s)", "met")
    assert said["one H200"] == ("2.00 s, 20.00 s, 3.0 GiB", "met")


def test_bars_of_prices_that_are_missed(tmp_path: Path) -> None:
    said = bars(tmp_path, [998, 700], gpu_seconds=2.6)
    assert said["networks"] == ("1 of 2 problems, the least 70.00 %", "**not met**")
    assert said["never below a Nearest"][1] == "not met"
    assert said["one H200"][1] == "not met"
    write("prices_networks", [network(0, 9949, reference_value=10_000.0)], MADE, tmp_path)
    assert "| **nearly** |" in rendered("prices.short", Results(tmp_path))


def test_the_interval_is_students_over_cohorts() -> None:
    """Cohort means 1 and 3: mean 2, deviation sqrt(2), t of one degree of freedom 12.706, so half 12.706."""
    rows = [{"cohort": 0, "x": 0.0}, {"cohort": 0, "x": 2.0}, {"cohort": 1, "x": 3.0}]
    assert interval(rows, lambda row: float(row["x"]), ".3f") == "2.000 ± 12.706"


def test_a_size_without_a_bar_may_be_measured(tmp_path: Path) -> None:
    write("prices_gpu", [on_gpu(2000, 99.0)], MADE, tmp_path)
    text = rendered("prices.gpu", Results(tmp_path))
    assert "| 2,000 | 9 | 8 | 99.999 % | 99.00 | 7 | 3.0 GiB | 2.0 GiB |" in text
    assert "**met**. Stages of the first: flips 1.00 s." in text


def test_an_exponent_is_fitted(tmp_path: Path) -> None:
    write(
        "prices_growth", [grown(1000, 1.0, None), grown(10_000, 10.0, 1.0), grown(100_000, 100.0, 1.0)], MADE, tmp_path
    )
    text = rendered("prices.growth", Results(tmp_path))
    assert "fitted: **1.00** by processor time, 1.00 by the clock (bar: 1.1); between the last two sizes 1.00." in text


def flip(method: str, flipped: int, cost: float, speed: float) -> dict[str, Any]:
    row = {"network": "the same, steep", "method": method, "samples": 10, "flipped_by_any": 10, "flipped": flipped}
    row |= {"cost_over_best": cost, "close": 1.0, "samples_per_second": speed, "gradients": 60.0, "forwards": 40.0}
    return row | {"least_margin": -144.0, "median_margin": -46.0, "upper_quartile_margin": -20.0}


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (flip("maxflip", 10, 1.004, 110.0), "holds in every row"),
        (flip("maxflip", 9, 1.004, 110.0), "**does not hold in every row**"),
        (flip("maxflip", 10, 1.006, 110.0), "**does not hold in every row**"),
        (flip("maxflip", 10, 1.004, 90.0), "**does not hold in every row**"),
    ],
)
def test_bars_of_flips(tmp_path: Path, ours: dict[str, Any], said: str) -> None:
    others = [flip("DDN, 100 steps", 10, 1.02, 100.0), flip("FMN, 100 steps", 8, 1.001, 55.0)]
    write("flips", [ours, *others, flip("ALMA, 3 x 1,000 steps", 10, 1.0, 3.3)], MADE, tmp_path)
    results = Results(tmp_path)
    assert rendered("flips.bars.holds", results) == said
    assert rendered("flips.others.fmn_missed", results) == "2"
    assert rendered("flips.steep.least", results) == "-144"


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ({"MS": 10, "BCMS": 20, "CCMS": 15, "KL": 5}, "met"),
        ({"MS": 18, "BCMS": 20, "CCMS": 15, "KL": 5}, "**in part**"),
        ({"MS": 18, "BCMS": 20, "CCMS": 4, "KL": 5}, "**not met**"),
    ],
)
def test_the_papers_order(tmp_path: Path, counts: dict[str, int], verdict: str) -> None:
    write("paper_credit", [{"share": 0.1, "solver": name, "count": n} for name, n in counts.items()], MADE, tmp_path)
    speed = {"samples": [300, 900], "milliseconds": [1.0, 2.0], "exponent": 0.6, "exponent_of_the_last_two": 0.6}
    run = {
        "outer": 10,
        "inner": 100,
        "made": 1,
        "selected": [1],
        "diverged": None,
        "processor_seconds": 1.0,
        "seconds": 1.0,
    }
    one = {"samples": 300, "features": 19, "count": 3, "processor_seconds": 2.0, "seconds": 3.0}
    held = {"samples": 900, "draws": 100, "before_gb": 0.3, "peak_gb": 1.0, "processor_seconds": 1.0}
    write("paper_speed", [{"algorithm": name, **speed} for name in counts], MADE, tmp_path)
    write("paper_runs", [{"algorithm": name, "count": n, **run} for name, n in counts.items()], MADE, tmp_path)
    write("paper_one_run", [one], MADE, tmp_path)
    write("paper_memory", [held], MADE, tmp_path)
    assert rendered("paper.short", Results(tmp_path)).endswith(f"| {verdict} |")
