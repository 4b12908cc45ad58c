"""The program, and the cells that it is made of."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maxflip import BCMS, KL, MS, Problem
from research.cells import with_needs
from research.evidence.files import ROOT, read
from research.experiments import __main__ as program
from research.experiments import budget, protocol, runtime, scalability
from research.experiments.budget import Plans
from research.experiments.carry import console
from research.experiments.cohorts import DATASETS, FOLDERS
from research.experiments.hold import program as hold
from research.experiments.hold.cells import SOURCES
from research.experiments.protocol import FULL, KINDS, QUICK, SHARES, Scale, begun, verbatim
from research.experiments.public_data import those_with_data
from research.tests.experiments import stage

TINY = Scale(n=6, tuning_n=6, outer=2, inner=2, allowance=8, paper_limit=3, groups=2)


def test_without_data_it_is_said_what_to_fetch_and_the_generator_is_left(capsys: Any) -> None:
    assert those_with_data(DATASETS, FOLDERS, None, console) == ["insurance"]
    said = " ".join(capsys.readouterr().err.split())
    assert "icu is left out: no folder was named. Fetch it from https://physionet.org" in said
    assert "oulad is left out" in said
    assert "docs/data.md" in said
    assert "MAXFLIP_DATA" in said


def test_a_folder_that_is_missing_is_named(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "oulad").mkdir()
    assert those_with_data(DATASETS, FOLDERS, tmp_path, console) == ["oulad", "insurance"]
    assert f"{tmp_path} has no folder physionet2012" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "fault"),
    [(["budget", "--only", "icu,mars"], "no dataset is called 'mars'"), (["budget", "--seeds", "0"], ">= 1")],
)
def test_wrong_words_are_refused(words: Sequence[str], fault: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        program.main(words)
    assert fault in capsys.readouterr().err


def test_the_paper_s_settings_are_cut_by_gradients_alone() -> None:
    assert verbatim("BCMS", 5000) == BCMS.paper()
    assert verbatim("BCMS", 350) == BCMS.paper(outer=3)
    assert verbatim("MS", 5000) == MS.paper(outer=1, inner=5000)
    assert verbatim("KL", 50_000) == KL.paper()


@pytest.mark.parametrize("experiment", ["budget", "scalability", "runtime"])
def test_finished_cells_are_known_wherever_the_data_lie(experiment: str) -> None:
    """What one machine has finished, another goes on from."""

    def keys(data: str) -> list[str]:
        return [cell.key for cell in with_needs(program.cells_of(experiment, DATASETS, data, 1, is_quick=True))]

    assert keys("here") == keys("there")


@pytest.mark.parametrize("scales", [FULL, QUICK])
def test_every_algorithm_has_the_same_allowance_and_can_spend_it(scales: dict[str, Scale]) -> None:
    for scale in scales.values():
        lengths = {begun(name, scale).outer * begun(name, scale).inner for name in KINDS}
        assert len(lengths) == 1
        assert scale.allowance % lengths.pop() == 0
        assert scale.n >= scale.groups


def test_every_budget_solver_and_seed_has_its_cell() -> None:
    cells = Plans("icu", None, TINY).cells(seeds=3)
    runs = [cell.arguments for cell in cells]
    assert len({cell.key for cell in cells}) == len(cells) == 3 * 6 * 6 + 3 * 2 * 4 + 4
    assert {run.draw.seed for run in runs} == {0, 1, 2}
    # sizing of each draw and of the one for tuning; two tunings per algorithm
    assert len(with_needs(cells)) == len(cells) + 4 + 2 * 4
    assert not any(run.draw.seed == protocol.TUNING_SEED for run in runs)


def test_sizes_are_nested_and_nearest_has_no_warm_start() -> None:
    growth = protocol.Growth((20, 40, 60), 3)
    chains = [
        cell.arguments for cell in scalability.cells(Plans("insurance", None, QUICK["insurance"]), growth, seeds=2)
    ]
    assert {chain.seed for chain in chains} == {0, 1}
    assert not any(chain.solver == "Nearest" and chain.start == "warm" for chain in chains)
    pooled = [c for c in chains if (c.solver, c.allocation, c.seed) == ("BCMS", "joint", 0)]
    assert {(c.sizes, c.scaling, c.start) for c in pooled} == {
        ((20,), "both", "random"),
        ((40,), "fixed", "random"),
        ((60,), "fixed", "random"),
        ((40,), "scaled", "random"),
        ((60,), "scaled", "random"),
        ((20, 40, 60), "fixed", "warm"),
        ((20, 40, 60), "scaled", "warm"),
    }


def test_a_tiny_study_from_the_generator_to_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything on a handful of sequences of another model; a second run computes nothing."""
    monkeypatch.setattr(budget, "problem_of", stage.problem_of)
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    monkeypatch.setattr(protocol, "QUICK", {"insurance": TINY})
    monkeypatch.setattr(protocol, "QUICK_GROWTH", {"insurance": protocol.Growth((6, 8), 2)})
    out = tmp_path / "out"
    results = out / "results-quick"  # of a quick run: those of the repository stay as they are
    words = ["--quick", "--seeds", "1", "--workers", "1", "--only", "insurance", "--out", str(out)]
    for name in ("budget", "scalability", "runtime", "figures"):
        assert program.main([name, *words]) == 0
    rows = read("budget", results)[0].to_pylist()
    assert len(rows) == 6 * 6 + 2 * 4 + 4
    assert all(row["count"] <= 6 and row["spent"] <= 1.0 for row in rows)
    own = {row["protocol"] for row in rows if row["solver"] in ("Prices", "Nearest")}
    assert own == {"own"}
    assert {row["iterations_made"] for row in rows if row["protocol"] == "paper"} == {3}
    tuning = read("tuning", results)[0].to_pylist()
    assert len(tuning) == 2 * 4 * 2  # kinds of budgets, algorithms, settings that 8 gradients pay for
    assert all(sum(r["chosen"] for r in tuning if (r["solver"], r["budget_source"]) == p) == 1 for p in _places(tuning))
    sizes = read("scalability", results)[0].to_pylist()
    assert {row["n"] for row in sizes} == {6, 8}
    first = {(r["solver"], r["allocation"], r["scaling"], r["start"]): r["count"] for r in sizes if r["n"] == 6}
    assert first["BCMS", "joint", "fixed", "random"] == first["BCMS", "joint", "scaled", "warm"]
    assert first["BCMS", "joint", "fixed", "random"] == first["BCMS", "joint", "scaled", "random"]
    times = read("runtime", results)[0].to_pylist()
    assert {row["solver"] for row in times} == set(protocol.SOLVERS)
    _page_names_its_columns(results)
    written = {path: path.stat().st_mtime_ns for path in out.glob("*.json")}
    assert program.main(["budget", *words]) == 0
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.json")} == written
    assert len(list((out / "pictures-quick").glob("*.svg"))) >= 6


PAGE = (ROOT / "docs" / "experiments.md").read_text()


def _page_names_its_columns(results: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", PAGE.split("## Result files")[1], re.MULTILINE)
    assert {name for name, _ in rows} == {path.stem for path in results.glob("*.parquet")}
    for name, columns in rows:
        assert set(re.findall(r"`(\w+)`", columns)) <= set(read(name, results)[0].column_names), name


def test_the_page_has_the_numbers_of_the_protocol() -> None:
    scales = [FULL[name] for name in DATASETS]

    def line(head: str, cells: Sequence[str]) -> str:
        return f"| {head} | {' | '.join(cells)} |"

    for head, cells in (
        ("drawn for each seed", [f"{s.n}" for s in scales]),
        ("iterations of a tuned run, outer x inner, at most", [f"{s.outer} x {s.inner}" for s in scales]),
        (
            "gradients per sample for tuning one algorithm, at most: settings",
            [f"{s.allowance:,}: {s.allowance // (s.outer * s.inner)}" for s in scales],
        ),
        ("tuned on samples", [f"{s.tuning_n}" for s in scales]),
        ("a run with the paper's settings ends after gradients", [f"{s.paper_limit:,}" for s in scales]),
    ):
        assert line(head, cells) in PAGE
    for growth in protocol.FULL_GROWTH.values():
        assert "{} samples that are among {} that are among {}".format(*growth.sizes) in PAGE
        assert f"R = {growth.groups} groups" in PAGE
    assert f"{protocol.FULL_SEEDS} draws of each" in PAGE


def _places(rows: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["solver"], row["budget_source"]) for row in rows}


def test_the_total_of_a_run_is_reckoned_from_its_last_outer_iteration() -> None:
    """5 inner iterations of 0.2 s in an outer one of 1.5 s; 6 gradients each of 3 samples"""
    trace = {"inner": [5, 5], "seconds_inner": [9.0, 0.2], "seconds": [50.0, 1.5], "gradients": [15, 33]}
    plan: Any = replace(_plan(), trace=trace)
    row = runtime.per_iteration(plan, 3, outer=10, inner=100)
    assert row["seconds_outer"] == pytest.approx(0.5)
    assert row["gradients_outer"] == pytest.approx(1.0)
    assert row["seconds_total"] == pytest.approx(10 * (100 * 0.2 + 0.5))
    assert row["gradients_total"] == pytest.approx(10 * 101)
    assert not row["is_measured"]


def _plan() -> Any:
    from maxflip import Nearest, solve
    from research.tests.experiments.test_measures import problem

    return solve(problem(), Nearest())


def test_the_middle_budget_is_that_of_the_smallest_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 samples there are 100; the smallest set has 10 of them."""
    monkeypatch.setattr(budget, "problem_of", stage.problem_of)
    plans, growth = Plans("insurance", None, replace(TINY, n=20)), protocol.Growth((10, 20), 2)
    sizing = {"amounts": {"binding": {"middle": {"pressure": 100.0, "glucose": 100.0}}}}
    amounts: list[float] = []

    def noted(problem: Problem, *rest: Any) -> Any:
        amounts.append(problem.budgets["pressure"].amount)
        return allotted(problem, *rest)

    allotted = budget.allotted
    monkeypatch.setattr(scalability, "allotted", noted)
    for scaling in scalability.SCALINGS:
        chain = scalability.Chain(plans, growth, growth.sizes, 0, "Nearest", "joint", scaling, "random")
        scalability.grow(chain, [sizing], "cpu")
    assert amounts == [50.0, 50.0, 50.0, 100.0]


@pytest.mark.parametrize("what", ["hold", "all"])
def test_whether_flips_hold_is_asked_with_the_others(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def ask(given: argparse.Namespace) -> int:
        told.append(given)
        return 1

    monkeypatch.setattr(hold, "run", ask)
    monkeypatch.setattr(program, "carry_out", lambda *_, **__: (0, []))
    monkeypatch.setattr(program, "OUT", tmp_path)
    words = ["--data", str(tmp_path), "--workers", "3", "--quick", "--limit", "1000"]
    assert program.main([what, *words]) == 1  # as many cells failed
    assert [(given.data, given.workers, given.quick) for given in told] == [(str(tmp_path), 3, True)]
    assert 900 < told[0].limit <= 1000
    assert told[0].seeds is None
    assert told[0].only == ("credit", "icu")
    assert what != "all" or told[0].out == tmp_path / "hold"


@pytest.mark.parametrize(
    ("words", "only", "seeds"),
    [
        (["--only", "insurance,icu", "--seeds", "1"], ("icu",), 1),
        (["--seeds", "9"], ("credit", "icu"), 5),
        (["--only", "insurance", "--seeds", "1"], None, None),
    ],
)
def test_all_gives_hold_what_it_was_asked_itself(
    words: Sequence[str],
    only: tuple[str, ...] | None,
    seeds: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    told: list[Any] = []

    def ask(given: argparse.Namespace) -> int:
        told.append(given)
        return 0

    monkeypatch.setattr(hold, "run", ask)
    monkeypatch.setattr(program, "carry_out", lambda *_, **__: (0, []))
    assert program.main(["all", "--quick", "--out", str(tmp_path), *words]) == 0
    assert [(given.only, given.seeds) for given in told] == ([] if only is None else [(only, seeds)])
    said = "hold is left out: it is not about insurance, but about credit and icu" in heard(capsys)
    assert said == (only is None)


def test_all_without_the_data_of_hold_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    monkeypatch.setattr(program, "carry_out", lambda *_, **__: (0, []))
    assert program.main(["all", "--quick", "--out", str(tmp_path)]) == 0
    assert "Nothing was run: of no dataset that hold was asked for" in heard(capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["scalability", "--only", "icu"],
            "scalability is not about icu, but about oulad and insurance. Nothing was run",
        ),
        (["runtime", "--only", "oulad"], "runtime is not about oulad, but about insurance. Nothing was run"),
        (["budget", "--only", "icu"], "Nothing was run: the data of icu are not there"),
        (["all", "--only", "icu"], "Nothing was run: the data of icu are not there"),
        (["figures", "--results", "nowhere"], "Nothing was drawn: nowhere holds no result file"),
    ],
)
def test_where_nothing_can_be_done_it_is_said_and_no_success(
    words: Sequence[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    assert program.main([*words, "--out", str(tmp_path), "--pictures", str(tmp_path)]) == 2
    assert said in heard(capsys)


def test_of_datasets_that_nobody_named_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(program, "carry_out", lambda *_, **__: (0, []))
    assert program.main(["runtime", "--quick", "--out", str(tmp_path)]) == 0
    assert heard(capsys) == ""


def heard(capsys: Any) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("what", ["budget", "hold"])
def test_after_ctrl_c_it_is_said_how_to_go_on(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def strike(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "carry_out", strike)
    monkeypatch.setattr(hold, "run", strike)
    assert program.main([what, "--quick", "--out", str(tmp_path)]) == 130
    assert "run the same again" in " ".join(capsys.readouterr().err.split())


def test_everything_in_its_quick_form_is_reckoned_at_less_than_twenty_minutes_on_two_cores(tmp_path: Path) -> None:
    words = ["all", "--quick", "--data", str(tmp_path), "--out", str(tmp_path)]
    given = program._parser().parse_args(words)
    given.seeds = protocol.QUICK_SEEDS
    parts = [program.part_of(name, given, DATASETS) for name in program.EXPERIMENTS]
    given.seeds = None
    parts += [hold.part_of(name, given) for name in SOURCES]
    seconds = sum(cell.seconds for cell in with_needs([cell for part in parts for cell in part.cells]))
    assert seconds / 2 < 20 * 60


def test_fewer_datasets_or_draws_are_not_all_that_a_full_run_has() -> None:
    """Their rows must not replace those of everything."""

    def missing(*words: str) -> bool:
        given = program._parser().parse_args(["budget", *words])
        given.seeds = given.seeds or protocol.FULL_SEEDS
        part = program.part_of("budget", given, given.only)
        return bool({cell.key for cell in part.protocol} - {cell.key for cell in part.cells})

    assert not missing()
    assert not missing("--seeds", str(protocol.FULL_SEEDS + 1))
    assert missing("--only", "icu,oulad")
    assert missing("--seeds", "1")
    assert missing("--quick")


def test_budgets_are_named_for_their_source() -> None:
    assert SHARES["paper"] == {"small": 0.4, "middle": 0.6, "large": 0.8}
    assert SHARES["binding"] == {"small": 0.1, "middle": 0.2, "large": 0.4}
