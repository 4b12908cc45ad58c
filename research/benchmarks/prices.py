"""How good Prices is, and what it costs.

    python -m research.benchmarks.prices --data DIR [--only linear,networks] [--quick]

linear     credit_default, logistic regression: the count beside Nearest's, and the proved bound
networks   three networks, five cohorts each: the count beside Nearest's, the estimate, and an independent reference
ablations  one network with parts of the solver taken out
growth     1,000 to 100,000 samples, each size in a process of its own

Without --only all four. `--keep` writes their result files and renders docs/results/prices.md. `--quick`: fewer cohorts
and no long methods in the reference. Needs `pip install foolbox` (extra `bench`).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip import Nearest, Prices
from maxflip.solvers.prices.market import Market
from research.benchmarks.prices_ablations import ABLATIONS
from research.benchmarks.prices_cases import Model, Shape, Solved, linear_model, networks, shapes, solved
from research.benchmarks.prices_reference import cheapest_known
from research.benchmarks.sections import Section, parser_of, run, tell
from research.evidence.files import ROOT
from research.evidence.report import Files

Floats = NDArray[np.float64]
SAMPLES, COHORTS, WITNESSED = 1200, 5, 200
SPLITS_LINEAR, SPLITS = 10, 2
NEARBY = 1.2  # of its worth: beyond this a sample's cost does not matter
SIZES = (1_000, 10_000, 100_000)


@dataclass(frozen=True)
class Asked:
    data: Path
    quick: bool
    jobs: int

    @property
    def cohorts(self) -> int:
        return 2 if self.quick else COHORTS


def linear(asked: Asked) -> Files:
    """Count and proved bound."""
    model = linear_model(asked.data)
    cohort = model.cohort(SAMPLES, 0)
    rows = []
    for number, shape in enumerate(shapes(model, cohort, SPLITS_LINEAR)):
        unit, nearest, prices = _three(model, cohort, shape)
        if prices.plan.bound is None:
            raise SystemExit("no bound was proved for a linear model")
        row = {
            "model": model.name,
            "samples": len(cohort),
            "samples_found": len(model.x),
            "budgets": len(model.changeable),
            "shape": shape.kind if number < 3 else f"{shape.kind} {number - 2}",
            "unit": unit.plan.count,
            "nearest": nearest.plan.count,
            "count": prices.plan.count,
            "bound": prices.plan.bound,
            "seconds_nearest": nearest.seconds,
            "seconds": prices.seconds,
            "gradients": prices.gradients,
        }
        rows.append(row)
        tell(str(row))
    return {"prices_linear": rows}


def _three(model: Model, cohort: Floats, shape: Shape) -> tuple[Solved, Solved, Solved]:
    problem = model.problem(cohort, shape.amounts)
    return solved(problem, Nearest(prices="unit")), solved(problem, Nearest()), solved(problem, Prices())


@dataclass(frozen=True)
class Reference:
    """At our prices, by all flips that anything found for some samples.

    dual: D by our flips   value: D by the reference's   over: our cost over the best known, where it matters
    missed: samples that only others flipped   methods: cost over the best known, of each alone
    """

    dual: float
    value: float
    over: float
    missed: int
    methods: dict[str, float]


@dataclass(frozen=True)
class Line:
    """One network, cohort and shape."""

    cohort: int
    shape: str
    unit: int
    nearest: int
    count: int
    estimate: float
    gradients: float
    forwards: float
    seconds: float
    reference: Reference


def networks_section(asked: Asked) -> Files:
    """Count, estimate and reference."""
    models = list(networks(asked.data))
    with ProcessPoolExecutor(asked.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        by_model = list(pool.map(_model_lines, models, [asked] * len(models)))
    return {
        "prices_networks": [row_of(m.name, line) for m, lines in zip(models, by_model, strict=True) for line in lines]
    }


def row_of(model: str, line: Line) -> dict[str, Any]:
    row = asdict(line)
    reference = row.pop("reference")
    return {"model": model, **row, **{f"reference_{name}": value for name, value in reference.items()}}


def _model_lines(model: Model, asked: Asked) -> list[Line]:
    warnings.simplefilter("ignore")
    return [line for seed in range(asked.cohorts) for line in _cohort_lines(model, seed, asked.quick)]


def _cohort_lines(model: Model, seed: int, quick: bool) -> list[Line]:
    cohort = model.cohort(SAMPLES, seed)
    lines = []
    for shape in shapes(model, cohort, 1 if quick else SPLITS):
        unit, nearest, prices = _three(model, cohort, shape)
        line = Line(
            cohort=seed,
            shape=shape.kind,
            unit=unit.plan.count,
            nearest=nearest.plan.count,
            count=prices.plan.count,
            estimate=prices.plan.estimate or math.nan,
            gradients=prices.gradients,
            forwards=prices.forwards,
            seconds=prices.seconds,
            reference=_reference(model, prices.markets[-1], np.random.default_rng([seed, 3]), quick),
        )
        tell(f"{model.name}: {line}")
        lines.append(line)
    return lines


def _reference(model: Model, market: Market, rng: np.random.Generator, quick: bool) -> Reference:
    """The reference's D is ours plus what cheaper flips win, for the samples of a random draw, times how many samples
    each of them stands for. Where both found the same flips, the draw adds no noise."""
    prices = market.prices
    parts = market.held.ask(lambda shard: (shard.rows, shard.gains(prices)))
    rows, gains = (np.concatenate(column) for column in zip(*parts, strict=True))
    some = np.sort(rng.permutation(len(rows))[:WITNESSED])
    found = cheapest_known(market.problem, model.net, rows[some], prices, quick=quick)
    ours = 1.0 - gains[some]
    best = np.minimum(np.min(list(found.values()), axis=0), ours)
    won = np.maximum(1 - best, 0) - np.maximum(1 - ours, 0)
    dual, matter = market.dual(prices), best < NEARBY
    return Reference(
        dual=dual,
        value=dual + len(rows) / len(some) * float(won.sum()),
        over=_mean_ratio(ours, best, matter),
        missed=int((matter & ~np.isfinite(ours)).sum()),
        methods={name: _mean_ratio(cost, best, matter) for name, cost in found.items()},
    )


def _mean_ratio(cost: Floats, best: Floats, matter: NDArray[np.bool_]) -> float:
    some = matter & np.isfinite(cost)
    return float((cost[some] / best[some]).mean())


ABLATED = ("40 %", "20 %, Dirichlet")


def ablations(asked: Asked) -> Files:
    """Two shapes of one network."""
    model = list(networks(asked.data))[1]
    places = range(len(ABLATIONS))
    with ProcessPoolExecutor(asked.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        found = list(pool.map(_ablated, [model] * len(places), places))
    return {"prices_ablations": [row for rows in found for row in rows]}


def _ablated(model: Model, place: int) -> list[dict[str, Any]]:
    ablation, cohort = ABLATIONS[place], model.cohort(SAMPLES, 0)
    rows = []
    for shape in shapes(model, cohort, 1):
        if shape.kind in ABLATED:
            with ablation.inside():
                one = solved(model.problem(cohort, shape.amounts), ablation.solver)
            rows.append(
                {
                    "model": model.name,
                    "samples": len(cohort),
                    "solver": ablation.name,
                    "shape": shape.kind,
                    "count": one.plan.count,
                    "estimate": one.plan.estimate,
                    "gradients": one.gradients,
                    "seconds": one.seconds,
                }
            )
            tell(str(rows[-1]))
    return rows


def growth(asked: Asked) -> Files:
    """Each size in a process of its own, for its peak memory."""
    rows: list[dict[str, Any]] = []
    for samples in SIZES[:2] if asked.quick else SIZES:
        command = [sys.executable, "-m", "research.benchmarks.prices_growth", str(samples)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        row["of_estimate"] = row["count"] / row["estimate"]
        row["passes"] = row["seconds"] / row["pass_seconds"]
        row["processor_passes"] = row["processor_seconds"] / row["pass_processor_seconds"]
        row["exponent_from_the_size_before"] = _exponent(rows[-1], row) if rows else None
        rows.append(row)
        tell(str(row))
    return {"prices_growth": rows}


def _exponent(smaller: dict[str, Any], larger: dict[str, Any]) -> float:
    """Of processor time."""
    times = larger["processor_seconds"] / smaller["processor_seconds"]
    return math.log(times) / math.log(larger["samples"] / smaller["samples"])


SECTIONS = {
    "linear": Section(linear, "prices.linear"),
    "networks": Section(networks_section, "prices.networks"),
    "ablations": Section(ablations, "prices.ablations"),
    "growth": Section(growth, "prices.growth"),
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--quick", action="store_true", help="fewer cohorts, no long methods in the reference")
    parser.add_argument("--jobs", type=int, default=1, help="networks or ablations side by side")

    def asked(given: argparse.Namespace) -> Asked:
        return Asked(given.data, given.quick, given.jobs)

    run("prices", parser, SECTIONS, asked)


if __name__ == "__main__":
    main()
