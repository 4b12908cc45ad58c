"""Customers of a bank whom a small network predicts to default, and networks learned anew that judge their flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from safetensors.torch import load_file, save
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import nn

from experiments.hold.cases import MATES, NETWORKS, RETRAINED, Case, Judge, Spec, drawn, resampled
from experiments.metrics import Floats
from experiments.tasks import Rows, Tell
from maxflip import BCMS, CCMS, KL, MS, Ensemble, Nearest, Plan, Prices, Problem, TorchClassifier
from maxflip.classifiers import Classifier
from maxflip.datasets import credit_default
from maxflip.datasets.credit import PERSONAL
from maxflip.files.atomic import write_bytes
from maxflip.solvers import Solver
from maxflip.streams import Streams

PAID = 0
LEARNED_FROM = 0.5
EPOCHS, BATCH, RATE = 8, 256, 3e-3
SHARE = 0.25
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


def changed(people: Floats, plan: Plan) -> Floats:
    return np.asarray(people[plan.selected] + plan.changes)


@dataclass(frozen=True, eq=False)
class Credit:
    """data: the folder that holds credit_default/   weights: where learned networks are kept"""

    data: Path
    weights: Path
    size: ClassVar[int] = 150
    quick_size: ClassVar[int] = 80
    solvers: ClassVar[Mapping[str, Solver]] = SOLVERS

    @cached_property
    def halves(self) -> tuple[tuple[Floats, Rows], tuple[Floats, Rows], tuple[str, ...]]:
        """To learn from, and people whom no model has seen, both standardised by the first; and names of columns."""
        table = credit_default(self.data / "credit_default")
        order = np.random.default_rng(0).permutation(len(table.labels))
        learned, others = np.split(order, [int(LEARNED_FROM * len(order))])
        x = (table.values - table.values[learned].mean(axis=0)) / table.values[learned].std(axis=0)
        return (x[learned], table.labels[learned]), (x[others], table.labels[others]), table.features

    def models(self) -> list[Spec]:
        return [*NETWORKS, *RETRAINED, WIDE, *MATES]  # trees are learned anew by every process, in a second

    def learn(self, spec: Spec, tell: Tell) -> None:
        if self._path(spec).exists():
            return
        net = untrained(spec, self._drawn(spec)[0].shape[1])
        fit(net, *self._drawn(spec), spec.seed)
        write_bytes(self._path(spec), save(net.state_dict()))
        tell(f"learned: {spec.name}")

    @cached_property
    def judges(self) -> list[Judge[Floats]]:
        trees = HistGradientBoostingClassifier(random_state=TREES.seed).fit(*self.halves[0])
        return [*map(self._judge, (*RETRAINED, WIDE)), Judge(TREES.name, TREES.kind, trees.predict_proba)]

    def case(self, seed: int, size: int) -> Case[Floats]:
        _, (people, labels), features = self.halves
        own = self._judge(NETWORKS[seed])
        rows = drawn(seed, size, own.probabilities(people).argmax(axis=1), labels, PAID)
        members = [TorchClassifier(self.network(spec), output="logits") for spec in (NETWORKS[seed], *MATES)]

        def problem(cohort: Floats, classifier: Classifier, budgets: Mapping[str, float], margin: float) -> Problem:
            return Problem(
                classifier=classifier,
                cohort=cohort,
                features=features,
                target=PAID,
                margin=margin,
                limits=dict.fromkeys(budgets, "observed"),
                budgets=budgets,
            )

        return Case(
            wanted=PAID,
            share=SHARE,
            people=people,
            labels=labels,
            cohort=people[rows],
            features=tuple(name for name in features if name not in PERSONAL),
            own=own,
            planned={"network": members[0], "ensemble": Ensemble(members)},
            judges=self.judges,
            take=lambda x, rows: np.asarray(x[rows]),
            changed=changed,
            problem=problem,
        )

    def _judge(self, spec: Spec) -> Judge[Floats]:
        return Judge(spec.name, spec.kind, partial(probabilities, self.network(spec)))

    def _drawn(self, spec: Spec) -> tuple[Floats, Rows]:
        """What this model learns from."""
        (x, y), _, _ = self.halves
        rows = np.arange(len(y))
        rows = resampled(rows, spec.seed) if spec.kind == "bootstrap" else rows
        return x[rows], y[rows]

    def _path(self, spec: Spec) -> Path:
        return self.weights / f"{spec.file}.safetensors"

    def network(self, spec: Spec) -> nn.Sequential:
        net = untrained(spec, self.halves[0][0].shape[1])
        net.load_state_dict(load_file(self._path(spec)))
        return net.eval()
