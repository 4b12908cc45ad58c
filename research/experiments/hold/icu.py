"""Patients in intensive care whom GRU-D predicts to die, and retrained networks that judge their flips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, TorchClassifier
from maxflip.datasets import Sequences, physionet2012
from maxflip.datasets.physionet import Label
from maxflip.datasets.physionet_variables import LABS
from maxflip.models import Classifier
from maxflip.networks import SequenceNetwork, SequenceTransformer, SparseTimeLSTM, load_network, save_network
from maxflip.solvers import Solver
from research.experiments import stays
from research.experiments.hold.cases import Judge, Source, Spec, resampled
from research.experiments.metrics import Floats
from research.experiments.packed import Packed, logits_of
from research.experiments.tasks import Rows, Task

BRIEF = {"outer": 5, "inner": 60, "optimizer": "adam"}
SOLVERS: dict[str, Solver] = {
    "KL": KL.scale_free(**BRIEF),
    "MS": MS.scale_free(keep_moving=True, **BRIEF),
    "BCMS": BCMS.scale_free(**BRIEF),
    "CCMS": CCMS.scale_free(choices=0.25, alpha=1e-4, **BRIEF),
    "Nearest": Nearest(),
    "Prices": Prices(),
}
LABEL: Label = "30_day"
SURVIVED = 0
TRANSFORMER = Spec("transformer", "architecture", 400)
LSTM = Spec("Sparse Time LSTM", "architecture", 401)
HIDDEN = {TRANSFORMER: 32, LSTM: 48}


def probabilities(net: SequenceNetwork, some: Sequences) -> Floats:
    packed = Packed.of(some)
    logits = logits_of(net, packed, packed.begin.new_tensor(range(len(packed))))
    return np.asarray(softmax(logits, axis=1))


def of_another_kind(task: Task, spec: Spec) -> Task:
    kind: Callable[..., SequenceNetwork] = partial(SparseTimeLSTM, sparse=LABS)
    recipe = task.recipe
    if spec == TRANSFORMER:
        kind, recipe = SequenceTransformer, replace(recipe, rate=1e-3)

    def build(part: Packed) -> SequenceNetwork:
        like = task.build(part)
        return kind(
            *(task.data.features, HIDDEN[spec], task.data.classes, task.data.static_features),
            shift=like.shift,
            scale=like.scale,
            static_shift=like.static_shift,
            static_scale=like.static_scale,
        )

    return replace(task, build=build, recipe=recipe)


def from_a_bootstrap(task: Task, seed: int) -> Task:
    """The inner part is the same; of those to train on, a sample is drawn."""

    def split(rows: Rows, its_seed: int) -> tuple[Rows, Rows]:
        train, inner = task.split(rows, its_seed)
        return resampled(train, seed), inner

    return replace(task, split=split)


@dataclass(frozen=True, eq=False)
class Stays(Source[Sequences]):
    """data: holds physionet2012/"""

    wanted: ClassVar[int] = SURVIVED
    size: ClassVar[int] = 30
    quick_size: ClassVar[int] = 15
    share: ClassVar[float] = 0.4
    solvers: ClassVar[Mapping[str, Solver]] = SOLVERS
    of_another_kind: ClassVar[tuple[Spec, ...]] = (TRANSFORMER, LSTM)
    seconds_to_learn: ClassVar[float] = 14.0
    seconds_to_solve: ClassVar[float] = 6.0

    @cached_property
    def task(self) -> Task:
        return stays.task(self.data / "physionet2012", LABEL)

    @cached_property
    def people(self) -> Sequences:
        return physionet2012(self.data / "physionet2012", "b", label=LABEL)

    @property
    def labels(self) -> Rows:
        return self.people.labels

    @property
    def features(self) -> tuple[str, ...]:
        return LABS

    def learn(self, spec: Spec) -> None:
        task = self.task
        if spec.kind == "bootstrap":
            task = from_a_bootstrap(task, spec.seed)
        elif spec.kind == "architecture":
            task = of_another_kind(task, spec)
        made = task.trained(np.arange(len(task.data)), spec.seed, lambda _: None, spec.name)
        save_network(made.net, self.path(spec))

    def judge(self, spec: Spec) -> Judge[Sequences]:
        return Judge(spec.name, spec.kind, partial(probabilities, load_network(self.path(spec))))

    def classifier(self, spec: Spec) -> Classifier:
        net = load_network(self.path(spec))
        return TorchClassifier(net, output="logits", classes=net.class_names)

    def take(self, people: Sequences, rows: Rows) -> Sequences:
        return people.take(rows)

    def changed(self, people: Sequences, plan: Plan) -> Sequences:
        """What was not measured is NaN, and stays so."""
        picked = people.take(plan.selected)
        return replace(picked, values=tuple(x + d for x, d in zip(picked.values, plan.changes, strict=True)))

    def problem(
        self, cohort: Sequences, classifier: Classifier, budgets: Mapping[str, float], margin: float
    ) -> Problem:
        return Problem(
            classifier=classifier,
            cohort=cohort.cohort(),
            target=self.people.classes[SURVIVED],
            margin=margin,
            steps="all",
            limits=dict.fromkeys(budgets, "observed"),
            budgets=budgets,
            tidy=False,  # measured as the algorithms leave them
        )
