"""Figures from small result files that are made up."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from research.evidence.files import FOLDER, ROOT, made_here, write
from research.evidence.rendering import rendered
from research.evidence.results import Results
from research.experiments.figures import MOST, draw_all, of_budgets, prolonged, with_the_most
from research.experiments.hold import points as hold_points
from research.experiments.protocol import BUDGETS, SOLVERS, SOURCES
from research.experiments.styles import STYLES

NUMBERS: dict[str, Any] = {
    "n": 20,
    "consumption_per_picked": 1.0,
    "unspent": 0.5,
    "prediction_gap": 0.2,
    "bound": None,
}


def row(seed: int, solver: str, count: float) -> dict[str, Any]:
    own = solver in ("Nearest", "Prices")
    return NUMBERS | {
        "seed": seed,
        "solver": solver,
        "count": count,
        "estimate": 17.25 if solver == "Prices" else None,
        "protocol": "own" if own else "tuned",
        "allocation": "joint",
        "groups": 1,
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made, places = made_here("test"), list(product((0, 1), SOLVERS))
    write(
        "budget",
        [
            row(seed, solver, 5 + at) | {"dataset": "icu", "budget_source": source, "budget": budget}
            for source, (at, budget) in product(SOURCES, enumerate(BUDGETS))
            for seed, solver in places
        ],
        made,
        tmp_path,
    )
    write(
        "scalability",
        [
            row(seed, solver, 5)
            | {"dataset": "oulad", "n": n, "scaling": "fixed", "start": start, "allocation": allocation, "groups": 3}
            for n, start, allocation in product((20, 40), ("random", "warm"), ("joint", "proportional"))
            for seed, solver in places
            if allocation == "joint" or (start == "random" and solver not in ("Nearest", "Prices"))
        ],
        made,
        tmp_path,
    )
    write(
        "iterations",
        [
            row(seed, solver, 5 + outer)
            | {"dataset": "icu", "budget_source": "paper", "budget": "middle", "outer": outer}
            | {"mean_lambda": 1.0, "mean_mu": 2.0, "grad_mu": 0.5}
            for outer in (1, 2)
            for seed, solver in places
            if solver not in ("Nearest", "Prices")
        ],
        made,
        tmp_path,
    )
    write(
        "prices",
        [
            {"dataset": "icu", "seed": 0, "budget_source": "binding", "budget": "middle"}
            | {"feature": name, "amount": 2.0, "spend": 1.0, "price": 3.0}
            for name in ("BUN", "Glucose")
        ],
        made,
        tmp_path,
    )
    return tmp_path


def texts(path: Path) -> str:
    return " ".join(
        "".join(element.itertext()).strip()
        for element in ET.parse(path).getroot().iter()
        if element.tag.endswith("}text")
    )


def test_every_figure_is_drawn_from_the_result_files(results: Path, tmp_path: Path) -> None:
    drawn = draw_all(results, tmp_path / "pictures")
    assert {path.stem for path in drawn} == {
        "study_budget_icu_paper",
        "study_budget_icu_binding",
        "study_frontier",
        "study_gap",
        "study_sizes_oulad_joint_fixed",
        "study_sizes_oulad_proportional_fixed",
        "study_improvement_oulad",
        "study_iterations_icu_paper",
        "study_prices",
    }
    assert all(path.stat().st_size < 200_000 for path in drawn)
    budget = texts(tmp_path / "pictures" / "study_budget_icu_paper.svg")
    assert all(name in budget for name in (*SOLVERS, "estimate of the most", "(a)", "(d)", "(60%)"))
    assert "estimate of the most" in texts(tmp_path / "pictures" / "study_iterations_icu_paper.svg")
    assert "estimate of the most" in texts(tmp_path / "pictures" / "study_sizes_oulad_proportional_fixed.svg")
    assert "open markers: warm start" in texts(tmp_path / "pictures" / "study_sizes_oulad_joint_fixed.svg")
    assert "open markers" not in texts(tmp_path / "pictures" / "study_sizes_oulad_proportional_fixed.svg")
    assert "Glucose" in texts(tmp_path / "pictures" / "study_prices.svg")


def test_the_page_shows_every_figure(results: Path, tmp_path: Path) -> None:
    page = "".join(rendered(name, Results(results)) for name in ("results.picture", "results.figures"))
    shown = re.findall(r"\(pictures/(\w+)\.svg\)", page)
    assert sorted(shown) == sorted(path.stem for path in draw_all(results, tmp_path / "pictures"))


def test_the_same_results_give_the_same_files(results: Path, tmp_path: Path) -> None:
    first = {path.name: path.read_bytes() for path in draw_all(results, tmp_path / "one")}
    assert {path.name: path.read_bytes() for path in draw_all(results, tmp_path / "two")} == first


def test_heights_can_be_compared(results: Path) -> None:
    """A count of 73 beside 70 must not look like twice as many."""
    figures = dict(of_budgets(results))
    for name in ("study_budget_icu_paper", "study_frontier"):
        assert [axis.get_ylim()[0] for axis in figures[name].axes] == [0.0] * len(figures[name].axes)


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    assert draw_all(tmp_path, tmp_path / "pictures") == []


MADE_FROM = {
    "study_budget": "budget",
    "study_frontier": "budget",
    "study_gap": "budget",
    "study_sizes": "scalability",
    "study_improvement": "scalability",
    "study_iterations": "iterations",
    "study_prices": "prices",
    "hold": "hold_credit",
}


def source_of(picture: str) -> Path:
    return FOLDER / f"{next(file for name, file in MADE_FROM.items() if picture.startswith(name))}.parquet"


def places(svg: str) -> list[float]:
    """Of all lines and marks; letters are text."""
    found = re.findall(r' (?:d|x|y|transform)="([^"]*)"', svg)
    return [float(number) for path in found for number in re.findall(r"-?[\d.]+", path)]


def test_the_pictures_of_the_pages_are_those_of_their_result_files(tmp_path: Path) -> None:
    """Another matplotlib may move a line by a hair; other results, solvers or styles are seen."""
    drawn = {path.stem: path for path in draw_all(FOLDER, tmp_path)}
    folder = ROOT / "docs" / "pictures"
    committed = {path.stem: path for pattern in ("study_*.svg", "hold.svg") for path in folder.glob(pattern)}
    assert drawn.keys() == {name for name in committed if source_of(name).is_file()}
    assert "hold" in drawn
    for name, path in drawn.items():
        new, old = path.read_text(), committed[name].read_text()
        assert texts(path) == texts(committed[name]), name
        assert re.findall(r"#[0-9a-f]{6}", new) == re.findall(r"#[0-9a-f]{6}", old), name
        assert len(places(new)) > 200
        assert places(new) == pytest.approx(places(old), abs=0.5), name


def test_solvers_differ_by_more_than_their_colour_and_look_the_same_everywhere() -> None:
    assert STYLES.keys() == {*SOLVERS, *hold_points.SOLVERS}
    assert len({style.colour for style in STYLES.values()}) == len(STYLES)
    assert len({style.marker for style in STYLES.values()}) == len(STYLES)
    assert len({str(style.line) for style in STYLES.values()}) == len(STYLES)


def test_runs_that_ended_early_stay_as_they_ended() -> None:
    rows = [
        {"solver": "KL", "seed": seed, "outer": k, "count": 10 * k + seed} for seed in (0, 1) for k in (1, 2 + seed)
    ]
    more = prolonged(rows)
    assert more[: len(rows)] == rows
    assert more[len(rows) :] == [{"solver": "KL", "seed": 0, "outer": 3, "count": 20}]
    assert prolonged([]) == []


def test_the_most_stands_beside_solvers_where_it_is_known() -> None:
    """A proved bound goes before an estimate; of other solvers and of what is not known there is none."""
    of_prices: dict[str, Any] = {"solver": "Prices", "count": 8, "estimate": 9.5, "bound": None}
    rows = [of_prices, of_prices | {"bound": 9.0}, of_prices | {"estimate": None}, of_prices | {"solver": "KL"}]
    more = with_the_most(rows)[len(rows) :]
    assert [(row["solver"], row["count"]) for row in more] == [(MOST, 9.5), (MOST, 9.0)]
