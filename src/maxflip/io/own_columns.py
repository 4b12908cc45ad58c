"""What differs between samples in budgets, as a plan folder holds it: in summary.json, and columns of fates.parquet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxflip._util.types import Floats
from maxflip.problem.budgets import Budget, Ways
from maxflip.problem.members import group_from_table, group_table
from maxflip.problem.own import Own, Part


def own_columns(budgets: Mapping[str, Budget]) -> dict[str, Floats]:
    """{column of fates.parquet: (n,)}: what each sample has of its own; of a part of the cohort, 1 inside it, else 0.

    Columns tell budgets by their place: "budget 0: of bmi", "budget 1: up dose", "budget 1: fee", "budget 1: only".
    """
    found: dict[str, Any] = {}
    for r, budget in enumerate(budgets.values()):
        given: dict[str, Any] = {}
        for feature, weight in budget.weights.items():
            both = {"up": weight.up, "down": weight.down} if isinstance(weight, Ways) else {"of": weight}
            given |= {f"{way} {feature}": number for way, number in both.items()}
        given |= {"fee": budget.fee, "only": budget.only}
        found |= {f"budget {r}: {name}": own for name, own in given.items() if isinstance(own, (Own, Part))}
    return {name: own.values if isinstance(own, Own) else own.inside.astype(np.float64) for name, own in found.items()}


def budget_table(budget: Budget) -> dict[str, Any]:
    """`uses`, `fee` and `only` as summary.json and a job have them: of numbers of each sample's own the column's name,
    null where an array had them"""
    table: dict[str, Any] = {"uses": {feature: _weight_stated(weight) for feature, weight in budget.weights.items()}}
    if budget.fee is not None:
        table["fee"] = _stated(budget.fee)
    if isinstance(budget.only, Part):
        table["only"] = group_table(budget.only.group)
    return table


def _weight_stated(weight: Any) -> Any:
    if isinstance(weight, Ways):
        return {"up": _stated(weight.up), "down": _stated(weight.down)}
    return _stated(weight)


def _stated(number: float | Own) -> float | str | None:
    return number.column if isinstance(number, Own) else number


def read_budget(r: int, table: Mapping[str, Any], columns: Mapping[str, Floats]) -> Budget:
    """The r-th budget of summary.json; columns: of fates.parquet"""

    def number(stated: Any, name: str) -> float | Own:
        return Own(columns[f"budget {r}: {name}"], stated) if stated is None or isinstance(stated, str) else stated

    def weight(stated: Any, feature: str) -> Any:
        if isinstance(stated, Mapping):
            return Ways(*(number(stated[way], f"{way} {feature}") for way in ("up", "down")))
        return number(stated, f"of {feature}")

    def part(stated: Mapping[str, Any]) -> Part:
        return Part(group_from_table(stated), columns[f"budget {r}: only"] == 1)

    uses = {feature: weight(stated, feature) for feature, stated in table["uses"].items()}
    fee = number(table["fee"], "fee") if "fee" in table else None
    only = part(table["only"]) if "only" in table else None
    return Budget(float(table["amount"]), uses or None, table["cost"], fee, only)
