"""`maxflip data`: describes a folder of public data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from maxflip._util.events import Watch
from maxflip._util.messages import did_you_mean
from maxflip.datasets import Sequences, Table, credit_default, insurance, mimic3, oulad, physionet2012
from maxflip.datasets.physionet import labels_of, sets_in
from maxflip.datasets.samples import Integers
from maxflip.errors import InputError

SHOWN_SEQUENCES = 1000  # number of generated sequences that are described


@dataclass(frozen=True)
class Source:
    what: str
    where: str
    files: str
    terms: str
    describe: Callable[[Path, Watch], str]


def overview() -> str:
    """All names, and where to get the files."""
    entries = [
        f"{name}\n    {source.what}\n    from: {source.where} ({source.terms})\n    files: {source.files}"
        for name, source in SOURCES.items()
    ]
    entries.append(f"insurance\n    {_INSURANCE}\n    from: made here; takes no --root")
    return "\n".join(
        [*entries, "", "`maxflip data NAME --root DIR` says what is in a folder, or what is wrong with it."]
    )


def describe(name: str, root: Path | None, watch: Watch) -> str:
    if name == "insurance":
        if root is not None:
            raise InputError("--root: insurance is made here and reads no folder. Leave --root out.")
        return _of_sequences(insurance(SHOWN_SEQUENCES, seed=0))
    if name not in SOURCES:
        known = [*SOURCES, "insurance"]
        raise InputError(f"{name!r}: no data of that name.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    source = SOURCES[name]
    if root is None:
        raise InputError(f"--root: say in which folder {name} is ({source.files}). Get it from {source.where}.")
    return source.describe(root, watch)


def _of_physionet(root: Path, watch: Watch) -> str:
    parts = []
    for chosen in sets_in(root):
        stays = physionet2012(root, chosen, grid=None, watch=watch)
        late = _labels(labels_of(root, chosen, "30_day"), stays.classes)
        parts.append(_of_sequences(stays, [f"after 30 days: {late}"]))
    return "\n\n".join(parts)


def _of_table(table: Table) -> str:
    rows = [
        (name, table.units.get(name, ""), f"{low:,.6g}", f"{mean:,.6g}", f"{high:,.6g}")
        for name, low, mean, high in zip(
            table.features, table.values.min(0), table.values.mean(0), table.values.max(0), strict=True
        )
    ]
    lines = [
        f"{table.source}: {len(table):,} rows of {len(table.features)} features",
        f"labels: {_labels(table.labels, table.classes)}",
        "",
        *_aligned([("feature", "unit", "lowest", "mean", "highest"), *rows]),
    ]
    return "\n".join(lines)


def _of_sequences(data: Sequences, more_labels: list[str] | None = None) -> str:
    lengths = np.array([len(steps) for steps in data.values])
    flat = np.concatenate(data.values)
    there = ~np.isnan(flat)
    owner = np.repeat(np.arange(len(data)), lengths)
    rows = []
    for i, name in enumerate(data.features):
        known = there[:, i]
        cells = flat[known, i].astype(np.float64)
        spread = [f"{number:,.6g}" for number in (cells.min(), cells.mean(), cells.max())] if len(cells) else [""] * 3
        rows.append((name, data.units.get(name, ""), f"{len(cells):,}", f"{len(np.unique(owner[known])):,}", *spread))
    silent = len(data) - len(np.unique(owner[there.any(axis=1)]))
    lines = [
        f"{data.source}: {len(data):,} sequences of {lengths.min()} to {lengths.max()} steps "
        f"({lengths.mean():.1f} on average), "
        f"{len(data.features)} variables, {len(data.static_features)} that do not change",
        f"measurements: {int(there.sum()):,}; missing: {1 - there.mean():.1%} of the steps' cells; "
        f"sequences without a measurement: {silent:,}",
        f"labels: {_labels(data.labels, data.classes)}",
        *(more_labels or []),
        *(f"left out: {count:,} {what}" for what, count in data.dropped.items() if count),
        "",
        *_aligned([("variable", "unit", "measured", "sequences", "lowest", "mean", "highest"), *rows]),
    ]
    return "\n".join(lines)


def _labels(labels: Integers, classes: tuple[str, ...]) -> str:
    counts = np.bincount(labels, minlength=len(classes))
    return ", ".join(f"{name} {n:,} ({n / len(labels):.1%})" for name, n in zip(classes, counts.tolist(), strict=True))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Texts aligned to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


_INSURANCE = "sequences in the shape of an insurer's: 169 features, 19 of them changeable, lengths 1 to 150, 5 classes"
SOURCES = {
    "physionet2012": Source(
        "stays in intensive care, the first 48 hours; who died",
        "https://physionet.org/content/challenge-2012/1.0.0/",
        "set-a/132539.txt ... and Outcomes-a.txt; likewise b, c",
        "open access; cite Silva et al. 2012",
        _of_physionet,
    ),
    "mimic3": Source(
        "13 laboratory values in the first 48 hours of an admission; who died within 30 days",
        "https://physionet.org/content/mimiciii/1.4/",
        "PATIENTS, ADMISSIONS and LABEVENTS, .csv or .csv.gz",
        "for credentialed users; cite Johnson et al. 2016",
        lambda root, watch: _of_sequences(mimic3(root, watch=watch)),
    ),
    "oulad": Source(
        "assessments of students in courses of the Open University; how the course ended",
        "https://analyse.kmi.open.ac.uk/open_dataset",
        "assessments, studentAssessment and studentInfo, .csv or .csv.gz",
        "CC BY 4.0; cite Kuzilek et al. 2017",
        lambda root, _watch: _of_sequences(oulad(root)),
    ),
    "credit_default": Source(
        "30,000 credit card clients in Taiwan; who defaulted",
        "https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
        "default_credit_card, .csv or .csv.gz",
        "CC BY 4.0; cite Yeh and Lien 2009",
        lambda root, _watch: _of_table(credit_default(root)),
    ),
}
