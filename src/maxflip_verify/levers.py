"""Actions and switches of categories: what they do, who may get them, and what they draw, read from the job alone."""

import itertools
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip_verify.exact import Floats
from maxflip_verify.expressions import parse
from maxflip_verify.tables import Source, group_of
from maxflip_wall import Unreadable

SHORT = re.compile(r"\s*([\d.]+(?:[eE][-+]?\d+)?) +([A-Za-z_]\w*)\s*")  # "0.1 premium"
EFFECT = re.compile(r"(x|=)\s*(\S+)")


@dataclass(frozen=True)
class Formula:
    """What an action draws, as an expression of features before any change."""

    text: str

    def on(self, features: list[str], start: Floats) -> Floats:
        """(n,)"""
        short = SHORT.fullmatch(self.text)
        program = parse(f"{short[1]} * {short[2]}" if short else self.text)
        if set(program.names) - set(features):
            raise Unreadable(f"job.toml: actions: draws: {self.text!r:.200}: wanted some of {features}")
        values, _ = program.run(dict(zip(features, start.T, strict=True)))
        return np.broadcast_to(values, len(start)) + 0.0


@dataclass(frozen=True)
class Levers:
    """effects: (feature, operation, number) of each lever, in order   allowed (n, L): who may get which

    apart: pairs that one person may not get together   actions: how many of the levers are actions; the others switch
    """

    names: list[str]
    effects: list[list[tuple[int, str, float]]]
    allowed: NDArray[np.bool_]
    apart: set[tuple[int, int]]
    actions: int
    most: int

    def after(self, start: Floats, on: NDArray[np.bool_]) -> Floats:
        """(n, F): what start (n, F) becomes by the levers that are on (n, L), one after the other"""
        moved = start.copy()
        for lever, effects in enumerate(self.effects):
            who = np.flatnonzero(on[:, lever])
            for feature, operation, number in effects:
                values = moved[who, feature]
                moved[who, feature] = {"+": values + number, "x": values * number, "=": np.full(len(who), number)}[
                    operation
                ]
        return moved

    def touched(self, on: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
        """(n, F): the features that the levers change that are on (n, L)"""
        changes = np.zeros((len(self.names), width), dtype=bool)
        for lever, effects in enumerate(self.effects):
            changes[lever, [feature for feature, _, _ in effects]] = True
        return np.asarray(on @ changes)

    def faults(self, on: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(n,): who gets levers that are not allowed, or not together"""
        wrong = (on & ~self.allowed).any(axis=1) | (on[:, : self.actions].sum(axis=1) > self.most)
        for one, other in self.apart:
            wrong |= on[:, one] & on[:, other]
        return np.asarray(wrong)


def operation(given: Any) -> tuple[str, float]:
    """What an effect says: ("+", number), ("x", number) or ("=", number)."""
    sign, number = "+", given
    if isinstance(given, str):
        said = EFFECT.fullmatch(given.strip())
        sign, number = (said[1], said[2]) if said else ("+", "none")
    try:
        found = float(number)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise Unreadable(f"job.toml: actions: effects: got {given!r}, wanted a number, 'x 0.9' or '= 3'")
    return sign, found


def check_menu(job: dict[str, Any]) -> None:
    features, actions, one_hot = job["cohort"]["features"], job.get("actions", {}), job.get("one_hot", {})
    coded = [feature for codes in one_hot.values() for feature in codes]
    single = [name for name in job.get("choices", {}) if name not in one_hot]
    if job["cohort"].get("kind") == "sequences" and (actions or job.get("choices")):
        raise Unreadable("job.toml: actions and choices are for tables")
    if len(set(coded)) < len(coded) or set(coded) - set(features) or set(one_hot) & set(features):
        raise Unreadable("job.toml: one_hot: must name features, each once, and categories by other names")
    if odd := set(single) - set(features):
        raise Unreadable(f"job.toml: choices: {sorted(odd)} are neither features nor categories of one_hot")
    for name, one in actions.items():
        changed = set(one["effects"])
        if name in features or not changed or changed - set(features) or changed & {*coded, *single}:
            raise Unreadable(f"job.toml: actions: {name}: must change features that no category holds")
        if odd := set(one.get("excludes", [])) - set(actions):
            raise Unreadable(f"job.toml: actions: {name}: excludes {sorted(odd)}, which are no actions")
        if odd := set(one.get("draws", {})) - set(job["budgets"]):
            raise Unreadable(f"job.toml: actions: {name}: draws on {sorted(odd)}, which are no budgets")
    if job["goal"].get("most_actions", 1) < 1:
        raise Unreadable("job.toml: goal: most_actions must be at least 1")


def switches(job: dict[str, Any]) -> dict[str, tuple[str, str, str, float]]:
    """{name of the lever: (category, value before or "", value after, distance)}"""
    found = {}
    for category, distances in job.get("choices", {}).items():
        for key, distance in distances.items():
            *before, value = (part.strip().removeprefix(f"{category}_") for part in key.split("->"))
            before, value = [plain(job, category, one) for one in before], plain(job, category, value)
            pair = " -> ".join([*before, value])
            name = f"{category}: {pair}" if before else f"{category} = {value}"
            found[name] = (category, before[0] if before else "", value, float(distance))
    return found


def plain(job: dict[str, Any], category: str, value: str) -> str:
    """A value that is a number is written as one, so that 2 and 2.0 are the same."""
    if category in job.get("one_hot", {}):
        return value
    try:
        number = float(value)
    except ValueError:
        raise Unreadable(f"job.toml: choices: {category}: got {value!r}, wanted a number") from None
    short = f"{number:g}"
    return short if float(short) == number else f"{number:.17g}" if number == int(number) else repr(number)


def uses_of(job: dict[str, Any], budget: str) -> dict[str, Any]:
    """What a budget weighs: features, actions and switches; a category weighs each switch by its distance."""
    terms = job["budgets"][budget]
    if terms.get("cost") == "count":
        return {}
    known = {*job["cohort"]["features"], *job.get("choices", {})}
    uses = dict(terms.get("uses", {budget: 1.0} if budget in known else {}))
    drawn = {
        name: Formula(one["draws"][budget]) if isinstance(one["draws"][budget], str) else one["draws"][budget]
        for name, one in job.get("actions", {}).items()
        if budget in one.get("draws", {})
    }
    categories = [name for name in uses if name in job.get("choices", {})]
    if any(isinstance(uses[name], str | dict) for name in categories):
        raise Unreadable(f"job.toml: budgets: {budget}: a category has one number as its weight")
    by_distance = {
        name: uses[category] * distance
        for name, (category, _, _, distance) in switches(job).items()
        if category in uses
    }
    if not uses and not drawn:
        raise Unreadable(f"job.toml: budgets: {budget}: got nothing that draws on it, wanted a feature or an action")
    plain_uses = {name: weight for name, weight in uses.items() if name not in job.get("choices", {})}
    return plain_uses | drawn | by_distance


def read_levers(job: dict[str, Any], start: Floats, people: Source, ids: list[str]) -> Levers:
    features, actions, switched = job["cohort"]["features"], job.get("actions", {}), switches(job)
    names = [*actions, *switched]
    allowed = np.ones((len(ids), len(names)), dtype=bool)
    effects: list[list[tuple[int, str, float]]] = []
    for place, one in enumerate(actions.values()):
        effects.append([(features.index(name), *operation(given)) for name, given in one["effects"].items()])
        allowed[:, place] = who_may(one.get("who"), people, ids)
    for place, (category, before, value, _) in enumerate(switched.values(), len(actions)):
        own, is_value = _category(job, category, value)
        effects.append(own)
        allowed[:, place] = ~_has(start, is_value)
        if before:
            allowed[:, place] &= _has(start, _category(job, category, before)[1])
    position = {name: i for i, name in enumerate(names)}
    apart = {(position[name], position[other]) for name, one in actions.items() for other in one.get("excludes", [])}
    apart |= {
        (position[one], position[other])
        for one, other in itertools.combinations(switched, 2)
        if switched[one][0] == switched[other][0]
    }
    return Levers(
        names,
        effects,
        allowed,
        apart - {(i, i) for i in range(len(names))},
        len(actions),
        job["goal"].get("most_actions", 1),
    )


def _category(job: dict[str, Any], category: str, value: str) -> tuple[list[tuple[int, str, float]], tuple[int, float]]:
    """The effects of a switch to a value; and the feature and its number that tell who has this value."""
    features, codes = job["cohort"]["features"], job.get("one_hot", {}).get(category)
    if codes is None:
        feature = features.index(category)
        return [(feature, "=", float(value))], (feature, float(value))
    short = [code.removeprefix(f"{category}_") for code in codes]
    if value not in short:
        raise Unreadable(f"job.toml: choices: {category}: got {value!r}, wanted one of {short}")
    effects = [(features.index(code), "=", float(name == value)) for code, name in zip(codes, short, strict=True)]
    return effects, (features.index(codes[short.index(value)]), 1.0)


def _has(start: Floats, told: tuple[int, float]) -> NDArray[np.bool_]:
    return np.asarray(start[:, told[0]] == told[1])


def who_may(who: Any, people: Source, ids: list[str]) -> Any:
    if who is None:
        return True
    if who.keys() not in ({"column", "value"}, {"ids"}):
        raise Unreadable("job.toml: actions: who: wanted column and value, or ids")
    return group_of(who, people, ids, "actions: who")
