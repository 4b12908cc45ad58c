"""Cohort: the people (or other samples) as a table, or as sequences of different lengths, with ids, names and units."""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.faults import BadCell, Kind, grouped
from maxflip._util.frozen import Frozen, FrozenMap, read_only
from maxflip._util.messages import counted, did_you_mean, listed, shown, visible
from maxflip._util.types import Floats
from maxflip.data.layout import Layout
from maxflip.data.layout_of_levers import LeverLayout
from maxflip.data.layout_of_sequences import SequenceLayout
from maxflip.data.layout_of_tables import TableLayout
from maxflip.data.levers import Levers
from maxflip.data.one_hot import Codes, code_faults, coded, held_as_texts, held_faults, read_codes, with_codes
from maxflip.data.sequences import Ragged, column_names, read_sequences
from maxflip.data.tables import Column, columns_of, is_listing
from maxflip.errors import InputError

Text = NDArray[np.object_]  # of str

FEW_TEXTS = 10  # cells: a longer column without any number is reported once, not cell by cell


@dataclass(frozen=True, eq=False)
class Cohort(Frozen):
    """A table, or sequences: float64 values, read-only; an id per sample; a name (and perhaps a unit) per column.

    The values of a table are (n, F). Sequences have a row per step, values (N, F) with NaN where nothing was measured;
    `ragged` has the rows of each. Only `layout` knows the other differences between the two.

    Examples:
        >>> cohort = Cohort.table([[61.0, 27.5], [48.0, 31.0]], features=["age", "bmi"], ids=["P-1", "P-2"])
        >>> len(cohort), cohort.features, cohort.ids.tolist()
        (2, ('age', 'bmi'), ['P-1', 'P-2'])
    """

    layout: Layout
    features: tuple[str, ...]
    units: Mapping[str, str]
    given_ids: Text | None  # None: row numbers are the ids; they become texts only if needed
    whole_features: tuple[str, ...]  # columns of an integer or boolean type
    ignored: tuple[str, ...]  # columns of the source that are not features
    source: str  # its name in messages: a file name, or "cohort"
    others: Mapping[str, Any] = field(default_factory=lambda: FrozenMap({}), repr=False)  # cells of columns beside them
    one_hot: Codes = field(default_factory=lambda: FrozenMap({}))  # as it was made with

    @classmethod
    def table(
        cls,
        data: Any,
        *,
        features: Sequence[str] | None = None,
        id: str | None = None,  # noqa: A002  the column's name in every file
        ids: Sequence[object] | None = None,
        units: Mapping[str, str] | None = None,
        source: str = "cohort",
        one_hot: Mapping[str, Sequence[str]] | None = None,
    ) -> Cohort:
        """One row of finite numbers per sample. Every fault of the data is listed in one InputError.

        Args:
            data: (n, F): an ndarray, a tensor, a nested list, or a pandas, polars or pyarrow frame.
            features: selects and orders the columns of a frame, or names those of an array (default: x0, x1, ...).
            id: the frame's id column.
            ids: the ids, (n,). Without `id` and `ids`: the index of a pandas frame unless it is 0, 1, ..., else row
            numbers.
            units: {feature: unit}, for reports.
            source: what messages call it.
            one_hot: {category: [features]}, of which one is 1 and the others are 0; made from a frame's column of texts
            that is called like the category, such as 1 in plan_pro for "pro" in plan.

        Examples:
            >>> import pandas as pd
            >>> frame = pd.DataFrame({"plan": ["basic", "pro"], "age": [61.0, 48.0]})
            >>> cohort = Cohort.table(frame, one_hot={"plan": ["plan_basic", "plan_pro"]})
            >>> cohort.features, cohort.values.tolist()
            (('plan_basic', 'plan_pro', 'age'), [[1.0, 0.0, 61.0], [0.0, 1.0, 48.0]])
        """
        codes, code_problems = read_codes(one_hot)
        if code_problems:
            raise InputError(code_problems)
        cohort = table_of(data, codes, features=features, id=id, ids=ids, units=units, source=source)
        code_problems = code_faults(codes, cohort.features, cohort.values, cohort.where)
        if code_problems:
            raise InputError(code_problems)
        return replace(cohort, one_hot=FrozenMap(codes))

    @classmethod
    def sequences(
        cls,
        values: Sequence[Any],
        *,
        observed: Sequence[Any] | None = None,
        times: Sequence[Any] | None = None,
        static: Any = None,
        ids: Sequence[object] | None = None,
        features: Sequence[str] | None = None,
        static_features: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        source: str = "cohort",
    ) -> Cohort:
        """One array (T_j, F) per sample, NaN where nothing was measured; such values are never changed.

        Frames also give the names of features, and must all have the same columns in the same order. A pandas frame of
        static features is matched by its index if that has the ids, else by position.

        Args:
            values: n arrays (T_j, F), of T_j >= 1 steps each.
            observed: masks of the same shapes, which must agree with the NaNs; None: all values that are not NaN.
            times: one array (T_j,) per sample that never goes backwards; None: 0, 1, 2, ...
            static: (n, S): further inputs of the model, one row per sample, that never change.
            ids: (n,); None: row numbers.
            features: names, (F,); None: the columns of frames, or x0, x1, ...
            static_features: names, (S,).
            units: {feature: unit}, for reports.
            source: what messages call it.

        Examples:
            >>> cohort = Cohort.sequences([[[61.0], [58.0]], [[70.0]]], features=["bp"], ids=["P-1", "P-2"])
            >>> len(cohort), cohort.ragged.lengths.tolist()
            (2, [2, 1])
        """
        faults = _argument_faults(features, None, ids, units, source)
        if static_features is not None and (
            not is_listing(static_features) or any(not isinstance(name, str) for name in static_features)
        ):
            faults.append(f"static_features: got {shown(static_features)}; wanted a list of names (texts).")
        if faults:
            raise InputError(faults)
        n = len(values) if hasattr(values, "__len__") else 0
        texts, faults = read_ids(ids, n, "id", source)

        def who(j: int) -> str:
            known = texts is not None and texts[j] is not None
            return f"sequence {j + 1}" + (f" (id {visible(texts[j])})" if known and texts is not None else "")

        first = next(iter(values), None) if n and not isinstance(values, Mapping) else None
        names = column_names(first) if features is None else [str(name) for name in features]
        known, more = _by_id(static, texts, n)
        faults += more
        still = column_names(static) if static_features is None else static_features
        read, more = read_sequences(values, observed, times, known, features=names, static_features=still, who=who)
        faults += more
        if read is not None:
            names = names or [f"x{i}" for i in range(read.values.shape[1])]
            faults += name_faults([*names, *read.ragged.static_features], None, None, source)
            unknown = [n for n in units or {} if n not in names and n not in read.ragged.static_features]
            faults += [f"units.{n}: {source} has no feature of that name.{did_you_mean(n, names)}" for n in unknown]
        if faults or read is None:
            raise InputError(faults)
        return cls(
            layout=SequenceLayout(read.values, read.ragged),
            features=tuple(names or ()),
            units=FrozenMap(units or {}),
            given_ids=None if texts is None else read_only(texts),
            whole_features=(),
            ignored=(),
            source=source,
        )

    def __repr__(self) -> str:
        """Without values and ids, which are private and must not get into logs and notebooks."""
        size = counted(len(self), self.layout.noun)
        return f"Cohort({size} x {counted(len(self.features), 'feature')}: {listed(self.features)})"

    def __len__(self) -> int:
        return len(self.layout)

    @property
    def values(self) -> Floats:
        """(n, F) for a table, (N, F) for sequences"""
        return self.layout.values

    @property
    def ragged(self) -> Ragged | None:
        """The rows and times of each sequence in `values`; None for a table"""
        return self.layout.ragged

    @cached_property
    def ids(self) -> Text:
        """(n,) texts."""
        if self.given_ids is not None:
            return self.given_ids
        return read_only(np.array([str(j) for j in range(len(self))], dtype=object))

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Samples in the order in which they are processed: by id, so that the order of a file's rows does not matter.

        Sequences are sorted by length first, so that batches need little padding.
        """
        if self.given_ids is None:
            by_id = np.arange(len(self))
        else:
            by_id = np.array(sorted(range(len(self)), key=self.given_ids.__getitem__), dtype=np.int64)
        return self.layout.in_order(by_id)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {text: j for j, text in enumerate(self.ids.tolist())}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all that there is one value of per sample: features (of sequences the static ones), then others."""
        return (*self.layout.of_each(self.features)[1], *self.others)

    def column(self, name: str) -> list[str | float | None] | None:
        """The cells of such a column, texts or numbers, None where empty; None if there is no such column."""
        _, names, values = self.layout.of_each(self.features)
        if name not in names:
            return plain_values(self.others[name]) if name in self.others else None
        return [float(value) for value in values[:, names.index(name)]]

    @cached_property
    def largest(self) -> Floats:
        """(F,): the size of the largest value of each feature; 0 where nothing was measured"""
        return read_only(np.asarray(np.nan_to_num(np.abs(self.values)).max(axis=0)))

    def with_levers(self, levers: Levers) -> Cohort:
        """A table with a column for each lever behind those of its features."""
        names = (*self.features, *levers.names)
        return replace(self, layout=LeverLayout.of(self.values, levers), features=names)

    @property
    def plain(self) -> Cohort:
        """The same without columns of levers: what the model sees"""
        layout = self.layout.without_levers
        return self if layout is self.layout else replace(self, layout=layout, features=self.features[: layout.width])

    def where(self, row: int) -> str:
        """'row 17 (id P-0042)', or 'row 17' if rows have no ids; counted from 1."""
        return f"{self.layout.numbered} {row + 1}" + (
            f" (id {visible(self.ids[row])})" if self.given_ids is not None else ""
        )

    def where_in(self, row: int) -> str:
        """The same of a row of `values`; of sequences with the step, from 0."""
        j, step = self.layout.place_of(row)
        return f"{self.where(j)}{step}"

    def cell(self, row: int, column: int) -> str:
        """A cell of `values` in words: "column 'bp', row 17 (id P-0042)"; for sequences with the step, counted from
        0."""
        return f"column {self.features[column]!r}, {self.where_in(row)}"

    def measured(self, column: int) -> tuple[Floats, NDArray[np.int64]]:
        """All values of a column, and the sample of each."""
        return self.layout.measured(column)


def table_of(
    data: Any,
    codes: Codes,
    *,
    features: Sequence[str] | None = None,
    id: str | None = None,  # noqa: A002  the column's name in every file
    ids: Sequence[object] | None = None,
    units: Mapping[str, str] | None = None,
    source: str = "cohort",
) -> Cohort:
    """The arguments of `Cohort.table`, with columns made from texts for those codes whose category is a column."""
    faults = _argument_faults(features, id, ids, units, source)
    if faults:
        raise InputError(faults)
    features = None if features is None else [str(n) for n in features]
    columns, index = columns_of(data, features, source)
    is_read = columns is data  # from a file, whose reader keeps what is beside the features
    names = [c.name for c in columns]
    held = held_as_texts(codes, names, id)
    faults = column_faults(names, held, features, id, source)
    if faults:
        raise InputError(faults)
    wanted = list(features) if features is not None else [n for n in with_codes(names, held) if n != id]
    if not wanted:
        raise InputError(f"{source}: has no feature columns. Name at least one in `features`.")
    if len(columns[0].cells) == 0:
        raise InputError(f"{source}: cohort has 0 rows. It needs at least one.")

    by_name = {c.name: c for c in columns}
    raw_ids = by_name[id].cells if id is not None else ids if ids is not None else index
    texts, faults = read_ids(raw_ids, len(columns[0].cells), id or "id", source)
    for category, own in held.items():
        made, wrong = coded(by_name[category], own, partial(whose, texts), source)
        by_name |= made
        faults += wrong
    values, cell_faults = read_values([by_name[n] for n in wanted], texts, source)
    faults += cell_faults
    unknown = [n for n in units or {} if n not in wanted]
    faults += [f"units.{n}: {source} has no feature of that name.{did_you_mean(n, wanted)}" for n in unknown]
    if faults:
        raise InputError(faults)
    beside = [c.name for c in columns if c.name not in wanted and c.name != id]
    return Cohort(
        layout=TableLayout(read_only(values)),
        features=tuple(wanted),
        units=FrozenMap(units or {}),
        given_ids=None if texts is None else read_only(texts),
        whole_features=tuple(n for n in wanted if by_name[n].is_whole),
        ignored=tuple(n for n in beside if n not in held),
        source=source,
        others=FrozenMap({n: by_name[n].cells for n in beside if not is_read}),
    )


def column_faults(
    columns: Sequence[str], held: Codes, features: Sequence[str] | None, id_: str | None, source: str
) -> list[str]:
    """Faults of a table's column names, where those of `held` are texts from which codes are made."""
    faults = list(held_faults(held, columns, features, source))
    if held:
        faults += name_faults(columns, [*held], None, source)
    return faults or name_faults(with_codes(columns, held), features, id_, source)


def whose(ids: Any, row: int) -> str:
    """The id of a row in words; nothing if it has none.   ids: (n,) or None"""
    return f" (id {visible(str(ids[row]))})" if ids is not None and ids[row] is not None else ""


def as_cohort(
    data: Any, features: Sequence[str] | None, units: Mapping[str, str] | None, one_hot: Any = None
) -> Cohort:
    """The argument `cohort` of Problem, as a Cohort. The Problem lists the faults of `one_hot` with its own."""
    if not isinstance(data, Cohort):
        return table_of(data, read_codes(one_hot)[0], features=features, units=units)
    faults = _argument_faults(features, None, None, units, data.source)
    if faults:
        raise InputError(faults)
    if features is not None and tuple(features) != data.features:
        raise InputError(
            f"features: the Cohort already has {listed(data.features)}. Leave `features` out, or name them when "
            "making the Cohort."
        )
    if units:
        raise InputError("units: the Cohort carries its own. Give `units` when making the Cohort.")
    return data


def _argument_faults(features: Any, id_: Any, ids: Any, units: Any, source: Any) -> list[str]:
    """Faults of arguments of a wrong type."""
    faults = []
    if isinstance(features, str):
        faults.append(f"features: got the text {shown(features)}; wanted a list of names.")
    elif features is not None and (
        not is_listing(features) or not hasattr(features, "__len__") or any(not isinstance(n, str) for n in features)
    ):
        faults.append(f"features: got {shown(features)}; wanted a list of names (texts).")
    if id_ is not None and not isinstance(id_, str):
        faults.append(f"id: got {shown(id_)}; wanted the name of the id column (a text).")
    if ids is not None and not is_listing(ids):
        faults.append(f"ids: got {shown(ids)}; wanted a list with one id per row.")
    if id_ is not None and ids is not None:
        faults.append("id, ids: give the name of the id column or the ids themselves, not both.")
    if units is not None and not (
        isinstance(units, Mapping) and all(isinstance(text, str) for pair in units.items() for text in pair)
    ):
        faults.append(f"units: got {shown(units)}; wanted {{feature: unit}}, both texts.")
    if not isinstance(source, str):
        faults.append(f"source: got {shown(source)}; wanted a text, such as a file name.")
    return faults


def _by_id(static: Any, ids: Text | None, n: int) -> tuple[Any, list[str]]:
    """A pandas frame sorted like the ids, if its index has them; anything else unchanged."""
    if not hasattr(static, "iloc") or getattr(static, "ndim", 0) != 2:
        return static, []
    labels = [str(label) for label in static.index]
    if labels == [str(j) for j in range(n)]:
        return static, []
    place = {label: j for j, label in enumerate(labels)}
    if ids is None or len(place) != len(labels) or set(place) != set(ids.tolist()):
        return static, [
            "static: its index is neither the ids nor 0, 1, ..., so it cannot be told which row belongs to whom. Give "
            "it the ids as index, or pass static.to_numpy() in the order of the sequences."
        ]
    return static.iloc[[place[text] for text in ids.tolist()]], []


def plain_value(cell: Any) -> Any:
    """A cell of any kind of table as a text or a float, None if it is empty; "true" and "false" of booleans."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or str(cell) in ("", "nan", "NaT", "<NA>"):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    return float(cell) if isinstance(cell, (int, float)) else str(cell)


def plain_values(cells: Iterable[Any]) -> list[Any]:
    """The cells of a column: floats if all that are not empty are numbers, else texts."""
    given = list(cells)
    plain = [plain_value(cell) for cell in given]
    is_mixed = any(isinstance(cell, str) for cell in plain)
    return [str(one) if is_mixed and isinstance(cell, float) else cell for one, cell in zip(given, plain, strict=True)]


def in_cohort_order(values: Any, cohort: Cohort) -> Any:
    """A pandas Series sorted like the cohort, if its labels are the cohort's ids; a tensor as an array; anything else
    unchanged.
    """
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    index = getattr(values, "index", None)
    if index is None or not hasattr(values, "iloc") or getattr(values, "ndim", 1) != 1:
        return values
    labels = [str(label) for label in index]
    if labels == [str(j) for j in range(len(cohort))]:
        return values.to_numpy()
    place = {label: j for j, label in enumerate(labels)}
    if len(place) != len(labels) or set(place) != set(cohort.row_of):
        raise InputError(
            "a Series has an index that is neither the cohort's ids nor 0, 1, ..., so it cannot be told which value "
            "belongs to whom. Give it the ids as index, or pass series.to_numpy() in the cohort's order."
        )
    return values.to_numpy()[[place[i] for i in cohort.ids.tolist()]]


def is_number(value: Any) -> bool:
    """Of a real type, and no integer beyond float64."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def real_numbers(values: Any) -> Floats:
    """A new float64 array; TypeError, ValueError or OverflowError if they are not real numbers."""
    if np.iscomplexobj(values):
        raise TypeError("complex numbers are no real ones")
    return np.array(values, dtype=np.float64)


def plain_name(name: str) -> str:
    """The name without case and surrounding spaces. Columns with equal plain names are easily confused."""
    return unicodedata.normalize("NFC", name).strip().casefold()


def name_faults(names: Sequence[str], features: Sequence[str] | None, id_: str | None, source: str) -> list[str]:
    """Faults of a table's column names, given the columns that are needed."""
    faults = []
    wanted = list(features) if features is not None else [n for n in names if n != id_]
    for n in sorted({n for n in wanted if wanted.count(n) > 1}):
        if features is not None:
            faults.append(f"features: {n!r} is named {wanted.count(n)} times. Name it once.")
    needed = [*wanted, *([id_] if id_ is not None else [])]
    missing = [n for n in dict.fromkeys(needed) if n not in names]
    if missing:
        extra = [n for n in names if n not in needed]
        for n in missing:
            faults.append(f"{source}: has no column {n!r}.{did_you_mean(n, names)}")
        faults.append(f"{source}: its {'other ' if extra else ''}columns are {listed(extra or names) or 'none'}.")
    if id_ is not None and features is not None and id_ in features:
        faults.append(f"features: {id_!r} is the id column and cannot be a feature.")
    places: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        places.setdefault(plain_name(name), []).append(position)
    for positions in places.values():
        clash = [names[p] for p in positions]
        if len(positions) > 1 and any(n in needed for n in clash):
            where = " and ".join(f"{n!r} (column {p + 1})" for n, p in zip(clash, positions, strict=True))
            faults.append(f"{source}: {where} have the same name but for case or spaces. Rename one.")
    return faults


NO_ID = BadCell(Kind.EMPTY, "the id is empty. Every row needs an id.")


def read_ids(raw: Any, n: int, name: str, source: str) -> tuple[Text | None, list[str]]:
    if raw is None:
        return None, []
    cells = list(raw)
    if len(cells) != n:
        return None, [f"ids: {len(cells):,} given for {counted(n, 'row')} of {source}. Give one per row."]
    faults: list[str] = []
    kinds = {type(c) for c in cells if isinstance(c, (str, int, np.integer)) and not isinstance(c, bool)}
    if str in kinds and len(kinds) > 1:
        faults.append(f"{source}: column {name!r} mixes texts and integers. Make all ids texts.")
    texts = np.empty(n, dtype=object)
    first: dict[str, int] = {}
    wrong: dict[int, BadCell] = {}
    twice: dict[int, BadCell] = {}
    for j, cell in enumerate(cells):
        if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
            wrong[j] = NO_ID
            continue
        if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, (str, int, np.integer)):
            wrong[j] = BadCell(Kind.NO_ID, f"{shown(cell)} is no id. Use texts or integers.")
            continue
        texts[j] = text = str(cell)
        if not _is_unicode(text):
            wrong[j] = BadCell(Kind.NO_TEXT, f"{shown(text)} is no valid Unicode text.")
        if text in first:
            says = f"id {shown(text)} is in row {first[text] + 1} and row {j + 1}. Ids must be unique."
            twice[j] = BadCell(Kind.VALUE, says)
        first.setdefault(text, j)
    place = f"{source}: column {name!r}"
    faults += grouped(wrong, lambda j, what: f"{place}, row {j + 1}: {what}", place)
    faults += grouped(twice, lambda _, what: f"{place}: {what}", place)
    return texts, faults


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded. Python texts may contain half a surrogate pair, files may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_values(columns: list[Column], ids: Text | None, source: str) -> tuple[Floats, list[str]]:
    """(n, F) float64, and a sentence for each of the first cells that are not finite numbers, and their number."""
    values = np.empty((len(columns[0].cells), len(columns)), order="C")
    faults: list[str] = []
    cells = bad_columns = 0
    for i, column in enumerate(columns):
        if column.unusable:
            faults.append(f"{source}: column {column.name!r} has type {column.unusable}; wanted numbers.")
            continue
        values[:, i], wrong = column.numbers()
        if len(wrong) > FEW_TEXTS and np.isnan(values[:, i]).all():
            row = min(wrong)
            faults.append(
                f"{source}: column {column.name!r} holds no number at all: row {row + 1}: {wrong[row].says}. "
                "Leave it out by naming the columns to use as features, code it as numbers, as the model has it, or "
                "name the columns of its code in one_hot."
            )
            continue
        bad = np.flatnonzero(~np.isfinite(values[:, i])).tolist()
        cells += len(bad)
        bad_columns += len(bad) > 0
        place = f"{source}: column {column.name!r}"

        def sentence(j: int, what: str, place: str = place) -> str:
            return f"{place}, row {j + 1}{whose(ids, j)}: {what}; features must be finite numbers."

        faults += grouped({j: wrong.get(j, not_finite(values[j, i])) for j in bad}, sentence, place)
    if cells:
        faults.append(
            f"{source}: {counted(cells, 'such cell')} in {counted(bad_columns, 'column')}. "
            "Correct them, fill them in, or drop the rows."
        )
    return values, faults


def not_finite(value: float) -> BadCell:
    return BadCell(Kind.NOT_FINITE, "NaN" if np.isnan(value) else "+inf" if value > 0 else "-inf")
