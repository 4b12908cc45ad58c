"""Random small questions that mix all kinds of levers, of at most six people.

Three sorts: menus (actions and choices alone), steps (features change by whole steps besides) and free (some features
of a linear model change by any amount). Numbers are multiples of powers of 2, so that sums are exact and ties are met;
those of decimal questions are not.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from maxflip import Action, Budget, Cohort, Limit, Problem, Quota, TorchClassifier, Ways
from tests.mixed.models import Floats, Network, Random, some_network

SORTS = ("menu", "steps", "free")
VALUES = ("a", "b", "c")  # of the category `plan`
CODES = (0.0, 1.0, 2.0)  # of the category `tier`
CAN_BE_FEW = "most_changes" in inspect.signature(Problem).parameters


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, as it is given to the library.

    values (n, F)   sites (n,): a column of texts   plans: column of texts from which the one-hot code is made
    open_to: features that may change by amounts, the continuous ones among them being `free`
    """

    seed: int
    sort: str
    network: Network
    target: tuple[int, ...]
    required: float
    is_threshold: bool
    features: tuple[str, ...]
    values: Floats
    sites: tuple[str, ...]
    plans: tuple[str, ...] | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    most_actions: int = 1
    choices: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)
    one_hot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)
    quotas: tuple[Quota, ...] = ()
    worth: Floats | None = None
    most_changes: int | None = None
    is_decimal: bool = False

    def __len__(self) -> int:
        return len(self.values)

    @property
    def ids(self) -> list[str]:
        return [f"P{j}" for j in range(len(self))]

    @property
    def worths(self) -> Floats:
        return np.ones(len(self)) if self.worth is None else self.worth

    @property
    def movable(self) -> list[str]:
        """Features that may change by amounts"""
        weighed = {name for budget in self.budgets.values() for name in budget.weights}
        return [name for name in self.features if name in weighed and name not in self.choices]

    @property
    def free(self) -> list[str]:
        """Those of them without steps"""
        return [name for name in self.movable if self.limit(name).step is None]

    def limit(self, name: str) -> Limit:
        return self.limits.get(name, Limit())

    def confidence(self, x: Floats) -> Floats:
        """(N, F) -> (N,), by the plain model"""
        logits = self.network.logits(x)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = odds / odds.sum(axis=1, keepdims=True)
        wanted, others = p[:, self.target], np.delete(p, self.target, axis=1)
        return wanted.sum(axis=1) if self.is_threshold else np.asarray(wanted.max(axis=1) - others.max(axis=1))

    def frame(self) -> pd.DataFrame:
        columns: dict[str, Any] = {"id": self.ids}
        coded = {feature for features in self.one_hot.values() for feature in features} if self.plans else set()
        columns |= {n: self.values[:, i] for i, n in enumerate(self.features) if n not in coded}
        columns |= {"plan": list(self.plans)} if self.plans else {}
        return pd.DataFrame({**columns, "site": list(self.sites)})

    def problem(self) -> Problem:
        asked: dict[str, Any] = {"threshold" if self.is_threshold else "margin": self.required}
        if self.most_changes is not None:
            asked["most_changes"] = self.most_changes
        cohort = Cohort.table(self.frame(), id="id", features=self.features, one_hot=self.one_hot or None)
        assert cohort.features == self.features
        return Problem(
            classifier=TorchClassifier(self.network.module(), output="logits"),
            cohort=cohort,
            target=self.target[0] if len(self.target) == 1 else set(self.target),
            budgets=dict(self.budgets),
            limits=dict(self.limits) or None,
            actions=list(self.actions) or None,
            most_actions=self.most_actions if self.actions else None,
            choices=dict(self.choices) or None,
            derived=dict(self.derived) or None,
            quotas=list(self.quotas) or None,
            worth=self.worth,
            **asked,
        )

    def __str__(self) -> str:
        given = (
            f"{self.sort}, {len(self)} people, {'linear' if self.network.is_linear else 'network'} of "
            f"{self.network.classes}, {self.target} {'>=' if self.is_threshold else 'ahead by'} {self.required}",
            f"limits {dict(self.limits)}",
            f"budgets {dict(self.budgets)}",
            f"actions {self.actions}, at most {self.most_actions}",
            f"choices {dict(self.choices)}",
            f"derived {dict(self.derived)}, quotas {self.quotas}, worth {self.worth}, at most {self.most_changes}",
        )
        return "\n    ".join(given)


def ask(seed: int) -> Question:
    """The question of a seed; its budgets are about what a part of the people need."""
    rng = np.random.default_rng([seed, 18])
    question = _people(rng, seed)
    question = _with_levers(rng, question)
    question = _with_budgets(rng, question)
    return _with_amounts(rng, _with_quotas(rng, question))


def chance(rng: Random, share: float) -> bool:
    return bool(rng.random() < share)


def one_of(rng: Random, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _people(rng: Random, seed: int) -> Question:
    """People, what is derived, and a model that wants something else of most of them."""
    sort = str(rng.choice(SORTS, p=[0.2, 0.45, 0.35]))
    n, numbers = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    is_decimal = sort != "menu" and chance(rng, 0.15)
    unit = 0.1 if is_decimal else 0.25
    columns = {f"x{i}": np.rint(rng.normal(size=n) * 1.5 / unit) * unit for i in range(numbers)}
    plans, one_hot = None, {}
    if chance(rng, 0.3):
        columns["tier"] = rng.choice(CODES, size=n)
    elif chance(rng, 0.4):
        texts = [str(one) for one in rng.choice(VALUES, size=n)]
        one_hot = {"plan": tuple(f"plan_{value}" for value in VALUES)}
        columns |= {f"plan_{v}": np.array([float(v == text) for text in texts]) for v in VALUES}
        plans = tuple(texts) if chance(rng, 0.5) else None
    derived = _derived(rng, sort == "free", numbers)
    for name, text in derived.items():
        columns[name] = eval(text, {"max": np.maximum, "min": np.minimum}, columns)
    values = np.column_stack(list(columns.values()))
    classes = 2 if sort == "free" else int(rng.integers(2, 4))
    network = some_network(
        rng, np.where(np.ptp(values, axis=0) > 2, 1.5, 1.0), classes, linear=sort == "free" or chance(rng, 0.5)
    )
    is_threshold = chance(rng, 0.3)
    target = (1, 2) if classes == 3 and chance(rng, 0.3) else (1,)
    sites = tuple(str(rng.choice(["Oslo", "Rome"])) for _ in range(n))
    question = Question(
        seed=seed, sort=sort, network=network, target=target, required=float(rng.choice([0.55, 0.6]))
        if is_threshold else float(rng.choice([0.0, 0.1, 0.3])), is_threshold=is_threshold, features=tuple(columns),
        values=values, sites=sites, plans=plans, one_hot=one_hot, derived=derived, is_decimal=is_decimal,
        worth=rng.integers(1, 4, size=n).astype(float) if chance(rng, 0.3) else None,
    )  # fmt: skip
    return _with_most_outside(question, float(rng.uniform(0.0, 0.5)))


def _with_most_outside(question: Question, share: float) -> Question:
    """With this share of the people in the wanted class."""
    want = np.array([1.0 if k in question.target else 0.0 for k in range(question.network.classes)])
    for shift in np.arange(4.0, -8.0, -0.25):
        moved = replace(question, network=question.network.raised(shift * want))
        if (moved.confidence(question.values) >= question.required).mean() <= share:
            return moved
    return question


def _derived(rng: Random, linear: bool, numbers: int) -> dict[str, str]:
    if not chance(rng, 0.4):
        return {}
    texts = ["x0 - x1", "x0 + 2 * x1"] if linear else ["x0 - x1", "max(x0, x1)", "x0 * x1", "min(x0, 1) - x1"]
    found = {"gap": str(one_of(rng, *texts))}
    if chance(rng, 0.3):
        found["twice"] = f"2 * gap + x{numbers - 1}"
    return found


def _with_levers(rng: Random, question: Question) -> Question:
    names = [name for name in question.features if name.startswith("x")]
    choices: dict[str, dict[Any, float]] = {}
    if "tier" in question.features:
        choices["tier"] = {code: _half(rng, 0, 4) for code in CODES if chance(rng, 0.7)} | (
            {"0 -> 2": 1.0} if chance(rng, 0.3) else {}
        )
    elif question.one_hot:
        choices["plan"] = {value: _half(rng, 0, 4) for value in VALUES if chance(rng, 0.7)} | (
            {"a -> c": 0.5} if chance(rng, 0.3) else {}
        )
    choices = {name: given for name, given in choices.items() if given}
    least = 1 if question.sort == "menu" and not choices else 0
    most = {"menu": 5, "steps": 3, "free": 2}[question.sort]
    actions = [Action(f"act{a}", _effects(rng, question, names)) for a in range(int(rng.integers(least, most + 1)))]
    if len(actions) > 1 and chance(rng, 0.4):
        actions[0] = replace(actions[0], excludes=["act1"])
    who = [one_of(rng, None, None, None, ("site", question.sites[0]), question.ids[::2]) for _ in actions]
    actions = [replace(action, who=group) for action, group in zip(actions, who, strict=True)]
    is_few, few = chance(rng, 0.25), int(rng.integers(1, 3))
    return replace(
        question,
        actions=tuple(actions),
        most_actions=int(rng.integers(1, 4)),
        choices=choices,
        most_changes=few if is_few and CAN_BE_FEW else None,
    )


def _half(rng: Random, low: int, high: int) -> float:
    return float(rng.integers(2 * low, 2 * high + 1)) / 2


def _effects(rng: Random, question: Question, names: list[str]) -> dict[str, float | str]:
    """Of a few that are drawn, those that help most"""
    drawn = [_some_effects(rng, names) for _ in range(int(rng.integers(1, 8 if question.sort == "menu" else 4)))]
    return max(drawn, key=lambda effects: float(question.confidence(_done(question, effects)).mean()))


def _done(question: Question, effects: Mapping[str, float | str]) -> Floats:
    after = question.values.copy()
    for name, given in effects.items():
        i = question.features.index(name)
        after[:, i] = effect_on(given, after[:, i])
    return after


def effect_on(given: float | str, value: Any) -> Any:
    """What an effect makes of a value, or of several"""
    if isinstance(given, str):
        number = float(given[2:])
        return value * number if given[0] == "x" else number + 0.0 * value
    return value + given


def _some_effects(rng: Random, names: list[str]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name in rng.permutation(names)[: int(rng.integers(1, 3))]:
        number = float(np.rint(rng.normal() * 8) / 4)
        found[str(name)] = one_of(rng, number, number, f"x {number}", f"= {number}")
    return found


def _with_budgets(rng: Random, question: Question) -> Question:
    """The features that change by amounts with their limits, and what draws on what; amounts are found later."""
    names = [name for name in question.features if name.startswith("x")]
    movable = [] if question.sort == "menu" else [str(x) for x in rng.permutation(names)[: int(rng.integers(1, 3))]]
    limits = {name: _limit(rng, question, name) for name in movable}
    if question.sort == "free" and len(movable) == 2 and chance(rng, 0.3):
        limits[movable[1]] = _limit(rng, replace(question, sort="steps"), movable[1])
    budgets = {}
    for b in range(int(rng.integers(1, 4))):
        uses = {name: _weight(rng, len(question)) for name in movable if b == 0 or chance(rng, 0.5)}
        uses |= {name: _half(rng, 0, 2) or 1.0 for name in question.choices if b == 0 or chance(rng, 0.4)}
        cost = str(one_of(rng, "squared", "absolute"))
        budgets[f"b{b}"] = Budget(
            1e9, uses=uses or None, cost=cost, fee=_fee(rng, len(question)), only=_part(rng, question)
        )
    actions = [replace(action, draws=_draws(rng, list(budgets), names)) for action in question.actions]
    if not movable and not question.choices:
        actions[0] = replace(actions[0], draws={**actions[0].draws, "b0": 1.0})
    drawn = {name for action in actions for name in action.draws}
    kept = {name: budget for name, budget in budgets.items() if budget.weights or name in drawn}
    if chance(rng, 0.3):
        kept["people"] = Budget(float(rng.integers(1, len(question) + 1)), cost="count", only=_part(rng, question))
    return replace(question, limits=limits, budgets=kept, actions=tuple(actions))


def _limit(rng: Random, question: Question, name: str) -> Limit:
    x = question.values[:, question.features.index(name)]
    direction = one_of(rng, None, None, None, None, "up", "down")
    if question.sort == "free":
        smallest = one_of(rng, None, None, 0.5, 1.0)
        low, high = (None, None) if chance(rng, 0.5) else (float(x.min()) - 2.0, float(x.max()) + 2.0)
        return Limit(low, high, direction, smallest=smallest)
    step = one_of(rng, 0.1, 0.3, 0.5) if question.is_decimal else one_of(rng, 0.25, 0.5, 1.0)
    middle, reach = float(x.mean() // 1), 5 * step
    smallest = 2 * step if chance(rng, 0.25) else None
    return Limit(middle - reach, middle + reach, direction, step, smallest)


def _weight(rng: Random, n: int) -> Any:
    def plain() -> float:
        return float(one_of(rng, 0.5, 1.0, 2.0))

    how = rng.random()
    if how < 0.15:
        return Ways(up=plain(), down=plain())
    return np.array([plain() for _ in range(n)]) if how < 0.3 else plain()


def _fee(rng: Random, n: int) -> Any:
    how = rng.random()
    if how > 0.3:
        return None
    return _half(rng, 0, 2) if how < 0.15 else np.array([_half(rng, 0, 2) for _ in range(n)])


def _part(rng: Random, question: Question) -> Any:
    if not chance(rng, 0.2):
        return None
    return ("site", question.sites[0]) if chance(rng, 0.5) else question.ids[1:]


def _draws(rng: Random, budgets: list[str], names: list[str]) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name in rng.permutation(budgets)[: int(rng.integers(0, 3))]:
        of = one_of(rng, *names)
        found[str(name)] = one_of(rng, _half(rng, 0, 4), _half(rng, 0, 4), f"max({of}, 0)", f"max({of} + 1, 0.5) * 0.5")
    return found


def _with_quotas(rng: Random, question: Question) -> Question:
    if not chance(rng, 0.2):
        return question
    site = ("site", question.sites[0])
    quota = one_of(
        rng, Quota(site, at_least=0.4), Quota(site, at_most=0.5), Quota(site, at_most=1), Quota(site, at_least=1),
        Quota(question.ids[:2], at_most=1), Quota(question.ids[:3], at_least=0.3, at_most=2),
    )  # fmt: skip
    return replace(question, quotas=(quota,))


def _with_amounts(rng: Random, question: Question) -> Question:
    """About as much as flips of some of the people draw, one alternative of each, in quarters."""
    from tests.mixed.reference import draws_of_flips

    each = draws_of_flips(question)
    amounts = {}
    for b, (name, budget) in enumerate(question.budgets.items()):
        total = sum(float(draws[int(rng.integers(len(draws))), b]) for draws in each if len(draws))
        amount = max(float(np.ceil(4 * total * rng.uniform(0.2, 0.8))) / 4, 0.25)
        amounts[name] = budget if budget.cost == "count" else replace(budget, amount=amount)
    return replace(question, budgets=amounts)
