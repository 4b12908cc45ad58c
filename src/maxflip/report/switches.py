"""Switches of categories in words: "plan: basic → plus", in place of the numbers of their code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxflip._util.types import Mask
from maxflip.plan.plan import Plan
from maxflip.problem.choices import ARROW, lever_name, name_of


class Switches:
    """value_of: {lever: (category, value that it leads to)}   codes: {category: features that hold it}"""

    def __init__(self, plan: Plan) -> None:
        menu: Mapping[str, Any] = {} if plan.question is None else plan.question.menu
        choices: Mapping[str, Any] = menu.get("choices", {})
        self.plan = plan
        self.value_of = {
            lever_name(category, key): (category, key.split(ARROW)[-1])
            for category, distances in choices.items()
            for key in distances
        }
        self.codes: dict[str, Sequence[str]] = {name: menu.get("one_hot", {}).get(name, [name]) for name in choices}
        places = [plan.features.index(feature) for codes in self.codes.values() for feature in codes]
        self.is_code: Mask = np.isin(np.arange(len(plan.features)), places)

    def words(self, lever: str, person: int) -> str | None:
        """What a person's category becomes; None if the lever switches none, or where the plan does not tell it."""
        category, value = self.value_of.get(lever, (None, ""))
        before = None if category is None else self._before(category, person)
        return None if before is None else f"{category}: {before} → {value}"

    def _before(self, category: str, person: int) -> str | None:
        known, codes = self.plan.implied, self.codes[category]
        if known is None:
            return None
        own = slice(*np.searchsorted(known.picked, [person, person + 1]))
        names = [self.plan.features[i] for i in known.feature[own].tolist()]
        held = [(n, b) for n, b in zip(names, known.before[own].tolist(), strict=True) if n in codes]
        if list(codes) == [category]:
            return next((name_of(before) for _, before in held), None)
        return next((name.removeprefix(f"{category}_") for name, before in held if before == 1.0), None)
