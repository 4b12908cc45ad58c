"""Other tools beside maxflip: everybody is judged alike, and the page says what the result files say."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import maxflip
from research.benchmarks import peers, peers_tools
from research.benchmarks.peer_tools import running
from research.benchmarks.peer_tools.problems import of_shape, problem_of
from research.benchmarks.peer_tools.question import Floats, Question
from research.benchmarks.peer_tools.running import one_by_one
from research.benchmarks.peer_tools.torch_model import Asked
from research.benchmarks.peers import (
    BLOCKS,
    SMALL,
    Entry,
    Job,
    Size,
    entries,
    exact,
    jobs_of,
    measured,
    name_of,
    run,
    there,
)
from research.benchmarks.peers_judged import costs, counts, flips, over_best
from research.benchmarks.peers_questions import AskedCohort, cohorts, linear_optimum, linear_question, relu_question
from research.benchmarks.peers_tools import (
    DDN,
    TOOLS,
    Answered,
    Tool,
    Unavailable,
    ask,
    code_of,
    install,
)
from research.evidence.files import ROOT, Made, write
from research.evidence.pages import marks
from research.evidence.rendering import rendered
from research.evidence.results import Results
from tests.datasets.test_credit import write as write_credit

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
    return Answered(changes, np.empty(0) if bounds is None else bounds, changes.shape[-2], 2.0, 100.0, "1.0")


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
    asked = replace(linear_question(2), seconds=7.0)
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
        Entry(tool, "good", "bank", {"all": answered(changes)}),
        Entry(tool, "bad", "bank", note="does not install: no such version"),
        Entry(tool, DDN, "bank", {"all": answered(changes / 1.25)}),
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
    assert {row["cohort"] for row in rows} == {"bank"}
    rows, within = measured(found[1:2], "all", asked)
    assert [row["note"] for row in rows] == ["does not install: no such version"]
    assert within == []


def test_who_was_asked_some_samples_alone_is_measured_on_these_and_not_within_budgets() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 4, amounts=99.0)
    step = np.array([2.0, 0.0, 0.0])
    some = np.array([step, 0 * step, 0 * step + np.nan, 0 * step + np.nan])
    tool = Tool("other", "none", "", methods=(DDN,), slow=("late",))
    found = [
        Entry(tool, DDN, "bank", {"few": answered(np.tile(step, (4, 1)))}),
        Entry(tool, "late", "bank", {"few": replace(answered(some), asked=2)}),
    ]
    rows, within = measured(found, "few", asked)
    assert [(row["asked"], row["flipped"], row["samples_per_second"]) for row in rows] == [(4, 1.0, 2.0), (2, 0.5, 1.0)]
    assert [(row["method"], row["count"]) for row in within] == [(DDN, 4)]


def test_methods_of_like_names_are_other_cells() -> None:
    names = [method for tool in TOOLS for method in (*tool.methods, *tool.slow, *tool.exact)]
    assert len({name_of(Job(TOOLS[0], method, "bank", {})) for method in names}) == len(set(names))


def test_tools_that_keep_the_margin_as_they_see_it_pass_the_judge() -> None:
    asked = relu_question(2)
    for s in range(2):
        problem = of_shape(asked, s)
        assert asked.spare >= 2 * problem.guard
    needed = np.log((1 + asked.margin + asked.spare) / (1 - asked.margin - asked.spare))
    assert asked.head_start == pytest.approx(needed)
    # From the start to a point of the wanted class, halved until it lies just where a tool sees the margin kept.
    far = asked.reference[np.argmax(asked.logits(asked.reference) @ [1.0, -1.0])] - asked.x
    low, high = np.zeros((len(far), 1)), np.ones((len(far), 1))
    for _ in range(60):
        middle = (low + high) / 2
        logits = asked.logits(asked.x + middle * far)
        kept = (logits[:, 0] - logits[:, 1] >= asked.head_start)[:, None]
        low, high = np.where(kept, low, middle), np.where(kept, middle, high)
    assert flips(problem_of(asked, asked.x, np.ones(4)), high * far).all()


def test_sample_by_sample_until_the_time_is_over() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 3)
    all_of_them = one_by_one(asked, lambda row: row + 1.0)
    assert all_of_them.asked == 3
    np.testing.assert_array_equal(all_of_them.changes, [[1.0, 1.0, 0.0]] * 3)  # the last feature is frozen
    in_no_time = one_by_one(replace(asked, seconds=0.0), lambda row: row + 1.0)
    assert in_no_time.asked == 1
    np.testing.assert_array_equal(in_no_time.changes, [[1.0, 1.0, 0.0], [np.nan] * 3, [np.nan] * 3])


def test_counts_stand_beside_the_optimum_that_was_proved() -> None:
    asked = question([[-1.0, 0.0, 0.0]] * 2, amounts=4.1)
    changes = np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    tool = Tool("other", "none", "")
    found = [
        Entry(tool, "one at a time", SMALL, {"small": answered(changes)}),
        Entry(tool, "solver", SMALL, {"small": answered(changes[None], np.array([1.9999999]))}),
        Entry(tool, "absent", SMALL, note="does not run"),
    ]
    rows = exact(found, "small", asked, None)
    assert [(row["method"], row["count"], row["optimum"], row["note"]) for row in rows] == [
        ("one at a time", 1, 2, ""),
        ("solver", 1, 2, ""),
        ("absent", None, 2, "does not run"),
    ]
    assert [row["optimum"] for row in exact(found[:1], "small", asked, None)] == [None]  # nobody proved it
    late = Entry(tool, "solver", SMALL, {"small": answered(changes[None], np.array([np.nan]))})
    assert [row["optimum"] for row in exact([late], "small", asked, None)] == [None]
    assert exact(found[:1], "small", asked, [3])[0]["optimum"] == 3


def test_a_tool_without_its_script_or_environment_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"does not run: .*No module named research\.benchmarks\.peer_tools\.nothing"):
        ask(Tool("none", "nothing", ""), "method", {}, 60)
    with pytest.raises(Unavailable, match="not installed"):
        ask(Tool("none", "nothing", "", pins="nobody.txt"), "method", {}, 60)


def test_a_tool_that_does_not_install_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "nowhere.txt").write_text(f"no-such-thing @ file://{tmp_path}/nowhere\n")
    tool = Tool("none", "nothing", "", pins="nowhere.txt")
    install(tool, 300)
    with pytest.raises(Unavailable, match="does not install: ERROR: "):
        ask(tool, "method", {}, 60)


def test_an_environment_that_cannot_be_made_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setattr(venv, "create", full)
    (tmp_path / "some.txt").write_text("some==1\n")
    tool = Tool("some", "nothing", "", pins="some.txt")
    install(tool, 300)
    with pytest.raises(Unavailable, match="does not install: no space left on device"):
        ask(tool, "method", {}, 60)
    home = tmp_path / "environments" / "some"
    (home / "installed").write_text("some==1\n")  # of an interpreter that is gone
    with pytest.raises(Unavailable, match=r"does not run: .*No such file"):
        ask(tool, "method", {}, 60)
    made: list[Path] = []
    monkeypatch.setattr(venv, "create", lambda where, **_: made.append(where))
    install(tool, 300)
    assert made == [home]


def test_without_ensurepip_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """venv raises what its own process printed, and no stderr."""

    def without(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, ["python"], output=b"python3: No module named ensurepip\n")

    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path / "environments")
    monkeypatch.setattr(venv, "create", without)
    (tmp_path / "some.txt").write_text("some==1\n")
    tool = Tool("some", "nothing", "", pins="some.txt")
    install(tool, 300)
    with pytest.raises(Unavailable) as told:
        ask(tool, "method", {}, 60)
    assert "does not install: ensurepip, which venv needs, is missing" in str(told.value)
    assert "(python3: No module named ensurepip)" in str(told.value)
    assert "apt install python3-venv" in str(told.value)


def test_an_environment_of_other_pins_that_cannot_be_made_anew_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(venv, "create", full)
    (tmp_path / "some.txt").write_text("some==2\n")
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "installed").write_text("some==1\n")
    tool = Tool("some", "nothing", "", pins="some.txt")
    install(tool, 300)
    assert peers_tools.not_installed([tool]) == {"some": "does not install: no space left on device"}


def test_every_requirement_is_pinned() -> None:
    lines = {line for tool in TOOLS if tool.pins for line in (peers_tools.PINS / tool.pins).read_text().split()}
    assert {line for line in lines if "==" not in line} == set()


def test_a_method_is_stopped_when_its_processor_time_is_over(tmp_path: Path) -> None:
    ours = next(tool for tool in TOOLS if tool.name == "maxflip")
    with pytest.raises(Unavailable, match="stopped after 1 s of processor time"):
        ask(ours, "Prices", {"a": linear_question(10, samples=50)}, 1)


def test_an_interrupted_run_is_resumed_where_the_questions_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "ANSWERS", tmp_path)
    times = []

    def answer(tool: Tool, method: str, questions: dict[str, Question], limit: int) -> dict[str, Answered]:
        times.append(method)
        if method == "none":
            raise Unavailable("does not run")
        return {name: answered(one.x) for name, one in questions.items()}

    monkeypatch.setattr(peers, "ask", answer)
    asked = question([[-1.0, 0.0, 0.0]])
    tool = Tool("other", "nothing", "", methods=("quick", "none"), slow=("slow",))
    jobs = [Job(tool, method, "bank", {"all": asked}) for method in ("quick", "none", "slow")]
    first = entries(jobs, 60, resume=False)
    assert [(entry.method, entry.note) for entry in first] == [("quick", ""), ("none", "does not run"), ("slow", "")]
    assert "3 of 3" in capsys.readouterr().out
    assert len(times) == 3
    again = entries(jobs, 60, resume=True)
    assert times[3:] == ["none"]
    np.testing.assert_array_equal(again[0].answers["all"].changes, asked.x)
    other = Job(tool, "quick", "bank", {"all": replace(asked, margin=0.2)})
    entries([other], 60, resume=True)
    entries(jobs[:1], 60, resume=False)
    assert times[4:] == ["quick", "quick"]


def test_answers_of_other_code_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = next(tool for tool in TOOLS if tool.name == "maxflip")
    job = Job(ours, "Nearest, unit prices", "bank", {"all": linear_question(1, samples=2)})
    before = repr(job)
    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    for script in ("maxflip_solvers", *peers_tools.FRAME):
        shutil.copy(ROOT / "research" / "benchmarks" / "peer_tools" / f"{script}.py", tmp_path)
    assert repr(job) == before
    (tmp_path / "running.py").write_text("SHORT = 3.0")
    assert repr(job) != before


def test_an_answer_is_read_as_it_was_kept() -> None:
    given = replace(answered(np.array([[1.0, np.nan]])), bounds=np.empty(0), version="1.2")
    kept = Answered.from_json(json.loads(json.dumps(given.as_json())))
    assert vars(kept).keys() == vars(given).keys()
    for name, value in vars(given).items():
        np.testing.assert_array_equal(getattr(kept, name), value)


def test_the_code_of_a_tool_is_its_script_and_pins_and_of_maxflip_all_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_tools, "PINS", tmp_path)
    monkeypatch.setattr(maxflip, "__file__", str(tmp_path / "maxflip" / "__init__.py"))
    (tmp_path / "maxflip").mkdir()
    other, ours = Tool("other", "script", "", pins="other.txt"), Tool("maxflip", "script", "")
    seen = [(code_of(other), code_of(ours))]
    for name in ("script.py", "other.txt", "maxflip/new.py"):
        (tmp_path / name).write_text("x")
        seen.append((code_of(other), code_of(ours)))
    changed = [tuple(a != b for a, b in zip(*pair, strict=True)) for pair in pairwise(seen)]
    assert changed == [(True, True), (True, False), (False, True)]


def test_a_tool_that_is_stopped_while_it_writes_leaves_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def struck(path: Path, **_: object) -> None:
        path.write_bytes(b"half of it")
        raise KeyboardInterrupt

    linear_question(1, samples=2).save(tmp_path / "all.question.npz")
    monkeypatch.setattr(sys, "argv", ["x", "still", str(tmp_path)])
    monkeypatch.setattr(np, "savez", struck)
    with pytest.raises(KeyboardInterrupt):
        running.main("numpy", {"still": lambda question: lambda: running.Answer(0.0 * question.x)})
    assert not (tmp_path / "all.answer.npz").exists()


def test_after_ctrl_c_no_further_method_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ANSWERS", tmp_path)
    times = []

    def answer(tool: Tool, method: str, *_: object) -> dict[str, Answered]:
        times.append(method)
        if method == "0":
            raise KeyboardInterrupt
        time.sleep(0.05)
        return {}

    monkeypatch.setattr(peers, "ask", answer)
    tool = Tool("other", "nothing", "")
    with pytest.raises(KeyboardInterrupt):
        entries([Job(tool, str(number), "bank", {}) for number in range(100)], 60, resume=False)
    assert len(times) < 100


def test_foolbox_and_maxflip_answer_as_they_must(tmp_path: Path) -> None:
    """A linear model's nearest flip has the length lacking / |w|."""
    pytest.importorskip("foolbox", reason="foolbox is not installed (extra bench)")
    asked = linear_question(2, samples=4, width=3)
    w = asked.layers[0][0][0]
    least = (NEED - asked.x @ w) ** 2 / (w @ w)
    rivals = replace(next(tool for tool in TOOLS if tool.name == "foolbox"), pins=None)
    by_ddn = ask(rivals, DDN, {"a": asked}, 120)["a"]
    ours = next(tool for tool in TOOLS if tool.name == "maxflip")
    by_us = ask(ours, "Nearest, unit prices", {"a": asked}, 120)["a"]
    np.testing.assert_allclose(costs(asked, by_us.changes), least, rtol=1e-4)
    ddn = costs(asked, by_ddn.changes)
    assert np.isfinite(ddn).all()
    assert (ddn >= least * (1 - 1e-4)).all()
    assert over_best(ddn, least) < 1.2
    planned = ask(ours, "Prices", {"a": asked}, 120)["a"]
    assert planned.changes.shape == (2, *asked.x.shape)
    assert counts(asked, planned.changes) == linear_optimum(asked)
    assert of_shape(asked, 1).cohort.ids.shape == (4,)


def test_whoever_knows_budgets_is_asked_about_the_few_apart() -> None:
    small = question([[0.0, 0.0, 0.0]])
    bank = AskedCohort("bank", "", "", small, small)
    asked = {
        (j.tool.name, j.method, j.about): set(j.questions) for t in TOOLS for j in jobs_of(t, [bank], {"s": small})
    }
    assert asked["maxflip", "Prices", "bank"] == {"all", "few"}
    assert asked["foolbox", DDN, "bank"] == {"all"}
    assert asked["foolbox", DDN, SMALL] == {"s"}
    assert asked["alibi", "Counterfactual", "bank"] == {"few"}
    assert ("alibi", "Counterfactual", SMALL) not in asked
    assert asked["pyscipopt-ml", "SCIP", SMALL] == {"s"}
    assert ("pyscipopt-ml", "SCIP", "bank") not in asked


def test_without_data_it_says_what_to_fetch_and_asks_about_a_generated_cohort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "credit_default"
    for missing, why in (
        (None, "no folder was named"),
        (tmp_path, f"{tmp_path} has no folder credit_default"),
        (tmp_path, f"{folder}: has no default_credit_card.csv and no default_credit_card.csv.gz"),
    ):
        assert there(missing) is None
        told = capsys.readouterr().out
        assert f"credit_default is left out: {why}" in told
        assert "archive.ics.uci.edu" in told
        assert "The generated cohort is the only one." in told
        if missing:
            folder.mkdir(exist_ok=True)
    write_credit(folder, "0", "1")
    assert there(tmp_path) == tmp_path
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(peers, "ANSWERS", tmp_path / "answers")
    ours = next(tool for tool in TOOLS if tool.name == "maxflip")
    size = Size(samples=6, few=2, draws=1, patience=60, limit=120, installing=60, long=False)
    files = run(None, size, (replace(ours, methods=("Nearest, unit prices",)),))
    assert [row["cohort"] for row in files["peers_cohorts"]] == ["generated"]
    assert [(row["n"], row["asked"], row["flipped"]) for row in files["peers"]] == [(6, 6, 1.0), (2, 2, 1.0)]
    assert {row["problem"]: row["optimum"] is None for row in files["peers_exact"]} == {
        "linear": False,
        "ReLU network": True,
    }


def test_the_program_without_data_is_done_and_says_with_which_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = []
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["peers", "--quick", "--resume"])
    monkeypatch.setattr(peers, "run", lambda data, size, *, resume: {"asked": [{"data": data, "resume": resume}]})
    monkeypatch.setattr(peers, "report", lambda files, made, blocks, *, keep: commands.append((files, made, keep)))
    assert peers.main() == 0
    ((files, made, keep),) = commands
    assert files == {"asked": [{"data": None, "resume": True}]}
    assert (made.command, made.seconds, keep) == ("python -m research.benchmarks.peers --quick", None, False)
    assert "no folder was named" in capsys.readouterr().out


def test_nothing_is_kept_where_a_tool_did_not_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = []
    here, gone = Tool("here", "nothing", ""), Tool("gone", "nothing", "", pins="gone.txt")
    (tmp_path / "credit_default").mkdir()
    write_credit(tmp_path / "credit_default", "0", "1")
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "fault").write_text("does not install: ERROR: no network")
    monkeypatch.setattr(peers_tools, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(peers, "TOOLS", (here, gone))
    monkeypatch.setattr(sys, "argv", ["peers", "--keep", "--data", str(tmp_path)])
    monkeypatch.setattr(peers, "run", lambda *_, **__: {})
    monkeypatch.setattr(peers, "report", lambda files, made, blocks, *, keep: kept.append(keep))
    assert peers.main() == 1
    told = capsys.readouterr().err
    assert "gone: does not install: ERROR: no network" in told
    assert "here:" not in told
    assert f"python -m research.benchmarks.peers --keep --data {tmp_path} --resume\n" in told
    (tmp_path / "gone" / "installed").write_text("gone==1")
    assert peers.main() == 0
    assert kept == [False, True]  # the tables are printed all the same


def test_ctrl_c_ends_it_with_the_command_that_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def struck(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["peers", "--resume", "--quick"])
    monkeypatch.setattr(peers, "run", struck)
    assert peers.main() == 130
    told = capsys.readouterr().err
    assert "  python -m research.benchmarks.peers --quick --resume\n" in told
    assert "make bench RESUME=1" in told


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("words", "ends"), [([], "--quick\n"), (["RESUME=1"], "--quick --resume\n")])
def test_make_bench_goes_on_where_it_is_asked_to(words: list[str], ends: str) -> None:
    # Within `make test`, make says of each that it enters and leaves the folder.
    command = ["make", "--no-print-directory", "-n", "bench", *words]
    would = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert would.stdout.endswith(ends)


@pytest.mark.parametrize("words", [["--quick", "--keep"], ["--keep"], ["--keep", "--data", "nowhere"]])
def test_half_a_comparison_replaces_no_result(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MAXFLIP_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["peers", *words])
    monkeypatch.setattr(peers, "run", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(SystemExit):
        peers.main()
    assert "would replace what pages say" in capsys.readouterr().err


def test_the_generated_cohort_is_of_people_whom_its_network_predicts_in_the_unwanted_class() -> None:
    (asked,) = cohorts(None, samples=20, few=5)
    assert asked.everyone.activation == "relu"
    logits = asked.everyone.logits(asked.everyone.x)
    assert (logits[:, 1] > logits[:, 0]).all()
    np.testing.assert_array_equal(asked.few.x, asked.everyone.x[:5])
    assert not asked.everyone.frozen.any()


def test_tables_say_what_the_files_say(tmp_path: Path) -> None:
    made = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 600.0)
    numbers = {"flipped": 0.985, "cost_over_best": 1.05, "samples_per_second": 3315.0, "relative_speed": 1.0}
    nothing = dict.fromkeys(numbers)
    bank = {"cohort": "bank"}
    of = bank | {"tool": "foolbox", "version": "3.3.4", "method": DDN, "peak_mib": 444.4, "note": ""}
    gone = {"tool": "other", "version": "", "method": "m", "peak_mib": None, "note": "does not install: why"}
    gone |= bank | {"asked": None}
    budget = {"tool": "foolbox", "method": DDN, "draw": 1}
    about = {"network": "tanh", "features": 23, "said": "public", "budgets": 19, "samples": 200, "few": 10}
    write("peers_cohorts", [bank | about, about | {"cohort": "shop"}], made, tmp_path)
    tools = [{"tool": "foolbox", "version": "3.3.4", "set_up": "as it is", "note": ""}]
    tools.append({"tool": "other", "version": "", "set_up": "not at all", "note": "does not install: why"})
    write("peers_tools", tools, made, tmp_path)
    write(
        "peers",
        [of | numbers | {"n": n, "asked": n} for n in (200, 10)]
        + [gone | nothing | {"n": 10, "cost_over_best": np.nan}]
        + [of | numbers | {"n": 10, "asked": 4, "cohort": "shop", "relative_speed": 0.5}],
        made,
        tmp_path,
    )
    write(
        "peers_budgets",
        [bank | budget | {"shape": "40 %", "count": 7, "n": n} for n in (200, 10)]
        + [bank | budget | {"shape": "random", "draw": d, "count": d, "n": 200} for d in (1, 2)],
        made,
        tmp_path,
    )
    small = budget | {"problem": "linear", "n": 8}
    proved = [small | {"draw": d, "count": d, "optimum": 2} for d in (1, 2)]
    write("peers_exact", [*proved, small | {"draw": 3, "count": 1, "optimum": None}], made, tmp_path)
    results = Results(tmp_path)
    how, asked, everyone, few, exactly = (rendered(block, results) for block in BLOCKS)
    assert "abc1234" in how
    assert "| foolbox | 3.3.4 | as it is |" in how
    assert "| other | does not install: why | not at all |" in how
    assert f"| foolbox | {DDN} | 98.5 % | 1.050 | 1 | 444 | 7 | 1.5 | |" in everyone
    assert "3,315 samples per second" in everyone
    assert "| other | m | | | | | | does not install: why |" in few
    assert f"| foolbox | {DDN} | 98.5 % | 1.050 | 0.5 | 444 | asked the first 4 alone |" in few
    assert "| bank | 23: public | tanh | 19 | 200; slow methods: the first 10 |" in asked
    assert "**bank**, 200 samples. DDN: " in everyone
    assert few.index("**bank**, 10 samples") < few.index("**shop**, 10 samples")
    assert "linear: 3 draws of 8 samples, the optimum of 2 proved." in exactly
    assert "| tool | method | linear: flipped (optimum 4) | optimal, of 2 draws |" in exactly
    assert f"| foolbox | {DDN} | 3 | 1 |" in exactly


def test_who_failed_on_small_problems_is_shown_and_a_plan_may_beat_a_proved_optimum(tmp_path: Path) -> None:
    made = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)")
    row = {"problem": "linear", "n": 8, "optimum": 2}
    rows = [
        row | {"tool": tool, "method": "m", "draw": d, "count": count, "note": note}
        for tool, count, note in (("maxflip", 3, ""), ("other", None, "does not run: why"), ("third", 1, ""))
        for d in (1, 2)
    ]
    rows.append(row | {"problem": "ring", "optimum": None, "tool": "late", "method": "m", "draw": 1, "count": None})
    rows[-1]["note"] = "stopped"
    write("peers_exact", rows, made, tmp_path)
    assert rendered("peers.exact", Results(tmp_path)).splitlines()[2:] == [
        "| tool | method | linear: flipped (optimum 4) | optimal, of 2 draws | note |",
        "| --- | --- | --- | --- | --- |",
        "| maxflip | m | 6 | 2 | |",
        "| other | m | | | does not run: why |",
        "| third | m | 2 | 0 | |",
        "| late | m | | | stopped |",
    ]


def test_the_page_holds_its_tables() -> None:
    found = {mark.name: mark for mark in marks(ROOT / "docs" / "results" / "peers.md", Results())}
    assert set(found) >= set(BLOCKS)
    for mark in found.values():
        assert mark.text == mark.ought, mark.name
