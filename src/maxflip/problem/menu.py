"""What can be done to people as a whole: named actions and switches of categories, as levers of the cohort."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, Place, about, wrong
from maxflip._util.frozen import Frozen, FrozenMap
from maxflip.data.cohort import Cohort
from maxflip.data.levers import MOST_ALTERNATIVES, Levers
from maxflip.problem.actions import Action, clashes, effect_in_words, effects_on, read_actions, read_draw
from maxflip.problem.budgets import Budget, Ways
from maxflip.problem.choices import ARROW, Distances, Switch, lever_name, read_choices, read_one_hot
from maxflip.problem.own import Own, Weight

ONE = 1  # action per person, where nothing else is asked


@dataclass(frozen=True, eq=False)
class Menu(Frozen):
    """The arguments `actions`, `most_actions`, `choices` and `one_hot` of a Problem in plain values.

    levers: what they allow; None without any   switches: the levers behind those of the actions
    drawn_of: {(action, budget): what it draws}
    """

    actions: tuple[Action, ...] = ()
    most_actions: int = ONE
    choices: Mapping[str, Distances] = field(default_factory=dict)
    one_hot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    levers: Levers | None = None
    switches: tuple[Switch, ...] = ()
    drawn_of: Mapping[tuple[str, str], Weight] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """Of the levers"""
        return frozenset() if self.levers is None else frozenset(self.levers.names)

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the levers, in their order"""
        return () if self.levers is None else self.levers.names

    @property
    def changed_by_actions(self) -> frozenset[str]:
        """Features that some action changes"""
        return frozenset(feature for one in self.actions for feature in one.effects)

    def as_table(self) -> dict[str, Any]:
        """In values that JSON has, without who may get which; empty without actions and choices."""
        actions = {
            one.name: {"effects": dict(one.effects), "draws": dict(one.draws), "excludes": list(one.excludes)}
            for one in self.actions
        }
        if not actions and not self.switches:
            return {}
        return {
            "actions": actions,
            "most_actions": self.most_actions,
            "choices": {name: dict(distances) for name, distances in self.choices.items()},
            "one_hot": {name: list(features) for name, features in self.one_hot.items()},
        }

    def with_levers(self, cohort: Cohort) -> Cohort:
        """The cohort with a column for each lever."""
        return cohort if self.levers is None else cohort.with_levers(self.levers)

    def drawn(self, budgets: Any, features: Sequence[str]) -> Any:
        """The budgets with a weight for each lever that draws on them, in place of categories among their uses."""
        if self.levers is None or not isinstance(budgets, Mapping):
            return budgets
        whole = {name: given if isinstance(given, Budget) else Budget(given) for name, given in budgets.items()}
        return {name: self._with_weights(name, budget, features) for name, budget in whole.items()}

    def _with_weights(self, name: str, budget: Budget, features: Sequence[str]) -> Budget:
        if budget.is_function or (budget.uses is not None and not isinstance(budget.uses, Mapping)):
            return budget
        drawing = self.draws_of_actions(name)
        own = self.own_uses(name, budget, features)
        levers = {s.name: _times(own[s.category], s.distance) for s in self.switches if s.category in own}
        rest = {feature: weight for feature, weight in own.items() if feature not in self.choices}
        if not drawing and not levers:
            return budget
        return replace(budget, uses=FrozenMap({**rest, **drawing, **levers}))

    def draws_of_actions(self, budget: str) -> dict[str, Weight]:
        """What each action draws of a budget, of those that do."""
        return {action: weight for (action, name), weight in self.drawn_of.items() if name == budget}

    def with_actions(self, name: str, budget: Budget) -> Budget:
        """The budget with the weights that stand in the `draws` of actions."""
        return replace(budget, uses=FrozenMap({**budget.weights, **self.draws_of_actions(name)}) or None)

    def without_actions(self, name: str, budget: Budget) -> Budget:
        """The budget without the weights that stand in the `draws` of actions."""
        drawing = self.draws_of_actions(name)
        return replace(budget, uses=FrozenMap({f: w for f, w in budget.weights.items() if f not in drawing}) or None)

    def own_uses(self, name: str, budget: Budget, features: Sequence[str]) -> Mapping[str, Any]:
        """What a budget weighs as it was given: by default the feature or the category of its name."""
        if budget.uses is not None:
            return budget.weights
        return {name: 1.0} if (name in features or name in self.choices) and budget.cost != "count" else {}


def read_menu(
    actions: Any,
    most_actions: Any,
    choices: Any,
    one_hot: Any,
    cohort: Cohort,
    *,
    budgets: Any,
    derived: Collection[str] = (),
) -> tuple[Menu, list[str | Fault]]:
    """The menu and its faults.   budgets: as given to the Problem   derived: features that follow from others"""
    names = list(budgets) if isinstance(budgets, Mapping) else []
    categories = {*cohort.one_hot, *(one_hot if isinstance(one_hot, Mapping) else ())}
    given, faults = read_actions(actions, cohort, names, categories)
    codes, of_codes = read_one_hot(one_hot, cohort)
    faults += of_codes
    distances, switches, more = read_choices(
        _readable(choices, one_hot, cohort) if of_codes else choices, codes, cohort
    )
    faults += more
    most = ONE if most_actions is None else most_actions
    if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
        faults.append(wrong("most_actions", most_actions, "must be a whole number >= 1."))
    if not faults:
        faults += _one_by_one_faults(given, codes, distances, budgets)
        faults += _name_faults(given, switches)
        faults += _derived_faults(given, codes, distances, derived)
    if faults:
        return Menu(), faults
    drawn_of = {
        (one.name, name): read_draw(amount, cohort, ())[0] for one in given for name, amount in one.draws.items()
    }
    codes_and_choices = FrozenMap(distances), FrozenMap(codes)
    menu = Menu(given, int(most), *codes_and_choices, None, tuple(switches), FrozenMap(drawn_of))
    if not given and not switches:
        return menu, []
    if not cohort.layout.can_have_levers:
        where = "actions" if given else "choices"
        return menu, [about(where, "actions and choices are for tables; this cohort has sequences.")]
    is_long = len(given) + len(switches) > MOST_ALTERNATIVES
    levers = None if is_long else _levers(menu, cohort)
    if levers is None or len(levers.alternatives()) > MOST_ALTERNATIVES:
        says = (
            f"more than {MOST_ALTERNATIVES:,} combinations of actions and choices. Lower most_actions, or name fewer."
        )
        return menu, [about("most_actions", says)]
    return replace(menu, levers=levers), []


def _readable(choices: Any, one_hot: Any, cohort: Cohort) -> Any:
    """The choices without categories of one_hot, whose codes are wrong: they would be told as unknown once more."""
    if not isinstance(choices, Mapping):
        return choices
    coded = {*cohort.one_hot, *(one_hot if isinstance(one_hot, Mapping) else ())}
    return {name: given for name, given in choices.items() if name not in coded}


def _one_by_one_faults(
    actions: Sequence[Action], one_hot: Mapping[str, Sequence[str]], choices: Mapping[str, Distances], budgets: Any
) -> list[Fault]:
    """Features of a category must change by switches alone, and budgets that actions draw on must be able to."""
    category = {feature: name for name, features in one_hot.items() for feature in features}
    category |= {name: name for name in choices if name not in one_hot}
    faults = [
        about(("actions", one.name, "effects", feature), f"belongs to the category {category[feature]!r}: use choices.")
        for one in actions
        for feature in one.effects
        if feature in category
    ]
    for name, given in budgets.items() if isinstance(budgets, Mapping) else ():
        uses = getattr(given, "uses", None)
        if str(getattr(given, "cost", "")) == "count" or not isinstance(uses, Mapping | None):
            continue  # features that are only listed, or a type that is told elsewhere
        weights: Mapping[str, Any] = uses or {name: 1.0}
        for feature, weight in weights.items():
            place = ("budgets", name) if not uses else ("budgets", name, "uses", str(feature))
            if feature in category and category[feature] in one_hot:
                faults.append(about(place, f"{feature!r} belongs to the category {category[feature]!r}: use choices."))
            if feature in choices and isinstance(weight, (str, Ways)):
                faults.append(wrong(place, weight, "must be a number: a category draws weight x distance."))
            if feature in choices and callable(getattr(given, "cost", None)):
                faults.append(about(place, "the budget is a function; no category draws on it."))
    for one in actions:
        for name in one.draws:
            cost = getattr(budgets[name], "cost", "squared")
            if cost == "count" or callable(cost):
                kind = "counts people" if cost == "count" else "is a function"
                faults.append(about(("actions", one.name, "draws", name), f"the budget {kind}; no action draws on it."))
    return faults


def _derived_faults(
    actions: Sequence[Action],
    one_hot: Mapping[str, Sequence[str]],
    choices: Mapping[str, Distances],
    derived: Collection[str],
) -> list[Fault]:
    places: list[Place] = [("actions", one.name, "effects", feature) for one in actions for feature in one.effects]
    places += [("one_hot", name, feature) for name, features in one_hot.items() for feature in features]
    places += [("choices", name) for name in choices]
    says = "the feature is computed from others (derived), so nothing else changes it."
    return [about(place, says) for place in places if place[-1] in derived]


def _name_faults(actions: Sequence[Action], switches: Sequence[Switch]) -> list[Fault]:
    names = {one.name for one in actions}
    return [
        about(("choices", s.category), f"an action is called {s.name!r} too. Rename it.")
        for s in switches
        if s.name in names
    ]


def _levers(menu: Menu, cohort: Cohort) -> Levers:
    names = tuple([one.name for one in menu.actions] + [one.name for one in menu.switches])
    allowed = [np.ones(1, dtype=bool) if one.who is None else one.who.inside for one in menu.actions]
    allowed += [switch.allowed for switch in menu.switches]
    n = max(map(len, allowed))
    place = {name: i for i, name in enumerate(names)}
    apart = np.zeros((len(names), len(names)), dtype=bool)
    for one, other in clashes(menu.actions, names):
        apart[place[one], place[other]] = apart[place[other], place[one]] = True
    for i, one_switch in enumerate(menu.switches, len(menu.actions)):
        for k, other_switch in enumerate(menu.switches, len(menu.actions)):
            apart[i, k] |= i != k and one_switch.category == other_switch.category
    return Levers(
        names=names,
        effects=(
            *(effects_on(one, cohort.features) for one in menu.actions),
            *(switch.effects for switch in menu.switches),
        ),
        allowed=np.stack([np.broadcast_to(one, n) for one in allowed], axis=1),
        apart=apart,
        counted=np.arange(len(names)) < len(menu.actions),
        most=menu.most_actions,
    )


def _times(weight: Any, distance: float) -> Any:
    """A weight of a category for a switch; one that is no number or array is left to be refused."""
    if isinstance(weight, Own):
        return Own(weight.values * distance)
    if isinstance(weight, (str, Ways)) or weight is None:
        return weight
    return np.asarray(weight) * distance if np.ndim(weight) else weight * distance


def levers_in_words(table: Mapping[str, Any]) -> dict[str, str]:
    """{name of a lever: what it does}, from `Menu.as_table`."""
    words = {
        name: ", ".join(effect_in_words(feature, effect) for feature, effect in one["effects"].items())
        for name, one in table.get("actions", {}).items()
    }
    for category, distances in table.get("choices", {}).items():
        for key in distances:
            value = key.split(ARROW)[-1]
            words[lever_name(category, key)] = f"{category} becomes {value}"
    return words
