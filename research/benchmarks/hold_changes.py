"""Plans whose changes hold: `python -m research.benchmarks.hold_changes --data DIR [--keep]`.

For the demo, credit customers and patients in intensive care: how many are flipped without a requirement, with Uptake,
with Rounded and with both; and how many of each plan's flips still pass at partial uptake and rounded.

Rounded asks for the usual digits of each feature (docs/api.md), those that the plan's own count is about. Budgets are
those of the demo, elsewhere a quarter of what everyone's nearest flip draws of each feature; they are the same for all
plans of a cohort.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from maxflip import Nearest, Problem, Rounded, TorchClassifier, Uptake, solve
from maxflip._util.events import silent
from maxflip.cli.demo import write_demo_inputs
from maxflip.datasets import credit_default, physionet2012
from maxflip.datasets.credit import PERSONAL
from maxflip.datasets.physionet_variables import LABS
from maxflip.io.job.read import read_job
from maxflip.networks import load_network
from maxflip.plan.holding import usual_digits
from maxflip.problem.must_hold import Requirement
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report
from research.experiments.cohorts import WEIGHTS
from research.experiments.hold.cases import Spec
from research.experiments.hold.credit import PAID, fit, untrained
from research.experiments.packed import Packed, logits_of

SHARE, UPTAKE, MARGIN = 0.25, 0.8, 0.1
CUSTOMERS, STAYS = 300, 60
NETWORK = Spec("tanh 64-64", "network", 0)

Ask = Callable[..., Problem]  # ask(must_hold=..., budgets=...)


def demo() -> Ask:
    folder = tempfile.mkdtemp()
    job = read_job(write_demo_inputs(Path(folder)))
    reading, classifier = job.read_cohort(), job.load_classifier(silent)

    def ask(must_hold: Sequence[Requirement] = (), budgets: Any = None) -> Problem:
        asked = replace(job, must_hold=tuple(must_hold), budgets=budgets or job.budgets)
        return asked.problem(reading, classifier)

    return ask


def customers(data: Path) -> Ask:
    """In units of the data: the scaler stands inside the model."""
    table = credit_default(data / "credit_default")
    learned, others = np.split(np.random.default_rng(0).permutation(len(table.labels)), 2)
    mean, spread = table.values[learned].mean(axis=0), table.values[learned].std(axis=0)
    net = untrained(NETWORK, len(mean))
    fit(net, (table.values[learned] - mean) / spread, table.labels[learned], NETWORK.seed)
    model = nn.Sequential(Scaled(mean, spread), net)
    with torch.no_grad():
        said = model(torch.tensor(table.values[others], dtype=torch.float32)).argmax(dim=1).numpy()
    cohort = others[(said == table.labels[others]) & (said != PAID)][:CUSTOMERS]

    def ask(must_hold: Sequence[Requirement] = (), budgets: Any = None) -> Problem:
        changing = [name for name in table.features if name not in PERSONAL]
        return Problem(
            classifier=TorchClassifier(model, output="logits", classes=table.classes),
            cohort=table.values[cohort],
            features=table.features,
            target=table.classes[PAID],
            margin=MARGIN,
            limits="observed",
            budgets=budgets or dict.fromkeys(changing, np.inf),
            must_hold=list(must_hold),
        )

    return ask


class Scaled(nn.Module):
    def __init__(self, mean: Any, spread: Any) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("spread", torch.tensor(spread, dtype=torch.float32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.get_buffer("mean")) / self.get_buffer("spread")


def patients(data: Path) -> Ask:
    stays = physionet2012(data / "physionet2012", "b", label="30_day")
    net = load_network(WEIGHTS / "grud_30_day.safetensors")
    said = logits_of(net, Packed.of(stays), torch.arange(len(stays))).argmax(axis=1)
    survived = stays.classes.index("survived")
    rightly = np.flatnonzero((said == stays.labels) & (stays.labels != survived))
    cohort = stays.take(np.random.default_rng(0).permutation(rightly)[:STAYS]).cohort()

    def ask(must_hold: Sequence[Requirement] = (), budgets: Any = None) -> Problem:
        return Problem(
            classifier=TorchClassifier(net, output="logits", classes=net.class_names),
            cohort=cohort,
            target="survived",
            margin=MARGIN,
            steps="all",
            limits=dict.fromkeys(LABS, "observed"),
            budgets=budgets or dict.fromkeys(LABS, np.inf),
            must_hold=list(must_hold),
        )

    return ask


def sized(ask: Ask) -> dict[str, float]:
    """A part of what everyone's nearest flip draws of each feature, distances counted in standard deviations."""
    free = ask()
    names = np.take(free.cohort.features, free.slots.feature[free.actionable])
    spread = dict(zip(names.tolist(), free.spread.tolist(), strict=True))
    plan = solve(free, Nearest(prices={name: float(size) ** -2 for name, size in spread.items()}))
    return {name: SHARE * spent for name, spent in plan.spend.items()}


def measured(name: str, ask: Ask, budgets: Mapping[str, float] | None) -> list[dict[str, Any]]:
    steps = {feature: 10.0**-decimals for feature, decimals in usual_digits(ask(budgets=budgets)).items()}
    asked: dict[str, list[Requirement]] = {
        "nothing": [],
        "uptake": [Uptake(UPTAKE)],
        "rounded": [Rounded(steps)],
        "both": [Uptake(UPTAKE), Rounded(steps)],
    }
    rows = []
    for required, must_hold in asked.items():
        began = time.process_time()
        plan = solve(ask(must_hold=must_hold, budgets=budgets))
        took = time.process_time() - began
        assert plan.holds is not None
        passing = {f"at_{round(100 * share)}": count for share, count in plan.holds.uptake.items()}
        rows.append(
            {"cohort": name, "people": len(plan.fates), "open": int((plan.fates != "already").sum())}
            | {"must_hold": required, "count": plan.count}
            | passing
            | {"rounded": plan.holds.rounded, "not_found": int((plan.fates == "not_found").sum())}
            | {"estimate": plan.estimate, "cpu_seconds": took}
        )
        tell(str(rows[-1]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of public data")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    rows = measured("demo", demo(), None)
    for name, ask in (("credit", customers(given.data)), ("icu", patients(given.data))):
        rows += measured(name, ask, sized(ask))
    made = made_here("python -m research.benchmarks.hold_changes --data DIR --keep", time.monotonic() - began)
    report({"hold_changes": rows}, made, ["hold.changes"], keep=given.keep)


if __name__ == "__main__":
    main()
