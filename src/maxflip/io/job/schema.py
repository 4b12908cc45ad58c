"""The tables of a job, one form each. pydantic checks the types; the messages are our own."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from maxflip._util.faults import Fault, Place, about, missing, wrong
from maxflip._util.messages import did_you_mean, listed
from maxflip._util.types import Scores
from maxflip.data.slots import LAST
from maxflip.io.opening import is_url, missing_file
from maxflip.problem.actions import Action, effect_of
from maxflip.problem.budgets import Budget, Cost, Ways, ways_of
from maxflip.problem.choices import lever_name
from maxflip.study.insight import People

# The names of maxflip.solvers.SOLVERS, known without loading torch.
SOLVER_NAMES = ("prices", "nearest", "ms", "bcms", "ccms", "kl")
_RULES = {
    "model_type": "must be a table.",
    "dict_type": "must be a table.",
    "list_type": "must be a list.",
    "bool_type": "must be true or false.",
}


def _wrong(what: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "{what}", {"what": what})


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong("must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise _wrong("must be a number; nan is not one.")
    if number != value:
        raise _wrong("is not exactly representable in float64. Write a number that is.")
    return number


def _amount(value: Any) -> float:
    number = _number(value)
    if number < 0:
        raise _wrong("must be >= 0. Use 0 to freeze its features, inf for no limit.")
    return number


def _weight(value: Any) -> float:
    number = _number(value)
    if not 0 <= number < math.inf:
        raise _wrong("must be a finite number >= 0.")
    return number


def _own_number(value: Any) -> float | str:
    """A number for all samples, or the column with one of each sample's own"""
    return _text(value) if isinstance(value, str) else _weight(value)


def _use(value: Any) -> float | str | Ways:
    """A weight, or { up = ..., down = ... }"""
    if not isinstance(value, dict):
        return _own_number(value)
    if value.keys() != {"up", "down"}:
        raise _wrong("must be a number, a column, or { up = ..., down = ... } of both.")
    return Ways(_own_number(value["up"]), _own_number(value["down"]))


def _only(value: Any) -> tuple[str, str | float] | list[str]:
    """{ column = ..., value = ... }, or { ids = [...] }"""
    if isinstance(value, dict) and value.keys() == {"column", "value"}:
        is_text = isinstance(value["value"], str)
        return _text(value["column"]), value["value"] if is_text else _number(value["value"])
    if isinstance(value, dict) and value.keys() == {"ids"} and isinstance(value["ids"], list):
        return [_text(one) for one in value["ids"]]
    raise _wrong('must be { column = "...", value = ... }, or { ids = ["...", ...] }.')


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("must be a text.")
    if not value:
        raise _wrong("must not be empty.")
    return value


def _file(value: Any, info: ValidationInfo) -> str:
    """Check a path without opening the file; opening it reports the rest."""
    written = _text(value)
    if is_url(written):
        raise _wrong("is a URL, and nothing is fetched. Download the file and give its path.")
    if written.startswith("~") or "$" in written:
        raise _wrong("`~` and `$` are not expanded in paths; write them out.")
    folder: Path = info.context["folder"] if info.context else Path()
    try:
        os.stat(folder / written)
    except (FileNotFoundError, NotADirectoryError):
        raise _wrong(missing_file(folder / written, written)) from None
    except ValueError as error:  # a NUL
        raise _wrong(f"is not a path: {error}.") from None
    except OSError:
        pass
    return written


def _text_or_number(value: Any) -> str | float:
    return _text(value) if isinstance(value, str) else _number(value)


def _people_or_share(value: Any) -> int | float:
    return value if type(value) is int else _number(value)


def _steps(value: Any) -> str:
    if not isinstance(value, str) or (value != "all" and LAST.fullmatch(value) is None):
        raise _wrong("must be 'all', or 'last 3' (any number).")
    return value


def _solver_name(value: Any) -> str:
    name = _text(value)
    if name not in SOLVER_NAMES:
        raise _wrong(f"must be one of {listed(SOLVER_NAMES)}.{did_you_mean(name, SOLVER_NAMES)}")
    return name


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise _wrong("must be a whole number.")
    return value


def _scales(value: Any) -> bool | list[float]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not value:
        raise _wrong("must be true, false, or a list of factors of the budgets.")
    numbers = [_number(v) for v in value]
    if any(not 0 < number < math.inf for number in numbers):
        raise _wrong("factors of the budgets must be finite numbers > 0.")
    return numbers


def _target(value: Any) -> str | int | frozenset[str | int]:
    given = value if isinstance(value, list) else [value]
    if not all(type(v) in (str, int) for v in given):
        raise _wrong("must be a class name, an output column (0, 1, ...), or a list of them.")
    return frozenset(value) if isinstance(value, list) else given[0]


def _effect(value: Any) -> float | str:
    if effect_of(value) is None:
        raise _wrong("must be a finite number that is added, or a text: 'x 0.9' multiplies, '= 3' sets.")
    return value if isinstance(value, str) else float(value)


def _drawn(value: Any) -> float | str:
    return _text(value) if isinstance(value, str) else _weight(value)


def _distances(value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not value:
        raise _wrong("must be a table of values and their distances.")
    return {name: _weight(distance) for name, distance in value.items()}


Number = Annotated[float, PlainValidator(_number)]
Text = Annotated[str, PlainValidator(_text)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class CohortForm(_Form):
    kind: Literal["table", "sequences"] = "table"
    file: Annotated[str, PlainValidator(_file)] = Field(description="the path of a .parquet or .csv file")
    id: Text = Field(description="the name of the id column")
    features: list[Text] = Field(description="the columns that the model takes, in its order")
    units: dict[str, Text] = Field(default={})
    time: Text | None = None  # this and the following: for sequences only
    static: Annotated[str | None, PlainValidator(_file)] = None
    static_features: list[Text] = Field(default=[])
    steps: Annotated[str | None, PlainValidator(_steps)] = None
    steps_column: Text | None = None

    @property
    def is_sequences(self) -> bool:
        return self.kind == "sequences"


class ModelForm(_Form):
    file: Annotated[str, PlainValidator(_file)] = Field(description="the path of a model file")
    output: Scores | None = None  # needed if the model file does not state it, as for `classes`
    classes: list[Text] | None = None


class GoalForm(_Form):
    target: Annotated[str | int | frozenset[str | int] | None, PlainValidator(_target)] = None
    target_column: Text | None = None
    margin: Number | None = None
    threshold: Number | None = None
    most_actions: Annotated[int | None, PlainValidator(_whole)] = None
    worth_column: Text | None = None
    include: list[Text] = Field(default=[])
    exclude: list[Text] = Field(default=[])
    most_changes: Annotated[int | None, PlainValidator(_whole)] = None
    tidy: bool = True

    @property
    def names_classes(self) -> bool:
        """Whether a wanted class is given by its name."""
        wanted = self.target if isinstance(self.target, frozenset) else {self.target}
        return any(isinstance(one, str) for one in wanted)


class BudgetForm(_Form):
    amount: Annotated[float, PlainValidator(_amount)] = Field(description="a number >= 0, or inf")
    cost: Cost = "squared"
    uses: dict[str, Annotated[float | str | Ways, PlainValidator(_use)]] | None = None
    fee: Annotated[float | str | None, PlainValidator(_own_number)] = None
    only: Annotated[tuple[str, str | float] | list[str] | None, PlainValidator(_only)] = None
    thrift: Annotated[float | None, PlainValidator(_weight)] = None

    @property
    def asked(self) -> Budget:
        return Budget(self.amount, self.uses, self.cost, self.fee, self.only)

    def weighs(self, feature: str) -> bool:
        given = (self.uses or {}).get(feature, 0.0)
        return any(isinstance(way, str) or way > 0 for way in ways_of(given))


class LimitForm(_Form):
    min: Number | None = None
    max: Number | None = None
    min_column: Text | None = None
    max_column: Text | None = None
    observed: bool = False
    direction: Literal["up", "down"] | None = None
    step: Number | None = None
    smallest: Number | None = None


class ActionForm(_Form):
    effects: dict[str, Annotated[float | str, PlainValidator(_effect)]] = Field(
        description="what becomes of features, such as { bmi = -1.0 }"
    )
    draws: dict[str, Annotated[float | str, PlainValidator(_drawn)]] = Field(default={})
    who: Annotated[tuple[str, str | float] | list[str] | None, PlainValidator(_only)] = None
    excludes: list[Text] = Field(default=[])


class MustHoldForm(_Form):
    uptake: Annotated[float | None, PlainValidator(_number)] = None
    rounded: dict[str, Number] | None = None


class QuotaForm(_Form):
    column: Text | None = None
    value: Annotated[str | float | None, PlainValidator(_text_or_number)] = None
    ids: list[Text] | None = None
    at_least: Annotated[int | float | None, PlainValidator(_people_or_share)] = None
    at_most: Annotated[int | float | None, PlainValidator(_people_or_share)] = None


class SolverForm(_Form):
    name: Annotated[str, PlainValidator(_solver_name)] = "prices"
    preset: Literal["paper", "scale_free"] | None = None
    seed: Annotated[int, PlainValidator(_whole)] = 0
    allocation: Literal["joint", "proportional"] = "joint"
    groups: Annotated[int | None, PlainValidator(_whole)] = None
    options: dict[str, Any] = Field(default={})


class ReportForm(_Form):
    frontier: Annotated[bool | list[float] | None, PlainValidator(_scales)] = (
        None  # None: for cohorts that are not large
    )
    group: Text | None = None
    people: People = "full"
    reference: Annotated[str | None, PlainValidator(_file)] = None
    judges: list[Annotated[str, PlainValidator(_file)]] | None = None


_Formed = TypeVar("_Formed", bound=_Form)


def fill(
    form: type[_Formed], value: Any, place: Place, faults: list[str | Fault], folder: Path | None = None
) -> _Formed | None:
    """The table as its form; None if it is invalid, with the faults appended. Unknown keys are faults too."""
    if value is None:  # reported by the caller
        return None
    if not isinstance(value, dict):
        faults.append(wrong(place, value, "must be a table."))
        return None
    faults += unknown_keys(value, list(form.model_fields), place)
    try:
        known = {key: v for key, v in value.items() if key in form.model_fields}
        return form.model_validate(known, context={"folder": folder})
    except ValidationError as error:
        faults += [_fault(detail, form, place) for detail in error.errors()]
        return None


def fill_each(form: type[_Formed], value: Any, name: str, faults: list[str | Fault]) -> dict[str, _Formed]:
    """One form for each table [name.x]; invalid ones are left out, with their faults appended."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        word = ", or the text 'observed'" if form is LimitForm else ""
        faults.append(wrong(name, value, f"must be tables [{name}.x]{word}."))
        return {}
    filled = {key: fill(form, inner, (name, key), faults) for key, inner in value.items()}
    return {key: inner for key, inner in filled.items() if inner is not None}


def fill_list(form: type[_Formed], value: Any, name: str, faults: list[str | Fault]) -> list[_Formed]:
    """One form for each table [[name]]; invalid ones are left out, with their faults appended."""
    if value is None:
        return []
    if not isinstance(value, list):
        faults.append(wrong(name, value, f"must be tables [[{name}]]."))
        return []
    filled = []
    for number, inner in enumerate(value, start=1):
        own: list[str | Fault] = []
        filled.append(fill(form, inner, (name,), own))
        faults += [f if isinstance(f, str) else replace(f, entries=(number, *f.entries)) for f in own]
    return [one for one in filled if one is not None]


def _fault(detail: ErrorDetails, form: type[_Form], place: Place) -> Fault:
    """A fault found by pydantic, in our words."""
    location = detail["loc"]
    key = (*place, *(part for part in location if isinstance(part, str)))
    if detail["type"] == "missing":
        wanted = form.model_fields[str(location[0])].description
        return missing(key, f"is missing; wanted {wanted}." if wanted else "is missing.")
    entries = [part + 1 for part in location if isinstance(part, int)]
    is_literal = detail["type"] == "literal_error"
    rule = f"must be {detail['ctx']['expected']}." if is_literal else _RULES.get(detail["type"], detail["msg"])
    return replace(wrong(key, detail["input"], rule), entries=tuple(entries))


def unknown_keys(table: dict[str, Any], known: list[str], place: Place) -> list[Fault]:
    return [
        about((*place, key), f"there is no such key.{did_you_mean(key, known) or f' There are {listed(known)}.'}")
        for key in table
        if key not in known
    ]


class MenuForm(_Form):
    """The tables actions, choices and one_hot."""

    actions: dict[str, ActionForm] = Field(default={})
    choices: dict[str, Annotated[dict[str, float], PlainValidator(_distances)]] = Field(default={})
    one_hot: dict[str, list[Text]] = Field(default={})

    @property
    def drawing(self) -> frozenset[str]:
        """What budgets may use besides features: actions, categories and their switches"""
        switches = [lever_name(name, key) for name, distances in self.choices.items() for key in distances]
        return frozenset({*self.actions, *self.choices, *switches})

    @property
    def changed_by_actions(self) -> frozenset[str]:
        return frozenset(feature for one in self.actions.values() for feature in one.effects)

    @property
    def drawn_on(self) -> frozenset[str]:
        """Budgets on which actions draw, and which need no features"""
        return frozenset(name for one in self.actions.values() for name in one.draws)

    @property
    def columns(self) -> list[str]:
        """Columns that tell who may get an action"""
        return [one.who[0] for one in self.actions.values() if isinstance(one.who, tuple)]

    @property
    def names(self) -> frozenset[str]:
        """Names in budgets that need be no feature's"""
        return self.drawing | self.drawn_on

    def as_actions(self) -> list[Action] | None:
        """The argument `actions` of a Problem."""
        return [
            Action(name, one.effects, one.draws, one.who, one.excludes) for name, one in self.actions.items()
        ] or None


def fill_menu(tables: dict[str, Any], faults: list[str | Fault]) -> MenuForm:
    """Those of the job's tables; faults are appended."""
    given = {name: tables[name] for name in ("choices", "one_hot") if name in tables}
    actions = fill_each(ActionForm, tables.get("actions"), "actions", faults)
    try:
        return MenuForm(actions=actions, **given)
    except ValidationError as error:
        faults += [_fault(detail, MenuForm, ()) for detail in error.errors()]
        return MenuForm(actions=actions)
