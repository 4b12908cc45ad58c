"""How good Prices is, and what it costs: `python -m benchmarks.prices --data DIR [--only linear,networks] [--quick]`.

linear     credit_default, logistic regression: the count beside Nearest's, and the proved bound
networks   three networks, five cohorts each: the count beside Nearest's, the estimate, and an independent reference
ablations  one network with parts of the solver taken out
growth     1,000 to 100,000 samples, each size in a process of its own

Without --only all four. `--page docs/results/prices.md` writes the sections that ran between their marks in the page.
`--quick`: fewer cohorts and no long methods in the reference. Needs `pip install foolbox` (extra `bench`).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t as student

from benchmarks.page import put
from benchmarks.prices_ablations import ABLATIONS
from benchmarks.prices_cases import Model, Shape, Solved, linear_model, networks, shapes, solved, table
from benchmarks.prices_reference import cheapest_known
from maxflip import Nearest, Prices
from maxflip.solvers.prices.market import Market

Floats = NDArray[np.float64]
ROOT = Path(__file__).parent.parent
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


def linear(asked: Asked) -> str:
    """Count and proved bound."""
    model = linear_model(asked.data)
    cohort = model.cohort(SAMPLES, 0)
    lines, gaps = [], []
    for number, shape in enumerate(shapes(model, cohort, SPLITS_LINEAR)):
        unit, nearest, prices = _three(model, cohort, shape)
        count, bound = prices.plan.count, prices.plan.bound
        if bound is None:
            raise SystemExit("no bound was proved for a linear model")
        gaps.append(bound / count - 1)
        name = shape.kind if number < 3 else f"{shape.kind} {number - 2}"
        seconds = f"{nearest.seconds:.2f}", f"{prices.seconds:.2f}"
        counts = [str(s.plan.count) for s in (unit, nearest, prices)]
        lines.append([name, *counts, f"{bound:.0f}", f"{100 * gaps[-1]:.2f} %", *seconds, f"{prices.gradients:.1f}"])
        _tell(" | ".join(lines[-1]))
    head = ["budgets", "Nearest, unit prices", "Nearest, 1/B", "Prices", "proved bound", "gap"]
    head += ["seconds, Nearest", "seconds, Prices", "gradients per sample"]
    said = (
        f"{model.name}: {len(cohort)} of {len(model.x):,} correctly predicted defaulters, {len(model.changeable)} "
        f"budgets. Largest gap between count and bound: **{100 * max(gaps):.2f} %** (bar: 0.5 %).\n"
    )
    return said + "\n" + table(head, lines)


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

    @property
    def gain(self) -> float:
        """Over the better Nearest, in %."""
        return 100 * (self.count / max(self.unit, self.nearest) - 1)

    @property
    def share(self) -> float:
        """Of the reference, in %."""
        return 100 * self.count / self.reference.value


def networks_section(asked: Asked) -> str:
    """Count, estimate and reference."""
    models = list(networks(asked.data))
    with ProcessPoolExecutor(asked.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        by_model = list(pool.map(_model_lines, models, [asked] * len(models)))
    every = [line for lines in by_model for line in lines]
    parts = [
        f"### {model.name}\n\n{_network_table(lines)}\n{_methods(lines)}\n"
        for model, lines in zip(models, by_model, strict=True)
    ]
    short = sum(line.share < 99.5 for line in every)
    below = sum(line.count < max(line.unit, line.nearest) for line in every)
    many = sum(line.gradients > 100 for line in every)
    said = (
        f"{len(every)} problems. Count below 99.5 % of the reference in **{short}** (bar: none; the least is "
        f"{min(line.share for line in every):.2f} %); below a Nearest in **{below}** (bar: none); more than 100 "
        f"gradients per sample in **{many}** (bar: none; the most is {max(line.gradients for line in every):.0f}).\n"
    )
    return said + "\n" + "\n".join(parts)


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
        _tell(f"{model.name}: {line}")
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


def _network_table(lines: list[Line]) -> str:
    head = ["budgets", "Nearest, unit prices", "Nearest, 1/B", "Prices", "gain over the better Nearest"]
    head += ["estimate", "reference", "count / estimate", "count / reference", "the least"]
    head += ["cost / best known", "gradients", "forwards", "seconds"]
    rows = []
    for kind in dict.fromkeys(line.shape for line in lines):
        some = [line for line in lines if line.shape == kind]
        estimate = _mean(some, lambda line: line.estimate)
        rows.append(
            [
                kind,
                *(f"{_mean(some, of):.1f}" for of in (lambda x: x.unit, lambda x: x.nearest, lambda x: x.count)),
                f"{_interval(some, lambda line: line.gain, '+.1f')} %",
                f"{estimate:.1f}",
                f"{_mean(some, lambda line: line.reference.value):.1f}",
                f"{_mean(some, lambda line: 100 * line.count / line.estimate):.2f} %",
                f"{_interval(some, lambda line: line.share, '.2f')} %",
                f"{min(line.share for line in some):.2f} %",
                f"{_mean(some, lambda line: line.reference.over):.4f}",
                *(f"{_mean(some, of):.0f}" for of in (lambda x: x.gradients, lambda x: x.forwards)),
                f"{_mean(some, lambda line: line.seconds):.1f}",
            ]
        )
    return table(head, rows)


def _mean(lines: list[Line], of: Callable[[Line], float]) -> float:
    return float(np.mean([of(line) for line in lines]))


def _interval(lines: list[Line], of: Callable[[Line], float], form: str) -> str:
    """Mean and half of its 95 % interval over cohorts; the splits of one cohort are averaged first."""
    cohorts = sorted({line.cohort for line in lines})
    means = np.array([_mean([line for line in lines if line.cohort == c], of) for c in cohorts])
    half = student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / len(means) ** 0.5
    return f"{means.mean():{form}} ± {half:{form.lstrip('+')}}"


def _methods(lines: list[Line]) -> str:
    names = lines[0].reference.methods
    means = {name: _mean(lines, lambda line, name=name: line.reference.methods[name]) for name in names}  # type: ignore[misc]
    text = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
    missed = sum(line.reference.missed for line in lines)
    return (
        f"Mean cost / best known of the reference's methods alone: {text}. Flipped by others only: {missed} samples.\n"
    )


ABLATED = ("40 %", "20 %, Dirichlet")


def ablations(asked: Asked) -> str:
    """Two shapes of one network."""
    model = list(networks(asked.data))[1]
    places = range(len(ABLATIONS))
    with ProcessPoolExecutor(asked.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        lines = list(pool.map(_ablated, [model] * len(places), places))
    whats = ("count", "its estimate", "gradients", "seconds")
    head = ["solver"] + [f"{kind}: {what}" for kind in ABLATED for what in whats]
    said = f"{model.name}, one cohort of {SAMPLES:,}. Gradients per sample; seconds of processor time.\n"
    return said + "\n" + table(head, lines)


def _ablated(model: Model, place: int) -> list[str]:
    ablation, cohort = ABLATIONS[place], model.cohort(SAMPLES, 0)
    cells = [ablation.name]
    for shape in shapes(model, cohort, 1):
        if shape.kind in ABLATED:
            with ablation.inside():
                one = solved(model.problem(cohort, shape.amounts), ablation.solver)
            cells += [f"{one.plan.count}", f"{one.plan.estimate:.1f}", f"{one.gradients:.0f}", f"{one.seconds:.1f}"]
    _tell(" | ".join(cells))
    return cells


def growth(asked: Asked) -> str:
    """Each size in a process of its own, for its peak memory."""
    found = []
    for samples in SIZES[:2] if asked.quick else SIZES:
        command = [sys.executable, "-m", "benchmarks.prices_growth", str(samples)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        _tell(str(found[-1]))
    lines = [
        [
            f"{f['samples']:,}",
            f"{f['open']:,}",
            f"{f['count']:,}",
            f"{100 * f['count'] / f['estimate']:.2f} %",
            f"{f['seconds']:.1f}",
            f"{f['processor_seconds']:.1f} ({f['choosing_processor_seconds']:.1f})",
            f"{1000 * f['pass_seconds']:.1f}",
            f"{f['seconds'] / f['pass_seconds']:.0f}",
            f"{f['processor_seconds'] / f['pass_processor_seconds']:.0f}",
            f"{f['gradients']:.0f}",
            f"{f['peak_gib']:.2f} GiB",
        ]
        for f in found
    ]
    logs = np.log([[f["samples"], f["seconds"], f["processor_seconds"]] for f in found])
    wall, own = (np.polyfit(logs[:, 0], logs[:, k], 1)[0] for k in (1, 2))
    last = np.log(found[-1]["processor_seconds"] / found[-2]["processor_seconds"]) / np.log(SIZES[1] / SIZES[0])
    head = ["samples", "of them open", "flipped", "count / estimate", "seconds"]
    head += ["processor seconds (of it choosing)"]
    head += ["one pass, ms", "solve in passes", "the same, processor time", "gradients per open sample", "peak memory"]
    said = (
        f"Time exponent, fitted: **{own:.2f}** by processor time, {wall:.2f} by the clock (bar: 1.1); between the "
        f"last two sizes {last:.2f}. Bars at 100,000: 150 passes, 99.8 % of the estimate, 2 GB.\n"
    )
    return said + "\n" + table(head, lines)


SECTIONS = {"linear": linear, "networks": networks_section, "ablations": ablations, "growth": growth}


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of " + ", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer cohorts, no long methods in the reference")
    parser.add_argument("--jobs", type=int, default=1, help="networks or ablations side by side")
    parser.add_argument("--page", type=Path, help="a page with the sections' marks")
    given = parser.parse_args()
    unknown = set(given.only.split(",")) - set(SECTIONS)
    if unknown:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    for name in given.only.split(","):
        began = time.monotonic()
        text = SECTIONS[name](Asked(given.data, given.quick, given.jobs))
        text = f"*{date.today():%Y-%m-%d}, commit {commit}; {time.monotonic() - began:,.0f} s.*\n\n{text}"
        sys.stdout.write(f"## {name}\n\n{text}\n")
        if given.page:
            put(given.page, "prices.py", name, text)


if __name__ == "__main__":
    main()
