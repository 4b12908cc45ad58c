"""scikit-learn models in job files: from `model.skops` to a plan that the auditor passes with predict_proba itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import maxflip_verify
import maxflip_wall
from maxflip import Plan
from tests.examples import small_net
from tests.jobs import export
from tests.test_cli import invoke, snapshot
from tests.test_skops import attacks, crafted, node, saved

skops_io = pytest.importorskip("skops.io", reason="needs the extra `sklearn`")

NAMES = ["age", "bmi", "bp", "ward"]
JOB = """format = 1
[cohort]
file = "cohort.csv"
id = "who"
features = ["age", "bmi", "bp", "ward"]
[model]
file = "model.skops"
[goal]
target = "stable"
margin = 0.1
[report]
frontier = false
[solver]
name = "nearest"
[budgets.bmi]
amount = 60.0
[budgets.bp]
amount = 400.0
"""


def people(n: int, seed: int) -> pd.DataFrame:
    """`ward` holds codes of categories, which an encoder reads: no amount can change it."""
    rng = np.random.default_rng(seed)
    age, bmi, bp = rng.normal(60, 9, n), rng.normal(27, 4, n), rng.normal(130, 12, n)
    return pd.DataFrame({"age": age, "bmi": bmi, "bp": bp, "ward": rng.choice([1.0, 2.0, 7.0], n)}, columns=NAMES)


def labels(x: pd.DataFrame) -> Any:
    score = (x["bmi"] - 27) / 4 + (x["bp"] - 130) / 12 + 0.8 * (x["ward"] == 7)
    noise = np.random.default_rng(9).normal(0, 0.7, len(x))
    return np.where(score + noise > 0, "worse", "stable")


def clinic(handle_unknown: str = "error") -> Any:
    """Columns by name: only a table with names will do."""
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), ["age", "bmi", "bp"]),
            ("ward", OneHotEncoder(handle_unknown=handle_unknown), ["ward"]),
        ]
    )
    x = people(400, 0)
    return make_pipeline(columns, LogisticRegression()).fit(x, labels(x))


@pytest.fixture(scope="module")
def clinic_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(clinic(), tmp_path_factory.mktemp("clinic"))


def filled(folder: Path, clinic_file: Path) -> Path:
    x = people(60, 1)
    x.insert(0, "who", [f"P-{j:02d}" for j in range(len(x))])
    x.to_csv(folder / "cohort.csv", index=False)
    (folder / "job.toml").write_text(JOB)
    shutil.copy(clinic_file, folder / "model.skops")
    return folder


@pytest.fixture
def folder(tmp_path: Path, clinic_file: Path) -> Path:
    return filled(tmp_path, clinic_file)


@pytest.fixture(scope="module")
def solved_once(tmp_path_factory: pytest.TempPathFactory, clinic_file: Path) -> Path:
    folder = filled(tmp_path_factory.mktemp("solved"), clinic_file)
    assert solved(folder).exit_code == 0
    return folder


@pytest.fixture
def solved_folder(tmp_path: Path, solved_once: Path) -> Path:
    """With its plan, and one's own to change."""
    shutil.copytree(solved_once, tmp_path, dirs_exist_ok=True)
    return tmp_path


def solved(folder: Path) -> Any:
    return invoke("solve", folder / "job.toml", "--out", folder / "plan")


def edit_job(folder: Path, old: str, new: str) -> None:
    text = (folder / "job.toml").read_text()
    assert old in text
    (folder / "job.toml").write_text(text.replace(old, new, 1))


# --- the road ---


def test_a_job_with_a_skops_model_is_solved_and_audited(folder: Path) -> None:
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    audited = invoke("verify", folder / "plan")
    assert audited.exit_code == 0, audited.stdout
    plan = Plan.load(folder / "plan")
    assert plan.count > 5
    x = pd.read_csv(folder / "cohort.csv").set_index("who")
    start = x.copy()
    for row in plan.table().to_pylist():
        assert row["feature"] in ("bmi", "bp")
        x.loc[row["id"], row["feature"]] += row["change"]
    model = clinic()
    flipped = (model.predict(start[NAMES]) == "worse") & (model.predict(x[NAMES]) == "stable")
    assert flipped.sum() == plan.count
    own = model.predict_proba(x[NAMES])[flipped]
    assert (own[:, 0] - own[:, 1]).min() >= 0.1


def test_the_auditor_asks_scikit_learn_and_not_the_conversion(
    solved_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that predicts otherwise than its conversion is caught: the auditor has its numbers from predict_proba."""
    asked = []
    predict = LogisticRegression.predict_proba

    def contrary(self: Any, x: Any) -> Any:
        asked.append(len(x))
        return predict(self, x)[:, ::-1]

    monkeypatch.setattr(LogisticRegression, "predict_proba", contrary)
    audit = maxflip_verify.audit(solved_folder / "plan")
    assert asked
    assert any("fates.parquet: flipped" in finding for finding in audit.findings)


def test_the_auditor_alone_needs_nothing_of_maxflip(solved_folder: Path) -> None:
    code = f"""
import sys, maxflip_verify
audit = maxflip_verify.audit({str(solved_folder / "plan")!r})
strangers = [m for m in sys.modules if m.split(".")[0] == "maxflip"]
sys.exit(0 if audit.passed and not strangers else str(audit))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_trained_on_an_array_gets_an_array(folder: Path) -> None:
    x = people(400, 0)
    codes = ColumnTransformer([("ward", OneHotEncoder(), [3])], remainder=StandardScaler())
    saved(make_pipeline(codes, LogisticRegression()).fit(x.to_numpy(), labels(x)), folder)
    done = solved(folder)
    assert done.exit_code == 0, done.stderr


def without(*absent: str) -> Callable[[str], Any]:
    def import_some(name: str) -> Any:
        if name in absent:
            raise ImportError(name)
        return import_module(name)

    return import_some


@pytest.mark.parametrize("absent", ["pandas", "polars"])
def test_either_frame_library_names_the_columns(folder: Path, monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    loaded = maxflip_wall.load_model((folder / "model.skops").read_bytes(), "model.skops")
    x = people(20, 3)
    values, expected = x.to_numpy(), clinic().predict_proba(x)
    monkeypatch.setattr("maxflip_wall.skops.import_module", without(absent))
    np.testing.assert_allclose(loaded.outputs(values), expected, rtol=0, atol=1e-12)


def test_without_a_frame_library_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = maxflip_wall.load_model((folder / "model.skops").read_bytes(), "model.skops")
    monkeypatch.setattr("maxflip_wall.skops.import_module", without("pandas", "polars"))
    with pytest.raises(maxflip_wall.Unreadable, match=r"pip install 'maxflip\[sklearn\]'"):
        loaded.outputs(people(2, 0).to_numpy())


def test_a_category_never_seen_spoils_its_own_row_only(tmp_path: Path) -> None:
    model = clinic()
    loaded = maxflip_wall.load_model(saved(model, tmp_path).read_bytes(), "model.skops")
    x = people(21, 3)
    x.loc[[4, 17], "ward"] = 99.0
    own = loaded.outputs(x.to_numpy())
    assert np.flatnonzero(np.isnan(own).any(axis=1)).tolist() == [4, 17]
    known = x["ward"] != 99.0
    np.testing.assert_allclose(own[known], model.predict_proba(x[known]), rtol=0, atol=1e-12)


def test_a_sample_with_an_unknown_category_is_unusable_for_both(folder: Path) -> None:
    x = people(1000, 1)
    x.loc[502, "ward"] = 99.0  # not among the rows that are tried first
    x.insert(0, "who", [f"P-{j:03d}" for j in range(len(x))])
    x.to_csv(folder / "cohort.csv", index=False)
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    assert json.loads((folder / "plan" / "summary.json").read_text())["unusable"] == 1


def test_a_model_starts_no_processes(tmp_path: Path) -> None:
    model = clinic()
    model[0].set_params(n_jobs=2, sparse_threshold=2)  # the same object in Python, so the same node for skops
    loaded = maxflip_wall.load_model(saved(model, tmp_path).read_bytes(), "model.skops")
    assert isinstance(loaded, maxflip_wall.LoadedEstimator)
    assert (loaded.estimator[0].n_jobs, loaded.estimator[0].sparse_threshold) == (None, 2)


def test_another_version_of_scikit_learn_is_told_in_one_sentence(folder: Path) -> None:
    with zipfile.ZipFile(folder / "model.skops") as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    own, other = (f'\\"{version}\\"'.encode() for version in (sklearn.__version__, "1.4.2"))
    assert records["schema.json"].count(own) > 2
    records["schema.json"] = records["schema.json"].replace(own, other)
    with zipfile.ZipFile(folder / "model.skops", "w") as archive:
        for name, content in records.items():
            archive.writestr(name, content)
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("1.4.2") == 1
    said = f"model.skops: was trained with scikit-learn 1.4.2 and is run with {sklearn.__version__}"
    assert re.search(rf"^note: .*{re.escape(said)}", done.stderr, re.MULTILINE)


# --- what the job may say about the model ---


def test_the_job_may_say_what_the_model_says_itself(folder: Path) -> None:
    edit_job(folder, "[goal]", 'output = "probabilities"\nclasses = ["stable", "worse"]\n[goal]')
    assert solved(folder).exit_code == 0


def test_the_job_may_name_the_classes_otherwise(solved_folder: Path) -> None:
    count = Plan.load(solved_folder / "plan").count
    shutil.rmtree(solved_folder / "plan")
    edit_job(solved_folder, "[goal]", 'classes = ["home", "hospital"]\n[goal]')
    edit_job(solved_folder, '"stable"', '"home"')
    done = solved(solved_folder)
    assert done.exit_code == 0, done.stderr
    assert Plan.load(solved_folder / "plan").count == count


def test_classes_that_are_numbers_are_named_by_their_text(folder: Path) -> None:
    x = people(400, 0)
    saved(make_pipeline(StandardScaler(), LogisticRegression()).fit(x, labels(x) == "stable"), folder)
    edit_job(folder, '"stable"', '"True"')
    assert solved(folder).exit_code == 0


def test_a_target_column_names_the_models_own_classes(folder: Path) -> None:
    x = pd.read_csv(folder / "cohort.csv").assign(wanted=["stable", "worse"] * 30)
    x.to_csv(folder / "cohort.csv", index=False)
    edit_job(folder, 'target = "stable"', 'target_column = "wanted"')
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    x.assign(wanted="stabel").to_csv(folder / "cohort.csv", index=False)
    assert "'stabel'" in invoke("solve", folder / "job.toml", "--out", folder / "other").stderr


# --- models without probabilities ---


def vector_machine(classes: int = 2) -> Any:
    x = people(400, 0)
    y = labels(x)
    if classes == 3:
        y = np.where(x["age"] > 65, "old", y)
    return make_pipeline(StandardScaler(), LinearSVC()).fit(x, y)


@pytest.fixture
def machine_folder(folder: Path) -> Path:
    saved(vector_machine(), folder)
    edit_job(folder, "margin = 0.1", "margin = 1.5")  # more than a probability can be
    return folder


@pytest.mark.parametrize(("target", "classes"), [("stable", 2), ("worse", 2), ("stable", 3)])
def test_a_job_with_decision_values_is_solved_and_audited_by_them(folder: Path, target: str, classes: int) -> None:
    model = vector_machine(classes)
    saved(model, folder)
    edit_job(folder, "margin = 0.1", "margin = 1.5")
    edit_job(folder, '"stable"', f'"{target}"')
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    assert "decision values, not probabilities" in (folder / "plan" / "report.html").read_text()
    plan = Plan.load(folder / "plan")
    assert plan.count > 3
    assert plan.question is not None
    assert plan.question.measure == "decision margin"
    x = pd.read_csv(folder / "cohort.csv").set_index("who")
    for row in plan.table().to_pylist():
        x.loc[row["id"], row["feature"]] += row["change"]
    values = model.decision_function(x.loc[plan.ids, NAMES])
    wanted = model.classes_.tolist().index(target)
    if classes == 2:
        assert (values * (1 if wanted == 1 else -1)).min() >= 1.5
    else:
        assert (values[:, wanted] - np.delete(values, wanted, axis=1).max(axis=1)).min() >= 1.5
    assert invoke("verify", folder / "plan").exit_code == 0


def test_the_auditor_asks_decision_function(machine_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert solved(machine_folder).exit_code == 0
    decide = LinearSVC.decision_function
    monkeypatch.setattr(LinearSVC, "decision_function", lambda self, x: -decide(self, x))
    audit = maxflip_verify.audit(machine_folder / "plan")
    assert any("fates.parquet: flipped" in finding for finding in audit.findings)


@pytest.mark.parametrize("factor", [0.9, 1e9])
def test_the_guard_is_judged_in_the_units_of_the_decision_values(machine_folder: Path, factor: float) -> None:
    """The library's is 1e-9 of the largest value among the rows tried: no less will do, and not very much more."""
    assert solved(machine_folder).exit_code == 0
    path = machine_folder / "plan" / "summary.json"
    summary = json.loads(path.read_text())
    x = pd.read_csv(machine_folder / "cohort.csv")[NAMES]
    assert summary["guard"] == pytest.approx(1e-9 * np.abs(vector_machine().decision_function(x)).max(), rel=1e-9)
    path.write_text(json.dumps(summary | {"guard": summary["guard"] * factor}))
    assert any(f.startswith("summary.json: guard") for f in maxflip_verify.audit(machine_folder / "plan").findings)


def test_the_job_may_say_that_these_are_decision_values(machine_folder: Path) -> None:
    edit_job(machine_folder, "[goal]", 'output = "decision"\n[goal]')
    assert solved(machine_folder).exit_code == 0


WRONG_FOR_DECISIONS: dict[str, tuple[str, str, list[str]]] = {
    "probabilities": ("[goal]", 'output = "probabilities"\n[goal]', ["goal.margin = 1.5"]),
    "logits": ("margin = 1.5", "margin = 0.5", ["job.toml: model.output = 'logits'", "gives decision values"]),
    "a threshold": ("margin = 1.5", "threshold = 0.9", ["goal.threshold = 0.9", "Give a margin"]),
    "a negative margin": ("margin = 1.5", "margin = -1", ["goal.margin = -1"]),
    "no end": ("margin = 1.5", "margin = inf", ["goal.margin = inf"]),
}


@pytest.mark.parametrize("name", WRONG_FOR_DECISIONS)
def test_what_a_model_without_probabilities_cannot_be_asked(machine_folder: Path, name: str) -> None:
    old, new, parts = WRONG_FOR_DECISIONS[name]
    edit_job(machine_folder, old, new)
    if name == "logits":
        edit_job(machine_folder, "[goal]", 'output = "logits"\n[goal]')
    before = snapshot(machine_folder)
    done = solved(machine_folder)
    assert done.exit_code == 2, done.stderr
    for part in parts:
        assert part in done.stderr
    assert snapshot(machine_folder) == before


def test_the_auditor_takes_no_threshold_of_decision_values(machine_folder: Path) -> None:
    assert solved(machine_folder).exit_code == 0
    edit_job(machine_folder, "margin = 1.5", "threshold = 0.9")
    shutil.copy(machine_folder / "job.toml", machine_folder / "plan" / "job.toml")
    with pytest.raises(maxflip_wall.Unreadable, match=r"job\.toml: goal: threshold: decision values are no prob"):
        maxflip_verify.audit(machine_folder / "plan")


def test_margins_beyond_1_are_for_decision_values_alone(folder: Path) -> None:
    """Told as soon as it is known that the model gives probabilities."""
    edit_job(folder, "margin = 0.1", "margin = 1.5")
    done = solved(folder)
    assert done.exit_code == 2
    assert "job.toml: line 10: goal.margin = 1.5: must lie in [0, 1); it is a probability." in done.stderr


def test_a_torch_model_may_give_decision_values(folder: Path) -> None:
    export(small_net(4, dtype=torch.float64), folder / "model.skops", 4, torch.float64)  # told by content, not by name
    edit_job(folder, "[goal]", 'output = "decision"\nclasses = ["worse", "stable"]\n[goal]')
    edit_job(folder, "margin = 0.1", "margin = 0.01")
    done = solved(folder)
    assert done.exit_code == 0, done.stderr
    assert "decision values, not probabilities" in (folder / "plan" / "report.html").read_text()


WRONG: dict[str, tuple[str, str, int, list[str]]] = {
    "logits": ("[goal]", 'output = "logits"\n[goal]', 2, ["job.toml", "model.output = 'logits'", "probabilities"]),
    "three classes": ("[goal]", 'classes = ["stable", "b", "c"]\n[goal]', 2, ["job.toml", "model.classes", "'stable'"]),
    "swapped": ("[goal]", 'classes = ["worse", "stable"]\n[goal]', 2, ["model.classes", "'stable', 'worse'"]),
    "one that is another's": ("[goal]", 'classes = ["x", "stable"]\n[goal]', 2, ["model.classes", "'stable', 'worse'"]),
    "no such class": ('"stable"', '"stabel"', 2, ["job.toml", "goal.target", "Did you mean 'stable'"]),
    "an encoded column": ("[budgets.bp]", "[budgets.ward]", 2, ["'ward'", "categories"]),
    "other columns": ('"bmi", "bp", ', '"bp", "bmi", ', 3, ["model.skops", "the model's order"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_job_that_contradicts_its_model(folder: Path, name: str) -> None:
    old, new, code, parts = WRONG[name]
    edit_job(folder, old, new)
    before = snapshot(folder)
    done = solved(folder)
    assert done.exit_code == code, done.stderr
    for part in parts:
        assert part in done.stderr
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ["logits", "three classes", "swapped", "one that is another's", "other columns"])
def test_the_auditor_reads_the_model_table_by_the_same_rules(solved_folder: Path, name: str) -> None:
    old, new, code, _ = WRONG[name]
    edit_job(solved_folder, old, new)
    shutil.copy(solved_folder / "job.toml", solved_folder / "plan" / "job.toml")
    with pytest.raises(maxflip_wall.Unreadable, match=r"job\.toml: model|was trained on the columns") as caught:
        maxflip_verify.audit(solved_folder / "plan")
    assert caught.value.exit_code == code


# --- what is refused ---


def pickle_member(folder: Path, canary: Path) -> Path:
    return crafted(folder, lambda tree: None, {"evil.pkl": b"\x80\x04."})


def of_type(attack: str) -> Callable[[Path, Path], Path]:
    def craft(folder: Path, canary: Path) -> Path:
        evil, _ = attacks(canary)[attack]
        return crafted(folder, lambda tree: tree["content"]["content"].__setitem__("memory", evil))

    return craft


def system(folder: Path, canary: Path) -> Path:
    evil = node("FunctionNode", "os.system")
    return crafted(folder, lambda tree: tree["content"]["content"].__setitem__("memory", evil))


HOSTILE: dict[str, tuple[Callable[[Path, Path], Path], str]] = {
    "os.system": (system, "os.system"),
    "a call": (of_type("constructor"), "posix.system"),
    "a type that is imported": (of_type("import"), "canary_module.Thing"),
    "an estimator that is not on the list": (of_type("a trusted estimator that is not ours"), "RandomForestClassifier"),
    "a pickle among the arrays": (pickle_member, "evil.pkl"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_model_is_exit_7_and_runs_nothing(
    solved_folder: Path, name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft, named = HOSTILE[name]
    outside = tmp_path_factory.mktemp("attack")
    canary = outside / "canary"
    (outside / "canary_module.py").write_text(f"open({str(canary)!r}, 'w').close()\nclass Thing: pass\n")
    monkeypatch.syspath_prepend(outside)
    shutil.copy(craft(outside, canary), solved_folder / "model.skops")
    before = snapshot(solved_folder)
    for done in (
        invoke("solve", solved_folder / "job.toml", "--out", solved_folder / "other"),
        invoke("verify", solved_folder / "plan"),
    ):
        assert done.exit_code == 7, done.stderr
        assert named in done.stderr
        assert "model.skops" in done.stderr
    assert snapshot(solved_folder) == before
    assert not canary.exists()
    assert "canary_module" not in sys.modules


def test_a_price_of_a_budget_that_is_not_there_is_told_with_its_line(folder: Path) -> None:
    edit_job(folder, 'name = "nearest"', 'name = "nearest"\noptions = { prices = { nothing = 1.0 } }')
    done = solved(folder)
    assert done.exit_code == 2
    line = (folder / "job.toml").read_text().splitlines().index("options = { prices = { nothing = 1.0 } }") + 1
    assert f"job.toml: line {line}: solver.options.prices: no budget is called 'nothing'." in done.stderr
