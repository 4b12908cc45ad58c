"""SklearnClassifier: what it converts is scikit-learn's predict_proba; what it cannot convert is refused by name."""

from __future__ import annotations

import io
import pickle
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from maxflip import Fate, InputError, ModelError, Nearest, Problem, solve
from maxflip._util.types import Floats
from maxflip.data.sample import Sample
from maxflip.models import probe
from maxflip.models.sklearn.model import SklearnClassifier
from maxflip_wall.pt2 import load_module
from tests.conftest import LONG

NAMES = ["age", "bmi", "chol", "glu", "ward", "diet"]
CENTRE, SPREAD = np.array([55.0, 28.0, 190.0, 5.5]), np.array([12.0, 4.0, 35.0, 1.2])
WARDS, DIETS = np.array([1.0, 2.0, 5.0, 7.0]), np.array([0.0, 1.0])
NUMERIC, CODED = [0, 1, 2, 3], [4, 5]


def rows(n: int, seed: int, reach: float = 1.0) -> Floats:
    """Patients: four measured columns, and two of codes (the last ward is rare)."""
    rng = np.random.default_rng(seed)
    measured = CENTRE + reach * SPREAD * rng.normal(size=(n, 4))
    return np.column_stack([measured, rng.choice(WARDS, n, p=[0.5, 0.3, 0.18, 0.02]), rng.choice(DIETS, n)])


def labels(x: Floats, classes: int, seed: int = 1) -> Any:
    z = (x[:, :4] - CENTRE) / SPREAD
    score = z @ [1.0, -1.0, 0.8, 0.5] + 0.4 * z[:, 0] * z[:, 1] + 0.6 * (x[:, 4] == 2.0)
    noisy = score + np.random.default_rng(seed).normal(size=len(x))
    return np.digitize(noisy, [0.0] if classes == 2 else [-1.0, 1.0])


def prepared(*encoder: Any, remainder: Any = "drop", **options: Any) -> ColumnTransformer:
    """Scaled measurements, encoded codes."""
    return ColumnTransformer(
        [("num", make_pipeline(SimpleImputer(), StandardScaler()), NUMERIC), ("cat", *encoder, CODED)],
        remainder=remainder,
        **options,
    )


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=2000)


def scaled(model: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), model)


def network(activation: str = "tanh", hidden: tuple[int, ...] = (8, 5)) -> MLPClassifier:
    return MLPClassifier(hidden, activation=activation, solver="lbfgs", alpha=0.01, max_iter=60, random_state=0)


def net(activation: str = "tanh", hidden: tuple[int, ...] = (8, 5)) -> Pipeline:
    return scaled(network(activation, hidden))


@dataclass(frozen=True)
class Case:
    """`linear`: for which numbers of classes the whole is linear in the raw columns."""

    name: str
    model: Any
    linear: tuple[int, ...] = ()
    classes: tuple[int, ...] = (2, 3)
    frame: bool = False


BOTH = (2, 3)
CASES = [
    Case("logistic", scaled(logistic()), BOTH),
    Case("logistic, nothing before it", LogisticRegression(solver="newton-cholesky"), BOTH),
    Case("logistic, without intercept", scaled(LogisticRegression(fit_intercept=False)), BOTH),
    Case("logistic, l1", scaled(LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", max_iter=3000, tol=1e-3)), BOTH),
    Case("logistic, liblinear", scaled(LogisticRegression(solver="liblinear")), BOTH, (2,)),
    Case(
        "logistic, cv",
        scaled(LogisticRegressionCV(Cs=3, cv=3, use_legacy_attributes=False, scoring="accuracy", l1_ratios=(0,))),
        BOTH,
    ),
    Case("discriminant", LinearDiscriminantAnalysis(), BOTH),
    Case("discriminant, shrunk", scaled(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")), BOTH),
    Case("network, identity", net("identity"), BOTH),
    Case("network, logistic", net("logistic")),
    Case("network, tanh", net("tanh")),
    Case("network, relu", net("relu")),
    Case("network, three layers", net("relu", (9, 7, 4))),
    Case("standard, uncentred", make_pipeline(StandardScaler(with_mean=False), logistic()), BOTH),
    Case("standard, unscaled", make_pipeline(StandardScaler(with_std=False), StandardScaler(), logistic()), BOTH),
    Case("min-max", make_pipeline(MinMaxScaler((-1, 3)), logistic()), BOTH),
    Case("min-max, clipped", make_pipeline(MinMaxScaler(clip=True), logistic())),
    Case("max-abs", make_pipeline(MaxAbsScaler(), logistic()), BOTH),
    Case("robust", make_pipeline(RobustScaler(quantile_range=(10, 90)), logistic()), BOTH),
    Case("robust, uncentred", make_pipeline(RobustScaler(with_centering=False), logistic()), BOTH),
    Case("pca", make_pipeline(StandardScaler(), PCA(3), logistic()), BOTH),
    Case("pca, whitened", make_pipeline(StandardScaler(), PCA(whiten=True), logistic()), BOTH),
    Case("pca first, network after", make_pipeline(PCA(5, whiten=True), network())),
    Case("imputer", make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), logistic()), BOTH),
    Case("passthrough step", Pipeline([("a", "passthrough"), ("b", StandardScaler()), ("c", logistic())]), BOTH),
    Case(
        "pipeline in pipeline", make_pipeline(make_pipeline(SimpleImputer(), RobustScaler()), scaled(logistic())), BOTH
    ),
    Case("columns, dropped", make_pipeline(prepared("drop"), logistic()), BOTH),
    Case("columns, passed through", make_pipeline(prepared("passthrough"), StandardScaler(), logistic()), BOTH),
    Case(
        "columns, shuffled and weighted",
        make_pipeline(
            ColumnTransformer(
                [("b", StandardScaler(), [3, 0]), ("none", StandardScaler(), []), ("a", MinMaxScaler(), slice(1, 3))],
                remainder="passthrough",
                transformer_weights={"b": 2.0},
            ),
            StandardScaler(),
            logistic(),
        ),
        BOTH,
    ),
    Case("one-hot", make_pipeline(prepared(OneHotEncoder()), logistic())),
    Case("one-hot, dense", make_pipeline(prepared(OneHotEncoder(sparse_output=False)), net("tanh"))),
    Case("one-hot, drop first", make_pipeline(prepared(OneHotEncoder(drop="first")), logistic())),
    Case("one-hot, drop if binary", make_pipeline(prepared(OneHotEncoder(drop="if_binary")), logistic())),
    Case("one-hot, ignore", make_pipeline(prepared(OneHotEncoder(handle_unknown="ignore")), logistic())),
    Case(
        "one-hot, rare ones together",
        make_pipeline(
            prepared(OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.1, drop="first")), logistic()
        ),
    ),
    Case(
        "one-hot behind an imputer",
        make_pipeline(prepared(make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())), logistic()),
    ),
    Case("one-hot, all sparse", make_pipeline(prepared(OneHotEncoder(), sparse_threshold=1.0), logistic())),
    Case(
        "one-hot of everything else", make_pipeline(prepared("drop", remainder="passthrough"), scaled(logistic())), BOTH
    ),
    Case(
        "by name",
        make_pipeline(
            ColumnTransformer(
                [
                    ("num", StandardScaler(), ["bmi", "age", "glu"]),
                    ("pattern", RobustScaler(), make_column_selector("chol")),
                    ("cat", OneHotEncoder(handle_unknown="ignore"), ["ward"]),
                ],
                remainder="passthrough",
                verbose_feature_names_out=False,
            ),
            logistic(),
        ),
        frame=True,
    ),
    Case("frame", net(), frame=True),
    Case("frames all the way", scaled(logistic()).set_output(transform="pandas"), BOTH, frame=True),
    Case("one vs rest", OneVsRestClassifier(scaled(logistic())), (2,)),
    Case("one vs rest of networks", OneVsRestClassifier(net())),
    Case("calibrated", CalibratedClassifierCV(scaled(logistic()), cv=3)),
    Case("calibrated, one", CalibratedClassifierCV(scaled(logistic()), cv=3, ensemble=False), (2,)),
    Case("calibrated svc", CalibratedClassifierCV(scaled(LinearSVC()), cv=3)),
    Case("calibrated svc, one", CalibratedClassifierCV(scaled(LinearSVC()), cv=3, ensemble=False), (2,)),
    Case("calibrated network", CalibratedClassifierCV(net(), cv=2)),
    Case("calibrated inside", scaled(CalibratedClassifierCV(LinearDiscriminantAnalysis(), cv=2, ensemble=False)), (2,)),
    Case(
        "calibrated one vs rest", CalibratedClassifierCV(OneVsRestClassifier(scaled(LinearSVC())), ensemble=False), (2,)
    ),
    Case("grid", GridSearchCV(scaled(logistic()), {"logisticregression__C": [0.1, 1.0]}, cv=2), BOTH),
    Case("random", RandomizedSearchCV(net(), {"mlpclassifier__alpha": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0)),
    Case(
        "halving",
        make_pipeline(
            StandardScaler(),
            HalvingGridSearchCV(LinearDiscriminantAnalysis(), {"tol": [1e-4, 1e-3]}, cv=2, random_state=0),
        ),
        BOTH,
    ),
]
BY_NAME = {case.name: case for case in CASES}
ALL = [(case.name, k) for case in CASES for k in case.classes]


def table(x: Floats, frame: bool) -> Any:
    return pd.DataFrame(x, columns=NAMES) if frame else x


@cache
def fitted(name: str, classes: int) -> Any:
    x = rows(400, seed=0)
    case = BY_NAME[name]
    return fit(case.model, table(x, case.frame), np.array(["low", "mid", "high"])[labels(x, classes)])


def fit(model: Any, x: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations that end early make no worse example
        return pickle.loads(pickle.dumps(model)).fit(x, y)


@cache
def converted(name: str, classes: int) -> SklearnClassifier:
    return SklearnClassifier(fitted(name, classes))


def probabilities(classifier: SklearnClassifier, x: Floats) -> Floats:
    with classifier.borrowed(), torch.no_grad():
        return classifier.probabilities(torch.tensor(x)).numpy()


# --- the same numbers ---


@pytest.mark.parametrize(("name", "classes"), ALL, ids=[f"{name} {k}" for name, k in ALL])
def test_probabilities_are_scikit_learns_own(name: str, classes: int) -> None:
    model = fitted(name, classes)
    before = pickle.dumps(model)
    classifier = SklearnClassifier(model)
    assert pickle.dumps(model) == before
    assert classifier.classes == tuple(sorted(["low", "mid", "high"][:classes]))
    assert classifier.n_features == 6
    assert classifier.apart < 1e-11
    assert classifier.feature_names == (tuple(NAMES) if BY_NAME[name].frame else None)
    x = rows(10_000 if LONG else 1000, seed=5, reach=2.0)
    expected = model.predict_proba(table(x, BY_NAME[name].frame))
    np.testing.assert_allclose(probabilities(classifier, x), expected, atol=1e-9, rtol=0)
    with torch.no_grad():
        logs = classifier.log_probabilities(torch.tensor(x)).numpy()
    clear = expected > 1e-6
    np.testing.assert_allclose(logs[clear], np.log(expected[clear]), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_descent_with_log_loss_has_probabilities(classes: int) -> None:
    """No case of the list above, for it cannot come from a file: skops would have to call its loss."""
    x = rows(400, seed=0)
    model = fit(scaled(SGDClassifier(loss="log_loss", random_state=0)), x, labels(x, classes))
    classifier = SklearnClassifier(model)
    assert (classifier.linear(6) is not None) == (classes == 2)
    np.testing.assert_allclose(probabilities(classifier, rows(500, 5)), model.predict_proba(rows(500, 5)), atol=1e-9)


@pytest.mark.parametrize(("name", "classes"), ALL, ids=[f"{name} {k}" for name, k in ALL])
def test_gradients_are_those_of_predict_proba(name: str, classes: int) -> None:
    model, classifier, x = fitted(name, classes), converted(name, classes), rows(20, seed=6)
    leaf = torch.tensor(x, requires_grad=True)
    weights = torch.arange(1.0, classes + 1, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((classifier.probabilities(leaf) @ weights).sum(), leaf)
    for i in range(4):
        step = np.zeros(6)
        step[i] = 1e-5 * SPREAD[i]
        ends = [model.predict_proba(table(x + s, BY_NAME[name].frame)) @ weights.numpy() for s in (step, -step)]
        slope = (ends[0] - ends[1]) / (2 * step[i])
        # A relu or a clip may have its corner between the two ends for one of the rows.
        close = np.isclose(gradient[:, i].numpy(), slope, atol=1e-6 / SPREAD[i], rtol=1e-4)
        assert close.sum() >= 19


@pytest.mark.parametrize(("name", "classes"), ALL, ids=[f"{name} {k}" for name, k in ALL])
def test_linear_pipelines_are_recognised_over_the_raw_columns(name: str, classes: int) -> None:
    classifier, x = converted(name, classes), rows(500, seed=7, reach=2.0)
    form = classifier.linear(6)
    assert (form is not None) == (classes in BY_NAME[name].linear)
    if form is not None:
        logits = torch.tensor(x) @ form.weight.T + form.bias
        np.testing.assert_allclose(torch.softmax(logits, 1), probabilities(classifier, x), atol=1e-9)


@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_the_probe_finds_nothing_to_object_to(name: str) -> None:
    probed = probe(converted(name, 2), Sample.of_table(rows(300, seed=8)), lambda j: f"row {j + 1}")
    assert probed.classes == 2
    assert probed.rounding[0].guard(0.0) == 1e-9
    assert probed.notices == ()


def test_far_from_the_line_log_probabilities_do_not_saturate() -> None:
    x = rows(4, seed=0, reach=30.0)
    for name in ("logistic", "calibrated", "calibrated svc", "one vs rest", "network, identity"):
        for classes in (2, 3):
            classifier = converted(name, classes)
            leaf = torch.tensor(x, requires_grad=True)
            logs = classifier.log_probabilities(leaf)
            (gradient,) = torch.autograd.grad(logs.amin(dim=1).sum(), leaf)
            assert torch.isfinite(logs).all()
            assert (gradient[:, :4] != 0).all(), name


def test_labels_of_any_type_become_names() -> None:
    x = rows(100, 0)
    y = labels(x, 2)
    for values, names in ([(0, 1), ("0", "1")], [(False, True), ("False", "True")], [(1.0, 2.0), ("1.0", "2.0")]):
        assert SklearnClassifier(fit(scaled(logistic()), x, np.array(values)[y])).classes == names


def test_empty_columns_that_an_imputer_drops_are_dropped() -> None:
    x = rows(200, 0)
    y, with_gaps = labels(x, 2), x.copy()
    with_gaps[:, 2] = np.nan
    with_gaps[::7, 1] = np.nan
    for keep in (False, True):
        for strategy in ("mean", "constant"):
            imputer = SimpleImputer(strategy=strategy, fill_value=1.0 if strategy == "constant" else None)
            imputer.set_params(keep_empty_features=keep)
            model = fit(make_pipeline(imputer, StandardScaler(), logistic()), with_gaps, y)
            with warnings.catch_warnings(action="ignore"):
                expected = model.predict_proba(x)
            np.testing.assert_allclose(probabilities(SklearnClassifier(model), x), expected, atol=1e-9)


def test_unseen_categories_are_as_the_encoder_has_them() -> None:
    x = rows(300, 0)
    y, strange = labels(x, 2), x.copy()
    strange[:5, 4] = 3.0
    for unknown in ("ignore", "infrequent_if_exist", "warn"):
        for drop in (None, "first"):
            encoder = OneHotEncoder(handle_unknown=unknown, min_frequency=20, drop=drop)
            model = fit(make_pipeline(prepared(encoder), logistic()), x, y)
            with warnings.catch_warnings(action="ignore"):
                expected = model.predict_proba(strange)
            np.testing.assert_allclose(probabilities(SklearnClassifier(model), strange), expected, atol=1e-9)
    classifier = SklearnClassifier(fit(make_pipeline(prepared(OneHotEncoder()), logistic()), x, y))
    p = probabilities(classifier, strange)
    assert np.isnan(p[:5]).all()  # scikit-learn raises; here those samples are unusable and the others are not
    assert np.isfinite(p[5:]).all()
    with pytest.raises(ModelError, match=r"not finite for 5 of .* row 1, row 2"):
        probe(classifier, Sample.of_table(strange), lambda j: f"row {j + 1}")


def test_codes_of_any_numeric_type_are_understood() -> None:
    x = rows(300, 0)
    for dtype in (int, np.int8, np.float32, bool):
        frame = table(x, frame=True).astype({"ward": int if dtype is bool else dtype, "diet": dtype})
        model = fit(make_pipeline(prepared(OneHotEncoder()), logistic()), frame, labels(x, 2))
        classifier = SklearnClassifier(model)
        assert classifier.frozen_columns == (4, 5)
        np.testing.assert_allclose(probabilities(classifier, x), model.predict_proba(frame), atol=1e-9)


def test_frozen_estimators_are_seen_through() -> None:
    x = rows(300, 0)
    y = labels(x, 3)
    inner = fit(scaled(logistic()), x, y)
    model = CalibratedClassifierCV(FrozenEstimator(inner)).fit(x, y)
    np.testing.assert_allclose(probabilities(SklearnClassifier(model), x), model.predict_proba(x), atol=1e-9)
    np.testing.assert_allclose(
        probabilities(SklearnClassifier(FrozenEstimator(inner)), x), inner.predict_proba(x), atol=1e-9
    )


def test_a_refit_does_not_reach_the_conversion() -> None:
    x = rows(200, 0)
    model = fit(scaled(logistic()), x, labels(x, 2))
    classifier = SklearnClassifier(model)
    kept = probabilities(classifier, x)
    model[-1].coef_ *= 2.0
    assert np.array_equal(probabilities(classifier, x), kept)


def test_a_converted_model_can_be_exported_and_passes_the_auditors_wall(tmp_path: Any) -> None:
    """So plans of scikit-learn models can be audited today: the module itself is a plain torch model."""
    for name, classes in [("one-hot, drop first", 2), ("calibrated one vs rest", 3)]:
        classifier, x = converted(name, classes), torch.tensor(rows(50, 9))
        program = torch.export.export(classifier.module, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))  # type: ignore[arg-type]
        sink = io.BytesIO()
        torch.export.save(program, sink)
        (tmp_path / "model.pt2").write_bytes(sink.getvalue())
        loaded = load_module((tmp_path / "model.pt2").read_bytes(), "model.pt2")
        assert torch.equal(loaded.module(x), classifier.raw(x))


# --- what is refused ---


class Doubled(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    def fit(self, x: Any, y: Any = None) -> Doubled:
        self.n_features_in_ = x.shape[1]
        return self

    def transform(self, x: Any) -> Any:
        return 2 * x


class OwnLogistic(LogisticRegression):  # type: ignore[misc]
    pass


def hasty() -> LogisticRegression:
    return LogisticRegression(max_iter=5)


REFUSED: list[tuple[Any, list[str]]] = [
    (RandomForestClassifier(3), ["model: RandomForestClassifier cannot be converted", "LogisticRegression"]),
    (scaled(GradientBoostingClassifier(n_estimators=2)), ["step 'gradientboostingclassifier'", "Gradient"]),
    (scaled(SVC()), ["step 'svc': SVC", "TorchClassifier"]),
    (GaussianNB(), ["GaussianNB"]),
    (KNeighborsClassifier(), ["KNeighborsClassifier"]),
    (QuadraticDiscriminantAnalysis(), ["QuadraticDiscriminantAnalysis"]),
    (scaled(SGDClassifier(loss="modified_huber")), ["loss='modified_huber'", "'log_loss'"]),
    (make_pipeline(Doubled(), hasty()), ["step 'doubled': tests.test_sklearn.Doubled", "StandardScaler"]),
    (scaled(OwnLogistic()), ["tests.test_sklearn.OwnLogistic cannot be converted"]),
    (make_pipeline(FunctionTransformer(np.log1p), hasty()), ["FunctionTransformer runs a Python function"]),
    (
        make_pipeline(prepared(KBinsDiscretizer(2, quantile_method="averaged_inverted_cdf")), hasty()),
        ["step 'columntransformer', transformer 'cat': KBinsDiscretizer"],
    ),
    (make_pipeline(StandardScaler(), OneHotEncoder(), hasty()), ["OneHotEncoder works on columns", "computed"]),
    (make_pipeline(SimpleImputer(add_indicator=True), hasty()), ["SimpleImputer adds", "add_indicator=False"]),
    (make_pipeline(SimpleImputer(missing_values=0), hasty()), ["takes 0 for a missing value"]),
    (CalibratedClassifierCV(scaled(hasty()), method="isotonic"), ["method='isotonic'", "method='sigmoid'"]),
    (CalibratedClassifierCV(RandomForestClassifier(3)), ["member 0, estimator: RandomForestClassifier"]),
    (
        GridSearchCV(scaled(hasty()), {"logisticregression__C": [1.0]}, refit=False),
        ["GridSearchCV is not fitted", "refit"],
    ),
]


@pytest.mark.parametrize(("model", "parts"), REFUSED, ids=[str(r[1][0])[:50] for r in REFUSED])
def test_what_cannot_be_converted_is_refused_by_name_and_place(model: Any, parts: list[str]) -> None:
    x = rows(200, 0)
    with pytest.raises(InputError) as caught:
        SklearnClassifier(fit(model, x, labels(x, 3)))
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("model", [logistic(), scaled(logistic()), net(), CalibratedClassifierCV(logistic())], ids=str)
def test_unfitted_models_are_refused(model: Any) -> None:
    with pytest.raises(InputError, match=r"is not fitted: .* Call fit first"):
        SklearnClassifier(model)


def test_other_refusals() -> None:
    x = rows(100, 0)
    y = labels(x, 2)
    for thing in (torch.nn.Linear(2, 2), "model.skops", None):
        with pytest.raises(InputError, match="cannot be converted"):
            SklearnClassifier(thing)
    several = fit(net(), x, np.column_stack([y, 1 - y]))
    with pytest.raises(InputError, match="MLPClassifier has several labels at once"):
        SklearnClassifier(several)
    texts = table(x, frame=True).astype({"diet": str})
    with pytest.raises(InputError, match=r"categories of type \w+, such as '0.0'.*Code the column"):
        SklearnClassifier(fit(make_pipeline(prepared(OneHotEncoder()), logistic()), texts, y))
    with pytest.raises(InputError, match="OneVsRestClassifier has several labels at once"):
        SklearnClassifier(fit(OneVsRestClassifier(hasty()), x, np.column_stack([y, 1 - y])))


def test_a_model_whose_meaning_changed_with_scikit_learn_is_refused() -> None:
    """Up to 1.7 multi_class='ovr' meant other probabilities; a model from then is read as multinomial by later ones."""
    x = rows(200, 0)
    model = fit(scaled(logistic()), x, labels(x, 3))
    model[-1].multi_class = "auto"
    SklearnClassifier(model)
    model[-1].multi_class = "ovr"
    if "multi_class" not in model[-1].get_params():
        with pytest.raises(InputError, match="trained with multi_class='ovr'"):
            SklearnClassifier(model)


def test_a_conversion_that_is_not_the_model_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted("logistic", 2)
    original = LogisticRegression.predict_proba
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda self, x: 0.99 * original(self, x))
    with pytest.raises(ModelError, match=r"differ by 0.0"):
        SklearnClassifier(model)
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda self, x: original(self, x)[:, :1])
    with pytest.raises(ModelError, match="gives 2 classes, predict_proba 1"):
        SklearnClassifier(model)
    damaged = pickle.loads(pickle.dumps(fitted("logistic", 3)))
    damaged[-1].coef_ = damaged[-1].coef_[:, :3]
    with pytest.raises(ModelError, match="could not be converted"):
        SklearnClassifier(damaged)


# --- with a cohort ---


def test_columns_of_another_name_number_or_order_are_told() -> None:
    named, unnamed = converted("frame", 2), converted("logistic", 2)
    named.check_features(NAMES)
    named.check_features([f"x{i}" for i in range(6)])
    unnamed.check_features(["a", "b", "c", "d", "e", "f"])
    with pytest.raises(ModelError, match=r"trained on 6 columns: 'age', 'bmi'.*cohort has 6: 'bmi', 'age'.*order"):
        named.check_features(["bmi", "age", *NAMES[2:]])
    with pytest.raises(ModelError, match=r"trained on 6 columns: 'age'.*cohort has 2: 'age', 'bmi'"):
        named.check_features(["age", "bmi"])
    with pytest.raises(ModelError, match="trained on 6 columns; the cohort has 2"):
        unnamed.check_features(["age", "bmi"])


def test_columns_of_categories_cannot_draw_on_a_budget() -> None:
    classifier = converted("by name", 2)
    assert classifier.frozen_columns == (4,)
    assert classifier.frozen_faults(NAMES, {"age", "bmi"}) == []
    (fault,) = classifier.frozen_faults(NAMES, {"age", "ward"})
    assert "'ward' holds categories" in fault
    assert converted("one-hot", 2).frozen_columns == (4, 5)
    assert converted("logistic", 2).frozen_columns == ()


SOLVED = [
    "logistic",
    "pca, whitened",
    "network, tanh",
    "network, relu",
    "one-hot, drop first",
    "by name",
    "one vs rest",
]
SOLVED += ["calibrated", "calibrated svc", "calibrated network", "min-max, clipped", "grid", "discriminant"]


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize(
    ("classes", "goal"),
    [(2, {"margin": 0.1}), (3, {"margin": 0.1}), (3, {"threshold": 0.6})],
    ids=["2", "3", "threshold"],
)
def test_flips_hold_under_the_original_model(name: str, goal: dict[str, float], classes: int) -> None:
    model, cohort = fitted(name, classes), pd.DataFrame(rows(40, seed=11), columns=NAMES)
    before = pickle.dumps(model)
    budgets = {"age": 900.0, "bmi": 120.0, "chol": 9000.0, "glu": 9.0}
    problem = Problem(
        classifier=SklearnClassifier(model),
        cohort=cohort,
        target="low",
        budgets=budgets,
        limits="observed",
        **goal,  # type: ignore[arg-type]
    )
    plan = solve(problem, Nearest())
    assert plan.count > 0
    assert pickle.dumps(model) == before
    changed = cohort.to_numpy()[plan.selected] + plan.changes
    p = model.predict_proba(table(changed, BY_NAME[name].frame))
    wanted = list(model.classes_).index("low")
    if "margin" in goal:
        assert (p[:, wanted] - np.delete(p, wanted, axis=1).max(axis=1) >= 0.1).all()
    else:
        assert (p[:, wanted] >= 0.6).all()
    assert (model.predict(table(changed, BY_NAME[name].frame)) == "low").all()
    assert (plan.changes[:, CODED] == 0).all()
    for name_, amount in budgets.items():
        assert (plan.changes[:, NAMES.index(name_)] ** 2).sum() <= amount


def test_a_linear_pipeline_is_solved_exactly_and_proves_what_is_out_of_reach() -> None:
    x = rows(40, seed=12)
    problem = Problem(
        classifier=converted("pca", 2),
        cohort=table(x, frame=True),
        target="low",
        margin=0.1,
        budgets={"glu": 1e6},
        limits={"glu": (4.0, 7.0)},
    )
    plan = solve(problem, Nearest())
    assert plan.fate_counts()[Fate.NOT_FOUND] == 0
    assert plan.fate_counts()[Fate.UNREACHABLE] > 0
    assert plan.bound == plan.worth


def test_problem_refuses_other_columns_and_budgets_on_categories() -> None:
    """Row 44: the model's columns and the cohort's are listed side by side; a category is never a lever."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    import maxflip

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=200), "ward": rng.integers(0, 3, 200).astype(float)})
    y = (frame["age"] + (frame["ward"] == 1) > 0).astype(int)
    encode = ColumnTransformer([("ward", OneHotEncoder(), ["ward"])], remainder="passthrough")
    classifier = SklearnClassifier(make_pipeline(encode, LogisticRegression()).fit(frame, y))
    asked: dict[str, Any] = {"classifier": classifier, "target": 1, "margin": 0.1}
    with pytest.raises(maxflip.ProblemError, match="'ward' holds categories"):
        maxflip.Problem(cohort=frame, budgets={"age": 9.0, "ward": 1.0}, **asked)
    with pytest.raises(
        maxflip.ModelError, match="trained on 2 columns: 'age', 'ward'; the cohort has 2: 'ward', 'age'"
    ):
        maxflip.Problem(cohort=frame[["ward", "age"]], budgets={"age": 9.0}, **asked)
    plan = maxflip.solve(maxflip.Problem(cohort=frame, budgets={"age": 9.0}, **asked))
    assert plan.count > 0
    assert (plan.changes[:, 1] == 0).all()
