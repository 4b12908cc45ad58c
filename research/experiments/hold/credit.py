"""Customers of a bank whom a small network predicts to default, and retrained networks that judge their flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import torch
from safetensors.torch import load_file, save
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import nn

from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, TorchClassifier
from maxflip._util.atomic import write_bytes
from maxflip._util.rng import Streams
from maxflip.datasets import credit_default
from maxflip.datasets.credit import PERSONAL
from maxflip.models import Classifier
from maxflip.solvers import Solver
from research.experiments.hold.cases import Judge, Source, Spec, resampled
from research.experiments.metrics import Floats
from research.experiments.tasks import Rows

PAID = 0
LEARNED_FROM = 0.5
EPOCHS, BATCH, RATE = 8, 256, 3e-3
SOLVERS: dict[str, Solver] = {  # of what was tried for the first four, what flips most of the first cohort by 0.1
    "MS": MS.scale_free(outer=10, inner=200),
    "BCMS": BCMS.scale_free(outer=10, inner=200),
    "CCMS": CCMS.scale_free(outer=10, inner=60, choices=0.25),
    "KL": KL.scale_free(outer=10, inner=200, optimizer="adam"),
    "Nearest": Nearest(),
    "Prices": Prices(),
}

WIDE = Spec("ReLU 128-128", "architecture", 400)
TREES = Spec("boosted trees", "architecture", 401)


def untrained(spec: Spec, inputs: int) -> nn.Sequential:
    width, activation = (128, nn.ReLU) if spec == WIDE else (64, nn.Tanh)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Streams(spec.seed).key("weights"))
        return nn.Sequential(
            *(nn.Linear(inputs, width), activation()), *(nn.Linear(width, width), activation()), nn.Linear(width, 2)
        )


def fit(net: nn.Sequential, x: Floats, y: Rows, seed: int) -> None:
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(x), generator=Streams(seed).torch("epoch", epoch))
        for batch in torch.split(order, BATCH):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(net(inputs[batch]), labels[batch]))
            optimizer.step()


def probabilities(net: nn.Sequential, x: Floats) -> Floats:
    with torch.no_grad():
        return torch.softmax(net(torch.tensor(x, dtype=torch.float32)).double(), dim=1).numpy()


@dataclass(frozen=True, eq=False)
class Credit(Source[Floats]):
    """data: holds credit_default/"""

    wanted: ClassVar[int] = PAID
    size: ClassVar[int] = 150
    quick_size: ClassVar[int] = 80
    share: ClassVar[float] = 0.25
    solvers: ClassVar[Mapping[str, Solver]] = SOLVERS
    of_another_kind: ClassVar[tuple[Spec, ...]] = (WIDE, TREES)
    seconds_to_learn: ClassVar[float] = 0.5
    seconds_to_solve: ClassVar[float] = 1.6

    @cached_property
    def halves(self) -> tuple[tuple[Floats, Rows], tuple[Floats, Rows], tuple[str, ...]]:
        """To learn from, and people whom no model has seen, both standardised by the first; and names of columns."""
        table = credit_default(self.data / "credit_default")
        order = np.random.default_rng(0).permutation(len(table.labels))
        learned, others = np.split(order, [int(LEARNED_FROM * len(order))])
        x = (table.values - table.values[learned].mean(axis=0)) / table.values[learned].std(axis=0)
        return (x[learned], table.labels[learned]), (x[others], table.labels[others]), table.features

    @property
    def people(self) -> Floats:
        return self.halves[1][0]

    @property
    def labels(self) -> Rows:
        return self.halves[1][1]

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name in self.halves[2] if name not in PERSONAL)

    def learned(self, seed: int) -> list[Spec]:
        return [spec for spec in super().learned(seed) if spec != TREES]  # learned by every process, in a second

    def learn(self, spec: Spec) -> None:
        (x, y), _, _ = self.halves
        rows = np.arange(len(y))
        rows = resampled(rows, spec.seed) if spec.kind == "bootstrap" else rows
        net = untrained(spec, x.shape[1])
        fit(net, x[rows], y[rows], spec.seed)
        write_bytes(self.path(spec), save(net.state_dict()))

    @cached_property
    def trees(self) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(random_state=TREES.seed).fit(*self.halves[0])

    def network(self, spec: Spec) -> nn.Sequential:
        net = untrained(spec, self.people.shape[1])
        net.load_state_dict(load_file(self.path(spec)))
        return net.eval()

    def judge(self, spec: Spec) -> Judge[Floats]:
        asked = self.trees.predict_proba if spec == TREES else partial(probabilities, self.network(spec))
        return Judge(spec.name, spec.kind, asked)

    def classifier(self, spec: Spec) -> Classifier:
        return TorchClassifier(self.network(spec), output="logits")

    def take(self, people: Floats, rows: Rows) -> Floats:
        return np.asarray(people[rows])

    def changed(self, people: Floats, plan: Plan) -> Floats:
        return np.asarray(people[plan.selected] + plan.changes)

    def problem(self, cohort: Floats, classifier: Classifier, budgets: Mapping[str, float], margin: float) -> Problem:
        return Problem(
            classifier=classifier,
            cohort=cohort,
            features=self.halves[2],
            target=PAID,
            margin=margin,
            limits=dict.fromkeys(budgets, "observed"),
            budgets=budgets,
            tidy=False,  # measured as the algorithms leave them
        )
