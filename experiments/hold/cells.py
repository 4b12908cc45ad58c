"""The cells of experiments/hold.py: each cohort, solver and margin by itself, kept in a file of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.hold.cases import ENSEMBLE, MARGINS, Case, Row, Source, base_lines, flips
from experiments.hold.credit import Credit
from experiments.hold.icu import Stays
from maxflip import solve
from maxflip.files.atomic import write_bytes

SOURCES: dict[str, Callable[[Path, Path], Source]] = {"credit": Credit, "icu": Stays}
FOLDERS = {"credit": "credit_default", "icu": "physionet2012"}  # in the folder of public data
Done = tuple[str, Any]  # a line for whoever watches, and what was found


@dataclass(frozen=True)
class Place:
    """Of one dataset: where its data lie, and where what is found is kept."""

    dataset: str
    data: Path
    out: Path
    is_quick: bool

    def path(self, *parts: object) -> Path:
        folder = self.out / self.dataset / ("quick" if self.is_quick else "full")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / ("-".join(str(part).replace(" ", "_") for part in parts) + ".json")


@lru_cache(maxsize=1)
def source_of(place: Place) -> Source:
    weights = place.out / place.dataset / "weights"
    weights.mkdir(parents=True, exist_ok=True)
    return SOURCES[place.dataset](place.data, weights)


def size_of(place: Place) -> int:
    """People in a cohort."""
    source = source_of(place)
    return source.quick_size if place.is_quick else source.size


@lru_cache(maxsize=1)  # cells come by seed
def case_of(place: Place, seed: int) -> Case[Any]:
    return source_of(place).case(seed, size_of(place))


@dataclass(frozen=True)
class Cell:
    """seed: the cohort's number"""

    seed: int
    solver: str
    margin: float


def cells(place: Place, seeds: int) -> list[Cell]:
    solvers = (*source_of(place).solvers, ENSEMBLE)
    return [Cell(seed, solver, margin) for seed in range(seeds) for margin in MARGINS for solver in solvers]


def kept(path: Path, settings: Row, make: Callable[[], Any]) -> Any:
    """What the file holds if it was made with the same settings; else it is made, and written whole or not at all."""
    settings = json.loads(json.dumps(settings))
    if path.exists():
        held = json.loads(path.read_text())
        if held["settings"] == settings:
            return held["found"]
    found = make()
    write_bytes(path, json.dumps({"settings": settings, "found": found}).encode())
    return found


def learned(place: Place, number: int) -> Done:
    source = source_of(place)
    spec = source.models()[number]
    source.learn(spec, lambda _: None)
    return f"{place.dataset}: {spec.name} is learned", None


def budgets_of(place: Place, seed: int) -> dict[str, float]:
    case = case_of(place, seed)
    settings = {"size": size_of(place), "share": case.share}
    found: dict[str, float] = kept(place.path("budgets", seed), settings, case.budgets)
    return found


def compared(place: Place, seed: int) -> Done:
    """The rows of the base lines, which need no plan; budgets are sized at the same time."""
    case = case_of(place, seed)
    budgets_of(place, seed)

    def make() -> list[Row]:
        began = time.process_time()
        rows = base_lines(case, MARGINS)
        return _placed(place, seed, rows, time.process_time() - began)

    settings = {"margins": MARGINS, "judges": [judge.name for judge in case.judges]}
    return f"{place.dataset}, cohort {seed}: base lines", kept(place.path("base_lines", seed), settings, make)


def measured(place: Place, cell: Cell) -> Done:
    """The rows of a cell, one per judge."""
    case = case_of(place, cell.seed)
    solver = source_of(place).solvers["Prices" if cell.solver == ENSEMBLE else cell.solver]

    def make() -> list[Row]:
        began = time.process_time()
        classifier = case.planned["ensemble" if cell.solver == ENSEMBLE else "network"]
        problem = case.problem(case.cohort, classifier, budgets_of(place, cell.seed), cell.margin)
        plan = solve(problem, solver, seed=cell.seed)
        rows = flips(case, problem, plan, cell.margin)
        named = [{"solver": cell.solver, "margin": cell.margin, **row} for row in rows]
        return _placed(place, cell.seed, named, time.process_time() - began)

    settings = {
        "size": size_of(place),
        "share": case.share,
        "solver": repr(solver),
        "judges": [judge.name for judge in case.judges],
    }
    rows: list[Row] = kept(place.path("cell", cell.seed, cell.solver, f"{cell.margin:g}"), settings, make)
    count, held = rows[0]["count"], sum(row["held"] for row in rows)
    share = f"{held / (count * len(rows)):.0%} hold" if count else "none"
    return f"{place.dataset}, cohort {cell.seed}, {cell.solver}, margin {cell.margin:g}: {count}, {share}", rows


def _placed(place: Place, seed: int, rows: list[Row], seconds: float) -> list[Row]:
    return [{"dataset": place.dataset, "seed": seed, **row, "seconds": round(seconds, 2)} for row in rows]
