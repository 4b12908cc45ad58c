"""What a plan says of itself: how many flips still pass if changes are not carried out to the letter, or elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import maxflip_verify
from maxflip import (
    Cohort,
    InputError,
    Insight,
    ModelError,
    Plan,
    Problem,
    Rounded,
    SklearnClassifier,
    TorchClassifier,
    Uptake,
    look,
    solve,
)
from maxflip.plan.holding import usual_digits
from maxflip.plan.holds import Holds, Judged
from maxflip.report import render
from maxflip.report.hold import headline
from tests.examples import linear_net, linear_problem, missing_score, net_problem, small_net
from tests.jobs import export, job_text
from tests.report.plans import make
from tests.sequences.examples import Total
from tests.test_cli import invoke

# --- known answers


def test_of_one_linear_score_a_share_passes_if_the_plan_overshoots_by_as_much() -> None:
    """Changes d / 0.85 of the cheapest flips d pass at shares from 0.85 on."""
    x = np.random.default_rng(0).normal(size=(20, 2)) - 1.0
    problem = linear_problem([1.0, 2.0], x, [1e4, 1e4], must_hold=Uptake(0.85))
    plan = solve(problem)
    assert plan.count >= 10
    assert plan.holds is not None
    assert plan.holds.uptake == {1.0: plan.count, 0.9: plan.count, 0.8: 0, 0.5: 0}
    plain = solve(linear_problem([1.0, 2.0], x, [1e4, 1e4]))
    assert plain.holds is not None
    assert plain.holds.uptake == {1.0: plain.count, 0.9: 0, 0.8: 0, 0.5: 0}


def test_rounded_to_the_usual_digits_those_pass_whose_rounded_score_does() -> None:
    """One feature with one decimal: each flip ends at the line, and is rounded up to it or down."""
    x = np.round(np.random.default_rng(1).normal(50.0, 5.0, size=(40, 1)), 1)
    for b in (-60.04, -60.06):
        problem = linear_problem([1.0], x, [1e6], b=b, margin=0.0)
        plan = solve(problem)
        lacks = missing_score([1.0], x, b, margin=0.0)
        assert plan.count == (lacks > 0).sum()
        assert plan.holds is not None
        assert plan.holds.digits == {"x0": 1}
        assert plan.holds.rounded == (plan.count if b == -60.06 else 0)


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        (np.arange(50.0), 0),
        (np.arange(50) / 10, 1),
        (np.round(np.random.default_rng(0).normal(0, 3, 500), 2), 2),
        (np.round(np.random.default_rng(0).normal(0, 3, 500), 4), 2),  # finer than a thousandth of the spread
        (np.random.default_rng(0).normal(0, 0.05, 500), 4),  # computed values
        (np.r_[np.arange(99.0), 0.123], 0),  # one odd value
        (np.float32(np.arange(50) / 10).astype(float), 1),  # one decimal, stored in float32
        (np.full(5, 7.0), 0),
        (np.zeros(5), 0),
    ],
)
def test_usual_digits(values: Any, decimals: int) -> None:
    problem = linear_problem([1.0], np.asarray(values)[:, None], [1.0])
    assert usual_digits(problem) == {"x0": decimals}


def test_sequences_have_usual_digits_and_hold_too() -> None:
    """The changes end at the line, so that no smaller share of them passes; the values have one decimal."""
    values = [[[1.0], [2.0], [np.nan]], [[0.5], [1.5], [2.5]]]
    problem = Problem(
        classifier=TorchClassifier(Total([1.0], -9.0), output="logits", call=lambda net, b: net(b.x, b.observed)),
        cohort=Cohort.sequences(values, features=["bp"]),
        target=1,
        margin=0.1,
        budgets={"bp": 1e3},
        steps="all",
    )
    plan = solve(problem)
    assert plan.holds is not None
    assert (plan.count, plan.holds.digits) == (2, {"bp": 1})
    assert plan.holds.uptake == {1.0: 2, 0.9: 0, 0.8: 0, 0.5: 0}


def test_nobody_picked_holds_nothing() -> None:
    plan = solve(linear_problem([1.0], [[0.0]], [1e-9]))
    assert plan.holds is not None
    assert plan.holds.uptake == {1.0: 0, 0.9: 0, 0.8: 0, 0.5: 0}
    assert headline(plan) == ""
    assert 'id="hold"' not in render(plan)


# --- files and the audit


def test_it_is_saved_loaded_audited_and_shown(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    problem = linear_problem([1.0, 2.0], x, [3.0, 3.0], must_hold=[Uptake(0.9), Rounded({"x0": 0.1})])
    export(linear_net([1.0, 2.0]), tmp_path / "net.pt2", features=2, dtype=torch.float64)
    plan = solve(problem)
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2")
    assert Plan.load(tmp_path / "plan").holds == plan.holds
    file = tmp_path / "plan/summary.json"
    summary = json.loads(file.read_text())
    for spoil in ("uptake", "rounded"):
        wrong = json.loads(json.dumps(summary))
        if spoil == "uptake":
            wrong["holds"]["uptake"]["0.5"] += 1
        else:
            wrong["holds"]["rounded"] += 1 if wrong["holds"]["rounded"] == 0 else -1
        file.write_text(json.dumps(wrong))
        findings = maxflip_verify.audit(tmp_path / "plan").findings
        assert [f.startswith("summary.json: holds: ") for f in findings] == [True]
    for odd in ({"uptake": {"x": 1}, "rounded": 1, "digits": {}}, {"uptake": {}, "rounded": 1, "digits": {}}):
        file.write_text(json.dumps(summary | {"holds": odd}))
        assert not maxflip_verify.audit(tmp_path / "plan").passed
    strange = {"holds": summary["holds"] | {"digits": {"x0": -9999}}}
    file.write_text(json.dumps(summary | strange))
    maxflip_verify.audit(tmp_path / "plan")  # whatever it says, no traceback
    file.write_text(json.dumps({key: value for key, value in summary.items() if key != "holds"}))
    assert Plan.load(tmp_path / "plan").holds is None  # of an earlier version


def test_the_report_says_it_in_plain_words() -> None:
    holds = Holds({1.0: 3, 0.9: 2, 0.8: 1, 0.5: 0}, 1, {"bmi": 1})
    plan = make(((-3.3, 0.0), (-1.1, 12.0), (-2.0, 1.0)), holds=holds)
    assert plan.count == 3
    page = render(plan, Insight(judges=(Judged("<b>other</b>.pt2", 1, 2),)))
    assert "If 90% of each change is carried out, 2 of 3 still pass; if values are rounded" in page
    assert "Other model: <bdi>&lt;b&gt;other&lt;/b&gt;.pt2</bdi>" in page
    assert "1 of them passes in it before any change" in page
    assert "predictions, not outcomes" in page
    assert 'id="hold"' not in render(plan, None, "none")  # three people are too few to be told apart


# --- other models


def test_judges_count_the_flips_that_pass_in_them() -> None:
    """The same score, with the line moved by b: a flip that ends at the line passes where the line is lower."""
    x = np.random.default_rng(2).normal(size=(30, 2))
    problem = linear_problem([1.0, 1.0], x, [1e4, 1e4])
    plan = solve(problem)
    easier, harder = (TorchClassifier(linear_net([1.0, 1.0], b), output="logits") for b in (0.5, -0.5))
    lacks = missing_score([1.0, 1.0], x[plan.selected], 0.5)
    found = look(problem, plan, scales=None, judges=[easier, harder]).judges
    assert found == (Judged("model 1", int((lacks <= 0).sum()), plan.count), Judged("model 2", 0, 0))
    named = look(problem, plan, scales=None, judges={"next year's": harder}).judges
    assert named == (Judged("next year's", 0, 0),)
    assert look(problem, plan, scales=None).judges is None


def test_judges_may_be_files_of_any_kind(tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io", reason="needs the extra `sklearn`")
    problem = net_problem(30, features=3)
    plan = solve(problem)
    fitted = LogisticRegression().fit(problem.cohort.values, problem.cohort.values[:, 0] > 0)
    export(small_net(3, seed=0), tmp_path / "same.pt2")
    skops_io.dump(fitted, tmp_path / "other.skops")
    files: list[Any] = [tmp_path / "same.pt2", str(tmp_path / "other.skops"), SklearnClassifier(fitted)]
    same, other, again = look(problem, plan, scales=None, judges=files).judges or ()
    assert same == Judged("same.pt2", 0, plan.count)
    assert (other.name, again.name) == ("other.skops", "model 3")
    assert (other.before, other.after) == (again.before, again.after)


def test_judges_that_cannot_judge_are_refused(tmp_path: Path) -> None:
    problem = net_problem(20, features=3)
    plan = solve(problem)
    wrong: list[tuple[Any, type[Exception], str]] = [
        ("net.pt2", InputError, "judges: got 'net.pt2'; wanted a list"),
        ([3], InputError, "judges: got 3; wanted classifiers or paths"),
        ([tmp_path / "none.pt2"], Exception, "none.pt2"),
        ([TorchClassifier(small_net(3, 3), output="logits")], ModelError, "judges: model 1: has 3 output columns"),
        ([TorchClassifier(small_net(3), output="decision")], ModelError, "judges: model 1: Ensemble: some members"),
    ]
    for judges, kind, words in wrong:
        with pytest.raises(kind, match=words):
            look(problem, plan, scales=None, judges=judges)


def test_a_job_asks_judges_and_prints_a_line(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(40, 3))
    lines = ["who,a,b,c", *(f"P{j}," + ",".join(map(repr, row)) for j, row in enumerate(values.tolist()))]
    (tmp_path / "cohort.csv").write_text("\n".join(lines) + "\n")
    export(small_net(3, seed=1), tmp_path / "model.pt2")
    export(small_net(3, seed=2), tmp_path / "other.pt2")
    text = job_text(["a", "b", "c"], {"a": 4.0, "b": 4.0}) + "[must_hold]\nuptake = 0.9\n"
    job = tmp_path / "job.toml"
    job.write_text(text.replace("frontier = false", 'frontier = false\njudges = ["other.pt2"]'))
    result = invoke("solve", job, "--out", tmp_path / "plan")
    assert result.exit_code == 0, result.output
    plan, insight = Plan.load(tmp_path / "plan"), Insight.load(tmp_path / "plan")
    assert f"If 90% of each change is carried out, {plan.count} of {plan.count} still pass" in result.output
    assert insight is not None
    assert insight.judges is not None
    assert [judge.name for judge in insight.judges] == ["other.pt2"]
    assert "Other model: <bdi>other.pt2</bdi>" in (tmp_path / "plan/report.html").read_text()
    assert invoke("verify", tmp_path / "plan").exit_code == 0
    job.write_text(text.replace("frontier = false", 'judges = ["cohort.csv"]'))
    assert invoke("solve", job, "--out", tmp_path / "refused").exit_code in (2, 7)
    assert not (tmp_path / "refused").exists()
