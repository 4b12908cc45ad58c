"""Cheapest flips side by side with attack libraries.

    python -m research.benchmarks.flips --data DIR [--samples 500] [--quick]

The same networks (64-64, tanh and ReLU, on credit_default and on synthetic data, 2 and 5 classes, and a steep one), the
same samples, the same margin of 0.1, one thread. For every method: the share of samples flipped, the mean squared
length of its flips over the best known (the least that anything in this run found, per sample), and samples per
second. "Best known" includes 1,000 steps of DDN, FMN and ALMA, C&W with 9 x 1,000, and 20 restarts of our own search
from random flips. The short methods take turns, so that what else the machine does touches all of them alike; the
median of their times counts. `--keep` writes the result file and renders docs/results/flips.md.

Needs `pip install foolbox` (extra `bench`).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxflip import Problem, TorchClassifier, datasets
from maxflip.search import FeaturePrices, cheapest_flips
from maxflip.search.gradient import search
from maxflip.search.surface import Evaluations, Surface
from research.benchmarks.alma import alma
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report

Floats = NDArray[np.float64]
MARGIN, TARGET = 0.1, 0
RESTARTS = 20
DRAWS = 8  # of random points for each restart, until one passes
ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    net: nn.Module
    x: Floats


class Steep(nn.Module):
    """Logits eight times as large: most log-margins lie at -20 and far below."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = 8.0 * self.net(x)
        return logits


class WithMargin(nn.Module):
    """Scores whose largest is the target's exactly where the margin is kept: how a library without margins gets one."""

    def __init__(self, net: nn.Module, margin: float) -> None:
        super().__init__()
        self.net, self.margin = net, margin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        log_p = torch.log_softmax(self.net(x), dim=1)
        others = torch.log(log_p.exp() + self.margin)
        return torch.cat([log_p[:, :1], others[:, 1:]], dim=1)  # the target is column 0


def credit_default(data: Path) -> tuple[Floats, NDArray[np.int64]]:
    table = datasets.credit_default(data / "credit_default")
    return (table.values - table.values.mean(axis=0)) / table.values.std(axis=0), table.labels


def synthetic(classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """20 normal features, classes drawn by a random tanh network."""
    x = np.random.default_rng(0).normal(size=(20_000, 20))
    torch.manual_seed(100)
    teacher = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, classes))
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.mul_(2.5)
        z = teacher(torch.tensor(x, dtype=torch.float32))
        return x, ((z - z.mean(0)) / z.std(0)).argmax(1).numpy()


def trained(x: Floats, y: NDArray[np.int64], activation: type[nn.Module], classes: int, epochs: int = 8) -> nn.Module:
    torch.manual_seed(0)
    width = x.shape[1]
    layers = [nn.Linear(width, 64), activation(), nn.Linear(64, 64), activation(), nn.Linear(64, classes)]
    net = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for _ in range(epochs):
        for start in range(0, len(x), 256):
            batch = torch.arange(start, min(start + 256, len(x)))
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(inputs[batch]), labels[batch]))
            optimizer.step()
    return net.eval()


def unwanted(net: nn.Module, x: Floats, samples: int) -> Floats:
    """Samples that the net puts in another class than the target."""
    with torch.no_grad():
        predicted = net(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy()
    rows = np.random.default_rng(1).permutation(np.flatnonzero(predicted != TARGET))
    return np.asarray(x[rows[:samples]])


def cases(data: Path, samples: int) -> list[Case]:
    found = []
    sources = [("credit", credit_default(data), 2), ("synthetic", synthetic(2), 2), ("synthetic", synthetic(5), 5)]
    for source, (x, y), classes in sources:
        for name, activation in (("tanh", nn.Tanh), ("ReLU", nn.ReLU)):
            net = trained(x, y, activation, classes)
            found.append(Case(f"{source}, {classes} classes, {name}", net, unwanted(net, x, samples)))
            if (source, classes, name) == ("synthetic", 2, "tanh"):
                found.append(Case("the same, steep", Steep(net).eval(), unwanted(net, x, samples)))
    return found


def problem_of(case: Case) -> Problem:
    width = case.x.shape[1]
    budgets = {f"x{i}": 1.0 for i in range(width)}
    classifier = TorchClassifier(case.net, output="logits")
    return Problem(classifier=classifier, cohort=case.x, target=TARGET, margin=MARGIN, budgets=budgets)


def unit_prices(case: Case) -> FeaturePrices:
    """At which the cost is the squared length."""
    width = case.x.shape[1]
    return FeaturePrices(np.ones(width), np.zeros(width))


def ours(case: Case) -> tuple[Floats, float, Evaluations]:
    """Squared lengths (inf where none was found), seconds of processor time, and evaluations of all samples."""
    problem = problem_of(case)
    began = time.process_time()
    flips = cheapest_flips(problem, np.arange(len(case.x)), unit_prices(case))
    seconds = time.process_time() - began
    return np.where(flips.found, (flips.changes**2).sum(axis=1), np.inf), seconds, flips.evaluations


def start_margins(case: Case) -> Floats:
    """Log-margins before any change."""
    surface = Surface(problem_of(case), np.arange(len(case.x)), unit_prices(case))
    margins: Floats = surface.margin(torch.zeros_like(surface.low), torch.arange(len(case.x))).numpy()
    return margins


def penalty_method(case: Case) -> tuple[Floats, float]:
    surface = Surface(problem_of(case), np.arange(len(case.x)), unit_prices(case))
    began = time.process_time()
    lengths = alma(surface, steps=1000).numpy()
    return lengths, time.process_time() - began


def restarts(case: Case, times: int) -> Floats:
    """The least of our own searches from random flips of up to a few times the length."""
    surface = Surface(problem_of(case), np.arange(len(case.x)), unit_prices(case))
    best = search(surface)
    everyone = torch.arange(len(case.x))
    generator = torch.Generator().manual_seed(0)
    for _ in range(times):
        again = search(surface, start=random_flips(surface, best.change, generator))
        best.record(everyone, again.change, again.cost, torch.where(again.found, 0.0, -1.0))
    return best.cost.numpy()


def random_flips(surface: Surface, around: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Near each flip a random one that passes too, of those drawn; the flip itself where none does."""
    everyone = torch.arange(len(around))
    start, is_open = around.clone(), torch.ones(len(around), dtype=torch.bool)
    for _ in range(DRAWS):
        noise = torch.randn(around.shape, generator=generator, dtype=torch.float64)
        noise = noise / noise.norm(dim=1, keepdim=True) * around.norm(dim=1, keepdim=True)
        point = around + 1.5 * noise
        taken = is_open & (surface.margin(point, everyone) >= 0)
        start[taken] = point[taken]
        is_open &= ~taken
    return start


def foolbox(case: Case, attack: Any) -> tuple[Floats, float]:
    import foolbox as fb

    # The guard that our flips keep is asked of everyone.
    bound = _bound(case)
    model = fb.PyTorchModel(WithMargin(case.net, MARGIN + 2e-6).eval(), bounds=(-bound, bound))
    x = torch.tensor(case.x, dtype=torch.float32)
    criterion = fb.criteria.TargetedMisclassification(torch.full((len(x),), TARGET))
    began = time.process_time()
    _, flipped, _ = attack(model, x, criterion, epsilons=None)
    seconds = time.process_time() - began
    passes = (model(flipped).argmax(1) == TARGET).numpy()
    return np.where(passes, ((flipped.double() - x.double()) ** 2).sum(1).detach().numpy(), np.inf), seconds


def _bound(case: Case) -> float:
    """Foolbox wants the inputs bounded; this far out no cheapest flip goes."""
    return float(np.abs(case.x).max()) + 10.0


def _mended_fmn(steps: int) -> Any:
    """Foolbox 3.3.4's FMN does not project in L2 (it multiplies by norms / norms): its flips cost 2 to 3 times as much.

    With the projection in place it is the method of its paper.
    """
    import eagerpy as ep
    import foolbox.attacks as fa

    class Mended(fa.L2FMNAttack):  # type: ignore[misc]
        def project(self, x: Any, x0: Any, epsilon: Any) -> Any:
            norms = ep.maximum((x - x0).norms.l2(axis=-1), 1e-12)
            return x0 + (x - x0) * ep.minimum(1.0, epsilon / norms).expand_dims(1)

    return Mended(steps=steps)


def short_rivals() -> dict[str, Callable[[], Any]]:
    import foolbox.attacks as fa

    return {
        "DDN, 100 steps": lambda: fa.DDNAttack(init_epsilon=1.0, steps=100),
        "FMN, 100 steps": lambda: _mended_fmn(100),
        "DeepFool, 50 steps": lambda: fa.L2DeepFoolAttack(steps=50),
    }


def long_rivals(bound: float) -> dict[str, Callable[[], Any]]:
    import foolbox.attacks as fa

    # C&W steps in the space of artanh(x / bound); there this is a step of a tenth.
    stepsize = 0.1 / bound
    return {
        "DDN, 1,000 steps": lambda: fa.DDNAttack(init_epsilon=1.0, steps=1000, gamma=0.02),
        "FMN, 1,000 steps": lambda: _mended_fmn(1000),
        "C&W, 9 x 1,000 steps": lambda: fa.L2CarliniWagnerAttack(
            binary_search_steps=9, steps=1000, stepsize=stepsize, initial_const=1.0
        ),
    }


def taking_turns(case: Case, rounds: int) -> tuple[dict[str, tuple[Floats, float]], Evaluations]:
    """Ours and the short rivals: what they find, the median of their seconds, and our evaluations."""
    lengths: dict[str, Floats] = {}
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):
        lengths["maxflip"], spent, evaluations = ours(case)
        seconds.setdefault("maxflip", []).append(spent)
        for name, attack in short_rivals().items():
            lengths[name], spent = foolbox(case, attack())
            seconds.setdefault(name, []).append(spent)
    return {name: (found, float(np.median(seconds[name]))) for name, found in lengths.items()}, evaluations


def ratio(length: Floats, best: Floats) -> float:
    """Mean over mean, where the method flipped."""
    found = np.isfinite(length)
    return float(length[found].mean() / best[found].mean()) if found.any() else np.inf


def rows_of(
    case: Case, results: dict[str, tuple[Floats, float]], best: Floats, evaluations: Evaluations
) -> list[dict[str, Any]]:
    """A row for each method; what is known of the case alone stands in the first, maxflip's."""
    n, flipped = len(case.x), np.isfinite(best)
    rows = [
        {
            "network": case.name,
            "method": name,
            "samples": n,
            "flipped_by_any": int(flipped.sum()),
            "flipped": int(np.isfinite(length).sum()),
            "cost_over_best": ratio(length, best),
            "close": float((length <= 1.005 * best)[flipped].mean()),
            "samples_per_second": n / spent,
        }
        for name, (length, spent) in results.items()
    ]
    least, median, upper = np.quantile(start_margins(case), [0, 0.5, 0.75]).tolist()
    rows[0] |= {"gradients": evaluations.gradients / n, "forwards": evaluations.forwards / n}
    rows[0] |= {"least_margin": least, "median_margin": median, "upper_quartile_margin": upper}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the public data sets")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="without the long runs")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows, began = [], time.monotonic()
    for case in cases(given.data, given.samples):
        results, evaluations = taking_turns(case, rounds=ROUNDS)
        if not given.quick:
            for name, attack in long_rivals(_bound(case)).items():
                results[name] = foolbox(case, attack())
            results["ALMA, 3 x 1,000 steps"] = penalty_method(case)
        restarted = restarts(case, 2 if given.quick else RESTARTS)
        best = np.min([length for length, _ in results.values()] + [restarted], axis=0)
        rows += rows_of(case, results, best, evaluations)
        tell(f"{case.name}: done")
    made = made_here(
        "python -m research.benchmarks.flips --data DIR --keep", time.monotonic() - began, ("torch", "foolbox")
    )
    report({"flips": rows}, made, ["flips.short", "flips.networks"], keep=given.keep)


if __name__ == "__main__":
    main()
