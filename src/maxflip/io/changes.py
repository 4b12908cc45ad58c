"""The rows of plan.parquet and pool.parquet: changes on their way to disk, and back into slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.data.places import Cells, FullPlaces, kind_of
from maxflip.plan.implied import Implied
from maxflip.plan.plan import Plan
from maxflip.plan.pool import Pool


class Slotted(NamedTuple):
    """moves (count, K)   before (count, K): NaN where nothing changes   places: of the slots"""

    moves: Floats
    before: Floats
    places: FullPlaces


def changes_table(plan: Plan) -> pa.Table:
    """Columns id, step, feature, before, change, and time for sequences. The rest of the plan is in summary.json."""
    rows, (picked, slot) = plan.table(), plan.places.changed(plan.moves)
    columns = {"step": plan.places.step_of(picked, slot).astype(np.int32), **plan.places.columns(picked, slot)}
    values = {name: rows[name] for name in ("feature", "before", "change")}
    return pa.table({"id": rows["id"], **{name: pa.array(cells) for name, cells in columns.items()}, **values})


def implied_table(plan: Plan) -> pa.Table:
    """Columns id, step, feature, before, after"""
    return plan.implied_table().drop_columns(["unit"])


def implied(table: pa.Table, ids: NDArray[Any], features: tuple[str, ...]) -> Implied:
    """From the rows of implied.parquet; ids (count,): who is picked"""
    return Implied(
        _places_in(table["id"], ids, "implied.parquet: has an id"),
        table["step"].to_numpy().astype(np.int64),
        _places_in(table["feature"], features, "implied.parquet: has a feature"),
        table["before"].to_numpy(),
        table["after"].to_numpy(),
    )


def slotted(changes: pa.Table, ids: NDArray[Any], features: tuple[str, ...], stated: Mapping[str, Any]) -> Slotted:
    """The changes from the rows of plan.parquet.   ids (count,): of the picked samples   stated: its summary.json"""
    row_of = {text: j for j, text in enumerate(ids.tolist())}
    column_of = {name: i for i, name in enumerate(features)}
    row = np.array([row_of[text] for text in changes["id"].to_pylist()], dtype=np.int64)
    feature = np.array([column_of[name] for name in changes["feature"].to_pylist()], dtype=np.int64)
    cells = Cells(row, feature, _columns(changes), len(ids), len(features))
    places, slot = kind_of(stated).of_plan(cells, stated)
    moves = np.zeros((len(ids), len(places.feature)))
    before = np.full_like(moves, np.nan)
    moves[row, slot] = changes["change"].to_numpy()
    before[row, slot] = changes["before"].to_numpy()
    return Slotted(moves, before, places)


def pool_table(pool: Pool, ids: NDArray[Any], features: tuple[str, ...]) -> pa.Table:
    """Columns flip, id, step, feature, change: a row per nonzero change, sorted by flip.   ids (n,): of the cohort"""
    flip, slot = pool.places.changed(pool.changes)
    return pa.table(
        {
            "flip": pa.array(flip, pa.int32()),
            "id": pa.array(ids[pool.rows[flip]], pa.string()),
            "step": pa.array(pool.places.step_of(flip, slot), pa.int32()),
            "feature": pa.array(np.array(features, dtype=object)[pool.places.feature[slot]], pa.string()),
            "change": pa.array(pool.changes[flip, slot], pa.float64()),
        }
    )


def pooled(table: pa.Table, ids: NDArray[Any], features: tuple[str, ...], stated: Mapping[str, Any]) -> Pool:
    """The pool from the rows of pool.parquet.   stated: summary.json of the plan"""
    flip = table["flip"].to_numpy()
    row = _places_in(table["id"], ids, "pool.parquet: has an id")
    feature = _places_in(table["feature"], features, "pool.parquet: has a feature")
    count = int(flip.max(initial=-1)) + 1
    rows = np.full(count, -1, dtype=np.int64)
    rows[flip] = row
    if not np.isfinite(table["change"].to_numpy()).all() or (rows < 0).any() or (rows[flip] != row).any():
        raise ValueError("pool.parquet: a change is not finite, or a flip is missing or has several ids")
    places, slot = kind_of(stated).of_pool(Cells(flip, feature, _columns(table), count, len(features)))
    changes = np.zeros((count, len(places.feature)))
    changes[flip, slot] = table["change"].to_numpy()
    return Pool(rows, changes, places)


def _columns(changes: pa.Table) -> dict[str, NDArray[Any]]:
    """The columns that state where the values are, besides the feature"""
    return {name: changes[name].to_numpy() for name in ("step", "time") if name in changes.column_names}


def _places_in(column: pa.ChunkedArray, known: Any, what: str) -> NDArray[np.int64]:
    found = pc.index_in(column, value_set=pa.array(known, pa.string()))
    if found.null_count:
        raise ValueError(f"{what} that the plan does not have")
    return np.asarray(found.to_numpy(), dtype=np.int64)
