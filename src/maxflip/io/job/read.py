"""The job file of docs/formats.md: parsed, checked, and turned into a Problem and a Solver.

All faults of the file itself are reported together, before a cohort or a model is opened and before torch is loaded,
which takes a second. So modules that need torch are imported where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maxflip._util.events import Watch
from maxflip._util.faults import Fault, Place, about, missing, wrong
from maxflip._util.frozen import FrozenMap
from maxflip._util.messages import counted, listed
from maxflip._util.types import Floats, Scores
from maxflip.data.cohort import Cohort
from maxflip.data.one_hot import held_as_texts, read_codes, with_codes
from maxflip.errors import InputError, MaxflipError, ModelError, ProblemError
from maxflip.io.cohort.cells import Amount, Category, Extra, Label, Limit
from maxflip.io.cohort.sequences import Columns, read_sequences, read_static
from maxflip.io.cohort.tables import Reading, Table, read_cohort, read_table
from maxflip.io.job.places import lines_of, told
from maxflip.io.job.rules import (
    budget_faults,
    cohort_faults,
    derived_faults,
    goal_faults,
    limit_faults,
    missing_columns,
    model_faults,
    must_hold_faults,
    per_sample_faults,
    quota_faults,
    report_faults,
    solver_faults,
    unknown_features,
)
from maxflip.io.job.schema import (
    BudgetForm,
    CohortForm,
    GoalForm,
    LimitForm,
    MenuForm,
    ModelForm,
    MustHoldForm,
    QuotaForm,
    ReportForm,
    SolverForm,
    fill,
    fill_each,
    fill_list,
    fill_menu,
    unknown_keys,
)
from maxflip.io.job.toml import LARGEST, parse_toml
from maxflip.io.opening import Opened, Origin, read_file
from maxflip.problem.budgets import Budget
from maxflip.problem.limit import Limit as FeatureLimit
from maxflip.problem.must_hold import Requirement, from_table
from maxflip.problem.quotas import Quota

if TYPE_CHECKING:
    from maxflip.models import Classifier, TorchClassifier, TreeClassifier
    from maxflip.problem.problem import Problem
    from maxflip.solvers import Solver

FORMAT = 1
LARGE = 5000  # with more samples, the report has plans for other budgets only if the job says so
_TABLES = {"cohort": "who is there", "model": "which classifier is meant", "goal": "what is wanted"}
_KEYS = ["format", *_TABLES, "budgets", "limits", "quotas", "actions", "choices", "one_hot", "derived"]
_KEYS += ["must_hold", "solver", "report"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """A checked job. Cohort and model are read when they are needed, once each.

    origins: the files read so far, by their names in summary.json
    """

    file: Opened
    lines: Mapping[Place, int] = field(default_factory=dict)  # the line of each key
    origins: dict[str, Origin] = field(default_factory=dict)
    cohort: CohortForm
    model: ModelForm
    goal: GoalForm
    budgets: Mapping[str, Budget]
    thrift: Mapping[str, float]
    limits: Mapping[str, LimitForm] | Literal["observed"]
    solver: Solver
    seed: int
    allocation: Literal["joint", "proportional"] = "joint"
    groups: int | None = None
    report: ReportForm = field(default_factory=ReportForm)
    must_hold: tuple[Requirement, ...] = ()
    quotas: tuple[Quota, ...] = ()
    menu: MenuForm = field(default_factory=MenuForm)
    derived: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._note("job", self.source, self.file.origin())

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def source(self) -> str:
        """The job's name in messages: the path as given."""
        return self.file.source

    @property
    def files(self) -> dict[str, Path]:
        """The input files, by their names in summary.json."""
        folder = self.path.parent
        static = {} if self.cohort.static is None else {"static": folder / self.cohort.static}
        return {"cohort": folder / self.cohort.file, "model": self.model_file, "job": self.path, **static}

    @property
    def model_file(self) -> Path:
        return self.path.parent / self.model.file

    @property
    def output(self) -> Scores | None:
        return self.model.output

    @property
    def classes(self) -> tuple[str, ...] | None:
        return None if self.model.classes is None else tuple(self.model.classes)

    def scales(self, cohort: int) -> Sequence[float] | None:
        """Factors of the budgets for the report's frontier, for a cohort of this size; None: no frontier."""
        from maxflip.study.outlook import SCALES

        asked = self.report.frontier
        if asked is None:
            asked = cohort <= LARGE
        return (SCALES if asked else None) if isinstance(asked, bool) else asked

    def told(self, faults: Iterable[Any]) -> list[str]:
        """Faults of the problem or of the solver's options in words, with their lines in the job."""
        kind = type(self.solver).__name__
        return [told(_of_options(fault, kind), self.source, self.lines) for fault in faults]

    def load_classifier(self, watch: Watch) -> TorchClassifier | TreeClassifier:
        from maxflip.models.files import load_classifier, load_sequence_classifier, read_model

        model = Opened(self.model_file, str(self.model_file), read_model(self.model_file))
        self._note("model", model.source, model.origin())
        says: dict[str, Any] = {"data": model.data, "output": self.output, "classes": self.classes}
        try:
            if self.cohort.is_sequences:
                people = self.cohort
                return load_sequence_classifier(
                    self.model_file, features=people.features, static_features=people.static_features, **says
                )
            return load_classifier(self.model_file, watch=watch, named=self.goal.names_classes, **says)
        except ProblemError as error:
            raise ProblemError([f"{self.source}: {sentence}" for sentence in error.problems]) from error

    def with_classes_of(self, classifier: Classifier) -> Job:
        """The job with the names of classes from the model."""
        return replace(self, model=self.model.model_copy(update={"classes": classifier.classes}))

    def read_cohort(self) -> Reading:
        """The cohort and the columns of targets, worths, limits and groups that the job names."""
        extra: list[Extra] = []
        if self.goal.target_column is not None:
            extra.append(Label(self.goal.target_column, self.classes))
        if self.goal.worth_column is not None:
            extra.append(Amount(self.goal.worth_column))
        tables = self.limits.values() if not isinstance(self.limits, str) else ()
        columns = [column for limit in tables for column in (limit.min_column, limit.max_column)]
        extra += [Limit(column) for column in dict.fromkeys(columns) if column is not None]
        extra += self._of_columns
        if self.report.group is not None:
            extra.append(Category(self.report.group))
        extra = list(dict.fromkeys(extra))
        if self.cohort.is_sequences:
            return self._read_sequences(extra)
        return read_cohort(
            self._open("cohort", self.cohort.file),
            id=self.cohort.id,
            features=self.cohort.features,
            units=self.cohort.units,
            extra_columns=extra,
            one_hot=self.menu.one_hot,
        )

    def _open(self, name: str, source: str) -> Table:
        table = read_table(self.files[name], source=source)
        self._note(name, source, table.origin)
        return table

    def _note(self, name: str, source: str, origin: Origin) -> None:
        """Note a file that was read; InputError if it was read before with other bytes."""
        if self.origins.setdefault(name, origin) != origin:
            raise InputError(f"{source}: changed while it was read. Try again when nobody writes to it.")

    def group(self, reading: Reading) -> dict[str, Any] | None:
        """The column by which the report groups samples, as an argument of `look`."""
        name = self.report.group
        return None if name is None else {name: reading.columns[Category(name)]}

    def load_judges(self, problem: Problem) -> dict[str, Classifier] | None:
        """The report's other models, which also judge the flips, by file name."""
        from maxflip.models.files import load_judge

        if self.report.judges is None:
            return None
        asked, people, folder = problem.classifier, problem.cohort, self.path.parent
        return {file: load_judge(folder / file, asked, people) for file in self.report.judges}

    def read_reference(self) -> Cohort | None:
        """The real samples with which the report compares changed ones."""
        file, asked = self.report.reference, self.cohort
        if file is None:
            return None
        return read_cohort(
            self.path.parent / file, id=asked.id, features=asked.features, source=file, one_hot=self.menu.one_hot
        ).cohort

    @property
    def _of_columns(self) -> list[Extra]:
        """The columns that budgets, actions and quotas name."""
        budgets = self.budgets.values()
        parts = [Category(column) for b in budgets for column in b.columns if column not in b.numbers]
        parts += [Category(column) for column in self.menu.columns]
        parts += [Category(quota.group[0]) for quota in self.quotas if isinstance(quota.group, tuple)]
        return [*parts, *(Amount(column) for b in budgets for column in b.numbers)]

    def _with_columns(self, reading: Reading) -> Cohort:
        """The cohort, with the columns that budgets, actions and quotas name."""
        others = {extra.column: reading.columns[extra] for extra in self._of_columns}
        return replace(reading.cohort, others=FrozenMap(others)) if others else reading.cohort

    def _read_sequences(self, extra: list[Extra]) -> Reading:
        asked = self.cohort
        static = None
        if asked.static is not None:
            static = read_static(
                self._open("static", asked.static),
                id=asked.id,
                features=asked.static_features,
                extra_columns=extra,
            )
        return read_sequences(
            self._open("cohort", asked.file),
            Columns(asked.id, asked.time or "", asked.features, asked.steps_column),
            static=static,
            static_features=asked.static_features,
            units=asked.units,
        )

    def problem(self, reading: Reading, classifier: Classifier) -> Problem:
        from maxflip.problem.problem import Problem

        people, goal = self._with_columns(reading), self.goal
        per_sample = None if goal.target_column is None else reading.columns[Label(goal.target_column, self.classes)]
        limits: Any = self.limits
        if not isinstance(self.limits, str):
            limits = {name: _limit(limit, reading) for name, limit in self.limits.items()}
        if self.groups is not None and self.groups > len(people):
            are = "is" if len(people) == 1 else "are"
            says = f"there {are} only {counted(len(people), 'sequence')} to divide."
            fault = wrong(("solver", "groups"), self.groups, says)
            raise ProblemError([told(fault, self.source, self.lines)])
        try:
            return Problem(
                classifier=classifier,
                cohort=people,
                target=goal.target if per_sample is None else per_sample,
                budgets=self.budgets,
                margin=goal.margin,
                threshold=goal.threshold,
                limits=limits,
                steps=self.cohort.steps if reading.may_change is None else reading.may_change,
                worth=None if goal.worth_column is None else reading.columns[Amount(goal.worth_column)],
                thrift=self.thrift,
                include=goal.include,
                exclude=goal.exclude,
                quotas=self.quotas,
                most_changes=goal.most_changes,
                tidy=goal.tidy,
                must_hold=self.must_hold,
                actions=self.menu.as_actions(),
                most_actions=goal.most_actions,
                choices=self.menu.choices,
                one_hot=self.menu.one_hot,
                derived=self.derived,
            )
        except ProblemError as error:
            raise ProblemError([told(fault, self.source, self.lines) for fault in error.faults]) from error
        except ModelError as error:
            raise ModelError([f"{self.model_file}: {sentence}" for sentence in error.problems]) from error


def _limit(form: LimitForm, reading: Reading) -> FeatureLimit:
    low = form.min if form.min_column is None else _closed(reading, form.min_column, -math.inf)
    high = form.max if form.max_column is None else _closed(reading, form.max_column, math.inf)
    return FeatureLimit(low, high, form.direction, form.step, form.smallest, form.observed)


def _closed(reading: Reading, column: str, open_end: float) -> Floats:
    values: Floats = reading.columns[Limit(column)]
    return np.where(np.isnan(values), open_end, values)


# Reading: first the TOML, then each table by its form, then the rules between tables.


def read_job(path: str | Path) -> Job:
    """The job at `path`; all its faults in one InputError."""
    source = str(path)
    file = read_file(path, source, LARGEST + 1)
    lines: Mapping[Place, int] = {}
    try:
        tables = parse_toml(file.data)
        lines = lines_of(file.data.decode(), tables)
        return _checked(tables, file, lines)
    except InputError as error:
        raise InputError([told(fault, source, lines) for fault in error.faults]) from error.__cause__


def _checked(tables: dict[str, Any], file: Opened, lines: Mapping[Place, int]) -> Job:
    folder = file.path.parent
    if "format" in tables and (type(tables["format"]) is not int or tables["format"] != FORMAT):
        raise InputError([wrong("format", tables["format"], f"this version of maxflip reads format = {FORMAT}.")])
    faults: list[str | Fault] = []
    if "format" not in tables:
        faults.append(missing("format", f"is missing. Begin the file with format = {FORMAT}."))
    faults += unknown_keys(tables, _KEYS, ())
    faults += [f"[{name}] is missing; it says {what}." for name, what in _TABLES.items() if name not in tables]
    cohort = fill(CohortForm, tables.get("cohort"), ("cohort",), faults, folder)
    model = fill(ModelForm, tables.get("model"), ("model",), faults, folder)
    goal = fill(GoalForm, tables.get("goal"), ("goal",), faults)
    budgets = fill_each(BudgetForm, tables.get("budgets"), "budgets", faults)
    everywhere = tables.get("limits") == "observed"
    limits = {} if everywhere else fill_each(LimitForm, tables.get("limits"), "limits", faults)
    solving = fill(SolverForm, tables.get("solver", {}), ("solver",), faults)
    report = fill(ReportForm, tables.get("report", {}), ("report",), faults, folder)
    must_hold = fill(MustHoldForm, tables.get("must_hold", {}), ("must_hold",), faults)
    quotas = fill_list(QuotaForm, tables.get("quotas"), "quotas", faults)
    menu = fill_menu(tables, faults)

    derived = tables.get("derived", {})
    following = derived if isinstance(derived, dict) else {}

    features = cohort.features if cohort else None
    if cohort and unknown_features(cohort, budgets, limits, following) - menu.names:
        columns = _columns(folder / cohort.file, menu)
        misspelt = missing_columns(cohort, columns) if columns else []
        faults += misspelt
        if misspelt:  # the other tables may name the right columns
            features = [*cohort.features, *columns]
    faults += cohort_faults(cohort, features or ()) if cohort else ()
    faults += model_faults(model) if model else ()
    faults += goal_faults(goal, model) if goal else ()
    given = tables.get("budgets")
    levers = None if features is None else [*features, *menu.drawing]
    wrong_budgets = list(budget_faults(budgets, levers, menu.drawn_on)) if budgets or not given else []
    faults += wrong_budgets
    some_budget_is_wrong = bool(wrong_budgets) or (isinstance(given, dict) and len(budgets) < len(given))
    faults += derived_faults(derived, features, budgets)
    right_budgets = None if some_budget_is_wrong else budgets
    faults += limit_faults(limits, features, right_budgets, following, menu.changed_by_actions)
    faults += must_hold_faults(must_hold, features, right_budgets, following, limits) if must_hold else ()
    faults += per_sample_faults(cohort, goal, limits, budgets, report) if cohort else ()
    faults += report_faults(report, cohort) if report and cohort else ()
    faults += quota_faults(quotas, cohort, solving)
    faults += solver_faults(solving, cohort) if solving else ()
    solver = None
    if solving and (solving.options or solving.preset or not faults):  # else the solver is not needed and has no faults
        solver = _solver(solving, faults)
    if faults or not (cohort and model and goal and budgets and solving and solver and report and must_hold):
        raise InputError(faults)
    return Job(
        file=file,
        lines=lines,
        cohort=cohort,
        model=model,
        goal=goal,
        budgets={name: b.asked for name, b in budgets.items()},
        thrift={name: b.thrift for name, b in budgets.items() if b.thrift is not None},
        limits="observed" if everywhere else limits,
        solver=solver,
        seed=solving.seed,
        allocation=solving.allocation,
        groups=solving.groups,
        report=report,
        must_hold=from_table(must_hold.uptake, must_hold.rounded),
        quotas=tuple(Quota.from_table(quota.model_dump(exclude_none=True)) for quota in quotas),
        menu=menu,
        derived=following,
    )


def _columns(cohort: Path, menu: MenuForm) -> list[str]:
    """The names of the file's columns, those of texts replaced by their codes; [] if it cannot be read, which is
    reported when the cohort is read."""
    try:
        names = read_table(cohort).names
    except MaxflipError:
        return []
    return with_codes(names, held_as_texts(read_codes(menu.one_hot)[0], names))


def _solver(form: SolverForm, faults: list[str | Fault]) -> Solver | None:
    from maxflip.solvers import SOLVERS

    kind: Any = SOLVERS[form.name]
    unknown = unknown_keys(form.options, [option.name for option in fields(kind)], ("solver", "options"))
    faults += unknown
    make = kind if form.preset is None else getattr(kind, form.preset, None)
    if make is None:
        having = listed(name for name, other in SOLVERS.items() if hasattr(other, form.preset or ""))
        says = f"{form.name!r} has no presets, only {having}. Leave it out."
        faults.append(wrong(("solver", "preset"), form.preset, says))
    if unknown or make is None:
        return None
    try:
        solver: Solver = make(**form.options)
    except InputError as error:
        faults += [_of_options(fault, kind.__name__) for fault in error.faults]
        return None
    except TypeError as error:  # an option of a type that the solver cannot compare
        faults.append(about(("solver", "options"), f"{error}."))
        return None
    return solver


def _of_options(fault: str | Fault, kind: str) -> str | Fault:
    """The fault with its place in the job, if it is of an option of a solver of this kind."""
    if isinstance(fault, str) or any(place[0] != kind for place in fault.places):
        return fault
    return replace(fault, places=tuple(("solver", "options", *place[1:]) for place in fault.places))
