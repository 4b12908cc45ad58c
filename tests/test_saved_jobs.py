"""Plans made in Python, saved with what was asked, and audited by the folder alone."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import maxflip_verify
import maxflip_wall
from maxflip import (
    KL,
    MS,
    Budget,
    Cohort,
    Ensemble,
    Grouped,
    InputError,
    Nearest,
    Plan,
    Prices,
    Problem,
    SklearnClassifier,
    Tempered,
    TorchClassifier,
    UnsafeError,
    VerifyError,
    resolve,
    solve,
)
from maxflip._util.events import silent
from maxflip.io.job.read import read_job
from tests.examples import small_net
from tests.jobs import export
from tests.test_cli import invoke

NAMES = ["id", "b m/i", 'b"p\x7f', "äge"]
X = np.random.default_rng(0).normal(size=(40, 4))
LOW = np.where(np.arange(40) % 3 == 0, -np.inf, X[:, 1] - 1.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pt2"
    export(small_net(4, 3, seed=1), path, features=4)
    return path


def posed(**options: Any) -> Problem:
    people = Cohort.table(X, features=NAMES, ids=[f"P-{j:02d}" for j in range(40)], units={"b m/i": "kg/m²"})
    return posed_of(people, **options)


def posed_of(people: Cohort, **options: Any) -> Problem:
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(small_net(4, 3, seed=1), output="logits"),
        "target": 1,
        "margin": 0.1,
        "budgets": {"b m/i": 9.0, 'b"p\x7f': 9.0},
    }
    return Problem(cohort=people, **(settings | options))


def solved_again(folder: Path) -> Any:
    """The job of the plan there, without a frontier, whose solves take their time."""
    job = folder / "plan" / "job.toml"
    job.write_text(f"{job.read_text()}\n[report]\nfrontier = false\n")
    return invoke("solve", job, "--out", folder / "again")


HOURS = Budget(4.0, {"b m/i": 0.5, "äge": 1e-3}, "absolute")
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "any of two": {"target": {0, 2}, "margin": None, "threshold": 0.7},
    "one for each": {"target": [j % 3 for j in range(40)]},
    "distributions": {"target": np.eye(3)[np.arange(40) % 3] * 0.8 + 0.1 * 2 / 3},
    "budgets": {"budgets": {"b m/i": math.inf, "hours": HOURS, "people": Budget(7, cost="count"), "äge": 0.0}},
    "limits": {"limits": {"b m/i": (LOW, 1.5), 'b"p\x7f': "observed"}, "directions": {'b"p\x7f': "up"}},
    "worth": {"worth": np.arange(40) / 7, "exclude": ["P-03", "P-04"]},
    "thrift": {"thrift": {"b m/i": 2.5}},
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_saved_with_its_problem_passes_its_audit(case: str, model: Path, tmp_path: Path) -> None:
    problem = posed(**CASES[case])
    plan = solve(problem, Nearest(), seed=3)
    assert plan.count > 0
    plan.save(tmp_path / "plan", problem=problem, model=model)
    audit = maxflip_verify.audit(tmp_path / "plan")
    assert audit.passed, audit.findings
    assert invoke("verify", tmp_path / "plan").exit_code == 0


@pytest.mark.parametrize("case", CASES)
def test_the_job_asks_what_the_problem_asks(case: str, model: Path, tmp_path: Path) -> None:
    problem = posed(**CASES[case])
    solve(problem, Nearest()).save(tmp_path / "plan", problem=problem, model=model)
    job = read_job(tmp_path / "plan" / "job.toml")
    classifier = job.load_classifier(silent)
    again = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert again.budgets == problem.budgets
    assert again.thrift == problem.thrift
    assert again.cohort.features == problem.cohort.features
    assert again.cohort.units == problem.cohort.units
    rows = np.arange(40)
    for ours, read in zip(problem.box(rows), again.box(rows), strict=True):
        np.testing.assert_array_equal(ours, read)
    for field in ("worth", "include", "exclude"):
        np.testing.assert_array_equal(getattr(again, field), getattr(problem, field))
    np.testing.assert_array_equal(again.cohort.ids, problem.cohort.ids)
    np.testing.assert_array_equal(again.cohort.values, problem.cohort.values)
    np.testing.assert_array_equal(again.goal.wanted, problem.goal.wanted)
    assert (again.goal.required, again.goal.is_threshold) == (problem.goal.required, problem.goal.is_threshold)


def test_columns_that_the_job_adds_are_not_taken_for_features(model: Path, tmp_path: Path) -> None:
    people = Cohort.table(X, features=["ID", "Target", "a", "A_min"])
    low = np.minimum(X[:, 2], -1.0)
    problem = posed_of(people, target=[j % 3 for j in range(40)], limits={"a": (low, 9.0)}, budgets={"a": 9.0})
    solve(problem, Nearest()).save(tmp_path / "plan", problem=problem, model=model)
    again = solved_again(tmp_path)
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_weights_of_any_kind_of_number_are_written(kind: Any, model: Path, tmp_path: Path) -> None:
    problem = posed(budgets={"hours": Budget(kind(9), {"b m/i": kind(2)}, "absolute")}, margin=kind(0))
    solve(problem).save(tmp_path / "plan", problem=problem, model=model)
    assert maxflip_verify.audit(tmp_path / "plan").passed


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC()], ids=lambda e: type(e).__name__)
def test_plans_of_scikit_learn_models_too(estimator: Any, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io", reason="needs the extra `sklearn`")
    estimator.fit(X, np.where(X[:, 1] + X[:, 2] > 0, "good", "bad"))
    skops_io.dump(estimator, tmp_path / "model.skops")
    problem = posed(classifier=SklearnClassifier(estimator), target="good")
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "model.skops")
    audit = maxflip_verify.audit(tmp_path / "plan")
    assert audit.passed, audit.findings


def test_other_names_of_the_classes_of_a_scikit_learn_model_are_saved(tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io", reason="needs the extra `sklearn`")
    estimator = LogisticRegression().fit(X, X[:, 1] + X[:, 2] > 0)
    skops_io.dump(estimator, tmp_path / "model.skops")
    problem = posed(classifier=SklearnClassifier(estimator, classes=["bad", "good"]), target="good")
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "model.skops")
    assert maxflip_verify.audit(tmp_path / "plan").passed


def test_another_model_does_not_pass_and_nothing_is_saved(tmp_path: Path) -> None:
    export(small_net(4, 3, seed=2), tmp_path / "other.pt2", features=4)
    (tmp_path / "model.pt").write_bytes(b"\x80\x04no model.")
    problem = posed()
    plan = solve(problem)
    with pytest.raises(VerifyError, match="does not pass its audit"):
        plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "other.pt2")
    with pytest.raises(UnsafeError):
        plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.pt", "other.pt2"]


def test_a_plan_of_another_question_is_saved_with_that_question(model: Path, tmp_path: Path) -> None:
    problem = posed()
    more = {"b m/i": 12.0}
    plan = resolve(problem, solve(problem), budgets=more, margin=0.05)
    for other in (problem, problem.changed(budgets=more), problem.changed(margin=0.05)):
        with pytest.raises(InputError, match="something else than what the plan answers"):
            plan.save(tmp_path / "plan", problem=other, model=model)
    plan.save(tmp_path / "plan", problem=problem.changed(budgets=more, margin=0.05), model=model)
    assert maxflip_verify.audit(tmp_path / "plan").passed


UNNAMED: dict[str, dict[str, Any]] = {
    name: CASES[name] for name in ("plain", "any of two", "one for each", "distributions")
}


@pytest.mark.parametrize("case", UNNAMED)
@pytest.mark.parametrize("names", [None, ["0", "1", "2"]], ids=["without", "named by numbers"])
def test_no_names_of_classes_are_made_up(case: str, names: Any, model: Path, tmp_path: Path) -> None:
    """What a plan folder says of names can be told from real ones, and the job asks the same question again."""
    net = TorchClassifier(small_net(4, 3, seed=1), output="logits", classes=names)
    problem = posed(classifier=net, **UNNAMED[case])
    plan = solve(problem, Nearest(), seed=3)
    plan.save(tmp_path / "plan", problem=problem, model=model)
    assert ("classes = " in (tmp_path / "plan" / "job.toml").read_text()) == (names is not None)
    wanted = json.loads((tmp_path / "plan" / "summary.json").read_text())["question"]["wanted"]
    assert all(isinstance(one, int if names is None else str) for one in wanted)
    assert maxflip_verify.audit(tmp_path / "plan").passed
    again = solved_again(tmp_path)
    assert again.exit_code == 0, again.output
    assert Plan.load(tmp_path / "again").question == plan.question == Plan.load(tmp_path / "plan").question
    told = "“1”" in (tmp_path / "again" / "report.html").read_text()
    assert told == (names is not None and case == "plain")


def test_a_folder_with_made_up_names_is_read_as_before(model: Path, tmp_path: Path) -> None:
    """As folders were written until now: the names of columns as those of classes."""
    problem = posed()
    plan = solve(problem, Nearest(), seed=3)
    plan.save(tmp_path / "plan", problem=problem, model=model)
    job, summary = tmp_path / "plan" / "job.toml", tmp_path / "plan" / "summary.json"
    text = job.read_text()
    before = hashlib.sha256(text.encode()).hexdigest()
    text = text.replace('output = "logits"\n', 'output = "logits"\nclasses = ["0", "1", "2"]\n')
    job.write_text(text)
    summary.write_text(summary.read_text().replace(before, hashlib.sha256(text.encode()).hexdigest()))
    audit = maxflip_verify.audit(tmp_path / "plan")
    assert audit.passed, audit.findings
    assert Plan.load(tmp_path / "plan").question == plan.question


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("[9]", "9 is no output column; the model has columns 0 to 2"),
        ('["low"]', "model.classes is missing, and net.pt2 does not say it"),
    ],
)
def test_a_job_without_names_asks_by_columns(target: str, words: str, model: Path, tmp_path: Path) -> None:
    problem = posed()
    solve(problem, Nearest()).save(tmp_path / "plan", problem=problem, model=model)
    job = tmp_path / "plan" / "job.toml"
    job.write_text(job.read_text().replace("target = [1]", f"target = {target}"))
    done = invoke("solve", job, "--out", tmp_path / "again")
    assert done.exit_code == 2
    assert words in done.output
    with pytest.raises(maxflip_wall.Unreadable, match="goal: target"):
        maxflip_verify.audit(tmp_path / "plan")


def test_the_job_names_the_wanted_classes(model: Path, tmp_path: Path) -> None:
    named = TorchClassifier(small_net(4, 3, seed=1), output="logits", classes=["low", "middle", "high"])
    problem = posed(classifier=named, target={"low", "high"})
    solve(problem).save(tmp_path / "plan", problem=problem, model=model)
    assert 'target = ["low", "high"]' in (tmp_path / "plan" / "job.toml").read_text()


def test_what_cannot_be_audited_is_said_and_nothing_is_written(model: Path, tmp_path: Path) -> None:
    problem = posed()
    plan = solve(problem)
    both = Ensemble([problem.classifier, TorchClassifier(small_net(4, 3, seed=2), output="logits")])
    refused: dict[str, dict[str, Any]] = {
        "give `problem` and `model` together": {"problem": problem},
        "or `inputs` instead of them": {"problem": problem, "model": model, "inputs": {}},
        "net.pt2: no such file in": {"problem": problem, "model": tmp_path / "net.pt2"},
        "a job has a model file, and no Ensemble has one": {"problem": posed(classifier=both), "model": model},
        "no Tempered has one": {
            "problem": posed(classifier=Tempered(problem.classifier.members[0], 2.0)),
            "model": model,
        },
        "has other samples or features": {"problem": Problem(**others()), "model": model},
    }
    for words, given in refused.items():
        with pytest.raises(InputError, match=words):
            plan.save(tmp_path / "plan", **given)
        assert list(tmp_path.iterdir()) == []


def others() -> dict[str, Any]:
    classifier = TorchClassifier(small_net(4, 3, seed=1), output="logits")
    return {"classifier": classifier, "cohort": X, "target": 1, "margin": 0.1, "budgets": {"x1": 9.0}}


SOLVERS_SAVED = [MS(outer=1, inner=5), KL(outer=1, inner=5), Nearest(prices="unit"), Prices(effort=np.float64(1.5))]


@pytest.mark.parametrize("solver", SOLVERS_SAVED, ids=lambda solver: type(solver).__name__)
def test_the_job_asks_for_the_same_solver(solver: Any, model: Path, tmp_path: Path) -> None:
    problem = posed()
    solve(problem, solver, seed=3).save(tmp_path / "plan", problem=problem, model=model)
    job = read_job(tmp_path / "plan" / "job.toml")
    assert (job.solver, job.seed) == (solver, 3)


def test_groups_by_label_stand_in_no_job(model: Path, tmp_path: Path) -> None:
    problem = posed()
    plan = solve(problem, Grouped(Nearest(), ["a", "b"] * (len(problem) // 2)))
    with pytest.raises(InputError, match="groups were given by labels"):
        plan.save(tmp_path / "plan", problem=problem, model=model)
    plan.save(tmp_path / "plan")
    assert Plan.load(tmp_path / "plan").solver == plan.solver
