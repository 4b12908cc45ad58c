"""Named actions: what can be done to people beside changes of single features by any amount.

An action changes features in a fixed way and draws on budgets in a fixed way. It becomes a lever of the cohort's layout
(data/levers.py) and a weight in each budget on which it draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxflip._util.faults import Fault, Place, about, wrong
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import counted, did_you_mean, shown
from maxflip.data.cohort import Cohort
from maxflip.data.expressions import BadExpression, Expression
from maxflip.data.levers import Effect, Way
from maxflip.data.tables import is_listing
from maxflip.problem.own import Part, Weight
from maxflip.problem.read_own import read_number, read_part

_WORDED = re.compile(r"(x|=)\s*(\S+)")
_SHORT = re.compile(r"^\s*([\d.]+(?:[eE][-+]?\d+)?) +([A-Za-z_]\w*)\s*$")  # "0.1 premium" for "0.1 * premium"
_PRODUCT = r"\1 * \2"
_WAYS: Mapping[str, Way] = {"x": "times", "=": "set"}


@dataclass(frozen=True)
class Action:
    """Something that can be done to a person, as a whole or not at all.

    Args:
        name: a text that is no feature's name.
        effects: {feature: what is added to it}; "x 0.9" multiplies it, "= 3" sets it. Of several actions for the same
            person, the one that stands first in the list comes first.
        draws: {budget: what it draws, >= 0}, whatever the budget's `cost`; "0.1 premium", or another expression of
            features, is computed from everyone's own values before any change.
        who: those who may get it: a list of ids, or (column, value); None: everyone.
        excludes: names of actions that nobody may get beside it.
    """

    name: str
    effects: Mapping[str, float | str]
    draws: Mapping[str, float | str] = field(default_factory=dict)
    who: Any = None
    excludes: Sequence[str] = ()


def effect_of(given: Any) -> tuple[Way, float] | None:
    """What an effect says; None if it is none.

    >>> effect_of(-4), effect_of("x 0.9"), effect_of("= 3"), effect_of("more")
    (('add', -4.0), ('times', 0.9), ('set', 3.0), None)
    """
    if isinstance(given, str):
        worded = _WORDED.fullmatch(given.strip())
        try:
            way, number = (_WAYS[worded[1]], float(worded[2])) if worded else ("add", math.nan)
        except ValueError:
            return None
    elif isinstance(given, (int, float, np.number)) and not isinstance(given, bool):
        way, number = "add", float(given)
    else:
        return None
    return (way, number) if math.isfinite(number) else None


def effect_in_words(feature: str, given: float | str) -> str:
    """
    >>> effect_in_words("bp", -4.0), effect_in_words("premium", "x 0.9"), effect_in_words("tier", "= 3")
    ('bp - 4', 'premium x 0.9', 'tier = 3')
    """
    way, number = effect_of(given) or ("add", 0.0)
    sign = {"times": "x", "set": "="}.get(way, "-" if number < 0 else "+")
    return f"{feature} {sign} {abs(number) if way == 'add' else number:.6g}"


def read_actions(
    actions: Any, cohort: Cohort, budgets: Collection[str], categories: Collection[str] = ()
) -> tuple[tuple[Action, ...], list[str | Fault]]:
    """The argument `actions` of a Problem, in plain values, and its faults.   categories: names of one-hot codes"""
    if actions is None:
        return (), []
    if not is_listing(actions):
        return (), [about("actions", f"got {shown(actions)}; wanted a list of Action(...).")]
    listed_ = list(actions)
    strangers = [one for one in listed_ if not isinstance(one, Action)]
    if strangers:
        return (), [about("actions", f"got {shown(strangers[0])}; wanted a list of Action(...).")]
    names = [one.name for one in listed_]
    faults: list[str | Fault] = []
    for place, one in enumerate(listed_):
        faults += _name_faults(one.name, names[:place], cohort.features)
        faults += _effect_faults(one, cohort.features, categories)
        faults += _draw_faults(one, cohort, budgets)
        faults += _exclusion_faults(one, names)
        faults += who_may(one, cohort)[1]
    return (() if faults else tuple(_completed(one, cohort) for one in listed_)), faults


def _name_faults(name: Any, earlier: Sequence[Any], features: Sequence[str]) -> list[Fault]:
    if not isinstance(name, str) or not name.strip():
        return [about("actions", f"the name {shown(name)} is no text. Name every action by a text.")]
    if name != name.strip() or not name.isprintable():
        says = "spaces around a name, and characters such as line breaks in it, are not allowed. Leave them out."
        return [about("actions", f"the name {shown(name)}: {says}")]
    if name in earlier:
        return [about(("actions", name), "there are two actions of this name. Rename one.")]
    if name in features:
        return [about(("actions", name), "a feature has this name too. Rename the action.")]
    return []


def _effect_faults(action: Action, features: Sequence[str], categories: Collection[str]) -> list[Fault]:
    place = ("actions", str(action.name), "effects")
    given: Any = action.effects
    if not isinstance(given, Mapping) or not given:
        return [wrong(place, given, "must be {feature: number} with at least one feature.")]
    faults = []
    for feature, effect in given.items():
        if feature in categories:
            faults.append(about((*place, str(feature)), "it is a category: use choices."))
            continue
        if feature not in features:
            says = f"no feature is called {feature!r}.{did_you_mean(feature, features)}"
            faults.append(about((*place, str(feature)), says))
        if effect_of(effect) is None:
            says = "must be a finite number that is added, or a text: 'x 0.9' multiplies, '= 3' sets."
            faults.append(wrong((*place, str(feature)), effect, says))
    return faults


def _draw_faults(action: Action, cohort: Cohort, budgets: Collection[str]) -> list[str | Fault]:
    place = ("actions", str(action.name), "draws")
    given: Any = action.draws
    if not isinstance(given, Mapping):
        return [wrong(place, given, "must be {budget: number >= 0}.")]
    faults: list[str | Fault] = []
    for budget, amount in given.items():
        if budget not in budgets:
            says = f"no budget is called {budget!r}.{did_you_mean(budget, budgets)}"
            faults.append(about((*place, str(budget)), says))
        faults += read_draw(amount, cohort, (*place, str(budget)))[1]
    return faults


def read_draw(given: Any, cohort: Cohort, place: Place) -> tuple[Weight, list[str | Fault]]:
    """What an action draws of a budget: a number, or one of each sample's own, by an expression of its features."""
    if not isinstance(given, str):
        is_number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
        fits = is_number and 0 <= given < math.inf
        return (float(given), []) if fits else (0.0, [wrong(place, given, "must be a finite number >= 0.")])
    try:
        expression = Expression.parse(_SHORT.sub(_PRODUCT, given), cohort.features)
    except BadExpression as error:
        return 0.0, [about(place, f"{shown(given, 60)}: {says}") for says in error.problems]
    values = np.broadcast_to(expression.on(dict(zip(cohort.features, cohort.values.T, strict=True))), len(cohort))
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        where = cohort.where(int(bad[0]))
        rest = f", and no better in {counted(len(bad) - 1, 'other row')}" if len(bad) > 1 else ""
        never = f"max({_SHORT.sub(_PRODUCT, given)}, 0) is never negative."
        says = f"{shown(given, 60)} is {values[bad[0]]:.6g} in {where}{rest}; it must be a finite number >= 0. {never}"
        return 0.0, [about(place, says)]
    return read_number(np.array(values, dtype=np.float64), cohort, place)


def _exclusion_faults(action: Action, names: Sequence[Any]) -> list[Fault]:
    place = ("actions", str(action.name), "excludes")
    given: Any = action.excludes
    if isinstance(given, str) or not is_listing(given):
        return [wrong(place, given, "must be a list of names of actions.")]
    return [
        about(place, f"no action is called {name!r}.{did_you_mean(name, names)}") for name in given if name not in names
    ]


def who_may(action: Action, cohort: Cohort) -> tuple[Part | None, list[str | Fault]]:
    """Those who may get it, None: everyone; and the faults of `who`."""
    if action.who is None:
        return None, []
    return read_part(action.who, cohort, ("actions", str(action.name), "who"))


def _completed(action: Action, cohort: Cohort) -> Action:
    """The action with plain numbers and with `who` read against the cohort."""
    who, _ = who_may(action, cohort)
    effects = {name: one if isinstance(one, str) else float(one) for name, one in action.effects.items()}
    draws = {name: one if isinstance(one, str) else float(one) for name, one in action.draws.items()}
    return Action(action.name, FrozenMap(effects), FrozenMap(draws), who, tuple(action.excludes))


def effects_on(action: Action, features: Sequence[str]) -> tuple[Effect, ...]:
    """Effects by column."""
    return tuple(
        Effect(features.index(name), *said)
        for name, given in action.effects.items()
        if (said := effect_of(given)) is not None
    )


def clashes(actions: Sequence[Action], names: Iterable[str]) -> set[tuple[str, str]]:
    """Pairs of names that exclude each other."""
    known = set(names)
    return {(one.name, other) for one in actions for other in one.excludes if other in known and other != one.name}
