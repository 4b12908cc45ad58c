"""suggest_margin: the smallest margin whose flips hold in other models."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

from maxflip import (
    Ensemble,
    InputError,
    MaxflipError,
    Problem,
    SuggestedMargin,
    TorchClassifier,
    look,
    solve,
    suggest_margin,
)
from maxflip._util.events import Notice
from maxflip.plan.holds import Judged
from maxflip.report import render
from tests.examples import linear_net, linear_problem, net_problem, small_net
from tests.jobs import export

W = [1.0, 2.0]
PRECISION = 1e-3


def people(n: int = 30) -> Any:
    """None of them passes by any margin before a change."""
    return np.random.default_rng(0).normal(size=(n, 2)) - 4.0


def shifted(by: float, w: ArrayLike = W, output: Any = "logits") -> TorchClassifier:
    """The same linear model, whose score is smaller by so much."""
    return TorchClassifier(linear_net(w, -by), output=output)


def smallest(found: SuggestedMargin, known: float, precision: float = PRECISION) -> bool:
    """Not below the known answer but for the rounding of a score, and above it by no more than the precision."""
    return found.reached and known - 1e-6 <= found.margin <= known + precision


# --- known answers: a flip ends on the line of its margin, so a judge's line is reached by a margin in closed form


@pytest.mark.parametrize(("own", "by"), [(0.0, 0.5), (0.0, 2.0), (0.1, 0.7)])
def test_a_shifted_score_needs_a_margin_that_makes_up_for_it(own: float, by: float) -> None:
    """Flips by m have the score 2 artanh m; the judge wants 2 artanh(own) + by."""
    problem = linear_problem(W, people(), [1e4, 1e4], margin=own)
    found = suggest_margin(problem, [shifted(by)], precision=PRECISION)
    assert smallest(found, math.tanh(math.atanh(own) + by / 2))
    assert (found.plan.count, found.shares) == (30, {"model 1": 1.0})
    assert found.plan.confidence_after.min() >= found.margin


def test_a_threshold_is_raised_in_log_odds() -> None:
    problem = linear_problem(W, people(), [1e4, 1e4], margin=None, threshold=0.4)
    found = suggest_margin(problem, [shifted(1.5)], precision=PRECISION)
    assert smallest(found, 1 / (1 + math.exp(-math.log(0.4 / 0.6) - 1.5)))
    assert found.plan.confidence_after.min() >= found.margin


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_decision_values_have_any_unit(unit: float) -> None:
    """Flips by m have the score m; the judge wants 0.2 + 3, in the same unit."""
    w = unit * np.array(W)
    problem = Problem(
        classifier=TorchClassifier(linear_net(w), output="decision"),
        cohort=people(),
        target=1,
        margin=0.2 * unit,
        budgets={"x0": 1e4, "x1": 1e4},
    )
    found = suggest_margin(problem, [shifted(3.0 * unit, w, "decision")], precision=PRECISION)
    spread = float(np.std(people() @ W))
    assert found.reached
    assert 3.2 - 1e-6 <= found.margin / unit <= 3.2 + PRECISION * spread


@pytest.mark.parametrize("hold", [0.05, 0.5, 0.9, 1.0])
def test_a_share_of_the_flips_is_enough(hold: float) -> None:
    """Sample j of n lacks 2 j / n in the judge, by a feature that no plan changes. So the share j / n of the flips hold
    by m = tanh(j / n)."""
    n = 20
    x = np.column_stack([people(n), np.arange(1, n + 1) / n])
    problem = linear_problem([*W, 0.0], x, {"x0": 1e4, "x1": 1e4}, margin=0.0)
    found = suggest_margin(problem, [shifted(0.0, [*W, -2.0])], hold, precision=PRECISION)
    assert smallest(found, math.tanh(math.ceil(round(hold * n, 6)) / n))
    assert found.shares["model 1"] == pytest.approx(math.ceil(round(hold * n, 6)) / n)


def test_every_judge_counts_and_the_strictest_decides() -> None:
    problem = linear_problem(W, people(), [1e4, 1e4], margin=0.0)
    judges = {"mild": shifted(0.2), "strict": shifted(1.0), "generous": shifted(-3.0)}
    found = suggest_margin(problem, judges, precision=PRECISION)
    assert smallest(found, math.tanh(0.5))
    assert found.shares == {"mild": 1.0, "strict": 1.0, "generous": 1.0}
    assert smallest(
        suggest_margin(problem, {"both": Ensemble([*judges.values()])}, precision=PRECISION), math.tanh(0.5)
    )


def test_the_trail_says_what_was_tried_and_the_margin_is_the_smallest_of_it_that_holds() -> None:
    """With budgets that bind a larger margin flips fewer."""
    problem = linear_problem(W, people(), [20.0, 20.0], margin=0.0)
    found = suggest_margin(problem, [shifted(0.8)], precision=PRECISION)
    assert smallest(found, math.tanh(0.4))
    assert found.trail[0].margin == 0.0
    assert found.trail[0].shares == {"model 1": 0.0}
    holding = [step for step in found.trail if step.shares["model 1"] >= 0.9]
    assert found.margin == min(step.margin for step in holding)
    assert found.plan.count == next(step.count for step in holding if step.margin == found.margin)
    by_margin = sorted(found.trail, key=lambda step: step.margin)
    assert [step.count for step in by_margin] == sorted((step.count for step in found.trail), reverse=True)
    assert by_margin[0].count > found.plan.count > 0


def test_of_networks_the_shares_are_those_of_the_judges_own_predictions() -> None:
    problem = net_problem(n=30, budgets=dict.fromkeys(["x0", "x1", "x2", "x3"], 20.0), margin=0.05)
    judge = small_net(4, seed=0)
    with torch.no_grad():
        for parameter in judge.parameters():
            parameter.data += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    found = suggest_margin(problem, {"noisy": TorchClassifier(judge, output="logits")}, 0.9, precision=0.05)
    assert found.reached
    assert found.margin > 0.05
    rows, changes = found.plan.moves_in(problem)
    with torch.no_grad():
        p = judge(torch.tensor(problem.start[rows] + changes, dtype=torch.float32)).softmax(dim=1)
    assert found.shares["noisy"] == float((p[:, 1] - p[:, 0] >= 0.05).double().mean())


def test_a_report_says_the_same_of_the_judges() -> None:
    problem = linear_problem(W, people(), [20.0, 20.0], margin=0.0)
    judges = {"next": shifted(0.8)}
    found = suggest_margin(problem, judges)
    insight = look(problem, found.plan, scales=None, judges=judges)
    assert insight.plan is found.plan
    assert insight.judges == (Judged("next", 0, found.plan.count),)
    assert "<bdi>next</bdi>" in render(found.plan, insight)


# --- edges


def test_what_holds_already_needs_no_larger_margin() -> None:
    problem = linear_problem(W, people(), [1e4, 1e4], margin=0.1)
    plan = solve(problem)
    found = suggest_margin(problem, [shifted(-0.5)], plan=plan)
    assert (found.margin, found.reached, len(found.trail)) == (0.1, True, 1)
    assert found.plan is plan


def test_where_no_margin_suffices_the_best_is_told() -> None:
    """The judge has the half with a high third feature there at a margin, and never anyone else."""
    x = np.column_stack([people(20), np.arange(20) >= 10])
    problem = linear_problem([*W, 0.0], x, {"x0": 1e4, "x1": 1e4}, margin=0.0)
    found = suggest_margin(problem, [shifted(1e3, [*W, 1e3 - 0.4])], 0.9)
    assert not found.reached
    assert found.shares == {"model 1": 0.5}
    assert found.margin == min(step.margin for step in found.trail if step.shares["model 1"] == 0.5)
    assert math.tanh(0.2) <= found.margin < 0.5
    assert max(step.margin for step in found.trail) > 0.99


def test_budgets_end_the_search_where_they_flip_nobody() -> None:
    """Below that margin nothing holds, above it nobody is flipped."""
    problem = linear_problem([1.0], [[-1.0]], [2.0], margin=0.0)  # the score reaches sqrt(2) - 1
    found = suggest_margin(problem, [shifted(1.0, [1.0])])
    assert (found.reached, found.margin, found.plan.count, found.shares) == (False, 0.0, 1, {"model 1": 0.0})
    assert max(step.margin for step in found.trail if step.count) < math.tanh((math.sqrt(2) - 1) / 2)
    near = suggest_margin(problem, [shifted(0.4, [1.0])], precision=PRECISION)
    assert smallest(near, math.tanh(0.2))
    assert [step.count for step in near.trail if step.margin > 0.21] != []


def test_someone_who_must_be_picked_ends_it_too() -> None:
    problem = linear_problem([1.0], [[-1.0]], [2.0], margin=0.0, include=[0])
    assert not suggest_margin(problem, [shifted(1.0, [1.0])]).reached
    assert smallest(suggest_margin(problem, [shifted(0.4, [1.0])], precision=PRECISION), math.tanh(0.2))


def test_where_nobody_is_flipped_nothing_is_said_to_hold() -> None:
    problem = linear_problem(W, people(), [1e-9, 1e-9])
    found = suggest_margin(problem, [shifted(-5.0)])
    assert (found.reached, found.margin, found.plan.count) == (False, 0.1, 0)
    assert [(step.count, step.shares) for step in found.trail] == [(0, {"model 1": 0.0})]


def test_a_margin_beyond_all_that_are_tried_is_tried_itself() -> None:
    found = suggest_margin(linear_problem(W, people(), [1e4, 1e4], margin=0.9995), [shifted(5.0)])
    assert (found.reached, [step.margin for step in found.trail]) == (False, [0.9995])


def test_files_are_judges_and_the_watch_is_told(tmp_path: Any) -> None:
    export(linear_net(W, -1.0), tmp_path / "next.pt2", features=2, dtype=torch.float64)
    problem = linear_problem(W, people(5), [1e4, 1e4], margin=0.0)
    told: list[Any] = []
    found = suggest_margin(problem, [tmp_path / "next.pt2"], precision=0.1, watch=told.append)
    assert found.shares == {"next.pt2": 1.0}
    assert any(not isinstance(event, Notice) for event in told)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"judges": []}, "judges: got none; wanted at least one"),
        ({"judges": 3}, "judges: got 3; wanted a list"),
        ({"judges": [shifted(1.0, [1.0])]}, "judges: model 1: "),
        ({"hold": 0.0}, "hold = 0.0: must be a number above 0 and at most 1."),
        ({"hold": True}, "hold = True: must be"),
        ({"precision": 0}, "precision = 0: must be a finite number > 0."),
        ({"plan": 3}, "plan: got 3; wanted a Plan"),
        ({"problem": 3}, "problem: got 3; wanted a Problem"),
    ],
)
def test_faults_are_named(wrong: dict[str, Any], says: str) -> None:
    asked: dict[str, Any] = {"problem": linear_problem(W, people(3), [1e4, 1e4]), "judges": [shifted(0.0)]} | wrong
    with pytest.raises(MaxflipError, match=re.escape(says)):
        suggest_margin(**asked)


def test_two_judges_of_one_name_are_refused(tmp_path: Any) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        export(linear_net(W, -1.0), tmp_path / folder / "m.pt2", features=2, dtype=torch.float64)
    with pytest.raises(InputError, match=r"judges: two are called 'm\.pt2'\. Name them"):
        suggest_margin(linear_problem(W, people(3), [1e4, 1e4]), [tmp_path / "a/m.pt2", tmp_path / "b/m.pt2"])
