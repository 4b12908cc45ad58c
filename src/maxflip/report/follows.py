"""What follows from the changes of each person picked: values of derived features, before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from maxflip._util.types import Floats, Rows
from maxflip.plan.plan import Plan
from maxflip.report.features import decimals_of
from maxflip.report.numbers import change_of
from maxflip.report.switches import Switches
from maxflip.report.texts import isolated


class Follows:
    """The rows of `Plan.implied` by person, and how their numbers are shown; without such rows nothing is shown."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        known, nothing = plan.implied, np.empty(0, dtype=np.int64)
        shown = slice(0) if known is None else ~Switches(plan).is_code[known.feature]  # switches say these in words
        self.feature: Rows = nothing if known is None else known.feature[shown]
        self.step: Rows = nothing if known is None else known.step[shown]
        self.before: Floats = np.empty(0) if known is None else known.before[shown]
        self.after: Floats = np.empty(0) if known is None else known.after[shown]
        picked = nothing if known is None else known.picked[shown]
        self.first = np.searchsorted(picked, np.arange(plan.count + 1))
        kinds = np.unique(self.feature).tolist()
        moved = self.after - self.before
        self.decimals = {i: decimals_of(moved[self.feature == i], self.before[self.feature == i]) for i in kinds}
        self.reach = {i: float(np.abs(moved[self.feature == i]).max()) for i in kinds}

    def most(self, order: Rows) -> int:
        """The largest number of values that follow for one of these people."""
        return int(np.diff(self.first)[order].max(initial=0))

    def of(self, person: int, most: int) -> range:
        """Rows of a person, at most so many."""
        begin, end = self.first[person : person + 2].tolist()
        return range(begin, min(end, begin + most))

    def sentence(self, row: int) -> Markup:
        """'follows: pulse_pressure 60 → 52'"""
        i = int(self.feature[row])
        before, moved = float(self.before[row]), float(self.after[row] - self.before[row])
        was, becomes, _ = change_of(before, moved, self.decimals[i])
        step = f", step {int(self.step[row]):,}" if self.plan.places.has_steps else ""
        return Markup("follows: {}{} {} → {}").format(isolated(self.plan.features[i], 60), step, was, becomes)

    def numbers(self, row: int, place: Mapping[int | str, int]) -> list[Any]:
        """(feature, [step,] before, after); place: of each feature among those of the page"""
        step = [int(self.step[row])] if self.plan.places.has_steps else []
        return [place[int(self.feature[row])], *step, float(self.before[row]), float(self.after[row])]
