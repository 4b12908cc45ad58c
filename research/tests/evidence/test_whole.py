"""The result files that the pages of the study are made from are of full runs: nothing missing, nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from research.evidence.files import FOLDER, read
from research.experiments.hold.cases import AS_CLOSE, MARGINS, PARTS, UNCHANGED
from research.experiments.hold.cells import SOURCES as HELD
from research.experiments.hold.points import SOLVERS as LINES
from research.experiments.hold.points import name_of
from research.experiments.protocol import BUDGETS, FULL, FULL_GROWTH, FULL_SEEDS, KINDS, OWN, SOLVERS, SOURCES
from research.experiments.scalability import ALGORITHMS, SCALINGS
from research.experiments.scalability import SOURCE as SCALED_SOURCE

SEEDS = range(FULL_SEEDS)


def rows_of(name: str) -> list[dict[str, Any]]:
    if not (FOLDER / f"{name}.parquet").is_file():
        pytest.skip(f"{name} is not measured yet")
    table, made = read(name)
    assert "--quick" not in made.command
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def counted(rows: Iterable[dict[str, Any]], *columns: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[column] for column in columns) for row in rows)


def test_every_budget_of_the_protocol_is_there_once() -> None:
    rows = rows_of("budget")
    joint = [row for row in rows if row["allocation"] == "joint" and row["protocol"] != "paper"]
    assert counted(joint, "dataset", "seed", "budget_source", "budget", "solver") == Counter(
        product(FULL, SEEDS, SOURCES, BUDGETS, SOLVERS)
    )
    assert all((row["protocol"] == "own") == (row["solver"] in OWN) for row in joint)
    groups = [row for row in rows if row["allocation"] == "proportional"]
    assert counted(groups, "dataset", "seed", "budget_source", "budget", "solver", "protocol") == Counter(
        product(FULL, SEEDS, SOURCES, ["middle"], KINDS, ["tuned"])
    )
    verbatim = [row for row in rows if row["protocol"] == "paper"]
    assert counted(verbatim, "dataset", "seed", "budget_source", "budget", "solver", "allocation") == Counter(
        product(FULL, [0], ["paper"], ["middle"], KINDS, ["joint"])
    )
    assert len(joint) + len(groups) + len(verbatim) == len(rows)
    assert {(row["dataset"], row["n"]) for row in rows} == {(name, scale.n) for name, scale in FULL.items()}


def test_every_size_of_the_protocol_is_there_once() -> None:
    rows = rows_of("scalability")
    wanted: Counter[tuple[Any, ...]] = Counter()
    for dataset, growth in FULL_GROWTH.items():
        where = ([dataset], SEEDS, growth.sizes)
        solvers = (*ALGORITHMS, *OWN)
        begun = [(solver, start) for solver in solvers for start in ("random", "warm")]
        wanted.update(
            (*place, scaling, "joint", 1, solver, start)
            for *place, scaling, (solver, start) in product(*where, SCALINGS, begun)
            if (solver, start) != ("Nearest", "warm")  # it begins nowhere
        )
        wanted.update(
            (*place, "scaled", "proportional", growth.groups, solver, "random")
            for *place, solver in product(*where, ALGORITHMS)
        )
    columns = ("dataset", "seed", "n", "scaling", "allocation", "groups", "solver", "start")
    assert counted(rows, *columns) == wanted
    assert {(row["budget"], row["budget_source"]) for row in rows} == {("middle", SCALED_SOURCE)}


def test_what_both_experiments_asked_has_one_answer() -> None:
    """The smallest set with the middle binding budget, run at other times and on other machines; BCMS and CCMS draw
    noise, which is another one on a GPU."""
    budgets = {
        (row["dataset"], row["seed"], row["solver"]): row["count"]
        for row in rows_of("budget")
        if (row["budget_source"], row["budget"], row["allocation"]) == (SCALED_SOURCE, "middle", "joint")
    }
    asked_again = [
        row
        for row in rows_of("scalability")
        if row["n"] == FULL[row["dataset"]].n and row["allocation"] == "joint" and row["start"] == "random"
    ]
    quiet = [row for row in asked_again if row["solver"] in ("KL", *OWN)]
    assert {(r["dataset"], r["seed"], r["solver"]): r["count"] for r in quiet} == {
        place: count for place, count in budgets.items() if place[0] in FULL_GROWTH and place[2] in ("KL", *OWN)
    }


@pytest.mark.parametrize("dataset", HELD)
def test_every_judge_of_every_plan_is_there_once(dataset: str) -> None:
    rows = rows_of(name_of(dataset))
    judges = {row["judge"] for row in rows}
    assert len(judges) == 10
    assert counted(rows, "seed", "solver", "margin", "judge") == Counter(
        product(range(PARTS), (*LINES, UNCHANGED, AS_CLOSE), MARGINS, judges)
    )
    assert {row["people"] for row in rows if row["solver"] in LINES} == {size_of(dataset)}


def size_of(dataset: str) -> int:
    """Of a cohort of a full run; --quick has fewer people."""
    source: Any = HELD[dataset]
    size: int = source.size
    return size
