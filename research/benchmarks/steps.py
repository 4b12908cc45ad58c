"""What whole steps cost: `python -m research.benchmarks.steps --data DIR [--sizes 300,3000] [--keep]`.

Clients of a bank (credit_default) and borrowers (Give Me Some Credit), whom a network puts in the unwanted class.
Months late and accounts go by whole numbers, money by hundreds, and no change of money is small. Each question is
asked with these steps, without them, and with steps and at most three features per person; the budgets are the same.
Each plan is saved and audited, so that every change is on its grid.

Budgets: a part of what everybody's nearest flips draw without steps, distances counted in standard deviations.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import torch
from torch import Tensor, nn

from maxflip import Budget, Limit, Nearest, Plan, Problem, TorchClassifier, solve
from maxflip._util.types import Floats, Rows
from maxflip.datasets import credit_default
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report

SHARE, MARGIN, MOST, EPOCHS = 0.2, 0.1, 3, 6
PICKED = 0.5  # of the people, at most, where the budgets are absolute
COSTS = ("squared", "absolute")


@dataclass(frozen=True, eq=False)
class Source:
    """x (n, F), y (n,): all people and their classes, of which `wanted` is the wanted one

    limits: {feature: Limit with steps} of those that may change
    """

    name: str
    features: tuple[str, ...]
    x: Floats
    y: Rows
    wanted: int
    limits: Mapping[str, Limit]

    @property
    def without_steps(self) -> dict[str, Limit]:
        return {name: Limit(one.low, one.high, one.direction) for name, one in self.limits.items()}

    @property
    def spread(self) -> dict[str, float]:
        return dict(zip(self.features, self.x.std(axis=0).tolist(), strict=True))

    @property
    def counts(self) -> list[str]:
        """Features that go by ones, such as months late"""
        return [name for name, limit in self.limits.items() if limit.step == 1]


def clients(data: Path) -> Source:
    table = credit_default(data / "credit_default")
    late = [name for name in table.features if name.startswith("PAY_") and "AMT" not in name]
    paid = [name for name in table.features if name.startswith("PAY_AMT")]
    limits = {"LIMIT_BAL": Limit(direction="up", step=100, smallest=1000)}
    limits |= {name: Limit(-2, direction="down", step=1) for name in late}
    limits |= {name: Limit(direction="up", step=100, smallest=500) for name in paid}
    return Source("credit_default", table.features, table.values, table.labels, 0, limits)


def borrowers(data: Path) -> Source:
    """SeriousDlqin2yrs: 1 for those who paid in time, in this file."""
    (path,) = (data / "give_me_some_credit").glob("*.csv.gz")
    columns = pc.read_csv(path).to_pydict()
    labels = np.array(columns.pop("SeriousDlqin2yrs"))
    limits = {name: Limit(0, direction="down", step=1) for name in columns if "PastDue" in name or "DaysLate" in name}
    for name in ("NumberOfOpenCreditLinesAndLoans", "NumberRealEstateLoansOrLines"):
        limits[name] = Limit(0, step=1)
    for name in ("RevolvingUtilizationOfUnsecuredLines", "DebtRatio"):
        limits[name] = Limit(0, direction="down", smallest=0.05)
    limits["MonthlyIncome"] = Limit(direction="up", step=100, smallest=200)
    x = np.array(list(columns.values()), dtype=float).T
    return Source("give_me_some_credit", tuple(columns), x, labels, 1, limits)


class Scaled(nn.Module):
    """sign(z) log(1 + |z|) of distances z from the median in quartiles, standardised: money has long tails."""

    def __init__(self, x: Floats) -> None:
        super().__init__()
        median = np.median(x, axis=0)
        quartile = np.quantile(np.abs(x - median), 0.75, axis=0)
        self.register_buffer("median", torch.tensor(median))
        self.register_buffer("quartile", torch.tensor(np.where(quartile < 1e-6, 1.0, quartile)))
        z = self._bent(torch.tensor(x))
        self.register_buffer("mean", z.mean(0))
        self.register_buffer("spread", z.std(0).clamp_min(1e-9))

    def _bent(self, x: Tensor) -> Tensor:
        z = (x - self.get_buffer("median")) / self.get_buffer("quartile")
        return torch.log1p(z.clamp_min(0.0)) - torch.log1p((-z).clamp_min(0.0))

    def forward(self, x: Tensor) -> Tensor:
        return (self._bent(x) - self.get_buffer("mean")) / self.get_buffer("spread")


def trained(source: Source) -> nn.Module:
    torch.manual_seed(0)
    width = len(source.features)
    layers = nn.Linear(width, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    net = nn.Sequential(Scaled(source.x), *layers).double()
    x, y = torch.tensor(source.x), torch.tensor(source.y)
    weight = 1.0 / torch.bincount(y).double()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for part in torch.split(torch.randperm(len(x)), 512):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x[part]), y[part], weight=weight / weight.sum() * 2)
            torch.autograd.backward(loss)
            optimizer.step()
    return net.eval()


def budgets(source: Source, ask: Callable[..., Problem], people: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each kind of cost: the budgets"""
    spread, names = source.spread, list(source.limits)
    free = {name: Budget(np.inf, {name: spread[name] ** -2}) for name in names}
    plan = solve(ask(budgets=free, limits=source.without_steps), Nearest(prices="unit"))
    which = [source.features.index(name) for name in names]
    moved = np.abs(plan.changes[:, which]) / np.array([spread[name] for name in names])
    squares, sizes = (moved**2).sum(axis=0), moved.sum(axis=0)
    floor = SHARE * squares.mean()  # of features that nobody's nearest flip changes
    yield (
        "squared",
        {name: SHARE * max(own, floor) * spread[name] ** 2 for name, own in zip(names, squares, strict=True)},
    )
    months = [name in source.counts for name in names]
    of_counts = {name: 1 / spread[name] for name in source.counts}
    rest = {name: 1 / spread[name] for name in names if name not in source.counts}
    yield (
        "absolute",
        {
            "counts": Budget(SHARE * float(sizes[months].sum()), of_counts, "absolute"),
            "rest": Budget(SHARE * float(sizes[~np.array(months)].sum()), rest, "absolute"),
            "people": Budget(int(PICKED * people), cost="count"),
        },
    )


def audited(problem: Problem, plan: Plan, net: nn.Module, width: int) -> bool:
    """Saving a plan audits it; an auditor that objects raises."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.pt2"
        shape = ({0: torch.export.Dim("rows")},)
        torch.export.save(torch.export.export(net, (torch.zeros(2, width).double(),), dynamic_shapes=shape), file)
        plan.save(Path(folder) / "plan", problem=problem, model=file)
    return True


def measured(source: Source, net: nn.Module, size: int, draw: int) -> list[dict[str, Any]]:
    with torch.no_grad():
        said = net(torch.tensor(source.x)).argmax(dim=1).numpy()
    others = np.flatnonzero(said != source.wanted)
    people = source.x[np.sort(np.random.default_rng([draw, 17]).permutation(others)[:size])]

    def ask(**options: Any) -> Problem:
        return Problem(
            classifier=TorchClassifier(net, output="logits"),
            cohort=people,
            features=source.features,
            target=source.wanted,
            margin=MARGIN,
            **options,
        )

    rows = []
    for cost, given in budgets(source, ask, len(people)):
        for asked, limits, most in (
            ("no steps", source.without_steps, None),
            ("steps", source.limits, None),
            ("steps, few", source.limits, MOST),
        ):
            problem = ask(budgets=given, limits=limits, most_changes=most)
            began = time.process_time()
            plan = solve(problem)
            row = {
                "cohort": source.name,
                "people": len(people),
                "draw": draw,
                "cost": cost,
                "asked": asked,
                "count": plan.count,
                "estimate": plan.estimate,
                "not_found": (plan.fates == "not_found").sum().item(),
                "changed": float((plan.changes != 0).sum(axis=1).mean()),
                "gradients": plan.trace["gradients"][-1] / len(people),
                "cpu_seconds": time.process_time() - began,
                "audited": audited(problem, plan, net, len(source.features)),
            }
            rows.append(row)
            tell(f"{row}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", default="300,3000")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    rows = []
    for source in (clients(given.data), borrowers(given.data)):
        net = trained(source)
        for size in map(int, given.sizes.split(",")):
            for draw in (0, 1) if size <= 300 else (0,):  # the second was looked at when all was done
                rows += measured(source, net, size, draw)
    command = f"python -m research.benchmarks.steps --data DIR --sizes {given.sizes} --keep"
    report({"steps": rows}, made_here(command, time.monotonic() - began), ["steps.cost"], keep=given.keep)


if __name__ == "__main__":
    main()
