"""Whether flips hold: judges whose answers are known, base lines, intervals, and a small run from end to end."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from maxflip import Ensemble, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.models import Classifier
from maxflip.solvers import Solver
from research.cells import with_needs
from research.evidence import files
from research.experiments import carry, stays
from research.experiments.hold import cells as hold_cells
from research.experiments.hold import kinds as hold_kinds
from research.experiments.hold import page as hold_page
from research.experiments.hold import points as hold_points
from research.experiments.hold import program as hold
from research.experiments.hold import words as hold_words
from research.experiments.hold.cases import (
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
    Source,
    Spec,
    base_lines,
    confidence,
    drawn,
    flips,
    resampled,
    verdict,
)
from research.experiments.hold.credit import TREES, WIDE, Credit, probabilities
from research.experiments.hold.icu import LSTM, TRANSFORMER, Stays, from_a_bootstrap, of_another_kind
from research.experiments.metrics import Floats
from research.experiments.packed import logits_of
from research.experiments.tasks import Rows, Task
from research.tests.experiments.stage import small
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


def test_a_base_line_of_nobody_has_no_confidence() -> None:
    nobody = base_lines(small_case(EVEN, [], judge_at(0.0)), (0.9,))  # tanh(1.95 / 2) = 0.75
    assert [(row["count"], row["confidence"]) for row in nobody] == [(0, None), (0, None)]


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
    assert small_case(EVEN, [-1.0, -0.5]).budgets(0.5)["a"] == pytest.approx(
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
    after = Stays(Path(), Path()).changed(data, plan)
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


def test_a_network_for_customers_is_learned_from_its_own_half(tmp_path: Path) -> None:
    source = Credit(real_data("credit_default").parent, tmp_path)
    (learned, _), (others, labels), features = source.halves
    assert len(learned) == len(others) == 15_000
    assert len(features) == learned.shape[1]
    assert learned.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    source.learn(NETWORKS[0])
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


def test_a_cohort_in_which_nobody_is_flipped_counts_as_none_in_numbers_and_in_no_share() -> None:
    rows = [row(seed, "j", "seed", 10, 6) for seed in (0, 1)]
    rows += [row(0, "j", "seed", 5, 4, solver="BCMS"), row(1, "j", "seed", 0, 0, solver="BCMS")]
    result = hold_points.Result("credit", rows, MADE)
    numbers = hold_points.difference(result, 0.1, "Prices", "BCMS", hold_points.number_of)
    assert numbers is not None
    assert numbers.value == pytest.approx((2 + 6) / 2)
    shares = hold_points.difference(result, 0.1, "Prices", "BCMS", hold_points.share_of)
    assert shares is not None
    assert shares.value == pytest.approx(-0.2)  # of the first cohort alone
    assert shares.half is None
    said = hold_page.table([result]).splitlines()
    assert said[3] == "| `BCMS` | none flipped | 80 % (1 of 2 cohorts) of 2.5: 2.0 | none flipped | none flipped |"
    assert "| 0.1 | `BCMS` (1 of 2 cohorts) |" in hold_page.detail([result])
    assert said[7].split(" | ")[2] == "60 ± 0 % of 10.0: 6.0"  # all cohorts: nothing to mark


@pytest.mark.parametrize(
    ("value", "half", "sign", "often", "stands"),
    [
        (-2.0, 1.9, -1, "clearly less often", "behind"),
        (-2.0, 2.1, 0, "about as often", "level with"),
        (2.0, 2.1, 0, "about as often", "level with"),
        (2.0, 1.9, 1, "clearly more often", "ahead of"),
        (2.0, None, 0, "not known how often", "not known to differ from"),
    ],
)
def test_words_go_by_the_sign_of_the_interval(
    value: float, half: float | None, sign: int, often: str, stands: str
) -> None:
    found = hold_points.Mean(value, half)
    assert (found.sign, hold_words.often(found), hold_words.standing(found)) == (sign, often, stands)


def test_margins_at_which_a_difference_is_clear_are_named() -> None:
    below, above, unclear = (hold_points.Mean(value, 1.0) for value in (-2.0, 2.0, 0.5))
    assert hold_words.where({0.0: below, 0.1: below}) == "clearly less often at every margin"
    assert hold_words.where({0.0: below, 0.1: unclear, 0.3: below}) == "clearly less often at margins 0 and 0.3"
    assert (
        hold_words.where({0.0: below, 0.1: above}) == "clearly less often at margin 0, clearly more often at margin 0.1"
    )
    assert hold_words.where({0.0: unclear}) == "no clear difference at any margin"
    assert hold_words.at_margin(0.0, 0.1, 0.3) == "without a margin and with a margin of 0.1 and 0.3"


def two_kinds() -> hold_points.Result:
    """At every margin flips hold in networks trained again, as those of unchanged people do, and fail in another kind;
    the ensemble's share is no larger there."""
    kinds = {"seed": ("a", "b"), "bootstrap": ("c",), "architecture": ("t", "l")}
    kept = {"Prices": (10, 9, 3), AS_CLOSE: (20, 18, 16), ENSEMBLE: (5, 5, 1)}
    rows = []
    for line, (count, again, other) in kept.items():
        for kind, judges in kinds.items():
            for judge in judges:
                held = other if kind == "architecture" else again
                anyway = {"anyway": 2, "won": other - 2} if kind == "architecture" else {"anyway": 0, "won": again}
                more = [-1, 0, 1] if line == ENSEMBLE and kind == "architecture" else [0, 0, 0]
                rows += [
                    row(seed, judge, kind, count, held + more[seed], solver=line, margin=margin, **anyway)
                    for margin in MARGINS
                    for seed in (0, 1, 2)
                ]
    return hold_points.Result("icu", rows, MADE)


def test_kinds_of_judges_are_told_apart() -> None:
    lines_of_it = hold_kinds.kinds([two_kinds()]).splitlines()
    assert lines_of_it[0] == "Intensive care:"
    assert len(lines_of_it) == 4 + len(MARGINS) * 3
    assert lines_of_it[4] == (
        "| 0 | other seeds (2) | 90 ± 0 % | 90 ± 0 % | +0.0 ± 0.0 | +10.0 ± 0.0 | -4.0 ± 0.0 | 0 % | 90 % |"
    )
    assert lines_of_it[6] == (  # 30 - 80; 0, 20 and 40 % less 30 %; 0, 1 and 2 people less 3; 1 of 8
        "| 0 | another kind (2) | 30 ± 0 % | 80 ± 0 % | -50.0 ± 0.0 | -10.0 ± 49.7 | -2.0 ± 2.5 | 20 % | 12 % |"
    )
    assert [line.split(" | ")[0] for line in lines_of_it[4::3]] == [f"| {margin:g}" for margin in MARGINS]


def test_what_kinds_of_judges_say_is_put_into_sentences() -> None:
    (said,) = hold_kinds.short([two_kinds()]).splitlines()
    assert "there hold 90, 90, 90 and 90 % in other seeds" in said
    assert "30, 30, 30 and 30 % in another kind." in said
    assert "in other seeds no clear difference at any margin" in said
    assert "in another kind clearly less often at every margin (there by -50.0 ± 0.0, " in said
    assert "Not counting people who passed in them before any change, 12, 12, 12 and 12 % hold in these." in said
    assert "as a share, no clear difference at any margin (-10.0 ± 49.7, " in said
    assert said.endswith("in number, no clear difference at any margin.")


def test_the_best_margin_of_each_solver_is_named_and_they_are_compared_there() -> None:
    """KL's number falls with the margin; that of `Prices` is largest at 0.3, of the ensemble at 0.1."""
    kept = {"KL": (6, 5, 4, 3), "Prices": (4, 6, 8, 5), ENSEMBLE: (6, 9, 7, 5)}
    rows = [
        row(seed, "j", "seed", 10, held, solver=solver, margin=margin)
        for solver, each in kept.items()
        for margin, held in zip(MARGINS, each, strict=True)
        for seed in (0, 1)
    ]
    said = hold_page.said([hold_points.Result("icu", rows, MADE)])
    assert (
        "The number that holds is largest without a margin for `KL`; with a margin of 0.1 for `Prices` for an "
        "`Ensemble`; with a margin of 0.3 for `Prices`." in said
    )
    assert "the ensemble is ahead of the network alone: +1.0 ± 0.0 people." in said
    assert said.endswith("`Prices` is without a margin behind `KL`; with a margin of 0.1, 0.3 and 0.5 ahead of `KL`.")


PLACES = {"network": 0.0, "seed": 0.3, "bootstrap": 0.1, "architecture": -0.1}
MATE = 0.2


class Lines(Source[Floats]):
    """A source whose models are lines; those of the people who are below 0 and not wanted are planned for."""

    wanted: ClassVar[int] = 1
    size: ClassVar[int] = 6
    quick_size: ClassVar[int] = 4
    share: ClassVar[float] = 0.5
    solvers: ClassVar[Mapping[str, Solver]] = {"Nearest": Nearest(), "Prices": Prices()}
    of_another_kind: ClassVar[tuple[Spec, ...]] = (WIDE, TREES)
    seconds_to_learn: ClassVar[float] = 1.0
    seconds_to_solve: ClassVar[float] = 1.0
    people = at(EVEN)
    labels = (EVEN >= 0).astype(np.int64)
    features = ("a",)

    def learn(self, spec: Spec) -> None:
        self.path(spec).write_text(str(MATE if spec in MATES else PLACES[spec.kind]))

    def place_of(self, spec: Spec) -> float:
        return float(self.path(spec).read_text())

    def judge(self, spec: Spec) -> Judge[Floats]:
        return replace(judge_at(self.place_of(spec), spec.kind), name=spec.name)

    def classifier(self, spec: Spec) -> Classifier:
        return TorchClassifier(line_at(self.place_of(spec)), output="logits")

    def take(self, people: Floats, rows: Rows) -> Floats:
        return np.asarray(people[rows])

    def changed(self, people: Floats, plan: Plan) -> Floats:
        return np.asarray(people[plan.selected] + plan.changes)

    def problem(self, cohort: Floats, classifier: Classifier, budgets: Mapping[str, float], margin: float) -> Problem:
        return question(cohort, classifier, budgets, margin)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lines in the place of customers, and other folders in the place of the repository's."""
    monkeypatch.setitem(hold_cells.SOURCES, "credit", Lines)
    monkeypatch.delitem(hold_cells.FOLDERS, "credit")  # they are made up
    monkeypatch.setattr(files, "FOLDER", tmp_path / "published")
    monkeypatch.setattr(carry, "PICTURES", tmp_path / "pictures")
    return tmp_path / "published"


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    hold.add_arguments(parser)
    return parser.parse_args(given)


def lines(out: Path, *more: str) -> argparse.Namespace:
    return arguments("--data", "nowhere", "--out", str(out), "--only", "credit", "--workers", "1", *more)


def never(*_: Any, **__: Any) -> Plan:
    raise AssertionError("solved again")


def test_a_quick_run_from_end_to_end_and_again(
    tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hold.run(lines(tmp_path, "--quick")) == 0
    (first,) = hold_points.read(tmp_path / "results-quick")
    assert not published.exists()
    assert hold_page.table([first]) in capsys.readouterr().out
    assert len(first.rows) == 10 * 2 * 4 * (2 + 3)  # judges x cohorts x margins x (base lines + solvers)
    for solver, margin, share in (("Nearest", 0.0, 0.2), ("Nearest", 0.1, 0.6), (ENSEMBLE, 0.0, 0.6)):
        found = hold_points.point(first, solver, margin)
        assert found is not None
        assert found.share.value == pytest.approx(share)  # of ten judges two, or also the four of bootstraps
        assert 0 < found.count.value < 4  # budgets bind
    assert (tmp_path / "pictures-quick" / "hold.svg").stat().st_size > 1000
    monkeypatch.setattr(hold_cells, "solve", never)
    assert hold.run(lines(tmp_path, "--quick")) == 0
    (again,) = hold_points.read(tmp_path / "results-quick")
    assert again == first


def test_a_network_whose_file_is_gone_is_learned_again(
    tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold.run(lines(tmp_path, "--quick", "--seeds", "1"))
    kept = {path.stem for path in (tmp_path / "credit" / "weights").iterdir()}
    assert kept == {spec.file for spec in (NETWORKS[0], *RETRAINED, WIDE, TREES, *MATES)}
    gone = tmp_path / "credit" / "weights" / "seed_1.safetensors"
    gone.unlink()
    monkeypatch.setattr(hold_cells, "solve", never)
    assert hold.run(lines(tmp_path, "--quick", "--seeds", "1")) == 0
    assert gone.read_text() == "0.3"


def test_a_half_run_leaves_the_result_files_of_the_pages_alone(
    tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ended by its limit, failed, or asked for fewer cohorts; then the rest is done, and the file is there."""
    out = tmp_path / "out"
    rewritten: list[Any] = []
    monkeypatch.setattr(hold, "rewrite", rewritten.append)
    assert hold.run(lines(out, "--limit", "0")) == 0
    assert "cells are not done" in " ".join(capsys.readouterr().err.split())
    with monkeypatch.context() as broken:
        broken.setattr(hold_cells, "solve", never)
        assert hold.run(lines(out)) == PARTS * len(MARGINS) * 3
    said = capsys.readouterr()
    others = PARTS * len(MARGINS) * 3 - 1
    assert f"and {others} others failed: AssertionError: solved again" in " ".join(said.err.split())
    assert "margin" not in said.out  # a table of base lines alone would say that nobody was flipped
    (half,) = hold_points.read(out / "results")
    assert {row["solver"] for row in half.rows} == {UNCHANGED, AS_CLOSE}
    assert hold.run(lines(out, "--seeds", "1")) == 0
    assert f"those in {published} stay as they are" in " ".join(capsys.readouterr().err.split())
    assert not published.exists()
    assert not (tmp_path / "pictures").exists()
    assert not rewritten
    assert hold.run(lines(out)) == 0
    (whole,) = hold_points.read(published)
    assert {row["seed"] for row in whole.rows} == set(range(PARTS))
    assert whole.made.command == "python -m research.experiments.hold --data DIR --only credit --seeds 5"
    assert (tmp_path / "pictures" / "hold.svg").exists()
    assert len(rewritten) == 1


def test_finished_cells_are_known_wherever_data_and_weights_lie() -> None:
    def keys(data: str, out: str, *, is_quick: bool = False) -> list[str]:
        place = hold_cells.Place.of("credit", Path(data), Path(out))
        return [cell.key for cell in with_needs(hold_cells.cells(place, 2, is_quick=is_quick))]

    assert keys("here", "out") == keys("there", "elsewhere")
    both = set(keys("here", "out")) & set(keys("here", "out", is_quick=True))
    assert {key.split("-")[0] for key in both} == {"learned"}  # a smaller cohort is another one, of the same networks


def test_processor_time_counts_a_plan_and_the_base_lines_of_a_cohort_once() -> None:
    base = {"solver": UNCHANGED, "auc": 0.7, "seconds": 30.0}
    rows = [
        *(
            row(seed, judge, "seed", 8, 4, seconds=60.0, margin=margin)
            for seed in (0, 1)
            for judge in "ab"
            for margin in (0.0, 0.1)
        ),
        *(
            row(seed, judge, "seed", 8, 4, **base | {"solver": name})
            for seed in (0, 1)
            for judge in "ab"
            for name in (UNCHANGED, AS_CLOSE)
        ),
    ]
    line = hold_page.made([hold_points.Result("credit", rows, MADE)]).splitlines()[2]
    assert line.endswith("| 5.0 |")


def test_without_data_it_is_said_what_to_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback behind hours of work: `all` ends with this."""
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    for words in ([], ["--data", str(tmp_path)]):
        given = arguments(*words, "--quick", "--out", str(tmp_path / "out"))
        assert carry.exit_code(partial(hold.run, given)) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "credit is left out" in said
        assert "Fetch it from https://physionet.org" in said
        assert "MAXFLIP_DATA" in said
    assert not (tmp_path / "out").exists()


def test_a_dataset_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("--data", "nowhere", "--only", "creidt")
    assert "no dataset is called 'creidt'; there are credit, icu" in capsys.readouterr().err


@pytest.mark.parametrize("seeds", ["0", "6"])
def test_more_cohorts_than_parts_are_refused(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments("--data", "nowhere", "--seeds", seeds)
    assert f"got '{seeds}'; wanted 1 to 5" in capsys.readouterr().err


def test_where_nobody_unchanged_is_as_close_the_page_says_the_rest() -> None:
    for result in hold_points.read():
        whole = hold_page.said([result])
        without = replace(result, rows=[row for row in result.rows if row["solver"] != AS_CLOSE])
        sentence = re.search(r" Of unchanged people with the same confidence, .*? at 0\.5\.", whole)
        assert sentence is not None
        assert hold_page.said([without]) == whole.replace(sentence.group(), "")
