"""Open University Learning Analytics: the assessments of each student in each course; label: its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from maxflip._util.frozen import FrozenMap, read_only
from maxflip._util.messages import counted, listed
from maxflip.datasets.reading import find_tables, read_columns
from maxflip.datasets.samples import Integers, Sequences, Table
from maxflip.errors import InputError

TABLES = ("assessments", "studentAssessment", "studentInfo")
CLASSES = ("Pass", "Fail", "Withdrawn", "Distinction")
FEATURES = ("score", "days_late", "weight", "is_tma", "is_banked")
STATIC = ("num_of_prev_attempts", "studied_credits", "disability")
UNITS = FrozenMap({"score": "points", "days_late": "days", "weight": "%"})
AGGREGATES = ("mean_score", "min_score", "max_score", "last_score", "assessments", "mean_days_late", "total_weight")
_MISSING = ("", "?")  # texts for a missing value in the archive
_COURSE = {"code_module": pa.string(), "code_presentation": pa.string()}


def oulad(root: str | Path) -> Sequences:
    """One sequence per student and course, a step per assessment, in the order in which they are due.

    Exams are left out, because their result nearly is the label. The time of a step is the due day, counted from the
    start of the course; `days_late` is negative for early work. Unknown scores are missing values.
    """
    assessments_path, submissions_path, students_path = find_tables(root, TABLES)
    assessments = _assessments(assessments_path)
    students = _students(students_path)
    submissions = read_columns(
        submissions_path,
        {
            "id_assessment": pa.int64(),
            "id_student": pa.int64(),
            "date_submitted": pa.float64(),
            "is_banked": pa.float64(),
            "score": pa.float64(),
        },
        gaps=["score"],
        missing=_MISSING,
    )
    assessment = _positions(assessments["id_assessment"], submissions["id_assessment"])
    if (assessment < 0).any():
        row = int(np.argmax(assessment < 0))
        raise InputError(
            f"{submissions_path}: row {row + 1}: {assessments_path.name} has no assessment "
            f"{submissions['id_assessment'][row]}. The two files must come from one archive."
        )
    keys = _pairs(assessments["course"][assessment], submissions["id_student"])
    student = _positions(_pairs(students["course"], students["id_student"]), keys)
    is_exam = assessments["is_exam"][assessment]
    kept = (student >= 0) & ~is_exam
    if not kept.any():
        raise InputError(f"{submissions_path}: no row belongs to a student of {students_path.name}.")

    due = assessments["date"][assessment]
    order = np.flatnonzero(kept)
    order = order[np.lexsort((submissions["id_assessment"][order], due[order], student[order]))]
    which = assessment[order]
    steps = np.stack(
        [
            submissions["score"][order],
            submissions["date_submitted"][order] - due[order],
            assessments["weight"][which],
            assessments["is_tma"][which],
            submissions["is_banked"][order],
        ],
        axis=1,
    )
    owners, starts = np.unique(student[order], return_index=True)
    return Sequences(
        values=tuple(np.split(read_only(steps), starts[1:])),
        times=tuple(np.split(read_only(due[order]), starts[1:])),
        static=read_only(np.stack([students[name][owners] for name in STATIC], axis=1)),
        ids=tuple(students["id"][owners].tolist()),
        features=FEATURES,
        static_features=STATIC,
        units=UNITS,
        source="OULAD",
        labels=read_only(students["label"][owners]),
        classes=CLASSES,
        dropped=FrozenMap(
            {
                "submissions that match no student": int((student < 0).sum()),
                "exams": int((is_exam & (student >= 0)).sum()),
                "students without an assessment": len(students["label"]) - len(owners),
            }
        ),
    )


def aggregates(sequences: Sequences) -> Table:
    """Each sequence of `oulad` as one row of seven numbers, for models of tables; unknown scores are left out."""
    lengths = np.array([len(steps) for steps in sequences.values])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    flat = np.concatenate(sequences.values)
    score, late, weight = flat[:, 0], flat[:, 1], flat[:, 2]
    known = np.add.reduceat(~np.isnan(score), starts)
    if not known.all():
        unscored = [sequences.ids[j] for j in np.flatnonzero(known == 0).tolist()]
        raise InputError(
            f"{sequences.source}: {counted(len(unscored), 'sequence')} without a single score: {listed(unscored)}. "
            "Leave them out with `take`."
        )
    last = np.maximum.reduceat(np.where(np.isnan(score), -1, np.arange(len(score))), starts)
    columns = [
        np.add.reduceat(np.nan_to_num(score), starts) / known,
        np.fmin.reduceat(score, starts),
        np.fmax.reduceat(score, starts),
        score[last],
        lengths,
        np.add.reduceat(late, starts) / lengths,
        np.add.reduceat(weight, starts),
    ]
    return Table(
        values=read_only(np.stack(columns, axis=1)),
        ids=sequences.ids,
        features=AGGREGATES,
        units=FrozenMap({}),
        source=sequences.source,
        labels=sequences.labels,
        classes=sequences.classes,
    )


def _assessments(path: Path) -> dict[str, NDArray[Any]]:
    cells = read_columns(
        path,
        {
            **_COURSE,
            "id_assessment": pa.int64(),
            "assessment_type": pa.string(),
            "date": pa.float64(),
            "weight": pa.float64(),
        },
        gaps=["date"],
        missing=_MISSING,
    )
    kind = cells["assessment_type"]
    _refuse_others(path, "assessment_type", kind, ("TMA", "CMA", "Exam"))
    is_exam = kind == "Exam"
    undated = ~is_exam & np.isnan(cells["date"])
    if undated.any():
        row = int(np.argmax(undated))
        raise InputError(f"{path}: row {row + 1}: assessment {cells['id_assessment'][row]} is no exam and has no date.")
    return {
        "id_assessment": cells["id_assessment"],
        "course": _courses(cells),
        "is_exam": is_exam,
        "is_tma": (kind == "TMA").astype(float),
        "date": cells["date"],
        "weight": cells["weight"],
    }


def _students(path: Path) -> dict[str, NDArray[Any]]:
    cells = read_columns(
        path,
        {
            **_COURSE,
            "id_student": pa.int64(),
            "num_of_prev_attempts": pa.float64(),
            "studied_credits": pa.float64(),
            "disability": pa.string(),
            "final_result": pa.string(),
        },
        missing=_MISSING,
    )
    _refuse_others(path, "final_result", cells["final_result"], CLASSES)
    _refuse_others(path, "disability", cells["disability"], ("Y", "N"))
    course, number = _courses(cells), cells["id_student"]
    keys = _pairs(course, number)
    if len(np.unique(keys)) < len(keys):
        raise InputError(f"{path}: some students occur twice in one course. Download it again.")
    return {
        "course": course,
        "id_student": number,
        "id": np.array([f"{c}/{s}" for c, s in zip(course, number, strict=True)], dtype=object),
        "num_of_prev_attempts": cells["num_of_prev_attempts"],
        "studied_credits": cells["studied_credits"],
        "disability": (cells["disability"] == "Y").astype(float),
        "label": np.array([CLASSES.index(result) for result in cells["final_result"]], dtype=np.int64),
    }


def _courses(cells: Mapping[str, NDArray[Any]]) -> NDArray[np.str_]:
    """'AAA/2013J' for each row."""
    pairs = zip(cells["code_module"], cells["code_presentation"], strict=True)
    return np.array([f"{module}/{presentation}" for module, presentation in pairs])


def _refuse_others(path: Path, name: str, cells: NDArray[Any], known: tuple[str, ...]) -> None:
    other = ~np.isin(cells.astype(str), known)
    if other.any():
        row = int(np.argmax(other))
        raise InputError(f"{path}: row {row + 1}: {name} is {cells[row]!r}; wanted one of {listed(known)}.")


def _pairs(course: NDArray[np.str_], student: Integers) -> NDArray[np.str_]:
    return np.char.add(np.char.add(course, "/"), student.astype(str))


def _positions(known: NDArray[Any], wanted: NDArray[Any]) -> Integers:
    """Position of each wanted key among the known ones; -1 if unknown."""
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return np.where(known[order][place] == wanted, order[place], -1)
