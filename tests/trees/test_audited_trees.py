"""The auditor evaluates trees by code of its own, and jobs with files of trees are solved and audited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxflip_verify
from maxflip import Action, Cohort, InputError, Plan, Problem, ProblemError, TreeClassifier, VerifyError, solve
from maxflip.models.files import load_classifier
from maxflip_verify.trees import read_trees
from maxflip_wall import Unreadable
from tests.test_cli import invoke
from tests.trees.test_trees import FILES, FLOAT32, FLOAT64, saved
from tests.trees.trained import data, rows_at_the_thresholds, told_by, trained

EACH = [(kind, name, classes) for kind, name in FILES for classes in (2, 3)]
EACH += [("lightgbm, averaged", "model.txt", 2), ("catboost, nan high", "model.json", 3)]


@pytest.mark.parametrize(("kind", "name", "classes"), EACH)
def test_the_auditor_s_reader_gives_the_library_s_probabilities(
    kind: str, name: str, classes: int, tmp_path: Path
) -> None:
    model = trained(kind, classes)
    file = saved(kind, classes, tmp_path / name)
    trees = read_trees(file.read_bytes(), name)
    rows = rows_at_the_thresholds(TreeClassifier(model).forest, infinite=not kind.startswith("xgboost"))
    apart = np.abs(trees.outputs(rows) - told_by(model, rows)).max()
    assert apart <= (FLOAT32 if kind.startswith("xgboost") else FLOAT64)
    assert trees.says["output"] == "probabilities"
    alone = np.concatenate([trees.outputs(row[None]) for row in rows[:20]])
    assert np.array_equal(alone, trees.outputs(rows[:20]))


def test_the_auditor_reads_zeros_that_are_missing(tmp_path: Path) -> None:
    """It applies LightGBM's own rule, and so reads trees that have no single threshold."""
    lightgbm = pytest.importorskip("lightgbm")
    x, y, _ = data(missing=False)
    settings = {"n_estimators": 4, "num_leaves": 6, "verbose": -1, "n_jobs": 1}
    model = lightgbm.LGBMClassifier(**settings, zero_as_missing=True).fit(x, y)
    model.booster_.save_model(tmp_path / "model.txt")
    rows = np.vstack([x, 0 * x, 0 * x + 1e-35, 0 * x - 1e-35, 0 * x + 2e-35, 0 * x + np.nan])
    found = read_trees((tmp_path / "model.txt").read_bytes(), "model.txt").outputs(rows)
    assert np.abs(found - told_by(model, rows)).max() <= FLOAT64


def test_damaged_files_end_in_one_sentence(tmp_path: Path) -> None:
    path = saved("xgboost", 2, tmp_path / "model.json")
    table = json.loads(path.read_text())
    tree = table["learner"]["gradient_booster"]["model"]["trees"][0]
    tree["left_children"][1] = 1
    rows = data(missing=False)[0]
    with pytest.raises(Unreadable, match="does not end"):
        read_trees(json.dumps(table).encode(), "model.json").outputs(rows)
    with pytest.raises(Unreadable, match=r"^model.txt: it is truncated"):
        read_trees(b"tree\nversion=v4\n", "model.txt")


ACTIONS = [Action("coaching", {"x0": 0.7}, {"hours": 1.0}), Action("calls", {"x1": "x 1.5"}, {"hours": 0.5})]


def posed(kind: str) -> Problem:
    return Problem(
        classifier=TreeClassifier(trained(kind, 2), classes=["no", "yes"]), cohort=data(missing=False)[0][:80],
        target="yes", margin=0.1, budgets={"hours": 6.0}, actions=ACTIONS,
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [FILES[0], FILES[2], FILES[3]])
def test_plans_are_saved_audited_and_solved_again(kind: str, name: str, tmp_path: Path) -> None:
    problem = posed(kind)
    plan = solve(problem)
    assert plan.count > 0
    model = saved(kind, 2, tmp_path / name)
    plan.save(tmp_path / "plan", problem=problem, model=model)
    job = tmp_path / "plan" / "job.toml"
    job.write_text(job.read_text() + "\n[report]\nfrontier = false\n")
    done = invoke("solve", job, "--out", tmp_path / "again")
    assert done.exit_code == 0, done.output
    assert Plan.load(tmp_path / "again").count == plan.count
    assert maxflip_verify.audit(tmp_path / "again").passed


def test_the_auditor_finds_another_model_s_plan(tmp_path: Path) -> None:
    problem = posed("lightgbm")
    other = saved("xgboost", 2, tmp_path / "model.json")
    with pytest.raises(VerifyError):
        solve(problem).save(tmp_path / "plan", problem=problem, model=other)


def test_what_a_job_says_of_trees_must_agree(tmp_path: Path) -> None:
    lightgbm, catboost = (saved(kind, 2, tmp_path / name) for kind, name in (FILES[0], FILES[3]))
    assert load_classifier(lightgbm, named=False).classes is None
    assert load_classifier(lightgbm, classes=["no", "yes"]).classes == ("no", "yes")
    assert load_classifier(catboost).classes == ("0", "1")
    refused: list[tuple[Path, dict[str, Any], str]] = [
        (lightgbm, {}, "model.classes is missing, and model.txt does not say it; wanted the names of the 2 classes"),
        (lightgbm, {"classes": ["a", "b", "c"]}, "the classes of model.txt are '0', '1'"),
        (catboost, {"classes": ["1", "0"]}, "the classes of model.json are '0', '1'"),
        (catboost, {"output": "logits"}, "model.json holds trees and gives probabilities"),
    ]
    for path, says, sentence in refused:
        with pytest.raises(ProblemError, match=sentence):
            load_classifier(path, **says)


def test_a_tree_file_is_no_network_for_sequences(tmp_path: Path) -> None:
    from maxflip.models.files import load_sequence_classifier

    with pytest.raises(InputError):
        load_sequence_classifier(saved("lightgbm", 2, tmp_path / "model.txt"), features=["a"])


def test_trees_as_judges_of_a_report(tmp_path: Path) -> None:
    from maxflip.models.files import load_judge

    judge = load_judge(
        saved("xgboost", 2, tmp_path / "model.ubj"), posed("lightgbm").classifier, Cohort.table(np.eye(5))
    )
    assert judge.classes == ("no", "yes")
