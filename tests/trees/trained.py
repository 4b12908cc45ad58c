"""Tiny models of every library, and rows that lie where a rule could go wrong."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from maxflip._util.types import Floats
from maxflip.models.trees.forest import Forest

ROWS, FEATURES, CATEGORY = 400, 5, 4
UNSEEN = [100.0, -1.0, 5.0, 1.0, 37.0, 3.7, -0.5]  # codes are 0, 3, ..., 33


@cache
def data(*, missing: bool, seed: int = 0) -> tuple[Floats, Any, Any]:
    """x (n, F): normal columns, one of small whole numbers, one of codes; labels of two classes, and of three"""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, FEATURES))
    x[:, 3] = rng.integers(-3, 4, ROWS)
    x[:, CATEGORY] = rng.integers(0, 12, ROWS) * 3
    y: Any = x[:, 0] + x[:, 1] ** 2 + (x[:, CATEGORY] // 3 % 3 > 1) + rng.normal(size=ROWS) * 0.3 > 1
    y = y.astype(int)
    three = y + (x[:, 2] > 0.5)
    if missing:
        x[rng.random(x.shape) < 0.1] = np.nan
        x[:, CATEGORY] = np.nan_to_num(x[:, CATEGORY])
    return x, y, three


@cache
def trained(kind: str, classes: int) -> Any:
    """The model, fitted; the test is skipped where its library is not installed."""
    x, y, three = data(missing=kind not in ("gradient boosting", "exponential"))
    with warnings.catch_warnings(action="ignore"):
        return _unfitted(kind).fit(x, y if classes == 2 else three, **_how(kind))


def _how(kind: str) -> dict[str, Any]:
    return {"categorical_feature": [CATEGORY]} if kind == "lightgbm" else {}


def _unfitted(kind: str) -> Any:
    library, _, variant = kind.partition(", ")
    settings: dict[str, Any]
    if library == "lightgbm":
        settings = {"n_estimators": 6, "num_leaves": 8, "min_child_samples": 3, "verbose": -1, "n_jobs": 1}
        if variant == "averaged":
            settings |= {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}
        return pytest.importorskip("lightgbm").LGBMClassifier(
            **settings, min_data_per_group=3, cat_smooth=1.0, sigmoid=2.0
        )
    if library == "xgboost":
        settings = {"n_estimators": 6, "max_depth": 4, "n_jobs": 1, "booster": variant or "gbtree"}
        if not variant:
            types = ["q"] * CATEGORY + ["c"]
            settings |= {"enable_categorical": True, "max_cat_to_onehot": 2, "feature_types": types}
        return pytest.importorskip("xgboost").XGBClassifier(**settings)
    if library == "catboost":
        quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
        how = {"": {}, "lossguide": {"grow_policy": "Lossguide"}, "nan high": {"nan_mode": "Max"}}[variant]
        return pytest.importorskip("catboost").CatBoostClassifier(iterations=6, depth=4, **quiet, **how)
    ensemble = pytest.importorskip("sklearn.ensemble")
    return {
        "random forest": lambda: ensemble.RandomForestClassifier(6, max_depth=5, random_state=0),
        "extra trees": lambda: ensemble.ExtraTreesClassifier(6, max_depth=5, random_state=0),
        "gradient boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=6, random_state=0),
        "exponential": lambda: ensemble.GradientBoostingClassifier(n_estimators=6, loss="exponential"),
        "histograms": lambda: ensemble.HistGradientBoostingClassifier(
            max_iter=6, min_samples_leaf=3, categorical_features=[CATEGORY], random_state=0
        ),
    }[library]()


def rows_at_the_thresholds(forest: Forest, *, number: int = 2000, infinite: bool) -> Floats:
    """(number, F): a value of each row lies at a threshold, or next to one in float64 or in float32."""
    x, _, _ = data(missing=False)
    rng = np.random.default_rng(1)
    found = x[rng.integers(0, len(x), number)]
    tests = (forest.feature >= 0) & (forest.cat_begin < 0) & np.isfinite(forest.threshold)
    node = rng.choice(np.flatnonzero(tests), number)
    t = forest.threshold[node]
    single = t.astype(np.float32)
    near = [np.nextafter(t, np.inf), t, np.nextafter(t, -np.inf), t.round(3)]
    with np.errstate(over="ignore"):  # CatBoost splits NaN from the rest at the least number of float32
        beside = [np.nextafter(single, np.float32(way)) for way in (-np.inf, np.inf)]
    near += [v.astype(float) for v in (single, *beside)]
    each = np.arange(number)
    found[each, forest.feature[node]] = np.array(near)[rng.integers(0, len(near), number), each]
    if forest.takes_missing:
        found[rng.random(found.shape) < 0.03] = np.nan
    if infinite:
        there = rng.random(found.shape) < 0.01
        there[:, CATEGORY] = False
        found[there] = rng.choice([np.inf, -np.inf], there.sum())
    odd = rng.random(number) < 0.1
    found[odd, CATEGORY] = rng.choice(UNSEEN, odd.sum())
    return found


def told_by(model: Any, rows: Floats) -> Floats:
    """The library's own probabilities."""
    with warnings.catch_warnings(action="ignore"):  # about names of columns
        return np.asarray(model.predict_proba(rows), np.float64)
