"""Whole runs: what is kept, recorded and told; options, warm starts and divergence."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import BCMS, CCMS, KL, MS, Budget, Cohort, Fate, InputError, Plan, Problem, TorchClassifier, solve
from maxflip._util.events import Event, Notice
from maxflip.study.sizing import size_budgets
from tests.examples import linear_net, linear_problem, net_problem, small_net
from tests.paper.stage import run_of, setting_of

FOUR: list[Any] = [
    MS(outer=4, inner=30, patience=None),
    BCMS(outer=4, inner=30, patience=None, draws=20),
    CCMS(outer=4, inner=30, patience=None, draws=10),
    KL(outer=4, inner=30, patience=None),
]
all_four = pytest.mark.parametrize("solver", FOUR, ids=lambda s: type(s).__name__)


def problem_64(n: int = 40, **options: Any) -> Problem:
    return net_problem(n, classifier=TorchClassifier(small_net(4, dtype=torch.float64), output="logits"), **options)


def test_the_papers_settings() -> None:
    shared = {
        "beta": 0.05,
        "gamma": 1.0,
        "eta": 1.0,
        "start_lambda": 1.0,
        "start_mu": 1.0,
        "optimizer": "sgd",
        "units": "raw",
        "patience": None,
    }
    chances = {
        "alpha": 0.05,
        "kappa": 2.0,
        "tau": 30.0,
        "indicator": "raw",
        "omega": 1.0,
        "draws": 100,
        "epsilon": 0.1,
    }
    argmax = {"steps": 1, "residual": "raw"}
    assert asdict(MS.paper()) == {"outer": 10, "inner": 10_000, "keep_moving": False} | shared | argmax
    assert asdict(BCMS.paper()) == {"outer": 10, "inner": 100} | shared | chances
    assert asdict(CCMS.paper()) == (
        {"outer": 20, "inner": 100, "choices": 1.0, "projection": "renormalise"} | shared | chances
    )
    assert asdict(KL.paper()) == {"outer": 10, "inner": 5_000, "a": 0.1} | shared | argmax
    assert BCMS.paper(tau=50.0, inner=7) == replace(BCMS.paper(), tau=50.0, inner=7)
    assert CCMS.scale_free(units="raw").units == "raw"


@pytest.mark.parametrize(
    ("kind", "option", "value", "interval"),
    [
        (BCMS, "tau", 1.0, "(1, inf); at 1 or below, the soft indicator would rise"),
        (CCMS, "tau", 0.5, "(1, inf)"),
        (BCMS, "omega", 0.0, "(0, inf)"),
        (BCMS, "epsilon", 1.0, "[0, 1)"),
        (BCMS, "kappa", math.nan, "(0, inf)"),
        (BCMS, "alpha", "fast", "(0, inf)"),
        (MS, "beta", -1.0, "(0, inf)"),
        (KL, "a", -0.1, "[0, inf)"),
        (KL, "gamma", math.inf, "[0, inf)"),
        (KL, "eta", -1, "[0, inf)"),
        (MS, "start_lambda", True, "[0, inf)"),
        (MS, "inner", 0, "a whole number in [1, inf)"),
        (BCMS, "draws", 2.5, "a whole number in [1, inf)"),
        (KL, "patience", 0, "a whole number in [1, inf)"),
        (KL, "steps", False, "a whole number in [1, inf)"),
        (CCMS, "choices", 0, "(0, inf)"),
        (CCMS, "projection", "none", "'renormalise', 'simplex'"),
        (BCMS, "indicator", "soft", "'raw', 'relative'"),
        (MS, "residual", None, "'raw', 'relative'"),
        (MS, "optimizer", "lbfgs", "'sgd', 'adam'"),
        (MS, "units", 3, "'raw', 'standard'"),
        (MS, "keep_moving", 1, "True or False"),
    ],
)
def test_bad_options_are_named_with_what_is_legal(kind: Any, option: str, value: Any, interval: str) -> None:
    with pytest.raises(InputError) as caught:
        kind(**{option: value})
    (sentence,) = caught.value.problems
    assert sentence.startswith(f"{kind.__name__}.{option} = {value!r}: must be ")
    assert interval in sentence


def test_all_bad_options_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        BCMS(tau=1.0, outer=0, units="feet")  # type: ignore[arg-type]
    assert len(caught.value.problems) == 3


@all_four
def test_the_best_iterate_is_kept_and_all_are_recorded(solver: Any, tmp_path: Path) -> None:
    problem = problem_64(tidy=False)
    plan = solve(problem, solver)
    trace = plan.trace
    assert plan.count == max(trace["selected"])
    assert plan.count > 0
    assert list(trace["outer"]) == [1, 2, 3, 4]
    known = {"inner", "lagrangian", "mean_lambda", "mean_mu", "slope_lambda", "slope_mu", "selected", "worth"}
    known |= {"confident", "gap", "gradients", "seconds", "seconds_inner"}
    known |= {f"{kind}: {name}" for kind in ("spent", "drawn") for name in problem.budgets}
    assert known <= set(trace)
    assert ("saturated" in trace) == isinstance(solver, CCMS)
    best = list(trace["selected"]).index(plan.count)
    for name, amount in ((n, b.amount) for n, b in problem.budgets.items()):
        assert all(spent <= amount * (1 + 1e-9) for spent in trace[f"spent: {name}"])
        assert trace[f"spent: {name}"][best] == pytest.approx(plan.spend[name])
        assert all(d >= s - 1e-12 for d, s in zip(trace[f"drawn: {name}"], trace[f"spent: {name}"], strict=True))
    assert all(c >= s for c, s in zip(trace["confident"], trace["selected"], strict=True))
    assert list(trace["gradients"]) == sorted(trace["gradients"])
    plan.save(tmp_path / "plan")
    assert list(Plan.load(tmp_path / "plan").trace["selected"]) == list(trace["selected"])


@all_four
def test_chance_comes_from_the_seed_alone_and_rows_may_come_in_any_order(solver: Any) -> None:
    """With the paper's own steps, too."""
    x, ids = np.random.default_rng(0).normal(size=(30, 4)), [f"P{j:02}" for j in range(30)]
    shuffled = np.random.default_rng(1).permutation(30)
    plans = []
    for order in (np.arange(30), shuffled):
        cohort = Cohort.table(x[order], ids=[ids[j] for j in order])
        plan = solve(problem_64(cohort=cohort), solver, seed=5)
        plans.append({i: tuple(d) for i, d in zip(plan.ids, plan.changes, strict=True)})
    assert plans[0] == plans[1]
    other = solve(problem_64(cohort=Cohort.table(x, ids=ids)), solver, seed=6)
    assert {i: tuple(d) for i, d in zip(other.ids, other.changes, strict=True)} != plans[0]


def test_patience() -> None:
    """The paper's settings run to the end; others stop when everybody is flipped or nothing gets better."""
    easy = linear_problem([1.0, 2.0], np.random.default_rng(0).normal(size=(20, 2)), [math.inf, math.inf])
    scaled = KL.scale_free(optimizer="adam", outer=9, inner=60)
    assert len(solve(easy, scaled).trace["outer"]) < 9
    assert len(solve(easy, replace(scaled, patience=None)).trace["outer"]) == 9
    hard = solve(problem_64(), KL.scale_free(optimizer="adam", outer=30, inner=10, patience=2))
    selected = list(hard.trace["selected"])
    assert len(selected) < 30
    assert selected.index(hard.count) == len(selected) - 3


def diverging(solver: Any, problem: Problem) -> tuple[Plan, str]:
    events: list[Event] = []
    plan = solve(problem, solver, watch=events.append)
    (notice,) = [e.text for e in events if isinstance(e, Notice)]
    assert plan.notices == (notice,)
    return plan, notice


@pytest.mark.parametrize("solver", [MS(beta=1e6, steps=200), KL(beta=1e6)])
def test_divergence_is_told_with_what_to_lower(solver: Any) -> None:
    """Steps of 1e6 times the gradient of a parabola: every one goes to the other side, a million times further."""
    plan, notice = diverging(replace(solver, outer=2, inner=200), linear_problem([1.0], [[-3.0], [-2.0]], [5.0]))
    assert notice.startswith(f"{type(solver).__name__} diverged in outer iteration 1, inner iteration ")
    assert "the gradient of the samples is no finite number" in notice
    assert "Lower beta (1000000.0)" in notice
    assert plan.count == 0
    assert plan.fate_counts()[Fate.UNUSABLE] == 0


@all_four
def test_what_was_found_before_divergence_is_kept(solver: Any) -> None:
    """Multipliers beyond float64 after the first outer iteration."""
    problem = problem_64()
    good = replace(solver, inner=150, start_lambda=0.1)
    first = solve(problem, replace(good, outer=1))
    plan, notice = diverging(replace(good, gamma=1.7e308, eta=1.7e308), problem)
    assert "diverged in outer iteration 2" in notice
    assert plan.count == first.count > 0
    assert np.array_equal(plan.changes, first.changes)


def test_a_warm_start_from_a_subset() -> None:
    """Those of the subset start where its plan leaves them; all others as ever."""
    x, ids = np.random.default_rng(0).normal(size=(30, 4)), [f"P{j:02}" for j in range(30)]
    solver = BCMS.scale_free(optimizer="adam", outer=3, inner=40, draws=20)
    half = solve(problem_64(cohort=Cohort.table(x[:15], ids=ids[:15])), solver)
    assert half.count > 2
    problem = problem_64(cohort=Cohort.table(x[::-1], ids=ids[::-1]))
    search = setting_of(problem, u=np.zeros((30, 4)), mu=np.ones(30), lambda_=np.ones(4), units="standard").search
    cold = search.start(run_of(problem))
    warm = search.start(replace(run_of(problem), start=half))
    moved = np.isin(problem.cohort.ids, half.ids)
    assert (warm[~torch.tensor(moved)] == cold[~torch.tensor(moved)]).all()
    by_id = dict(zip(half.ids, half.changes, strict=True))
    wanted = np.array([by_id[i] for i in problem.cohort.ids[moved]])
    np.testing.assert_allclose((warm * search.unit).numpy()[moved], wanted, rtol=1e-12)
    assert solve(problem, solver, start=half).worth >= half.worth


def test_a_warm_start_with_other_features_is_refused() -> None:
    with pytest.raises(InputError, match="other features"):
        solve(net_problem(20, 4), KL(outer=1, inner=1), start=solve(net_problem(20, 3)))


def test_twins_share_their_flip() -> None:
    """Noise moves equal people differently; the cheapest of their flips does for each of them."""
    problem = linear_problem([1.0], [[-1.0]] * 5 + [[-1.5]], [100.0])
    plan = solve(problem, KL.scale_free(optimizer="adam", outer=2, inner=200, a=0.0))
    assert plan.count == 6
    assert len(set(plan.changes[:5, 0].tolist())) == 1
    assert plan.changes[5, 0] != plan.changes[0, 0]


class Pit(torch.nn.Module):
    """A linear model whose output is NaN beyond x0 = 3."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logit = torch.where(x[:, 0] > 3, torch.nan, x[:, 0] - 2.0)
        return torch.stack([torch.zeros_like(logit), logit], dim=1)


@pytest.mark.parametrize("solver", [MS, BCMS, CCMS, partial(KL, a=0.9)], ids=["MS", "BCMS", "CCMS", "KL"])
def test_an_output_that_is_no_number_stops_one_sample_and_not_the_run(solver: Any) -> None:
    """The wanted probability of 0.7 lies before the pit; long steps fall into it."""
    problem = Problem(
        classifier=TorchClassifier(Pit(), output="logits", dtype=torch.float64),
        cohort=np.array([[0.0], [1.0], [2.5]]),
        target=1,
        margin=0.4,
        budgets={"x0": math.inf},
    )
    assert solve(problem, solver(outer=2, inner=60, beta=0.5)).count > 0
    lost = solve(problem, solver(outer=1, inner=5, beta=100.0))
    assert lost.fate_counts()[Fate.UNUSABLE] > 0


def test_kl_without_limits_sets_the_budgets() -> None:
    problem = problem_64(20, budgets={"x0": 1.0, "x1": Budget(2.0, {"x1": 1.0, "x2": 0.5}, "absolute"), "x3": 0.0})
    sizing = size_budgets(problem, solver=KL.scale_free(optimizer="adam", outer=6, inner=80))
    assert sizing.is_everyone
    assert sizing.a in (0.0, 0.01, 0.1, 1.0)
    assert list(sizing.budgets) == [0.4, 0.6, 0.8]
    spent = sizing.plan.spend
    assert sizing.plan.budgets["x0"].amount == math.inf
    for share, budgets in sizing.budgets.items():
        assert set(budgets) == {"x0", "x1"}
        assert budgets["x1"].cost == "absolute"
        assert budgets["x0"].amount == pytest.approx(share * spent["x0"])
        small = problem.changed(budgets=budgets)
        assert small.budgets["x3"].amount == 0.0
        assert solve(small).count >= 1
    wrong: Any
    for wrong in ((), (0.0,), ("half",), (True,)):
        with pytest.raises(InputError, match="shares"):
            size_budgets(problem, wrong)
    with pytest.raises(InputError, match="weights"):
        size_budgets(problem, weights=())


def test_the_weight_that_needs_least_is_taken() -> None:
    """Of those that flip everyone; a heavy weight keeps everyone at home and flips nobody."""
    problem = linear_problem([1.0], [[-1.0], [-2.0]], [1.0])
    solver = KL.scale_free(optimizer="adam", outer=3, inner=80)
    sizing = size_budgets(problem, solver=solver, weights=(0.0, 0.1, 1e6))
    unlimited = problem.changed(budgets={"x0": math.inf})
    spends = {a: solve(unlimited, replace(solver, a=a)) for a in (0.0, 0.1, 1e6)}
    assert spends[1e6].count < 2
    whole = [a for a in (0.0, 0.1) if spends[a].count == 2]
    assert sizing.a == min(whole, key=lambda a: spends[a].spend["x0"])


def test_several_gradient_steps_per_inner_iteration() -> None:
    """Eight times one is twice four, as long as nobody is dropped in between."""
    problem = linear_problem([1.0], [[-1.0], [-2.0]], [math.inf])
    for kind in (MS, KL):
        one = solve(problem, kind(outer=1, inner=8, start_mu=0.5, patience=None))
        four = solve(problem, kind(outer=1, inner=2, steps=4, start_mu=0.5, patience=None))
        assert one.trace["lagrangian"] == four.trace["lagrangian"]
        assert (list(one.trace["inner"]), list(four.trace["inner"])) == ([8], [2])


def test_huge_models_are_asked_in_batches() -> None:
    """The same plan whatever the batch size, but for rounding."""
    nets = [TorchClassifier(linear_net([1.0, 2.0]), output="logits", batch_size=size) for size in (7, 4096)]
    plans = []
    for net in nets:
        x = np.random.default_rng(0).normal(size=(40, 2))
        problem = Problem(classifier=net, cohort=x, target=1, margin=0.1, budgets={"x0": 9.0, "x1": 9.0})
        plans.append(solve(problem, BCMS.scale_free(optimizer="adam", outer=2, inner=20, draws=10)))
    assert plans[0].ids.tolist() == plans[1].ids.tolist()
    np.testing.assert_allclose(plans[0].changes, plans[1].changes, rtol=1e-6)


def test_whoever_is_moved_to_where_the_model_has_no_answer_is_told_of() -> None:
    plan = solve(net_problem(20, 2), KL(outer=2, inner=20, beta=1e200))
    assert any("to where the model's output is not finite" in text and "lower beta" in text for text in plan.notices)
