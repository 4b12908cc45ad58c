"""Sequences: whom a search reaches, beside a plain one and an independent, stronger one; and what a plan takes.

    python -m research.benchmarks.sequences reach [--samples 300] [--device cuda] [--keep]
    python -m research.benchmarks.sequences time [--samples 300] [--steps 150] [--device cuda] [--keep]

`time --keep` adds a row to the result file, or replaces the one with the same sequences and options.

Insurance-like sequences (maxflip.datasets.insurance): 169 features of which 19 may change, in all of their steps,
five classes, an LSTM with 128 units: as torch makes it, and trained here for a few epochs. Samples: those that the
model puts in an unwanted class, rightly where it was trained.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Fate, Nearest, Prices, Problem, TorchClassifier, solve
from maxflip._util.engine import one_torch_thread
from maxflip.datasets import insurance
from maxflip.datasets.insurer import CHANGEABLE
from maxflip.datasets.samples import Sequences
from maxflip.judge import confidence_after
from maxflip.search import FeaturePrices, gradient
from maxflip.search.surface import Surface
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report
from research.evidence.results import Results

EPOCHS, BATCH, RATE = 6, 64, 3e-3
MARGIN = 0.1
PLAIN_STEPS, STRONG_STEPS, RESTARTS = 20, 400, 4


class LSTM(nn.Module):
    """All 169 features at every step, those that do not change repeated; read at the last step."""

    takes = ("x", "static", "length")

    def __init__(self, inputs: int = 169, hidden: int = 128, classes: int = 5) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor, static: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        everything = torch.cat([x, static[:, None].expand(-1, x.shape[1], -1)], dim=2)
        hidden, _ = self.lstm(everything)
        last: torch.Tensor = self.head(hidden[torch.arange(len(x), device=x.device), length - 1])
        return last


def padded(data: Sequences, rows: NDArray[np.int64], device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lengths = np.array([len(data.values[j]) for j in rows])
    x = np.zeros((len(rows), lengths.max(), len(data.features)), dtype=np.float32)
    for at, j in enumerate(rows):
        x[at, : lengths[at]] = data.values[j]
    static = np.asarray(data.static[rows], dtype=np.float32)
    return tuple(torch.as_tensor(part, device=device) for part in (x, static, lengths))  # type: ignore[return-value]


def trained(device: str) -> LSTM:
    torch.manual_seed(0)
    net, data = LSTM().to(device), insurance(4000, seed=0)
    labels = torch.tensor(data.labels, device=device)
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    lengths, chance = np.array([len(v) for v in data.values]), np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = np.argsort(lengths + chance.normal(scale=5, size=len(lengths)))
        batches = [order[b : b + BATCH] for b in range(0, len(order), BATCH)]
        for which in chance.permutation(len(batches)):
            rows = batches[which]
            loss = nn.functional.cross_entropy(net(*padded(data, rows, device)), labels[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    return net.eval()


def predicted(net: LSTM, data: Sequences, device: str) -> NDArray[np.int64]:
    with torch.no_grad():
        parts = [
            net(*padded(data, rows, device)).argmax(dim=1).cpu() for rows in np.array_split(np.arange(len(data)), 20)
        ]
    return torch.cat(parts).numpy()


def problem_of(net: LSTM, data: Sequences, target: int, device: str, batch_size: int) -> Problem:
    return Problem(
        classifier=TorchClassifier(net, output="logits", device=device, batch_size=batch_size),
        cohort=data.cohort(),
        target=target,
        margin=MARGIN,
        steps="all",
        budgets=dict.fromkeys(CHANGEABLE, 1.0),
    )


@dataclass(frozen=True)
class Case:
    name: str
    target: int
    problem: Problem


def cases(samples: int, device: str) -> list[Case]:
    torch.manual_seed(1)
    as_made, learned = LSTM().to(device).eval(), trained(device)
    data = insurance(max(6 * samples, 1000), seed=5)
    found = []
    for name, net in (("LSTM as torch makes it", as_made), ("LSTM, trained", learned)):
        said = predicted(net, data, device)
        right = said == data.labels if net is learned else np.ones(len(said), dtype=bool)
        for target in range(5):
            rows = np.flatnonzero(right & (said != target))[:samples]
            if len(rows):
                found.append(Case(name, target, problem_of(net, data.take(rows), target, device, 8192)))
    return found


def plain_search(surface: Surface) -> torch.Tensor:
    """Who is ever across in so many steps onto the linearised surface, each from where the last one led."""
    everyone = torch.arange(len(surface.low), device=surface.low.device)
    d, reached = (
        torch.zeros_like(surface.low),
        torch.zeros(len(surface.low), dtype=torch.bool, device=surface.low.device),
    )
    for _ in range(PLAIN_STEPS):
        m, g = surface.margin_and_gradient(d, everyone)
        reached |= m >= 0
        pull = g / surface.rates.up.squared
        size = (g * pull).sum(dim=1).clamp_min(1e-300)
        d = (((g * d).sum(dim=1) - m) / size)[:, None] * pull
    return reached | (surface.margin(d, everyone) >= 0)


def strong_search(surface: Surface) -> torch.Tensor:
    """Who is ever across when Adam climbs the margin for long, from the start and from random points."""
    everyone = torch.arange(len(surface.low), device=surface.low.device)
    reached = torch.zeros(len(surface.low), dtype=torch.bool, device=surface.low.device)
    spread = torch.as_tensor(surface.problem.spread, device=surface.low.device)
    chance = torch.Generator().manual_seed(0)
    for restart in range(RESTARTS):
        at = everyone[~reached]
        noise = torch.randn(surface.low.shape, generator=chance, dtype=torch.float64).to(spread.device)
        u = restart * noise[at]
        first, second = torch.zeros_like(u), torch.zeros_like(u)
        for step in range(1, STRONG_STEPS + 1):
            if not len(at):
                break
            m, g = surface.margin_and_gradient(spread * u, at)
            g = g * spread
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            u = u + 0.1 * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-12)
            crossed = m >= 0
            reached[at[crossed]] = True
            at, u, first, second = at[~crossed], u[~crossed], first[~crossed], second[~crossed]
    return reached


def reach(samples: int, device: str) -> list[dict[str, Any]]:
    found_rows = []
    for case in cases(samples, device):
        problem = case.problem
        rows = problem.cohort.order
        with problem.classifier.borrowed():
            before = confidence_after(problem, rows, np.zeros((len(rows), problem.width)))
        rows = rows[before < MARGIN]
        prices = FeaturePrices(1.0 / problem.spread**2, 0.0 * problem.spread)

        def surface(problem: Problem = problem, rows: NDArray[np.int64] = rows, at: FeaturePrices = prices) -> Surface:
            return Surface(problem, rows, at)

        with problem.classifier.borrowed(), one_torch_thread():
            plain = plain_search(surface())
            ours, strong = surface(), surface()
            found = gradient.search(ours).found
            stronger = strong_search(strong)
        n = len(rows)
        per = [s.evaluations.gradients / n for s in (ours, strong)]
        found_rows.append(
            {
                "model": case.name,
                "wanted": case.target,
                "samples": n,
                "plain": int(plain.sum()),
                "ours": int(found.sum()),
                "gradients": per[0],
                "stronger": int(stronger.sum()),
                "stronger_gradients": per[1],
                "stronger_alone": int((stronger & ~found).sum()),
            }
        )
        tell(str(found_rows[-1]))
    return found_rows


def timed(samples: int, steps: int, device: str, batch_size: int, *, progress: bool) -> dict[str, Any]:
    """Everyone equally long, or, with 0 steps, as they are; budgets of two fifths of what the nearest flips take that
    are found first."""
    net = trained(device)
    data = insurance(8 * samples, seed=5)
    if steps:
        data = lengthened(data, steps)
    rows = np.flatnonzero(predicted(net, data, device) != 1)[:samples]
    problem = problem_of(net, data.take(rows), 1, device, batch_size)
    nearest = solve(problem.changed(budgets=dict.fromkeys(CHANGEABLE, np.inf)), Nearest(prices="unit"))
    asked = problem.changed(budgets={name: 0.4 * nearest.spend[name] for name in CHANGEABLE})
    for _ in range(1 if device == "cpu" else 2):  # the first one warms a GPU up
        began = time.monotonic()
        plan = solve(asked, Prices(), watch=lambda event: print(event, flush=True) if progress else None)
        seconds = time.monotonic() - began
    options = f"--samples {samples}" + ("" if steps == 150 else f" --steps {steps}")
    options += "" if device == "cpu" else f" --device {device}"
    return {
        "sequences": samples,
        "steps": str(steps) if steps else "1 to 150",
        "features": 169,
        "options": options,
        "where": "one GPU" if device != "cpu" else f"{torch.get_num_threads()} threads",
        "seconds": seconds,
        "count": plan.count,
        "estimate": plan.estimate,
        "known": plan.count + plan.fate_counts()[Fate.LEFT_OUT],
        "gradients": plan.trace["gradients"][-1] / samples,
        "main_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def lengthened(data: Sequences, steps: int) -> Sequences:
    """Each repeated until it has so many steps."""
    values = tuple(np.resize(v, (steps, v.shape[1])) for v in data.values)
    times = tuple(np.arange(steps, dtype=np.float64) for _ in values)
    return replace(data, values=values, times=times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["reach", "time"])
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--progress", action="store_true", help="print every event")
    add_keep(parser)
    given = parser.parse_args()
    began = time.monotonic()
    if given.what == "reach":
        rows = reach(given.samples, given.device)
        options = f"--samples {given.samples} --device {given.device}"
    else:
        row = timed(given.samples, given.steps, given.device, given.batch_size, progress=given.progress)
        before = Results().rows("sequences_time") if given.keep else []
        rows = [row, *(other for other in before if other["options"] != row["options"])]
        options = row["options"]
    made = made_here(f"python -m research.benchmarks.sequences {given.what} {options} --keep", time.monotonic() - began)
    if given.what == "time":  # rows of several runs
        rows[0]["measured"] = f"{made.date}, commit {made.commit}"
    report({f"sequences_{given.what}": rows}, made, [f"sequences.{given.what}"], keep=given.keep)


if __name__ == "__main__":
    main()
