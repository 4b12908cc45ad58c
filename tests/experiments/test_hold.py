"""Whether flips hold: judges whose answers are known, base lines, intervals, and a small run from end to end."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from evidence import files
from experiments import stays
from experiments.hold import cells as hold_cells
from experiments.hold import page as hold_page
from experiments.hold import picture as draw_hold
from experiments.hold import points as hold_points
from experiments.hold import program as hold
from experiments.hold.cases import (
    AS_CLOSE,
    ENSEMBLE,
    MARGINS,
    MATES,
    NETWORKS,
    PARTS,
    RETRAINED,
    UNCHANGED,
    Case,
    Judge,
    Spec,
    base_lines,
    confidence,
    drawn,
    flips,
    resampled,
    verdict,
)
from experiments.hold.cells import kept
from experiments.hold.credit import TREES, WIDE, Credit, probabilities
from experiments.hold.icu import LSTM, TRANSFORMER, changed, from_a_bootstrap, of_another_kind
from experiments.metrics import Floats
from experiments.packed import logits_of
from experiments.tasks import Rows, Task
from maxflip import Ensemble, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.classifiers import Classifier
from maxflip.solvers import Solver
from tests.experiments.stage import small
from tests.real_data import real_data


def line_at(where: float) -> torch.nn.Linear:
    """Wanted is class 1; its confidence at x is tanh((x - where) / 2). The second column is not looked at."""
    net = torch.nn.Linear(2, 2, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
        net.bias.copy_(torch.tensor([0.0, -where]))
    return net


def said_by(net: torch.nn.Linear, x: Floats) -> Floats:
    with torch.no_grad():
        found: Floats = torch.softmax(net(torch.tensor(x)), dim=1).numpy()
    return found


def judge_at(where: float, kind: str = "seed") -> Judge[Floats]:
    net = line_at(where)
    return Judge(f"at {where:g}", kind, lambda x: said_by(net, x))


def at(x: list[float] | Floats) -> Floats:
    return np.column_stack([x, np.zeros(len(x))])


def question(cohort: Floats, classifier: Classifier, budgets: Mapping[str, float], margin: float) -> Problem:
    return Problem(
        classifier=classifier, cohort=cohort, features=["a", "b"], target=1, margin=margin, budgets=dict(budgets)
    )


def small_case(x: Floats, cohort: list[float] | Floats, *judges: Judge[Floats]) -> Case[Floats]:
    network, mate = (TorchClassifier(line_at(where), output="logits") for where in (0.0, 0.2))
    return Case(
        wanted=1,
        share=0.5,
        people=at(x),
        labels=(x >= 0).astype(np.int64),
        cohort=at(cohort),
        features=("a",),
        own=judge_at(0.0, "network"),
        planned={"network": network, "ensemble": Ensemble([network, mate])},
        judges=judges,
        take=lambda people, rows: people[rows],
        changed=lambda people, plan: people[plan.selected] + plan.changes,
        problem=question,
    )


EVEN = np.arange(-20, 20) / 10 + 0.05  # -1.95, -1.85, ... 1.95


@pytest.mark.parametrize("margin", MARGINS)
def test_a_flip_by_a_margin_holds_where_the_line_moved_by_less_than_the_margin_reaches(margin: float) -> None:
    reach = 2 * math.atanh(margin)  # the nearest flip by the margin ends here
    steps = {"less": reach - 0.01, "more": reach + 0.01, "far": -5.0}
    case = small_case(EVEN, [-1.0, -0.5, -0.2], *(judge_at(where) for where in steps.values()))
    problem = question(case.cohort, case.planned["network"], {"a": 1e6}, margin)
    plan = solve(problem, Nearest())
    less, more, far = flips(case, problem, plan, margin)
    assert less["count"] == more["count"] == 3
    assert (less["held"], more["held"], far["held"]) == (3, 0, 3)
    assert (less["anyway"], far["anyway"]) == (0, 3)
    assert (less["held_with_margin"], far["held_with_margin"]) == (3 if margin == 0 else 0, 3)
    assert less["confidence"] == pytest.approx(margin, abs=1e-4)
    moved = np.array([1.0, 0.5, 0.2]) + reach
    assert less["cost"] == pytest.approx((moved**2).mean() / np.var([-1.0, -0.5, -0.2]), rel=1e-3)


def test_a_judge_says_who_holds_and_who_was_there_before() -> None:
    then, now = np.array([-0.5, -0.2, 0.1, 0.2]), np.array([-0.1, 0.05, 0.34, -0.3])
    assert verdict(judge_at(0.3, "bootstrap"), then, now, 0.3) == {
        "judge": "at 0.3",
        "kind": "bootstrap",
        "held": 2,
        "held_with_margin": 1,
        "anyway": 2,
        "won": 1,
    }


def test_confidence_is_what_a_margin_is_asked_of() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.7, 0.1, 0.2]])
    assert confidence(p, 1) == pytest.approx([0.2, 0.0, -0.6])


def test_base_lines_are_about_people_without_changes() -> None:
    case = small_case(EVEN, [], judge_at(1.0), judge_at(0.0))
    rows = base_lines(case, (0.0, 0.5))
    found = {(row["solver"], row["margin"], row["judge"]): row for row in rows}
    assert len(found) == len(rows) == 8
    moved, same = found[UNCHANGED, 0.0, "at 1"], found[UNCHANGED, 0.0, "at 0"]
    assert (moved["count"], moved["held"], same["held"]) == (20, 10, 20)
    assert same["auc"] == 1.0
    near = found[AS_CLOSE, 0.0, "at 1"]  # |tanh(x / 2)| < 0.05: -0.05 and 0.05
    assert (near["count"], near["held"], found[AS_CLOSE, 0.0, "at 0"]["held"]) == (2, 0, 1)
    by_half = found[UNCHANGED, 0.5, "at 1"]
    assert by_half["count"] == int((np.tanh(EVEN / 2) >= 0.5).sum())
    assert by_half["held"] == by_half["count"]  # a line that moves by 1 does not reach 2 artanh 0.5 = 1.0986


def test_cohorts_have_nobody_in_common_and_are_rightly_predicted() -> None:
    labels = np.arange(1000) % 2
    predicted = np.where(np.arange(1000) % 10 == 3, 1 - labels, labels)  # wrong for some of class 1
    cohorts = [drawn(seed, 60, predicted, labels, wanted=0) for seed in range(PARTS)]
    together = np.concatenate(cohorts)
    assert len(set(together)) == 60 * PARTS
    assert (labels[together] == 1).all()
    assert (predicted[together] == 1).all()
    everyone = np.concatenate([drawn(seed, 1000, predicted, labels, wanted=0) for seed in range(PARTS)])
    assert np.array_equal(np.sort(everyone), np.flatnonzero((labels == 1) & (predicted == 1)))


def test_no_two_models_are_learned_alike() -> None:
    learned = [*NETWORKS, *RETRAINED, *MATES, WIDE, TREES]
    assert len({spec.seed for spec in learned}) == len({spec.file for spec in learned}) == len(learned)


def test_budgets_are_a_share_of_what_everyones_nearest_flip_draws() -> None:
    reach = 2 * math.atanh(0.1)
    assert small_case(EVEN, [-1.0, -0.5]).budgets()["a"] == pytest.approx(
        0.5 * ((1.0 + reach) ** 2 + (0.5 + reach) ** 2), rel=1e-3
    )


def test_a_bootstrap_draws_with_replacement_by_its_seed() -> None:
    rows = np.arange(100, 600)
    drawn = resampled(rows, 1)
    assert np.array_equal(drawn, resampled(rows, 1))
    assert not np.array_equal(drawn, resampled(rows, 2))
    assert set(drawn) < set(rows)
    assert len(drawn) == 500
    assert 0.58 < len(set(drawn)) / 500 < 0.68  # 1 - 1/e


def test_bootstraps_of_stays_leave_the_inner_part_alone() -> None:
    data = small()

    def split(rows: Rows, _seed: int) -> tuple[Rows, Rows]:
        return rows[:150], rows[150:]

    unused: Any = None
    task = from_a_bootstrap(Task(data, unused, unused, unused, split), 3)
    train, inner = task.split(np.arange(200), 0)
    assert np.array_equal(inner, np.arange(150, 200))
    assert len(train) == 150
    assert train.max() < 150
    assert len(set(train)) < 150


def test_changes_of_sequences_are_added_and_what_is_missing_stays_so() -> None:
    data = small(5)
    moves = [np.where(np.isnan(data.values[j]), 0.0, 1.5) for j in (1, 3)]
    plan: Any = SimpleNamespace(selected=np.array([1, 3]), changes=moves)
    after = changed(data, plan)
    assert after.ids == ("P1", "P3")
    for old, new in zip((data.values[1], data.values[3]), after.values, strict=True):
        assert np.array_equal(np.isnan(old), np.isnan(new))
        assert np.nansum(new - old) == pytest.approx(1.5 * np.isfinite(old).sum())


def test_networks_of_another_kind_take_the_same_stays() -> None:
    task = stays.task(real_data("physionet2012"), "30_day")
    some = torch.arange(40)
    for spec in (TRANSFORMER, LSTM):
        net = of_another_kind(task, spec).build(task.packed.take(some))
        assert logits_of(net, task.packed, some).shape == (40, 2)
        assert net.class_names == task.data.classes


def test_a_network_for_customers_is_learned_once_and_from_its_own_half(tmp_path: Path) -> None:
    source = Credit(real_data("credit_default").parent, tmp_path)
    (learned, _), (others, labels), features = source.halves
    assert len(learned) == len(others) == 15_000
    assert len(features) == learned.shape[1]
    assert learned.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    told: list[str] = []
    source.learn(NETWORKS[0], told.append)
    source.learn(NETWORKS[0], told.append)
    assert told == ["learned: network 0"]
    right = probabilities(source.network(NETWORKS[0]), others).argmax(axis=1) == labels
    assert right.mean() > 0.81  # as the network of docs/results/paper_solvers.md, 0.817


def test_means_have_students_interval() -> None:
    found = hold_points.mean([1.0, 2.0, 3.0])
    assert found.value == 2.0
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))
    assert hold_points.mean([4.0]) == hold_points.Mean(4.0, None)


def row(seed: int | None, judge: str, kind: str, count: int, held: int, **more: Any) -> dict[str, Any]:
    known = {"dataset": "credit", "solver": "Prices", "margin": 0.1, "people": 10, "cost": 2.0, "confidence": 0.1}
    rest = {"held_with_margin": held // 2, "anyway": 1, "won": max(held - 1, 0), "auc": None, "seconds": 1.0}
    return {**known, **rest, "seed": seed, "judge": judge, "kind": kind, "count": count, "held": held, **more}


MADE = files.Made("python -m x", "2026-01-02", "abc1234", "2 cores", {"torch": "2"}, 60.0)


def test_points_are_means_over_judges_and_cohorts() -> None:
    rows = [
        *(row(0, "seed 1", "seed", 8, 4), row(0, "bootstrap 1", "bootstrap", 8, 2), row(0, "t", "architecture", 8, 0)),
        *(row(1, "seed 1", "seed", 4, 4), row(1, "bootstrap 1", "bootstrap", 4, 2), row(1, "t", "architecture", 4, 0)),
        *(row(2, judge, kind, 0, 0, anyway=0) for judge, kind in (("seed 1", "seed"), ("t", "architecture"))),
    ]
    found = hold_points.point(hold_points.Result("credit", rows, MADE), "Prices", 0.1)
    assert found is not None
    assert found.count.value == 4.0
    assert found.share.value == pytest.approx((0.25 + 0.5) / 2)  # the third cohort has nobody to hold
    assert found.kinds == pytest.approx({"seed": 0.75, "bootstrap": 0.375, "architecture": 0.0})
    assert found.number.value == pytest.approx((2 + 2 + 0) / 3)
    assert found.anyway == pytest.approx((1 / 8 + 1 / 4) / 2)
    assert found.won == pytest.approx((3 + 1 + 0 + 3 + 1 + 0) / (3 * 7 + 3 * 3))
    assert hold_points.point(hold_points.Result("credit", rows, MADE), "Prices", 0.3) is None


def test_differences_are_between_lines_of_the_same_cohort() -> None:
    rows = [row(seed, "j", "seed", 10, held) for seed, held in ((0, 4), (1, 8), (2, 5))]
    rows += [row(seed, "j", "seed", 20, held, solver=ENSEMBLE) for seed, held in ((0, 10), (1, 18), (3, 9))]
    result = hold_points.Result("credit", rows, MADE)
    shares = hold_points.difference(result, 0.1, ENSEMBLE, "Prices", hold_points.share_of)
    assert shares is not None
    assert shares.value == pytest.approx(0.1)  # 0.5 - 0.4 and 0.9 - 0.8; other cohorts have one of the two alone
    assert shares.half == pytest.approx(0.0, abs=1e-12)
    numbers = hold_points.difference(result, 0.1, ENSEMBLE, "Prices", hold_points.number_of)
    assert numbers is not None
    assert numbers.value == 8.0
    assert hold_points.difference(result, 0.3, ENSEMBLE, "Prices", hold_points.share_of) is None


def test_a_file_is_made_once_and_anew_for_other_settings(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> list[int]:
        made.append(len(made))
        return list(made)

    path = tmp_path / "cell.json"
    assert kept(path, {"size": (4, 2)}, make) == [0]
    assert kept(path, {"size": (4, 2)}, make) == [0]
    assert kept(path, {"size": (5, 2)}, make) == [0, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["cell.json"]


@dataclass(frozen=True)
class Lines:
    """A source whose models are lines."""

    data: Path
    weights: Path
    size: ClassVar[int] = 6
    quick_size: ClassVar[int] = 4
    solvers: ClassVar[Mapping[str, Solver]] = {"Nearest": Nearest(), "Prices": Prices()}

    def models(self) -> list[Spec]:
        return [Spec("line", "seed", 1)]

    def learn(self, spec: Spec, tell: Any) -> None:
        (self.weights / spec.file).write_text("0.3")

    def case(self, seed: int, size: int) -> Case[Floats]:
        where = float((self.weights / "line").read_text())
        kinds = {"seed": where, "bootstrap": 0.1, "architecture": -0.1}
        cohort = EVEN[:20][seed::PARTS][:size]
        return small_case(EVEN, cohort, *(judge_at(shift, kind) for kind, shift in kinds.items()))


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    hold.add_arguments(parser)
    return parser.parse_args(given)


def test_a_quick_run_from_end_to_end_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(hold_cells.SOURCES, "credit", Lines)
    monkeypatch.delitem(hold_cells.FOLDERS, "credit")  # they are made up
    given = arguments("--data", "nowhere", "--out", str(tmp_path), "--only", "credit", "--quick")
    hold.run(given)
    (first,) = hold_points.read(tmp_path)
    printed = capsys.readouterr().out
    assert "[24/24] credit, cohort 1, Ensemble, margin 0.5" in printed
    assert hold_page.table([first]) in printed
    assert len(first.rows) == 3 * 2 * 4 * (2 + 3)  # judges x cohorts x margins x (base lines + solvers)
    for solver, margin, share in (("Nearest", 0.0, 1 / 3), ("Nearest", 0.1, 2 / 3), (ENSEMBLE, 0.0, 2 / 3)):
        found = hold_points.point(first, solver, margin)
        assert found is not None
        assert found.share.value == pytest.approx(share)
        assert 0 < found.count.value < 4  # budgets bind
    assert (tmp_path / "hold.svg").stat().st_size > 1000

    def never(*_: Any, **__: Any) -> Plan:
        raise AssertionError("solved again")

    monkeypatch.setattr(hold_cells, "solve", never)
    hold.run(given)
    (again,) = hold_points.read(tmp_path)
    assert again == replace(first, made=again.made)
    assert again.made.seconds == first.made.seconds


def piece(number: int) -> tuple[str, int]:
    return f"piece {number}", number * number


@pytest.mark.parametrize("workers", [1, 2])
def test_work_is_found_in_the_order_asked_for(workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert hold.all_done([partial(piece, number) for number in range(5)], workers) == [0, 1, 4, 9, 16]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"[{k}/5]" for k in range(1, 6)]
    assert {line.split(" ", 1)[1] for line in lines} == {f"piece {k}" for k in range(5)}


def test_without_data_it_is_said_what_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback behind hours of work: `all` ends with this."""
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    for words in ([], ["--data", str(tmp_path)]):
        hold.run(arguments(*words, "--quick", "--out", str(tmp_path / "out")))
        said = " ".join(capsys.readouterr().err.split())
        assert "credit is left out" in said
        assert "Fetch it from https://physionet.org" in said
        assert "MAXFLIP_DATA" in said
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit, match="--only: there is no 'creidt'; there are credit, icu"):
        hold.run(arguments("--data", "nowhere", "--only", "creidt"))


@pytest.mark.parametrize("seeds", ["0", "6"])
def test_more_cohorts_than_parts_are_refused(seeds: str) -> None:
    with pytest.raises(SystemExit, match=f"--seeds: got {seeds}; wanted 1 to 5"):
        hold.run(arguments("--data", "nowhere", "--seeds", seeds))


def test_the_page_has_no_quick_results() -> None:
    results = hold_points.read()
    assert [result.dataset for result in results][:1] == ["credit"]
    assert "quick" not in results[0].made.command


def places(svg: str) -> list[float]:
    """Of all that is drawn but letters."""
    return [float(number) for path in re.findall(r' d="([^"]*)"', svg) for number in re.findall(r"-?[\d.]+", path)]


def test_the_picture_is_drawn_from_the_result_files(tmp_path: Path) -> None:
    draw_hold.draw(hold_points.read(), tmp_path / "hold.svg")
    drawn, committed = places((tmp_path / "hold.svg").read_text()), places(draw_hold.PICTURE.read_text())
    assert len(drawn) > 500
    assert drawn == pytest.approx(committed, abs=0.5)
