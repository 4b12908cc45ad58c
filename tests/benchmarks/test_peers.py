"""Other tools beside maxflip: everybody is judged alike, and the page says what the result files say."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from benchmarks import peers_tools
from benchmarks.peer_tools.problems import of_shape, problem_of
from benchmarks.peer_tools.question import Floats, Question
from benchmarks.peer_tools.torch_model import Asked
from benchmarks.peers import BLOCKS, Entry, asked_of, exact, measured
from benchmarks.peers_judged import costs, counts, flips, over_best
from benchmarks.peers_questions import linear_optimum, linear_question
from benchmarks.peers_tools import DDN, TOOLS, Answered, Tool, Unavailable, ask, install
from evidence.files import ROOT, Made, write
from evidence.pages import marks
from evidence.rendering import rendered
from evidence.results import Results

NEED = math.log(1.1 / 0.9)  # p - q >= 0.1 where the logits differ by so much


def question(x: list[list[float]], w: tuple[float, ...] = (1.0, 1.0, 0.0), amounts: float = 1.0) -> Question:
    """The wanted class's logit is w.x, the other's 0; the last feature is frozen."""
    width = len(w)
    return Question(
        x=np.array(x),
        frozen=np.arange(width) == width - 1,
        low=-5.0,
        high=5.0,
        margin=0.1,
        spare=2e-6,
        layers=((np.stack([np.array(w), np.zeros(width)]), np.zeros(2)),),
        activation="tanh",
        reference=np.zeros((2, width)),
        shapes=("one",),
        amounts=np.full((1, width), amounts),
        members=np.ones((1, len(x)), dtype=bool),
    )


def answered(changes: Floats, bounds: Floats | None = None) -> Answered:
    return Answered(changes, np.empty(0) if bounds is None else bounds, 2.0, 100.0, "1.0")


def test_what_is_a_flip() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 6)
    enough = 1.0 + NEED + 1e-3
    changes = np.array(
        [
            [enough, 0.0, 0.0],  # passes
            [1.0, 0.0, 0.0],  # reaches the line between the classes, not the margin
            [enough, 0.0, 0.1],  # moves what is frozen
            [6.1, -1.0, 0.0],  # leaves the limits
            [np.nan, enough, 0.0],  # is no change at all
            [0.0, 0.0, 0.0],
        ]
    )
    problem = problem_of(asked, asked.x, np.ones(3))
    assert flips(problem, changes).tolist() == [True, False, False, False, False, False]
    cost = costs(asked, changes)
    assert cost[0] == pytest.approx(enough**2)
    assert np.isinf(cost[1:]).all()
    assert over_best(cost, np.full(6, enough**2 / 2)) == pytest.approx(2.0)


def test_a_failed_row_is_never_picked_however_cheap() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 3, amounts=3.1)
    enough = 1.0 + NEED + 1e-3  # draws 1.45, so two fit
    changes = np.array([[enough, 0.0, 0.0], [0.1, 0.0, 0.0], [enough, 0.0, 0.0]])
    assert counts(asked, changes) == [2]
    assert counts(asked, changes[None] * np.array([1.0, 1.0, 0.0])[:, None]) == [1]
    assert counts(replace(asked, amounts=asked.amounts / 2.2), changes) == [0]


def test_changes_keep_limits_and_frozen_features_and_are_not_made_by_rounding() -> None:
    asked = question([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]])
    same = asked.changes_to(asked.x.astype(np.float32))
    assert (same == 0).all()
    moved = asked.changes_to(np.array([[9.0, 0.2, 0.9], [1.0, -9.0, 3.0]]))
    np.testing.assert_allclose(moved, [[4.9, 0.0, 0.0], [0.0, -7.0, 0.0]])


def test_a_question_survives_its_file(tmp_path: Path) -> None:
    asked = linear_question(2)
    asked.save(tmp_path / "a.npz")
    read = Question.load(tmp_path / "a.npz")
    for name, value in vars(asked).items():
        if name == "layers":
            np.testing.assert_array_equal(np.concatenate(read.layers[0][:1]), np.concatenate(value[0][:1]))
        else:
            np.testing.assert_array_equal(getattr(read, name), value)


def test_tools_see_the_margin_and_no_gradient_of_what_is_frozen() -> None:
    asked = question([[0.0, 0.0, 0.0]], w=(1.0, 1.0, 1.0))
    model = Asked(asked)
    x = torch.tensor([[NEED + 1e-3, 0.0, 0.0], [NEED - 1e-3, 0.0, 0.0]], requires_grad=True)
    logits = model(x)
    assert logits.argmax(dim=1).tolist() == [0, 1]
    torch.autograd.backward(logits[:, 0].sum())
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0, 0.0]] * 2
    shifted = Asked(asked, shift=-5.0, scale=10.0)
    torch.testing.assert_close(shifted((x + 5) / 10), logits)


def passes_together(lacking: Floats, w: Floats, amounts: Floats) -> bool:
    """By a search for the changes that need the least part of their budgets, where all samples pass."""
    n, width = len(lacking), len(w)

    def most(d: Floats) -> float:
        return float(((d.reshape(n, width) ** 2).sum(axis=0) / amounts).max())

    smooth = [
        {"type": "ineq", "fun": lambda v: v[-1] - (v[:-1].reshape(n, width) ** 2).sum(axis=0) / amounts},
        {"type": "ineq", "fun": lambda v: v[:-1].reshape(n, width) @ w - lacking},
    ]
    start = (lacking[:, None] * w / (w @ w)).ravel()
    found = minimize(lambda v: v[-1], np.append(start, most(start)), constraints=smooth, options={"maxiter": 500})
    assert found.success
    return bool(found.x[-1] <= 1.0)


def test_the_optimum_of_a_linear_model_is_that_of_trying_every_subset() -> None:
    asked = linear_question(2, samples=4, width=3)
    w = asked.layers[0][0][0]
    lacking = NEED - asked.x @ w
    for members, amounts, optimum in zip(asked.members, asked.amounts, linear_optimum(asked), strict=True):
        own = lacking[members]
        best = max(
            size
            for size in range(len(own) + 1)
            if any(passes_together(own[list(some)], w, amounts) for some in combinations(range(len(own)), size) if some)
            or size == 0
        )
        assert optimum == best


def test_the_optimum_by_hand() -> None:
    """Everybody lacks 1, the budgets reach 2 in all: four can pass together, since 4 * 1^2 <= 2^2."""
    asked = question([[NEED - 1.0, 0.0, 0.0]] * 6, amounts=1.0)
    assert linear_optimum(asked) == [4]
    uneven = replace(asked, amounts=np.array([[3.9, 0.0, 0.0]]))
    assert linear_optimum(uneven) == [3]


def test_a_tool_that_gives_no_answer_is_a_row_that_says_why() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 2)
    tool = Tool("other", "none", "", methods=("good", "bad", DDN))
    changes = np.array([[2.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    found = [
        Entry(tool, "good", {"all": answered(changes)}),
        Entry(tool, "bad", note="does not install: no such version"),
        Entry(tool, DDN, {"all": answered(changes / 1.25)}),
    ]
    rows, within = measured(found, "all", asked)
    assert [(row["method"], row["flipped"], row["note"]) for row in rows] == [
        ("good", 0.5, ""),
        ("bad", None, "does not install: no such version"),
        (DDN, 0.5, ""),
    ]
    assert rows[0]["cost_over_best"] == pytest.approx(1.25**2)
    assert rows[0]["samples_per_second"] == 1.0
    assert [(row["method"], row["count"]) for row in within] == [("good", 0), (DDN, 0)]  # 4 and 2.6 of 1 are too much
    rows, _ = measured(found, "few", asked.first(1))
    assert [row["flipped"] for row in rows] == [1.0, None, 1.0]


def test_counts_stand_beside_the_optimum_that_was_proved() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 2, amounts=4.1)
    changes = np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    tool = Tool("other", "none", "")
    found = [
        Entry(tool, "one at a time", {"small": answered(changes)}),
        Entry(tool, "solver", {"small": answered(changes[None], np.array([2.0000001]))}),
        Entry(tool, "absent", note="does not run"),
    ]
    rows = exact(found, "small", asked, None)
    assert [(row["method"], row["count"], row["optimum"]) for row in rows] == [
        ("one at a time", 1, 2),
        ("solver", 1, 2),
    ]
    assert exact(found[:1], "small", asked, None) == []  # nobody proved it
    assert exact(found[:1], "small", asked, [3])[0]["optimum"] == 3


def test_a_tool_without_its_script_or_environment_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"does not run: .*No module named benchmarks\.peer_tools\.nothing"):
        ask(Tool("none", "nothing", ""), "method", {}, tmp_path, 60)
    with pytest.raises(Unavailable, match="not installed"):
        ask(Tool("none", "nothing", "", pins="nobody.txt"), "method", {}, tmp_path, 60)


def test_a_tool_that_does_not_install_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "nowhere.txt").write_text(f"no-such-thing @ file://{tmp_path}/nowhere\n")
    tool = Tool("none", "nothing", "", pins="nowhere.txt")
    install(tool)
    with pytest.raises(Unavailable, match="does not install: ERROR: "):
        ask(tool, "method", {}, tmp_path, 60)


def test_foolbox_and_maxflip_answer_as_they_must(tmp_path: Path) -> None:
    """A linear model's nearest flip has the length lacking / |w|."""
    pytest.importorskip("foolbox", reason="foolbox is not installed (extra bench)")
    asked = linear_question(2, samples=4, width=3)
    w = asked.layers[0][0][0]
    least = (NEED - asked.x @ w) ** 2 / (w @ w)
    rivals = replace(next(tool for tool in TOOLS if tool.name == "foolbox"), pins=None)
    by_ddn = ask(rivals, DDN, {"a": asked}, tmp_path, 120)["a"]
    ours = next(tool for tool in TOOLS if tool.name == "maxflip")
    by_us = ask(ours, "Nearest, unit prices", {"a": asked}, tmp_path, 120)["a"]
    np.testing.assert_allclose(costs(asked, by_us.changes), least, rtol=1e-4)
    ddn = costs(asked, by_ddn.changes)
    assert np.isfinite(ddn).all()
    assert (ddn >= least * (1 - 1e-4)).all()
    assert over_best(ddn, least) < 1.2
    planned = ask(ours, "Prices", {"a": asked}, tmp_path, 120)["a"]
    assert planned.changes.shape == (2, *asked.x.shape)
    assert counts(asked, planned.changes) == linear_optimum(asked)
    assert of_shape(asked, 1).cohort.ids.shape == (4,)


def test_whoever_knows_budgets_is_asked_about_the_few_apart() -> None:
    small = question([[0.0, 0.0, 0.0]])
    questions = {"all": small, "few": small, "s": small}
    asked = {tool.name: {m: set(q) for m, q in asked_of(tool, questions, ["s"])} for tool in TOOLS}
    assert asked["maxflip"]["Prices"] == {"all", "few", "s"}
    assert asked["foolbox"][DDN] == {"all", "s"}
    assert asked["DiCE"]["random"] == {"few", "s"}
    assert asked["alibi"]["Counterfactual"] == {"few"}
    assert asked["pyscipopt-ml"]["SCIP"] == {"s"}


def test_tables_say_what_the_files_say(tmp_path: Path) -> None:
    made = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 600.0)
    numbers = {"flipped": 0.985, "cost_over_best": 1.05, "samples_per_second": 3315.0, "relative_speed": 1.0}
    nothing = dict.fromkeys(numbers)
    of = {"tool": "foolbox", "version": "3.3.4", "method": DDN, "peak_mib": 444.4, "note": ""}
    gone = {"tool": "other", "version": "", "method": "m", "peak_mib": None, "note": "does not install: why"}
    budget = {"tool": "foolbox", "method": DDN, "draw": 1}
    tools = [{"tool": "foolbox", "version": "3.3.4", "set_up": "as it is", "note": ""}]
    tools.append({"tool": "other", "version": "", "set_up": "not at all", "note": "does not install: why"})
    write("peers_tools", tools, made, tmp_path)
    write(
        "peers",
        [of | numbers | {"n": n} for n in (200, 10)] + [gone | nothing | {"n": 10, "cost_over_best": np.nan}],
        made,
        tmp_path,
    )
    write(
        "peers_budgets",
        [budget | {"shape": "40 %", "count": 7, "n": n} for n in (200, 10)]
        + [budget | {"shape": "random", "draw": d, "count": d, "n": 200} for d in (1, 2)],
        made,
        tmp_path,
    )
    write("peers_exact", [budget | {"problem": "linear", "count": 2, "optimum": 3, "n": 8}], made, tmp_path)
    results = Results(tmp_path)
    how, everyone, few, small = (rendered(block, results) for block in BLOCKS)
    assert "abc1234" in how
    assert "| foolbox | 3.3.4 | as it is |" in how
    assert "| other | does not install: why | not at all |" in how
    assert f"| foolbox | {DDN} | 98.5 % | 1.050 | 1 | 444 | 7 | 1.5 | |" in everyone
    assert "3,315 samples per second" in everyone
    assert "| other | m | | | | | | does not install: why |" in few
    assert "linear: 1 draws of 8 samples, optimum 3 in all" in small
    assert f"| foolbox | {DDN} | 2 (optimal in 0 of 1) |" in small


def test_the_page_holds_its_tables() -> None:
    found = {mark.name: mark for mark in marks(ROOT / "docs" / "results" / "peers.md", Results())}
    assert set(found) >= set(BLOCKS)
    for mark in found.values():
        assert mark.text == mark.ought, mark.name
