"""Whether flips hold: what retrained models say of people after their changes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from maxflip import Ensemble, Nearest, Plan, Problem, solve
from maxflip._util.rng import Streams
from maxflip.models import Classifier
from maxflip.solvers import Solver
from research.experiments.metrics import Floats, auc
from research.experiments.tasks import Rows

S = TypeVar("S")  # people: rows of a table, or sequences
Row = dict[str, Any]

MARGINS = (0.0, 0.1, 0.3, 0.5)
ENSEMBLE = "Ensemble"
UNCHANGED, AS_CLOSE = "unchanged", "unchanged, as close"
CLOSE = 0.05  # people whose confidence is the margin, give or take this, are as close to the line as flips are
SIZED_AT = 0.1  # the margin at which budgets are sized; they are the same for all margins
NO_LIMIT = 1e12


@dataclass(frozen=True)
class Spec:
    """A model to learn. kind: how it differs from the one that is planned against   seed: of all chance in it"""

    name: str
    kind: str
    seed: int

    @property
    def file(self) -> str:
        return self.name.replace(" ", "_").replace(",", "")


def specs(kind: str, numbers: Sequence[int], first: int) -> list[Spec]:
    return [Spec(f"{kind} {number}", kind, first + number) for number in numbers]


# Of the people that no model has learned from: a cohort is of one part, and planned for against a network of its own.
PARTS = 5
NETWORKS = specs("network", range(PARTS), 100)
RETRAINED = [*specs("seed", range(1, 5), 200), *specs("bootstrap", range(1, 5), 300)]
MATES = [*specs("seed", (5, 6), 200), *specs("bootstrap", (5, 6), 300)]  # of the ensembles; none of them judges


def resampled(rows: Rows, seed: int) -> Rows:
    """As many, drawn from these with replacement."""
    return np.random.default_rng(Streams(seed).key("bootstrap")).choice(rows, len(rows))


@dataclass(frozen=True, eq=False)
class Judge(Generic[S]):
    """A model as it is asked. kind: how it differs from the one that is planned against"""

    name: str
    kind: str
    probabilities: Callable[[S], Floats]


@dataclass(frozen=True, eq=False)
class Case(Generic[S]):
    """people: whom no model has learned from; labels: theirs   wanted: the class   cohort: whom to plan for

    own: the network that is planned against, as a judge
    planned: that network, or an ensemble with it, as classifiers   judges: the same for all cohorts
    take(people, rows)   changed(people, plan): those whom the plan picks, after their changes
    problem(people, classifier, budgets, margin): the question   features: those with a budget
    """

    wanted: int
    people: S
    labels: Rows
    cohort: S
    features: tuple[str, ...]
    own: Judge[S]
    planned: Mapping[str, Classifier]
    judges: Sequence[Judge[S]]
    take: Callable[[S, Rows], S]
    changed: Callable[[S, Plan], S]
    problem: Callable[[S, Classifier, Mapping[str, float], float], Problem]

    def asked(self, judge: Judge[S], some: S) -> Floats:
        return confidence(judge.probabilities(some), self.wanted)

    def budgets(self, share: float) -> dict[str, float]:
        """A share of what everyone's nearest flip draws of each feature, distances counted in standard deviations."""
        free = self.problem(self.cohort, self.planned["network"], dict.fromkeys(self.features, NO_LIMIT), SIZED_AT)
        spread = dict(zip(np.take(free.cohort.features, free.slots.feature[free.actionable]), free.spread, strict=True))
        plan = solve(free, Nearest(prices={str(name): float(size) ** -2 for name, size in spread.items()}))
        return {name: share * plan.spend[name] for name in self.features}


def drawn(seed: int, size: int, predicted: Rows, labels: Rows, wanted: int) -> Rows:
    """A cohort: of those in part `seed` of the people, at most `size` who are rightly predicted in another class than
    the wanted one. Cohorts of different seeds have nobody in common."""
    order = np.random.default_rng(0).permutation(len(labels))
    part = order[np.arange(len(order)) % PARTS == seed]
    pool = part[(predicted[part] == labels[part]) & (labels[part] != wanted)]
    return np.sort(pool[:size])


@dataclass(frozen=True, eq=False)
class Source(ABC, Generic[S]):
    """Data and the models learned from it.

    data: the folder of public data   weights: where learned networks are kept
    size: of a cohort   share: budgets, as a part of what everyone's nearest flip draws
    seconds_...: about, on one core
    """

    data: Path
    weights: Path
    wanted: ClassVar[int]
    size: ClassVar[int]
    quick_size: ClassVar[int]
    share: ClassVar[float]
    solvers: ClassVar[Mapping[str, Solver]]
    of_another_kind: ClassVar[tuple[Spec, ...]]  # judges
    seconds_to_learn: ClassVar[float]
    seconds_to_solve: ClassVar[float]

    def judging(self) -> list[Spec]:
        return [*RETRAINED, *self.of_another_kind]

    def learned(self, seed: int) -> list[Spec]:
        """Networks without which nothing can be said of this cohort."""
        return [NETWORKS[seed], *self.judging(), *MATES]

    def path(self, spec: Spec) -> Path:
        return self.weights / f"{spec.file}.safetensors"

    @property
    @abstractmethod
    def people(self) -> S:
        """Whom no model has learned from."""

    @property
    @abstractmethod
    def labels(self) -> Rows: ...

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Those with a budget."""

    @abstractmethod
    def learn(self, spec: Spec) -> None:
        """Into its path."""

    @abstractmethod
    def judge(self, spec: Spec) -> Judge[S]: ...

    @abstractmethod
    def classifier(self, spec: Spec) -> Classifier: ...

    @abstractmethod
    def take(self, people: S, rows: Rows) -> S: ...

    @abstractmethod
    def changed(self, people: S, plan: Plan) -> S: ...

    @abstractmethod
    def problem(self, cohort: S, classifier: Classifier, budgets: Mapping[str, float], margin: float) -> Problem: ...

    def case(self, seed: int, size: int) -> Case[S]:
        own = self.judge(NETWORKS[seed])
        rows = drawn(seed, size, own.probabilities(self.people).argmax(axis=1), self.labels, self.wanted)
        members = [self.classifier(spec) for spec in (NETWORKS[seed], *MATES)]
        return Case(
            wanted=self.wanted,
            people=self.people,
            labels=self.labels,
            cohort=self.take(self.people, rows),
            features=self.features,
            own=own,
            planned={"network": members[0], "ensemble": Ensemble(members)},
            judges=[self.judge(spec) for spec in self.judging()],
            take=self.take,
            changed=self.changed,
            problem=self.problem,
        )


def confidence(p: Floats, wanted: int) -> Floats:
    """p(wanted) - p(best other): what a margin is asked of. At least 0: the wanted class is the likeliest."""
    return np.asarray(p[:, wanted] - np.delete(p, wanted, axis=1).max(axis=1))


def verdict(judge: Judge[S], then: Floats, now: Floats, margin: float) -> Row:
    """What a judge says of people, from its confidence in them before and after their changes.

    held: in the wanted class   held_with_margin: by the margin   anyway: there before any change   won: held, and were
    not there before
    """
    return {
        "judge": judge.name,
        "kind": judge.kind,
        "held": int((now >= 0).sum()),
        "held_with_margin": int((now >= margin).sum()),
        "anyway": int((then >= 0).sum()),
        "won": int(((now >= 0) & (then < 0)).sum()),
    }


def flips(case: Case[S], problem: Problem, plan: Plan, margin: float) -> list[Row]:
    """One row per judge.   cost: squared change per flip, in standard deviations   confidence: after it, the mean"""
    found: Row = {
        "people": len(problem),
        "count": plan.count,
        "cost": _cost(problem, plan),
        "confidence": float(plan.confidence_after.mean()) if plan.count else None,
        "auc": None,
    }
    nobody = np.empty(0)
    rows = []
    for judge in case.judges:
        then = case.asked(judge, case.take(case.cohort, plan.selected)) if plan.count else nobody
        now = case.asked(judge, case.changed(case.cohort, plan)) if plan.count else nobody
        rows.append({**found, **verdict(judge, then, now, margin)})
    return rows


def base_lines(case: Case[S], margins: Sequence[float]) -> list[Row]:
    """What learning anew does by itself, to people without any change: all whom the network puts in the wanted class by
    a margin; and those whose confidence is about the margin, as that of flips is, to either side of it."""
    own = case.asked(case.own, case.people)
    rows = []
    for judge in case.judges:
        p = judge.probabilities(case.people)
        said, quality = confidence(p, case.wanted), auc(p, case.labels)
        for margin in margins:
            for name, some in ((UNCHANGED, own >= margin), (AS_CLOSE, np.abs(own - margin) < CLOSE)):
                about: Row = {
                    "solver": name,
                    "margin": margin,
                    "people": len(own),
                    "count": int(some.sum()),
                    "cost": 0.0,
                    "confidence": float(own[some].mean()) if some.any() else None,
                    "auc": quality,
                }
                rows.append({**about, **verdict(judge, said[some], said[some], margin)})
    return rows


def _cost(problem: Problem, plan: Plan) -> float | None:
    if not plan.count:
        return None
    rows, moves = plan.moves_in(problem)
    return float(((moves[:, problem.actionable] / problem.spread) ** 2).sum() / len(rows))
