"""summary.json: the fields of a plan that are not tables, and how each is written and read.

FIELDS has an entry for each field of a Plan that summary.json stores under the same name; new fields are added there.
Budgets are the exception: four fields of a Plan are one table of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxflip._util.frozen import FrozenMap
from maxflip._util.types import Floats, Rows
from maxflip.io.own_columns import budget_table, read_budget
from maxflip.plan.bracket import Ceiling
from maxflip.plan.holds import Holds
from maxflip.plan.kept import KeptQuota
from maxflip.plan.plan import Fate, Plan, Status
from maxflip.plan.used import SolverUsed
from maxflip.problem.must_hold import as_table, from_table
from maxflip.problem.question import Question
from maxflip.problem.quotas import Quota

FORMAT = 2


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """write: to JSON types   read: back   optional: left out of the file if empty"""

    write: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    optional: bool = False


def _plain(value: Any) -> Any:
    """An option of a solver in JSON types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def _number(value: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if value == np.inf else value


def _solver_table(solver: SolverUsed) -> dict[str, Any]:
    return {
        "name": solver.name,
        "options": _plain(solver.options),
        "groups": solver.groups,
        "labelled": solver.labelled,
    }


def _solver(table: Mapping[str, Any]) -> SolverUsed:
    return SolverUsed(table["name"], FrozenMap(table["options"]), table["groups"], table["labelled"])


def _holds_table(holds: Holds) -> dict[str, Any]:
    """With shares as texts, such as "0.9": keys of JSON are texts."""
    counts = {repr(share): count for share, count in holds.uptake.items()}
    return {"uptake": counts, "rounded": holds.rounded, "digits": dict(holds.digits)}


def _holds(table: Mapping[str, Any]) -> Holds:
    uptake = FrozenMap({float(share): count for share, count in table["uptake"].items()})
    return Holds(uptake, table["rounded"], FrozenMap(table["digits"]))


def _ceilings_table(ceilings: tuple[Ceiling, ...]) -> list[dict[str, Any]]:
    return [
        {"prices": dict(c.prices), "rest": c.rest, "proved": c.proved, "closed": sorted(c.closed)} for c in ceilings
    ]


def _ceilings(table: list[Mapping[str, Any]]) -> tuple[Ceiling, ...]:
    return tuple(Ceiling(c["prices"], c["rest"], c["proved"], frozenset(c["closed"])) for c in table)


def _quotas_table(quotas: tuple[KeptQuota, ...]) -> list[dict[str, Any]]:
    return [
        {
            **kept.quota.as_table(),
            "members": kept.members.tolist(),
            "count": kept.count,
            "price": kept.price,
            "cost": kept.cost,
        }
        for kept in quotas
    ]


def _quotas(table: list[Mapping[str, Any]]) -> tuple[KeptQuota, ...]:
    return tuple(
        KeptQuota(Quota.from_table(one), _rows(one["members"]), one["count"], one["price"], one["cost"])
        for one in table
    )


def _rows(numbers: list[int]) -> Rows:
    return np.array(numbers, dtype=np.int64)


FIELDS: Mapping[str, Field] = {
    "below_margin": Field(),
    "bound": Field(),
    "estimate": Field(),
    "solver": Field(_solver_table, _solver),
    "seed": Field(),
    "status": Field(lambda status: status.value, Status),
    "seconds": Field(),
    "guard": Field(),
    "notices": Field(list, tuple),
    "features": Field(list, tuple),
    "units": Field(dict),
    "versions": Field(dict),
    "question": Field(Question.as_table, Question.from_table, optional=True),
    "made": Field(),
    "holds": Field(_holds_table, _holds, optional=True),
    "must_hold": Field(as_table, lambda table: from_table(**table), optional=True),
    "quotas": Field(_quotas_table, _quotas, optional=True),
    "include": Field(lambda rows: rows.tolist(), _rows, optional=True),
    "exclude": Field(lambda rows: rows.tolist(), _rows, optional=True),
    "ceilings": Field(_ceilings_table, _ceilings, optional=True),
    "needs": Field(dict, optional=True),
}
COUNTED = (Fate.ALREADY, Fate.LEFT_OUT, Fate.NOT_FOUND, Fate.UNREACHABLE, Fate.UNUSABLE)


def summary_table(plan: Plan, inputs: dict[str, dict[str, str]] | None) -> dict[str, Any]:
    """inputs: the plan's input files, {name: {"path": ..., "sha256": ...}}"""
    counts = plan.fate_counts()
    table: dict[str, Any] = {
        "format": FORMAT,
        "count": plan.count,
        "worth": plan.worth,
        "cohort": len(plan.fates),
        **{fate.value: counts[fate] for fate in COUNTED},
        "budgets": _budgets_table(plan),
        "inputs": inputs,
    }
    for name, field in FIELDS.items():
        value = getattr(plan, name)
        if not (field.optional and _is_empty(value)):
            table[name] = field.write(value)
    return table | plan.places.stated


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (tuple, np.ndarray, Mapping)) and len(value) == 0)


def read_summary(table: Mapping[str, Any], own: Mapping[str, Floats]) -> dict[str, Any]:
    """The arguments of Plan in the file.   own: the columns of fates.parquet that belong to budgets"""
    stated = {name: field.read(table[name]) for name, field in FIELDS.items() if name in table or not field.optional}
    if stated.get("question") is not None:
        asked = tuple(kept.quota for kept in stated.get("quotas", ()))
        stated["question"] = replace(stated["question"], quotas=asked)
    inputs = {name: entry["sha256"] for name, entry in (table["inputs"] or {}).items()}
    return stated | _budget_fields(table["budgets"], own) | {"inputs": inputs}


def _budgets_table(plan: Plan) -> dict[str, Any]:
    return {
        name: {
            "amount": _number(budget.amount),
            "cost": budget.cost_name,
            "spent": plan.spend[name],
            "price": None if plan.prices is None else plan.prices[name],
            **budget_table(budget),
            **({"price_holds": list(plan.price_ranges[name])} if name in plan.price_ranges else {}),
        }
        for name, budget in plan.budgets.items()
    }


def _budget_fields(table: Mapping[str, Any], own: Mapping[str, Floats]) -> dict[str, Any]:
    prices = {name: b["price"] for name, b in table.items()}
    return {
        "budgets": {name: read_budget(r, b, own) for r, (name, b) in enumerate(table.items())},
        "spend": {name: b["spent"] for name, b in table.items()},
        "prices": None if any(price is None for price in prices.values()) else prices,
        "price_ranges": {name: tuple(b["price_holds"]) for name, b in table.items() if "price_holds" in b},
    }
