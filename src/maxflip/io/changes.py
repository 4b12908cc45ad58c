"""The rows of plan.parquet and pool.parquet: changes on their way to disk, and back into slots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maxflip._util.types import Floats
from maxflip.plan.plan import Places, Plan
from maxflip.plan.pool import Pool


class Slotted(NamedTuple):
    """moves (count, K), before (count, K): NaN where nothing changes; where the slots of sequences lie."""

    moves: Floats
    before: Floats
    places: Places | None


def changes_table(plan: Plan) -> pa.Table:
    """Columns id, step, feature, before, change, and time for sequences. The rest of the plan is in summary.json."""
    rows = plan.table()
    if plan.places is not None:
        return rows.select(["id", "step", "time", "feature", "before", "change"])
    rows = rows.select(["id", "feature", "before", "change"])
    return rows.add_column(1, "step", pa.array(np.zeros(len(rows), dtype=np.int32)))


def slotted(
    changes: pa.Table, ids: NDArray[Any], features: tuple[str, ...], lengths: NDArray[np.int64] | None
) -> Slotted:
    """From the rows of plan.parquet; ids (count,): who is picked   lengths (count,): of sequences, how long they are"""
    row_of = {text: j for j, text in enumerate(ids.tolist())}
    column_of = {name: i for i, name in enumerate(features)}
    row = np.array([row_of[text] for text in changes["id"].to_pylist()], dtype=np.int64)
    feature = np.array([column_of[name] for name in changes["feature"].to_pylist()], dtype=np.int64)
    slot, of_slots = (feature, np.arange(len(features))) if lengths is None else _slots(changes, row, feature, len(ids))
    moves = np.zeros((len(ids), len(of_slots)))
    before = np.full_like(moves, np.nan)
    moves[row, slot] = changes["change"].to_numpy()
    before[row, slot] = changes["before"].to_numpy()
    if lengths is None:
        return Slotted(moves, before, None)
    steps = changes["step"].to_numpy()
    if len(lengths) != len(ids) or ((steps < 0) | (steps >= lengths[row])).any():
        raise ValueError("a step of plan.parquet lies outside its sequence, by the lengths of summary.json")
    step, time = np.full(moves.shape, -1, dtype=np.int64), np.full_like(moves, np.nan)
    step[row, slot] = steps
    time[row, slot] = changes["time"].to_numpy()
    return Slotted(moves, before, Places(of_slots, step, time, lengths))


def pool_table(pool: Pool, ids: NDArray[Any], features: tuple[str, ...]) -> pa.Table:
    """flip, id, step, feature, change: a row per change that is not zero, flip by flip; ids (n,): of the cohort"""
    flip, slot = np.nonzero(pool.changes)
    feature = slot if pool.feature is None else pool.feature[slot]
    step = np.zeros(len(flip), dtype=np.int64) if pool.step is None else pool.step[flip, slot]
    order = np.lexsort((feature, step, flip))
    flip, slot, feature = flip[order], slot[order], feature[order]
    return pa.table(
        {
            "flip": pa.array(flip, pa.int32()),
            "id": pa.array(ids[pool.rows[flip]], pa.string()),
            "step": pa.array(step[order], pa.int32()),
            "feature": pa.array(np.array(features, dtype=object)[feature], pa.string()),
            "change": pa.array(pool.changes[flip, slot], pa.float64()),
        }
    )


def pooled(table: pa.Table, ids: NDArray[Any], features: tuple[str, ...], *, of_sequences: bool) -> Pool:
    """From the rows of pool.parquet."""
    flip, step = table["flip"].to_numpy(), table["step"].to_numpy()
    row = _places_in(table["id"], ids, "id")
    feature = _places_in(table["feature"], features, "feature")
    count = int(flip.max(initial=-1)) + 1
    rows = np.full(count, -1, dtype=np.int64)
    rows[flip] = row
    if not np.isfinite(table["change"].to_numpy()).all() or (rows < 0).any() or (rows[flip] != row).any():
        raise ValueError("pool.parquet: a change is not finite, or a flip is missing or has several ids")
    slot, of_slots = _slots(table, flip, feature, count) if of_sequences else (feature, np.arange(len(features)))
    changes = np.zeros((count, len(of_slots)))
    changes[flip, slot] = table["change"].to_numpy()
    if not of_sequences:
        return Pool(rows, changes)
    steps = np.full(changes.shape, -1, dtype=np.int64)
    steps[flip, slot] = step
    return Pool(rows, changes, of_slots, steps)


def _places_in(column: pa.ChunkedArray, known: Any, what: str) -> NDArray[np.int64]:
    found = pc.index_in(column, value_set=pa.array(known, pa.string()))
    if found.null_count:
        raise ValueError(f"pool.parquet: has a {what} that the plan does not have")
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _slots(
    changes: pa.Table, row: NDArray[np.int64], feature: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The slot of each change, and the feature of each slot. A feature has as many slots as the sample with the most
    changes of it has. Each sample fills them in the order of steps, aligned to the end: its last change is last."""
    order = np.lexsort((changes["step"].to_numpy(), row, feature))
    whose = feature[order] * n + row[order]
    count = np.bincount(whose, minlength=n * (int(feature.max(initial=-1)) + 1))
    most = count.reshape(-1, n).max(axis=1) if n else count
    slot = np.empty(len(row), dtype=np.int64)
    slot[order] = np.cumsum(most)[feature[order]] - (np.cumsum(count)[whose] - np.arange(len(row)))
    return slot, np.repeat(np.arange(len(most)), most)
