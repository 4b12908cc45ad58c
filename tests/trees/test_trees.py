"""Trees give the library's own probabilities, also where a value lies at a threshold to the last bit."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip import Action, InputError, ModelError, Problem, ProblemError, TreeClassifier, solve
from maxflip.models.trees import walk
from maxflip.models.trees.thresholds import float32_at_most, float32_at_most_double, float32_below
from tests.trees.trained import CATEGORY, FEATURES, data, rows_at_the_thresholds, told_by, trained

FLOAT64 = 1e-15  # rounding of one sigmoid or softmax
FLOAT32 = 2.5e-7
BINARY = ["lightgbm", "lightgbm, averaged", "xgboost", "xgboost, dart", "catboost", "catboost, lossguide"]
BINARY += ["catboost, nan high", "random forest", "extra trees", "gradient boosting", "exponential", "histograms"]
MODELS = [(kind, 2) for kind in BINARY] + [(kind, 3) for kind in BINARY if kind != "exponential"]
INFINITE = ("lightgbm", "catboost", "histograms")  # that take infinities
FILES = [("lightgbm", "model.txt"), ("xgboost", "model.json"), ("xgboost", "model.ubj"), ("catboost", "model.json")]
FILES += [("xgboost, dart", "model.ubj"), ("catboost, lossguide", "model.json")]


def saved(kind: str, classes: int, path: Path) -> Path:
    model = trained(kind, classes)
    if kind.startswith("lightgbm"):
        model.booster_.save_model(path)
    elif kind.startswith("catboost"):
        model.save_model(str(path), format="json")
    else:
        model.save_model(path)
    return path


@pytest.mark.parametrize(("kind", "classes"), MODELS)
def test_probabilities_are_the_library_s_own(kind: str, classes: int) -> None:
    model = trained(kind, classes)
    classifier = TreeClassifier(model)
    forest = classifier.forest
    rows = rows_at_the_thresholds(forest, infinite=kind.partition(",")[0] in INFINITE)
    apart = np.abs(forest.probabilities(rows) - told_by(model, rows)).max()
    assert apart <= (FLOAT32 if forest.precision == "float32" else FLOAT64)
    assert classifier.classes == tuple("012"[:classes])
    assert forest.n_classes == classes
    assert len(np.unique(forest.leaves(rows))) > len(forest.roots)


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "catboost", "histograms"])
@pytest.mark.parametrize("classes", [2, 3])
def test_raw_scores_are_the_library_s_own_to_the_last_bit(kind: str, classes: int) -> None:
    model = trained(kind, classes)
    forest = TreeClassifier(model).forest
    rows = rows_at_the_thresholds(forest, number=300, infinite=False)
    raw: Any = {
        "lightgbm": lambda: model.predict_proba(rows, raw_score=True),
        "xgboost": lambda: model.predict(rows, output_margin=True),
        "catboost": lambda: model.predict(rows, prediction_type="RawFormulaVal"),
        "histograms": lambda: model.decision_function(rows),
    }[kind]()
    assert np.array_equal(forest.raw(rows), np.asarray(raw, np.float64).reshape(len(rows), -1))


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "random forest", "histograms"])
def test_both_ways_to_walk_give_the_same_bits(kind: str) -> None:
    pytest.importorskip("numba")
    forest = TreeClassifier(trained(kind, 3)).forest
    rows = rows_at_the_thresholds(forest, number=500, infinite=kind != "random forest")
    assert np.array_equal(walk.numpy_sums(forest, rows), walk.compiled_sums(forest, rows))
    sums = forest.base + np.sum([forest.value[leaf] for leaf in forest.leaves(rows).T], axis=0)
    assert np.allclose(forest.raw(rows), sums, atol=1e-6 if forest.precision == "float32" else 1e-12)


@pytest.mark.parametrize(("kind", "name"), FILES)
@pytest.mark.parametrize("classes", [2, 3])
def test_files_equal_objects(kind: str, name: str, classes: int, tmp_path: Path) -> None:
    model = TreeClassifier(trained(kind, classes))
    file = TreeClassifier(saved(kind, classes, tmp_path / name))
    assert file.classes == (model.classes if kind.startswith("catboost") else None)  # the others do not keep them
    assert file.library == model.library
    for field in fields(model.forest):
        assert np.array_equal(getattr(file.forest, field.name), getattr(model.forest, field.name)), field.name


def test_a_booster_of_two_classes() -> None:
    model = trained("lightgbm", 2)
    rows = data(missing=True)[0]
    classifier = TreeClassifier(model.booster_, classes=["no", "yes"])
    assert np.allclose(classifier.forest.probabilities(rows)[:, 1], model.booster_.predict(rows), rtol=0, atol=FLOAT64)
    assert classifier.classes == ("no", "yes")


def test_training_that_stopped_early(tmp_path: Path) -> None:
    """An XGBClassifier predicts with the trees up to its best iteration, and so does its file; its booster with all."""
    xgboost = pytest.importorskip("xgboost")
    x, y, _ = data(missing=True)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=4, early_stopping_rounds=3, n_jobs=1)
    model.fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])], verbose=0)
    model.save_model(tmp_path / "model.ubj")
    stopped = TreeClassifier(model)
    assert len(stopped.forest.roots) == model.best_iteration + 1 < len(TreeClassifier(model.get_booster()).forest.roots)
    assert len(TreeClassifier(tmp_path / "model.ubj").forest.roots) == len(stopped.forest.roots)
    assert np.abs(stopped.forest.probabilities(x) - told_by(model, x)).max() <= FLOAT32


def test_names_of_columns_are_the_model_s() -> None:
    pd = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    x, y, _ = data(missing=True)
    names = ["age", "bmi", "bp", "visits", "ward"]
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(pd.DataFrame(x, columns=names), y)
    classifier = TreeClassifier(model)
    assert classifier.feature_names == tuple(names)
    classifier.check_features(names)
    with pytest.raises(ModelError, match="Put them in the model's order"):
        classifier.check_features(names[::-1])
    with pytest.raises(ModelError, match=r"trained on 5 columns: .*; the cohort has 2: 'age', 'bmi'"):
        classifier.check_features(names[:2])


def with_zero_missing(lines: list[str], rng: np.random.Generator) -> list[str]:
    """The text of a model where 0 counts as missing and goes the way of its threshold; at 0 itself, either way."""
    found = []
    for line in lines:
        key, _, text = line.partition("=")
        if key == "threshold":
            t = np.array([float(number) for number in text.split()])
            default = np.where(np.abs(t) < 2e-35, rng.random(len(t)) < 0.5, t >= 0)
        kinds = " ".join(str(4 + 2 * int(way)) for way in default) if key == "decision_type" else ""
        found.append(f"decision_type={kinds}" if kinds else line)
    return found


def test_zero_that_is_missing_is_read_where_one_threshold_tells_it(tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y, _ = data(missing=False)
    model = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=12, min_child_samples=3, verbose=-1, n_jobs=1)
    text = model.fit(np.where(np.abs(x) < 0.3, 0.0, x), y).booster_.model_to_string()
    path = tmp_path / "model.txt"
    path.write_text("\n".join(with_zero_missing(text.split("\n"), np.random.default_rng(0))))
    small = [0 * x, 0 * x + 1e-35, 0 * x - 1e-35, 0 * x + 2e-35, 0 * x - 2e-35, 0 * x + np.nan]
    rows = np.vstack([x, *(np.where(np.abs(x) < 0.8, these, x) for these in small)])
    forest = TreeClassifier(path).forest
    assert (np.abs(forest.threshold[forest.feature >= 0]) < 2e-35).any()
    told = lightgbm.Booster(model_file=path).predict(rows, num_threads=1)
    assert np.abs(forest.probabilities(rows)[:, 1] - told).max() <= FLOAT64
    plain = lightgbm.Booster(model_str=text).predict(rows, num_threads=1)
    assert np.abs(plain - told).max() > 1e-3


def test_zero_that_is_missing_is_refused_elsewhere() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x, y, _ = data(missing=False)
    model = lightgbm.LGBMClassifier(n_estimators=4, num_leaves=6, verbose=-1, n_jobs=1, zero_as_missing=True)
    with pytest.raises(ModelError, match="0 counts as missing and goes another way"):
        TreeClassifier(model.fit(x, y))


@pytest.mark.parametrize(("rule", "goes_left"), [
    (float32_at_most, lambda x, t: x.astype(np.float32) <= t),
    (float32_below, lambda x, t: x.astype(np.float32) < t),
    (float32_at_most_double, lambda x, t: x.astype(np.float32).astype(np.float64) <= t),
])  # fmt: skip
def test_thresholds_are_the_last_doubles_that_go_left(rule: Any, goes_left: Any) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20_000, np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, 1e-45, -1e-45, 1.0, -1.0, 3.4028235e38, -3.4028235e38, 1.17549435e-38], np.float32)
    t = np.concatenate([bits[np.isfinite(bits)], special]).astype(np.float64)
    t = t if rule is not float32_at_most_double else np.concatenate([t, rng.normal(size=5000), t * (1 + 1e-9)])
    t = t if rule is float32_at_most_double else t.astype(np.float32)
    with np.errstate(over="ignore"):
        last = rule(t)
        assert goes_left(last, t).all()
        assert not goes_left(np.nextafter(last, np.inf), t).any()


def test_what_the_library_refuses_is_refused() -> None:
    import torch

    gradient = TreeClassifier(trained("gradient boosting", 2))
    with pytest.raises(ModelError, match="takes no missing values"):
        gradient.scores(torch.full((1, FEATURES), torch.nan, dtype=torch.float64))
    with pytest.raises(ModelError, match="scikit-learn takes no values beyond float32"):
        gradient.scores(torch.full((1, FEATURES), 1e39, dtype=torch.float64))
    with pytest.raises(ModelError, match="takes 5 columns"):
        gradient.scores(torch.zeros(1, 2, dtype=torch.float64))


def test_actions_are_planned_and_free_changes_are_refused() -> None:
    x, _, _ = data(missing=False)
    model = trained("random forest", 2)
    asked: dict[str, Any] = {
        "classifier": TreeClassifier(model, classes=["no", "yes"]), "cohort": x[:60], "target": "yes", "margin": 0.1,
    }  # fmt: skip
    actions = [Action("coaching", {"x0": 0.7}, {"hours": 1.0}), Action("calls", {"x1": "x 1.5"}, {"hours": 0.5})]
    problem = Problem(**asked, budgets={"hours": 6.0}, actions=actions)
    plan = solve(problem)
    assert plan.bound is not None
    assert plan.count > 0
    p = told_by(model, problem.cohort.layout.after(plan.selected, plan.moves))  # type: ignore[attr-defined]
    assert (p[:, 1] - p[:, 0] >= 0.1).all()
    with pytest.raises(ProblemError, match="no search by amounts goes through trees yet, so 'x1' cannot change"):
        Problem(**asked, budgets={"x1": 1.0})


def test_columns_of_categories_do_not_change_by_amounts() -> None:
    x, _, _ = data(missing=False)
    classifier = TreeClassifier(trained("xgboost", 2))
    assert CATEGORY in classifier.forest.feature[classifier.forest.cat_begin >= 0]
    with pytest.raises(ProblemError, match="'x4' holds categories for the model"):
        Problem(classifier=classifier, cohort=x[:5], target=1, margin=0.1, budgets={"x4": 1.0})


@pytest.mark.parametrize(("arguments", "says"), [
    ({"model": object()}, "wanted a fitted model of LightGBM, XGBoost or CatBoost"),
    ({"model": 3, "classes": ["a", "a"]}, "wanted different names"),
    ({"model": 3, "batch_size": 0}, "batch_size = 0"),
])  # fmt: skip
def test_wrong_arguments(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        TreeClassifier(**arguments)


def test_a_number_of_classes_that_is_not_the_model_s() -> None:
    with pytest.raises(InputError, match="the model has 3 classes"):
        TreeClassifier(trained("random forest", 3), classes=["no", "yes"])


def test_models_that_are_no_classifiers_are_refused() -> None:
    sklearn = pytest.importorskip("sklearn.ensemble")
    x, y, _ = data(missing=False)
    with pytest.raises(InputError, match="wanted a fitted model"):
        TreeClassifier(sklearn.RandomForestRegressor(2, n_jobs=1).fit(x, y))
    with pytest.raises(ModelError, match="RandomForestClassifier is not fitted"):
        TreeClassifier(sklearn.RandomForestClassifier(2))
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(ModelError, match="objective 'regression' is none of a classifier"):
        TreeClassifier(lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1).fit(x, y))
    many = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1, objective="multiclassova").fit(
        x, data(missing=False)[2]
    )
    with pytest.raises(ModelError, match="probabilities that do not sum to 1"):
        TreeClassifier(many)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_categories_of_a_frame_are_told_by_their_places(library: str, tmp_path: Path) -> None:
    """Numbers that are their places, and texts, are read; others would be mistaken for places."""
    pd = pytest.importorskip("pandas")
    found = pytest.importorskip(library)
    x, y, _ = data(missing=False)
    codes = (x[:, CATEGORY] // 3).astype(int)

    def fitted(categories: Any) -> Any:
        frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": pd.Categorical(categories)})
        if library == "lightgbm":
            model = found.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1, min_data_per_group=3, cat_smooth=1.0)
        else:
            model = found.XGBClassifier(n_estimators=4, max_depth=3, enable_categorical=True, n_jobs=1)
        return model.fit(frame, y), model.predict_proba(frame)

    for categories in (codes, [f"{code:02d}" for code in codes]):
        model, told = fitted(categories)
        forest = TreeClassifier(model).forest
        assert forest.has_categories
        rows = np.column_stack([x[:, :2], codes])
        assert np.abs(forest.probabilities(rows) - told).max() <= FLOAT32
    with pytest.raises(ModelError, match=r"had the categories \[0, 3, 6.*tells them by their places"):
        TreeClassifier(fitted(3 * codes)[0])


def test_catboost_s_categories_are_refused_by_name() -> None:
    catboost = pytest.importorskip("catboost")
    x, y, _ = data(missing=False)
    rows = [[*row[:CATEGORY], str(row[CATEGORY])] for row in x.tolist()]
    model = catboost.CatBoostClassifier(
        iterations=2, verbose=0, allow_writing_files=False, thread_count=1, cat_features=[CATEGORY]
    )
    with pytest.raises(ModelError, match="categorical features, whose values CatBoost replaces by statistics"):
        TreeClassifier(model.fit(rows, y))
