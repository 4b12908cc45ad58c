"""The cells of experiments/hold.py: each cohort, solver and margin by itself, kept in a file of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.held import ENSEMBLE, MARGINS, Case, Row, Source, base_lines, flips
from experiments.hold_credit import Credit
from experiments.hold_icu import Stays
from maxflip import solve
from maxflip.files.atomic import write_bytes

SOURCES: dict[str, Callable[[Path, Path], Source]] = {"credit": Credit, "icu": Stays}
Done = tuple[str, Any]  # a line for whoever watches, and what was found


@dataclass(frozen=True)
class Place:
    """Of one dataset: where its data lie, and where what is found is kept."""

    dataset: str
    data: Path
    out: Path
    is_quick: bool

    @property
    def source(self) -> Source:
        weights = self.out / self.dataset / "weights"
        weights.mkdir(parents=True, exist_ok=True)
        return SOURCES[self.dataset](self.data, weights)

    def path(self, *parts: object) -> Path:
        folder = self.out / self.dataset / ("quick" if self.is_quick else "full")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / ("-".join(str(part).replace(" ", "_") for part in parts) + ".json")


@lru_cache(maxsize=1)
def case_of(place: Place) -> Case[Any]:
    return place.source.case()


@dataclass(frozen=True)
class Cell:
    """seed: the cohort's number"""

    seed: int
    solver: str
    margin: float


def cells(case: Case[Any], seeds: int) -> list[Cell]:
    solvers = (*case.solvers, ENSEMBLE)
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
    source = place.source
    spec = source.models()[number]
    source.learn(spec, lambda _: None)
    return f"{place.dataset}: {spec.name} is learned", None


def budgets_of(place: Place, seed: int) -> dict[str, float]:
    case = case_of(place)
    size = case.quick_size if place.is_quick else case.size
    settings = {"size": size, "share": case.share}
    found: dict[str, float] = kept(place.path("budgets", seed), settings, lambda: case.budgets(case.cohort(seed, size)))
    return found


def sized(place: Place, seed: int) -> Done:
    budgets_of(place, seed)
    return f"{place.dataset}, cohort {seed}: budgets are sized", None


def compared(place: Place) -> Done:
    """The rows of the base lines, which need no plan."""
    case = case_of(place)
    settings = {"margins": MARGINS, "judges": [judge.name for judge in case.judges]}

    def make() -> list[Row]:
        began = time.monotonic()
        rows = base_lines(case, MARGINS)
        return _placed(place, None, rows, time.monotonic() - began)

    return f"{place.dataset}: base lines", kept(place.path("base_lines"), settings, make)


def measured(place: Place, cell: Cell) -> Done:
    """The rows of a cell, one per judge."""
    case = case_of(place)
    size = case.quick_size if place.is_quick else case.size
    solver = case.solvers["Prices" if cell.solver == ENSEMBLE else cell.solver]
    settings = {
        "size": size,
        "share": case.share,
        "solver": repr(solver),
        "judges": [judge.name for judge in case.judges],
    }

    def make() -> list[Row]:
        began = time.monotonic()
        cohort, budgets = case.cohort(cell.seed, size), budgets_of(place, cell.seed)
        classifier = case.planned["ensemble" if cell.solver == ENSEMBLE else "network"]
        problem = case.problem(cohort, classifier, budgets, cell.margin)
        plan = solve(problem, solver, seed=cell.seed)
        rows = flips(case, cohort, problem, plan, cell.margin)
        named = [{"solver": cell.solver, "margin": cell.margin, **row} for row in rows]
        return _placed(place, cell.seed, named, time.monotonic() - began)

    rows: list[Row] = kept(place.path("cell", cell.seed, cell.solver, f"{cell.margin:g}"), settings, make)
    count, held = rows[0]["count"], sum(row["held"] for row in rows)
    share = f"{held / (count * len(rows)):.0%} hold" if count else "none"
    return f"{place.dataset}, cohort {cell.seed}, {cell.solver}, margin {cell.margin:g}: {count}, {share}", rows


def _placed(place: Place, seed: int | None, rows: list[Row], seconds: float) -> list[Row]:
    return [{"dataset": place.dataset, "seed": seed, **row, "seconds": round(seconds, 2)} for row in rows]
