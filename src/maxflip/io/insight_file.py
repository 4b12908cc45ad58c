"""insight.json of docs/formats.md: an Insight as a file. It is read only if it agrees with the plan."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.messages import shown
from maxflip._util.types import Floats
from maxflip.errors import InputError
from maxflip.io.job.places import dotted
from maxflip.plan.holds import Judged
from maxflip.plan.plan import Plan
from maxflip.study.groups import Group, Groups
from maxflip.study.insight import QUANTILES, Insight, Outlook, Plausibility, misfits

FORMAT = 1

Whole = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Distance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _Scale(_Form):
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    count: Whole
    worth: Finite
    bound: Finite | None
    estimate: Finite | None


class _Plausibility(_Form):
    before: list[Distance | None]
    after: list[Distance | None]
    typical: dict[str, Distance]
    references: Whole
    source: str
    measure: str


class _Group(_Form):
    name: str
    size: Whole
    already: Whole
    reachable: Whole
    picked: Whole
    confidence: Finite | None


class _Groups(_Form):
    column: str
    groups: list[_Group]


class _Judge(_Form):
    name: str
    before: Whole
    after: Whole


class _File(_Form):
    format: int
    frontier: list[_Scale] | None
    plausibility: _Plausibility | None
    groups: _Groups | None
    notices: list[str]
    judges: list[_Judge] | None = None


def insight_bytes(insight: Insight) -> bytes:
    ahead, near, groups = insight.frontier, insight.plausibility, insight.groups
    found: dict[str, Any] = {
        "format": FORMAT,
        "frontier": None
        if ahead is None
        else [
            {"scale": scale, "count": count, "worth": worth, "bound": bound, "estimate": estimate}
            for scale, count, worth, bound, estimate in zip(
                ahead.scales, ahead.counts, ahead.worths, ahead.bounds, ahead.estimates, strict=True
            )
        ],
        "plausibility": None
        if near is None
        else {
            "before": _cells(near.before),
            "after": _cells(near.after),
            "typical": {str(quantile): distance for quantile, distance in near.typical.items()},
            "references": near.references,
            "source": near.source,
            "measure": near.measure,
        },
        "groups": None if groups is None else {"column": groups.column, "groups": [vars(g) for g in groups.groups]},
        "notices": list(insight.notices),
        **({} if insight.judges is None else {"judges": [vars(judge) for judge in insight.judges]}),
    }
    return (json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _cells(distances: Floats) -> list[float | None]:
    """JSON has no NaN."""
    return [None if math.isnan(d) else d for d in distances.tolist()]


def parse_insight(data: bytes, plan: Plan, source: str) -> Insight:
    """The insight; InputError if the data are not an insight, or are of another plan."""
    try:
        read = _File.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = dotted(*(str(part) for part in first["loc"]))
        where = f"{place} = {shown(first['input'])}: " if place else ""
        raise InputError(
            f"{source}: is not the insight of a plan: {where}{first['msg']}. Solve the job again."
        ) from error
    if read.format != FORMAT:
        raise InputError(f"{source}: insight format {read.format}; this version reads format {FORMAT}.")
    if read.plausibility is not None and set(read.plausibility.typical) != {str(q) for q in QUANTILES}:
        quantiles = sorted(read.plausibility.typical)
        raise InputError(
            f"{source}: plausibility.typical: has the quantiles {quantiles}; wanted {list(QUANTILES)}. "
            "Solve the job again."
        )
    judges = None if read.judges is None else tuple(Judged(**vars(judge)) for judge in read.judges)
    notices = tuple(read.notices)
    found = Insight(_outlook(read.frontier), _near(read.plausibility), _divided(read.groups), notices, plan, judges)
    faults = [f"{source}: {fault} Solve the job again." for fault in misfits(found, plan)]
    if faults:
        raise InputError(faults)
    return found


def _outlook(rows: list[_Scale] | None) -> Outlook | None:
    if rows is None:
        return None
    return Outlook(
        scales=tuple(row.scale for row in rows),
        counts=tuple(row.count for row in rows),
        worths=tuple(row.worth for row in rows),
        bounds=tuple(row.bound for row in rows),
        estimates=tuple(row.estimate for row in rows),
    )


def _near(read: _Plausibility | None) -> Plausibility | None:
    if read is None:
        return None
    return Plausibility(
        before=read_only(np.array(read.before, dtype=np.float64)),  # None becomes NaN
        after=read_only(np.array(read.after, dtype=np.float64)),
        typical=FrozenMap({quantile: read.typical[str(quantile)] for quantile in QUANTILES}),
        references=read.references,
        source=read.source,
        measure=read.measure,
    )


def _divided(read: _Groups | None) -> Groups | None:
    return None if read is None else Groups(read.column, tuple(Group(**vars(group)) for group in read.groups))
