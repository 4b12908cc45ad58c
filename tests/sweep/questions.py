"""Random questions over the whole space of what can be asked: from a seed to everything that a Problem takes.

Nothing here depends on a solver, so that a seed asks the same of every version of the library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip import Budget, Cohort, Problem, Quota
from tests.sweep import own
from tests.sweep.kinds import Kinds
from tests.sweep.kinds import asked as kinds_asked
from tests.sweep.models import LIGHT_TABLES, SEQUENCES, TABLES, Floats, Model, Random, draw_model, shifted

Rows = NDArray[np.int64]

TRIED = 6  # directions in which a rough flip of everyone is looked for
FAR = np.geomspace(0.05, 12.0, 12)  # ... and how far, in spreads of the features
LIGHT = 300  # seeds whose questions are small, for the ordinary run of the tests
FIRST_OWN = 24  # seed; those before are of tests/golden.py too, and stay as they were
WAYS = {"up": 1.0, "down": -1.0}


def relative_effort(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """A budget of the user's own: squared changes in parts of the value."""
    return (((after - before) / (1.0 + before.abs())) ** 2).sum(dim=1)


def smooth_effort(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Another: squared for small changes, absolute for large ones."""
    return (torch.sqrt(1.0 + (after - before) ** 2) - 1.0).sum(dim=1)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in plain data.   kind: what was drawn, in words

    values: (n, F), or a list of (T_j, F) with NaN where nothing was measured
    target: an output column or class name; a set of them; or one column per sample, (n,)
    limits: None, "observed", or {feature: (low, high)} with None, a number or (n,) on either side
    steps: of sequences, "all", "last 2", or a list of masks (T_j,)   groups: a label per sample, or None
    """

    seed: int
    kind: dict[str, str]
    model: Model
    values: Any
    ids: tuple[str, ...]
    features: tuple[str, ...]
    target: Any
    required: float
    is_threshold: bool
    budgets: dict[str, Budget]
    limits: Any = None
    directions: dict[str, str] | None = None
    steps: Any = None
    worth: Floats | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    quotas: tuple[Quota, ...] = ()
    kinds: Kinds = field(default_factory=Kinds)

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        return ", ".join(f"{name}: {value}" for name, value in self.kind.items())

    @property
    def is_sequences(self) -> bool:
        return not isinstance(self.values, np.ndarray)

    @property
    def is_linear(self) -> bool:
        """Whether the library can prove bounds: one or several linear models of a table, in float64."""
        return self.model.is_linear and not self.is_sequences

    @property
    def has_function(self) -> bool:
        return any(budget.is_function for budget in self.budgets.values())

    @property
    def may_be_refused(self) -> bool:
        """Whether somebody must be picked, who may be too dear."""
        return bool(self.include) or any(isinstance(quota.at_least, int) for quota in self.quotas)

    @property
    def has_own(self) -> bool:
        """Whether a budget has a fee, is one of a part of the cohort, or has weights of one's own or of both ways."""
        return any(own.differs(budget) for budget in self.budgets.values())

    @property
    def weighed(self) -> list[str]:
        """Features that draw on a budget"""
        return [name for name in self.features if any(own.weighs(b, name) for b in self.budgets.values())]

    @property
    def is_unlimited(self) -> bool:
        return all(budget.amount == math.inf for budget in self.budgets.values())

    @property
    def cohort(self) -> Cohort:
        if self.is_sequences:
            return Cohort.sequences(self.values, ids=list(self.ids), features=list(self.features))
        return Cohort.table(self.values, ids=list(self.ids), features=list(self.features))

    def arguments(self) -> dict[str, Any]:
        """What a Problem is made from."""
        given: dict[str, Any] = {
            "classifier": self.model.classifier(),
            "cohort": self.cohort,
            "target": self.target,
            "threshold" if self.is_threshold else "margin": self.required,
            "budgets": self.budgets,
            "limits": self.kinds.limits(self.limits, self.weighed),
            "directions": self.directions,
            "worth": self.worth,
            "include": list(self.include) or None,
            "exclude": list(self.exclude) or None,
            "quotas": self.quotas or None,
        }
        if self.kinds.actions:
            given |= {"actions": list(self.kinds.actions), "most_actions": self.kinds.most_actions}
        return given | ({"steps": self.steps} if self.is_sequences else {})

    def problem(self, **other: Any) -> Problem:
        return Problem(**(self.arguments() | other))

    def allocation(self) -> dict[str, Any]:
        """What `solve` takes besides."""
        return {} if self.groups is None else {"allocation": "proportional", "groups": list(self.groups)}

    # What is known of a question without the library.

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """(n, k)"""
        k, names = self.model.k, self.model.classes
        wanted = np.zeros((len(self), k), dtype=bool)
        if isinstance(self.target, np.ndarray):
            wanted[np.arange(len(self)), self.target] = True
            return wanted
        several = self.target if isinstance(self.target, set) else {self.target}
        for one in several:
            wanted[:, names.index(one) if isinstance(one, str) and names else one] = True
        return wanted

    def confidence(self, values: Any, rows: Rows) -> Floats:
        """(B,): of these samples with these values, in the least confident member"""
        p, wanted = self.model.scores(values), self.wanted[rows][:, None]
        if self.is_threshold:
            each = np.where(wanted, p, 0.0).sum(axis=2)
        else:
            each = np.where(wanted, p, -np.inf).max(axis=2) - np.where(wanted, -np.inf, p).max(axis=2)
        return np.asarray(each.min(axis=1))

    @cached_property
    def standing(self) -> Floats:
        """(n,): everyone's confidence as they are"""
        return self.confidence(self.values, np.arange(len(self)))

    @cached_property
    def worths(self) -> Floats:
        return np.ones(len(self)) if self.worth is None else self.worth

    # The same question in other forms.

    def taken(self, rows: Sequence[int] | Rows, ids: Sequence[str] | None = None) -> Question:
        """About these samples, in this order, a sample perhaps several times; with these ids, or their own."""
        at = np.asarray(rows)

        def picked(given: Any) -> Any:
            return given[at] if isinstance(given, np.ndarray) else [given[j] for j in at.tolist()]

        limits = self.limits
        if isinstance(limits, dict):
            limits = {
                name: pair if isinstance(pair, str) else tuple(picked(s) if np.ndim(s) else s for s in pair)
                for name, pair in limits.items()
            }
        names = tuple(picked(self.ids) if ids is None else ids)
        whose = dict(zip(names, picked(self.ids), strict=True))
        groups = [[name for name in names if whose[name] in quota.group] for quota in self.quotas]
        return replace(
            self,
            quotas=tuple(replace(quota, group=group) for quota, group in zip(self.quotas, groups, strict=True)),
            values=picked(self.values),
            ids=names,
            budgets={name: own.taken(budget, at, whose) for name, budget in self.budgets.items()},
            target=picked(self.target) if isinstance(self.target, np.ndarray) else self.target,
            limits=limits,
            steps=picked(self.steps) if isinstance(self.steps, list) else self.steps,
            worth=None if self.worth is None else picked(self.worth),
            groups=None if self.groups is None else tuple(picked(self.groups)),
            kinds=self.kinds.taken(whose),
        )

    def in_other_units(self, factors: Floats) -> Question:
        """Feature i counted in units 1 / factors_i as large; budgets weigh it less, so that they draw the same.

        Powers of two round nothing: every number of the answer is the same, but for the unit.
        """
        by_name = dict(zip(self.features, factors.tolist(), strict=True))

        def side(given: Any, factor: float) -> Any:
            return None if given is None else given * factor

        limits = self.limits
        if isinstance(limits, dict):
            limits = {
                name: pair if isinstance(pair, str) else tuple(side(s, by_name[name]) for s in pair)
                for name, pair in limits.items()
            }
        budgets = {}
        for name, budget in self.budgets.items():
            power = 2 if budget.cost == "squared" else 1
            uses = budget.weights or ({name: 1.0} if budget.cost != "count" else {})
            weights = {i: own.scaled(weight, 1 / by_name[i] ** power) for i, weight in uses.items()}
            budgets[name] = replace(budget, uses=weights or None)
        values = self.values * factors if not self.is_sequences else [v * factors for v in self.values]
        model, kinds = self.model.in_other_units(factors), self.kinds.in_other_units(by_name)
        return replace(self, values=values, model=model, limits=limits, budgets=budgets, kinds=kinds)


def ask(seed: int) -> Question:
    """The question of a seed."""
    rng = np.random.default_rng(seed)
    is_light = seed < LIGHT
    is_sequences = rng.random() < (0.04 if is_light else 0.1)
    model_kind = str(rng.choice(SEQUENCES if is_sequences else LIGHT_TABLES if is_light else TABLES))
    amounts = str(rng.choice(["ordinary", "no limit", "one limit", "any"], p=[0.5, 0.14, 0.12, 0.24]))
    n = _size(rng, is_light, is_sequences, amounts == "no limit")
    width = int(rng.choice([1, 2, 2, 3, 3, 4] if is_light else [1, 2, 2, 3, 3, 4, 5, 8]))
    shift, scale = np.zeros(width), np.ones(width)
    if rng.random() < 0.5:
        scale = 10.0 ** rng.uniform(-1, 2, width)
        shift = rng.normal(size=width) * 3 * scale
    values = _values(rng, n, is_sequences, shift, scale)
    k = 2 if model_kind == "ridge" or (is_light and rng.random() < 0.75) else int(rng.choice([2, 2, 2, 3, 4, 5]))
    model = draw_model(rng, model_kind, k, shift, scale, values)
    target, target_kind = _target(rng, model, n)
    required, is_threshold = _requirement(rng, model)
    features = tuple(["age", "bmi", "bp", "sugar", "x 4", "util", "late", "x7"][:width])
    free = sorted(rng.permutation(width)[: max(1, int(rng.integers(1, width + 1)))].tolist())
    question = Question(
        seed=seed,
        kind={},
        model=model,
        values=values,
        ids=tuple(f"P{j:05}" for j in rng.permutation(max(n, 100))[:n]),
        features=features,
        target=target,
        required=required,
        is_threshold=is_threshold,
        budgets={},
    )
    question = _with_some_outside(rng, question)
    steps, steps_kind = _steps(rng, values) if is_sequences else (None, "")
    drawn = _rough_draws(rng, replace(question, steps=steps), free, scale)
    budgets, budget_kind = _budgets(rng, question, free, drawn, amounts)
    budgets, own_kind = own.asked(seed, budgets, question.ids) if seed >= FIRST_OWN else (budgets, "")
    weighed = [i for i in free if any(own.weighs(b, features[i]) for b in budgets.values())]
    limits, limits_kind = _limits(rng, question, weighed, scale)
    directions = _directions(rng, question, weighed, limits)
    worth, worth_kind = _worth(rng, n)
    include, exclude = _picked(rng, question, drawn)
    groups = tuple(rng.choice(["a", "b", "c"], size=n).tolist()) if rng.random() < 0.07 else None
    question = replace(
        question,
        budgets=budgets,
        limits=limits,
        directions=directions or None,
        steps=steps,
        worth=worth,
        include=include,
        exclude=exclude,
        groups=groups,
    )
    question = replace(question, quotas=_quotas(question))
    if seed >= FIRST_OWN:
        question = replace(question, kinds=kinds_asked(question, weighed, scale))
    asked_for = f"{'threshold' if is_threshold else 'margin'} {required:g}"
    kind = {
        "model": f"{model_kind} of {model.k} classes",
        "n": f"{n} x {width}",
        "outside": str(len(drawn.rows)),
        "budgets": budget_kind,
        "own": own_kind,
        "worth": worth_kind,
        "limits": limits_kind,
        "directions": str(len(directions)),
        "steps": steps_kind,
        "target": target_kind,
        "goal": asked_for,
        "include": str(len(include)),
        "exclude": str(len(exclude)),
        "groups": "yes" if groups else "",
        "kinds": str(question.kinds),
        "quotas": "; ".join(quota.bounds for quota in question.quotas),
    }
    return replace(question, kind={name: value for name, value in kind.items() if value not in ("", "0")})


def _quotas(question: Question) -> tuple[Quota, ...]:
    """Of every eighth question, 1 to 3 of every kind on random groups; drawn apart: no other question changes."""
    if question.seed < FIRST_OWN or question.seed % 8 or question.groups is not None:
        return ()
    rng, found = np.random.default_rng([question.seed, 18]), []
    for _ in range(int(rng.integers(1, 4))):
        part = float(rng.choice([0.2, 0.5, 0.8]))
        group = [name for name in question.ids if rng.random() < part] or [question.ids[0]]
        share, number = float(rng.choice([0.1, 0.25, 0.3, 0.4, 0.6, 0.75])), int(rng.integers(0, len(group) // 2 + 1))
        kinds: list[dict[str, Any]] = [
            {"at_least": share},
            {"at_most": share},
            {"at_most": number},
            {"at_least": max(1, number // 3)},
        ]
        found.append(Quota(group, **kinds[int(rng.integers(0, 4))]))
    return tuple(found)


def _size(rng: Random, is_light: bool, is_sequences: bool, is_unlimited: bool) -> int:
    """1 to 5,000, mostly few. Without limits there is little to do, so that there may be more."""
    share = [0.45, 0.37, 0.15, 0.025, 0.005]
    if is_unlimited:
        share = [0.2, 0.2, 0.5, 0.09, 0.01]
    if is_light:
        share = [0.75, 0.23, 0.02, 0.0, 0.0] if not is_unlimited else [0.3, 0.2, 0.5, 0.0, 0.0]
    most = float(rng.choice([12, 60, 300, 1200, 5000], p=share))
    if is_sequences:
        most = min(most, 150.0)
    return int(math.exp(rng.uniform(0.0, math.log(most))))


def _values(rng: Random, n: int, is_sequences: bool, shift: Floats, scale: Floats) -> Any:
    width = len(shift)
    if is_sequences:
        found = []
        for _ in range(n):
            one = shift + scale * rng.normal(size=(int(rng.integers(1, 7)), width))
            one[rng.random(one.shape) < 0.25] = np.nan
            found.append(one)
        return found
    z = rng.normal(size=(n, width))
    how = rng.random()
    if how < 0.15:
        z = np.round(z)  # people who are alike
    elif how < 0.25:
        z[:, 0] = np.round(2 * z[:, 0]) / 2
    return shift + scale * z


def _target(rng: Random, model: Model, n: int) -> tuple[Any, str]:
    how = rng.random()
    if how < 0.12:
        return rng.integers(model.k, size=n), "one for each"
    if how < 0.27 and model.k > 2:
        several = rng.permutation(model.k)[: int(rng.integers(2, model.k))].tolist()
        return {model.classes[c] if model.classes else c for c in several}, f"any of {len(several)}"
    one = int(rng.integers(model.k))
    return model.classes[one] if model.classes and rng.random() < 0.7 else one, ""


def _requirement(rng: Random, model: Model) -> tuple[float, bool]:
    if model.is_decision:
        return float(rng.choice([0.0, 0.1, 1.0])), False
    if rng.random() < 0.3:
        return float(rng.choice([0.3, 0.5, 0.8, 0.95, 0.99])), True
    return float(rng.choice([0.0, 0.05, 0.1, 0.1, 0.3, 0.7, 0.99])), False


def _with_some_outside(rng: Random, question: Question) -> Question:
    """Shift the model until a good part of the cohort is not in the wanted class."""
    if isinstance(question.target, np.ndarray):
        return question
    p = question.model.scores(question.values)
    size = p if question.model.is_decision else np.log(np.maximum(p, 1e-300))
    wanted = question.wanted[:, None]
    lead = np.where(wanted, size, -np.inf).max(axis=2) - np.where(wanted, -np.inf, size).max(axis=2)
    by = -np.quantile(lead.min(axis=1), rng.uniform(0.4, 0.95))
    for member in question.model.members:
        shifted(member, np.where(question.wanted[0], by * member.temperature, 0.0))
    return replace(question)  # without what was remembered of the model as it was


def _steps(rng: Random, values: Any) -> tuple[Any, str]:
    how = rng.random()
    if how < 0.4:
        return "all", "all"
    if how < 0.7:
        return "last 2", "last 2"
    return [rng.random(len(v)) < 0.7 for v in values], "a mask"


@dataclass(frozen=True)
class Draws:
    """What rough flips of everyone who needs one change: squares and sizes by feature (c, F), and of a table d (c, F)
    of the samples `rows` (c,).   cost (c,): in squared spreads, inf where no flip was met"""

    squared: Floats
    absolute: Floats
    rows: Rows
    cost: Floats
    changes: Floats | None


def _rough_draws(rng: Random, question: Question, free: list[int], scale: Floats) -> Draws:
    """Along a few directions, as far as it takes; of those who flip nowhere, as far as was tried."""
    rows = np.flatnonzero(question.standing < question.required)
    width = len(question.features)
    sequences = question.is_sequences
    values = question.values[rows] if not sequences else [question.values[j] for j in rows.tolist()]
    may = None if not sequences else _changeable(question, rows)
    cost = np.full(len(rows), np.inf)
    best = np.zeros((len(rows), width))
    for _ in range(TRIED if len(rows) else 0):
        way = np.zeros(width)
        way[free] = rng.normal(size=len(free)) * scale[free]
        size = float((way[free] ** 2 / scale[free] ** 2).sum())
        for far in FAR:
            open_ = cost > far**2 * size
            if not open_.any():
                break
            if may is None:
                moved: Any = values + far * way
            else:
                moved = [v + far * way * m for v, m in zip(values, may, strict=True)]
            passed = open_ & (question.confidence(moved, rows) >= question.required)
            cost[passed], best[passed] = far**2 * size, far * way
    lost = np.isinf(cost)
    best[lost] = FAR[-1] * np.where(np.isin(np.arange(width), free), scale, 0.0)
    times = np.ones((len(rows), width)) if may is None else np.array([m.sum(axis=0) for m in may]).reshape(-1, width)
    return Draws(times * best**2, times * np.abs(best), rows, cost, None if sequences else best)


def _changeable(question: Question, rows: Rows) -> list[NDArray[np.bool_]]:
    """(T_j, F) of each of these sequences: what was measured, in steps that may change"""
    found = []
    for j in rows.tolist():
        there = ~np.isnan(question.values[j])
        if isinstance(question.steps, list):
            there &= question.steps[j][:, None]
        elif question.steps == "last 2":
            there[:-2] = False
        found.append(there)
    return found


def _budgets(
    rng: Random, question: Question, free: list[int], drawn: Draws, amounts: str
) -> tuple[dict[str, Budget], str]:
    """Over the features `free`: own ones, shared ones, a cap on people, functions; of amounts of every kind."""
    names = question.features
    costs = ["squared", "absolute"]
    kind = str(rng.choice(["own", "own", "shared", "both", "function"], p=[0.3, 0.2, 0.2, 0.22, 0.08]))
    if kind == "function" and question.is_sequences:
        kind = "shared"
    asked: dict[str, Budget] = {}
    same = str(rng.choice(["squared", "absolute", "mixed"], p=[0.4, 0.35, 0.25]))

    def cost() -> str:
        return str(rng.choice(costs)) if same == "mixed" else same

    if kind in ("own", "both") or (kind == "function" and rng.random() < 0.5):
        for i in free:
            asked[names[i]] = Budget(1.0, {names[i]: 1.0}, cost())
    if kind in ("shared", "both"):
        for s in range(int(rng.integers(1, 4))):
            some = [i for i in free if rng.random() < 0.7] or free
            weights = {
                names[i]: float(rng.choice([0.0, 0.5, 1.0, 2.0, 0.1], p=[0.08, 0.2, 0.4, 0.2, 0.12])) for i in some
            }
            if any(weights.values()):
                asked[f"shared {s}"] = Budget(1.0, weights, cost())
        if not asked:
            asked["shared"] = Budget(1.0, {names[i]: 1.0 for i in free}, cost())
    if kind == "function":
        function = relative_effort if rng.random() < 0.5 else smooth_effort
        asked["effort"] = Budget(1.0, [names[i] for i in free], function)
    limited = int(rng.integers(len(asked)))
    found = {}
    for place, (name, budget) in enumerate(asked.items()):
        ordinary = float(rng.uniform(0.02, 0.9)) * _total(question, budget, drawn) + 1e-9
        if amounts == "no limit" or (amounts == "one limit" and place != limited):
            amount = math.inf
        elif amounts == "any":
            amount = float(
                rng.choice([math.inf, 0.0, 1e-12 * ordinary, 1e12 * ordinary, ordinary], p=[0.15, 0.1, 0.1, 0.15, 0.5])
            )
        else:
            amount = ordinary
        found[name] = replace(budget, amount=amount)
    cap = ""
    if rng.random() < 0.25:
        people = float(
            rng.choice(
                [0, 1, 0.3 * len(drawn.rows), 0.7 * len(drawn.rows), 2 * len(question), math.inf],
                p=[0.03, 0.07, 0.4, 0.3, 0.15, 0.05],
            )
        )
        found["people"] = Budget(float(np.floor(people)) if rng.random() < 0.8 else people, cost="count")
        cap = f", at most {found['people'].amount:g} people"
    return found, f"{len(asked)} {kind}, {same}, {amounts}{cap}"


def _total(question: Question, budget: Budget, drawn: Draws) -> float:
    """What rough flips of everyone draw."""
    if budget.is_function and drawn.changes is not None:
        columns = [question.features.index(name) for name in budget.weights]
        before = torch.tensor(question.values[drawn.rows][:, columns])
        after = before + torch.tensor(drawn.changes[:, columns])
        return float(budget.cost(before, after).sum())  # type: ignore[operator]
    size = drawn.squared if budget.cost == "squared" else drawn.absolute
    return float(sum(weight * size[:, question.features.index(i)].sum() for i, weight in budget.weights.items()))


def _limits(rng: Random, question: Question, weighed: list[int], scale: Floats) -> tuple[Any, str]:
    how = rng.random()
    if how < 0.5:
        return None, ""
    if how < 0.62 and not question.is_sequences and len(question) > 1:
        return "observed", "observed"
    names, values = question.features, question.values
    limits: dict[str, Any] = {}
    for i in weighed:
        if rng.random() < 0.25:
            continue
        column = np.concatenate([v[:, i] for v in values]) if question.is_sequences else values[:, i]
        column = column[~np.isnan(column)]
        middle = float(column.mean()) if len(column) else 0.0
        low, high = middle - rng.uniform(0.5, 4) * scale[i], middle + rng.uniform(0.5, 4) * scale[i]
        side = rng.random()
        if side < 0.3:
            limits[names[i]] = (None, float(high))
        elif side < 0.5:
            limits[names[i]] = (float(low), None)
        elif side < 0.75:
            limits[names[i]] = (float(low), float(high))
        else:
            own = (
                np.array([np.nanmean(np.append(v[:, i], middle)) for v in values]) if question.is_sequences else column
            )
            limits[names[i]] = (
                own - rng.uniform(0, 3, len(own)) * scale[i],
                own + rng.uniform(0, 3, len(own)) * scale[i],
            )
    per_sample = any(np.ndim(s) for pair in limits.values() for s in pair)
    return limits or None, f"of {len(limits)} features{', per sample' if per_sample else ''}" if limits else ""


def _directions(rng: Random, question: Question, weighed: list[int], limits: Any) -> dict[str, str]:
    """Not of features in which the limits let nobody go that way: that is refused as a contradiction."""
    if rng.random() > 0.3 or (limits is not None and len(question) < 5):
        return {}
    drawn = {question.features[i]: str(rng.choice(list(WAYS))) for i in weighed if rng.random() < 0.4}
    free = limits == "observed" or limits is None
    return {name: way for name, way in drawn.items() if free or name not in limits}


def _worth(rng: Random, n: int) -> tuple[Floats | None, str]:
    how = rng.random()
    if how < 0.4:
        return None, ""
    if how < 0.52:
        return np.ceil(rng.lognormal(6.0, 1.2, n)), "whole euros"
    if how < 0.62:
        return 10.0 ** rng.uniform(0, 6, n), "10^U(0,6)"
    if how < 0.72:
        return rng.lognormal(3.0, 1.5, n), "lognormal"
    if how < 0.82:
        return rng.choice([0.0, 1.0, 2.0], size=n), "0, 1 or 2"
    if how < 0.92:
        return rng.choice([0.5, 1.0, 3.0], size=n), "0.5, 1 or 3"
    return np.where(rng.random(n) < 0.3, 0.0, 10.0 ** rng.uniform(-3, 3, n)), "10^U(-3,3), some 0"


def _picked(rng: Random, question: Question, drawn: Draws) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(ids that must be picked, mostly such as are easily flipped; ids that must not)"""
    include: list[int] = []
    if rng.random() < 0.12 and len(drawn.rows):
        easy = drawn.rows[np.argsort(drawn.cost, kind="stable")][: 1 + len(drawn.rows) // 4]
        include = rng.permutation(easy)[: int(rng.integers(1, 3))].tolist()
        if rng.random() < 0.2:
            include = sorted({*include, int(rng.integers(len(question)))})
    exclude = np.flatnonzero(rng.random(len(question)) < rng.uniform(0, 0.5)).tolist() if rng.random() < 0.15 else []
    exclude = [j for j in exclude if j not in include]
    return tuple(question.ids[j] for j in include), tuple(question.ids[j] for j in exclude)
