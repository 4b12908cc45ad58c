"""tune: the paper's grid, what is best in it, what is paid for, and the same answer from any number of processes."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from maxflip import BCMS, CCMS, KL, MS, InputError, Nearest, Problem, ResourceError, TorchClassifier, Tuned, solve, tune
from maxflip._util.events import Advanced, Event, Finished, Notice, Started
from maxflip.study import tuning
from maxflip.study.tuning import PAPER_GRIDS, scale_free_grid
from tests.examples import linear_net, linear_problem, net_problem

X = np.random.default_rng(0).normal(size=(12, 2)) - 2.0  # none of them near the line of x0 + 2 x1
SMALL = BCMS(outer=2, inner=20, draws=10)


def easy(**options: Any) -> Problem:
    """A linear model and budgets that pay for everyone ten times over."""
    return linear_problem([1.0, 2.0], X, [1000.0, 1000.0], **options)


def same(a: Tuned, b: Tuned) -> bool:
    tables = [t.table().drop_columns(["seconds"]) for t in (a, b)]
    return bool(a.solver == b.solver and np.array_equal(a.plan.changes, b.plan.changes) and tables[0].equals(tables[1]))


@pytest.mark.parametrize(
    ("kind", "paper", "ours"), [(MS, 48, 144), (BCMS, 288, 864), (CCMS, 864, 2592), (KL, 192, 576)]
)
def test_the_papers_grid(kind: Any, paper: int, ours: int) -> None:
    """Section 5: alpha, beta of three, tau of two, gamma, eta and both starting multipliers of two each."""
    grid = dict(PAPER_GRIDS[kind])
    assert np.prod([len(values) for values in grid.values()]) == paper
    assert np.prod([len(values) for values in scale_free_grid(kind).values()]) == ours
    sets: dict[str, Any] = dict.fromkeys(("alpha", "beta"), (0.01, 0.05, 0.1)) | {"tau": (30.0, 50.0)}
    sets |= {"gamma": (0.5, 1.0), "eta": (0.5, 1.0), "start_lambda": (1.0, 10.0), "start_mu": (1.0, 10.0)}
    assert grid == {name: values for name, values in sets.items() if name in grid} | {
        name: values for name, values in grid.items() if name in ("choices", "a")
    }
    assert all(kind(**{name: value}) for name, values in scale_free_grid(kind).items() for value in values)


def test_the_best_setting_flips_most() -> None:
    """Steps of a billionth go nowhere; others reach everyone."""
    tuned = tune(easy(), KL(inner=100), grid={"beta": [1e-9, 0.05], "a": [0.1]})
    assert [t.count for t in tuned.trials] == [0, 12]
    assert tuned.solver == KL(inner=100, beta=0.05)
    assert tuned.plan.count == 12
    assert tuned.options == ("beta", "a")


def test_all_combinations_are_solved_as_by_hand() -> None:
    problem = net_problem(20)
    tuned = tune(problem, SMALL, grid={"alpha": [0.05, 0.5], "start_lambda": [0.1, 1.0, 10.0]}, seed=3)
    settings: list[Any] = [replace(SMALL, alpha=a, start_lambda=s) for a in (0.05, 0.5) for s in (0.1, 1.0, 10.0)]
    plans = [solve(problem, setting, seed=3) for setting in settings]
    assert [t.solver for t in tuned.trials] == settings
    assert [t.count for t in tuned.trials] == [p.count for p in plans]
    best = plans[settings.index(tuned.solver)]
    assert best.count == max(p.count for p in plans) > 0
    assert np.array_equal(best.changes, tuned.plan.changes)
    table = tuned.table()
    assert table.column_names == ["alpha", "start_lambda", "count", "worth", "spent", "gradients", "seconds", "notice"]
    assert table["start_lambda"].to_pylist() == [0.1, 1.0, 10.0] * 2
    shares = [sum(p.spend.values()) / (4 * 2.0) for p in plans]  # four budgets of 2
    assert table["spent"].to_pylist() == pytest.approx(shares)
    searched = 20 - plans[0].fate_counts()["already"]  # type: ignore[index]
    assert table["gradients"].to_pylist() == [p.trace["gradients"][-1] / searched for p in plans]


def test_of_equals_the_thriftier_then_the_first() -> None:
    """A weight on the distance keeps flips short; patience makes no difference to a run of two."""
    solver = KL(inner=200, outer=2)
    thrifty = tune(easy(), solver, grid={"a": [0.0, 0.2, 0.1]})
    assert len({t.count for t in thrifty.trials}) == 1
    assert thrifty.solver.a == 0.2  # type: ignore[union-attr]
    assert min(t.spent for t in thrifty.trials) == thrifty.trials[1].spent
    alike = tune(easy(), solver, grid={"patience": [3, None, 4]})
    assert len({(t.count, t.spent) for t in alike.trials}) == 1
    assert alike.solver.patience == 3


def test_worth_counts_before_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting flips two who are worth 1 each, the other one who is worth 9."""

    def problem(exclude: list[str]) -> Problem:
        return linear_problem([1.0], [[-0.5], [-0.6], [-2.0]], [100.0], worth=[1.0, 1.0, 9.0], exclude=exclude)

    plans = {0.1: solve(problem(["2"]), Nearest()), 0.2: solve(problem(["0", "1"]), Nearest())}
    assert [(p.count, p.worth) for p in plans.values()] == [(2, 2.0), (1, 9.0)]
    monkeypatch.setattr(tuning, "solve", lambda problem, setting, seed: plans[setting.beta])
    assert tune(problem([]), KL, grid={"beta": [0.1, 0.2]}).plan.worth == 9.0


@pytest.mark.parametrize("kind", [MS, BCMS, CCMS, KL])
def test_an_allowance_is_the_same_for_every_algorithm(kind: Any) -> None:
    """Each setting takes 2 x 5 gradients per sample: 47 pay for four of them."""
    small = kind(outer=2, inner=5, patience=None)
    tuned = tune(net_problem(10), small, allowance=47, seed=1)
    assert len(tuned.trials) == 4
    assert all(10 <= t.gradients <= 13 for t in tuned.trials)  # and one or two per outer iteration for the multipliers
    again, other = (tune(net_problem(10), small, allowance=47, seed=seed) for seed in (1, 2))
    assert same(tuned, again)
    drawn, others = ([t.solver for t in one.trials] for one in (tuned, other))
    assert drawn != others


def test_a_subset_keeps_the_order_of_the_grid() -> None:
    grid = {"alpha": [0.01 * (i + 1) for i in range(10)]}
    tuned = tune(net_problem(10), replace(SMALL, inner=1, outer=1), grid=grid, allowance=6)
    values = tuned.table()["alpha"].to_pylist()
    assert len(values) == 6
    assert values == sorted(values)
    assert set(values) <= set(grid["alpha"])


def test_steps_and_iterations_count_towards_the_allowance() -> None:
    solver = MS(outer=2, inner=5, steps=3, patience=None)
    assert len(tune(easy(), solver, allowance=30).trials) == 1
    with pytest.raises(InputError, match=r"allowance = 29: must be a whole number in \[30, inf\)"):
        tune(easy(), solver, allowance=29)
    mixed = tune(easy(), KL(outer=1, patience=None), grid={"inner": [100, 3, 5]}, allowance=8)
    assert mixed.table()["inner"].to_pylist() == [3, 5]


def test_any_number_of_processes_gives_the_same() -> None:
    problem, grid = net_problem(20), {"alpha": [0.05, 0.5], "start_lambda": [0.1, 1.0]}
    alone = tune(problem, SMALL, grid=grid, seed=2)
    events: list[Event] = []
    together = tune(problem, SMALL, grid=grid, seed=2, workers=2, watch=events.append)
    assert same(alone, together)
    assert alone.plan.count > 0
    assert events == [
        Started("Tuning BCMS", 4),
        *[Advanced("Tuning BCMS", 1)] * 4,
        Finished("Tuning BCMS"),
    ]


class Stubborn(nn.Linear):
    """Travels, but does not arrive."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("not at home here")


class Mortal(nn.Linear):
    """Takes a worker with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if multiprocessing.parent_process() is not None:
            os._exit(1)
        return super().forward(x)


def linear_of(kind: type[nn.Linear]) -> nn.Linear:
    net = kind(2, 2, dtype=torch.float64)
    net.load_state_dict(linear_net([1.0, 2.0]).state_dict())
    return net


def problem_of(net: nn.Module) -> Problem:
    classifier = TorchClassifier(net, output="logits")
    return Problem(classifier=classifier, cohort=X, target=1, margin=0.1, budgets={"x0": 5.0, "x1": 5.0})


@pytest.mark.parametrize("case", ["cannot leave", "cannot arrive"])
def test_a_model_that_cannot_travel_is_tuned_at_home(case: str) -> None:
    class Local(nn.Linear):
        """Known to nobody else."""

    net, word = (linear_of(Local), "Local") if case == "cannot leave" else (linear_of(Stubborn), "not at home here")
    events: list[Event] = []
    grid = {"alpha": [0.05, 0.5]}
    tuned = tune(problem_of(net), SMALL, grid=grid, workers=2, watch=events.append)
    (notice,) = [e.text for e in events if isinstance(e, Notice)]
    assert notice.startswith("Tuning in one process: the problem cannot be sent to others (")
    assert word in notice
    assert same(tuned, tune(problem_of(linear_of(nn.Linear)), SMALL, grid=grid))


def test_a_lost_worker_is_told_with_what_to_do() -> None:
    with pytest.raises(ResourceError, match=r"a worker process was lost.*__main__.*fewer workers"):
        tune(problem_of(linear_of(Mortal)), SMALL, grid={"alpha": [0.05, 0.5]}, workers=2)


def test_settings_that_diverge_are_told_in_the_table_and_others_go_on() -> None:
    problem = linear_problem([1.0], [[-3.0], [-2.0]], [50.0])
    tuned = tune(problem, KL(outer=2, inner=200), grid={"beta": [1e6, 0.05]})
    assert [t.count for t in tuned.trials] == [0, 2]
    notices = tuned.table()["notice"].to_pylist()
    assert notices[0].startswith("KL diverged in outer iteration 1")
    assert notices[1] == ""


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({"tau": [30.0, 1.0]}, "grid: BCMS.tau = 1.0: must be a number in (1, inf); at 1 or below"),
        ({"alpha": [0.05, -1]}, "grid: BCMS.alpha = -1: must be a number in (0, inf)."),
        ({"inner": [0]}, "grid: BCMS.inner = 0: must be a whole number in [1, inf)."),
        ({"indicator": ["soft"]}, "grid: BCMS.indicator = 'soft': must be one of 'raw', 'relative'."),
        ({"alhpa": [0.1]}, "grid: BCMS has no option 'alhpa'. Did you mean 'alpha'?"),
        ({"alpha": 0.1}, "grid: alpha: got 0.1; wanted a list of values to try."),
        ({"alpha": []}, "grid: alpha: got []; wanted a list of values to try."),
        ({"indicator": "raw"}, "grid: indicator: got 'raw'; wanted a list of values to try."),
        ({}, "grid: got {}; wanted 'paper', 'scale_free' or {option: [values]}."),
        ("papers", "grid: got 'papers'; wanted 'paper', 'scale_free' or {option: [values]}."),
    ],
)
def test_bad_grids_are_named_with_what_is_legal(grid: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        tune(easy(), BCMS, grid=grid)
    (said,) = caught.value.problems
    assert said.startswith(sentence)


def test_all_faults_of_a_grid_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        tune(easy(), BCMS, grid={"tau": [0.5, 1.0, 30.0], "omega": [0.0]})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"solver": Nearest()}, "solver: got Nearest("),
        ({"problem": None}, "problem: got None; wanted a Problem(...)."),
        ({"seed": 1.5}, "seed = 1.5: must be a whole number."),
        ({"workers": 0}, "workers = 0: must be a whole number in [1, inf)."),
        ({"workers": None}, "workers = None: must be a whole number in [1, inf)."),
        ({"watch": "me"}, "watch: got 'me'; wanted a function that takes an event."),
        ({"allowance": 0.5}, "allowance = 0.5: must be a whole number in [1, inf)."),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"problem": easy(), "solver": BCMS} | options
    with pytest.raises(InputError) as caught:
        tune(**given)
    assert caught.value.problems[0].startswith(sentence)
