"""Derived features: values that follow from others, computed anew by the auditor's own arithmetic."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip_verify.exact import Floats
from maxflip_verify.expressions import Program, parse
from maxflip_wall import Unreadable

TOLERANCE = 1e-6  # of the size of an expression, by which the cohort's own values may differ from it


@dataclass(frozen=True)
class Rule:
    """place: the derived feature   parts: those in its expression, in the order of program.names"""

    place: int
    parts: list[int]
    program: Program

    def on(self, rows: Floats) -> tuple[Floats, Floats]:
        """Values and sizes for rows (N, F)"""
        columns = dict(zip(self.program.names, rows[:, self.parts].T, strict=True))
        values, sizes = self.program.run(columns)
        return np.broadcast_to(values, len(rows)), np.broadcast_to(sizes, len(rows))


def read_rules(job: dict[str, Any]) -> list[Rule]:
    """The rules of a job, each after those of the features that it uses."""
    features, given = job["cohort"]["features"], job.get("derived", {})
    programs = {name: parse(text) for name, text in given.items()}
    for name, program in programs.items():
        if name not in features or not program.names or set(program.names) - set(features):
            raise Unreadable(f"job.toml: derived: {name!r} = {given[name]!r:.200}: wanted some of {features}")
        own = [budget for budget, terms in job["budgets"].items() if _draws(name, budget, terms)]
        if own or name in job.get("limits", {}):
            raise Unreadable(f"job.toml: derived: {name!r} has budgets {own} or limits; wanted neither")
    ordered: list[str] = []
    while len(ordered) < len(programs):
        ready = [
            n for n in programs if n not in ordered and not (set(programs[n].names) & programs.keys()) - set(ordered)
        ]
        if not ready:
            raise Unreadable(
                f"job.toml: derived: {sorted(programs.keys() - set(ordered))} are computed from each other"
            )
        ordered += ready
    return [
        Rule(features.index(name), [features.index(part) for part in programs[name].names], programs[name])
        for name in ordered
    ]


def _draws(feature: str, budget: str, terms: dict[str, Any]) -> bool:
    return terms.get("cost") != "count" and bool(terms.get("uses", {budget: 1.0}).get(feature, 0) > 0)


def follow(rules: list[Rule], start: Floats, end: Floats) -> Floats:
    """end (N, F), in which derived features follow: computed where a part of them is not as at the start."""
    for rule in rules:
        moved = (end[:, rule.parts] != start[:, rule.parts]).any(axis=1) & ~np.isnan(start[:, rule.place])
        end[moved, rule.place] = rule.on(end[moved])[0]
    return end


def off_at_start(rule: Rule, start: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Where the cohort's own values are not those of the expression, and these."""
    computed, sizes = rule.on(start)
    with np.errstate(invalid="ignore"):
        near = np.abs(start[:, rule.place] - computed) <= TOLERANCE * sizes
    return ~np.isnan(start[:, rule.place]) & ~(near & np.isfinite(computed)), computed


def implied(
    rules: list[Rule], touched: NDArray[np.bool_], start: Floats, end: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and places (e,) of the values that follow from others and are not as at the start, in the order of both.

    touched (N, F): what actions and switches change
    """
    follows = touched.copy()
    follows[:, [rule.place for rule in rules]] = True
    row, place = np.nonzero(follows & (end != start) & ~np.isnan(start))
    return row, place
