"""scikit-learn: random forests and extra trees, single trees, and both kinds of gradient boosting, from objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxflip._util.messages import shown
from maxflip._util.types import Floats
from maxflip.errors import ModelError
from maxflip.models.trees.build import Categories, Read, Tree, forest_of
from maxflip.models.trees.forest import EVERY_COLUMN, LEAF, Forest, Link
from maxflip.models.trees.thresholds import LARGEST_FLOAT32, float32_at_most_double

AVERAGED = ("RandomForestClassifier", "ExtraTreesClassifier")
SINGLE = ("DecisionTreeClassifier", "ExtraTreeClassifier")
READ = (*AVERAGED, *SINGLE, "GradientBoostingClassifier", "HistGradientBoostingClassifier")


def is_read(model: object) -> bool:
    return _kind(model) is not None


def from_object(model: Any) -> Read:
    """A fitted classifier of one of the kinds in READ."""
    kind = _kind(model)
    if not hasattr(model, "classes_"):
        raise ModelError(f"{type(model).__name__} is not fitted")
    if not isinstance(model.classes_, np.ndarray) or model.classes_.ndim != 1:
        raise ModelError("it predicts several labels at once. Train it on one label with one class per sample")
    if kind == "GradientBoostingClassifier":
        forest = _boosted(model)
    elif kind == "HistGradientBoostingClassifier":
        forest = _histogram(model)
    else:
        forest = _averaged(model, model.estimators_ if kind in AVERAGED else [model])
    names = getattr(model, "feature_names_in_", None)
    return Read(
        "scikit-learn",
        forest,
        None if names is None else tuple(str(name) for name in names),
        tuple(str(name) for name in model.classes_),
    )


def _kind(model: object) -> str | None:
    """The name of the class of scikit-learn that the model is, or is made from."""
    return next(
        (of.__name__ for of in type(model).__mro__ if of.__module__.startswith("sklearn.") and of.__name__ in READ),
        None,
    )


def _averaged(model: Any, members: list[Any]) -> Forest:
    """Leaves hold the shares of the classes, and probabilities are their means."""
    takes_missing = bool(members[0].__sklearn_tags__().input_tags.allow_nan and members[0].monotonic_cst is None)
    return forest_of(
        [_tree(member.tree_, member.tree_.value[:, 0, :], EVERY_COLUMN) for member in members],
        base=np.zeros(len(model.classes_)),
        width=int(model.n_features_in_),
        link="mean",
        divisor=float(len(members)),
        precision="float64",
        takes_missing=takes_missing,
        largest=LARGEST_FLOAT32,
    )


def _tree(tree: Any, value: Floats, output: int) -> Tree:
    """x is cast to float32; the threshold is a double."""
    leaf = tree.children_left < 0
    return Tree(
        feature=np.where(leaf, LEAF, tree.feature).astype(np.int64),
        threshold=np.where(leaf, 0.0, float32_at_most_double(np.where(leaf, 0.0, tree.threshold))),
        left=tree.children_left.astype(np.int64),
        right=tree.children_right.astype(np.int64),
        missing_left=tree.missing_go_to_left.astype(np.bool_) & ~leaf,
        value=np.asarray(value, np.float64),
        output=output,
    )


def _link(columns: int) -> Link:
    return "sigmoid" if columns == 1 else "softmax"


def _boosted(model: Any) -> Forest:
    rows = np.zeros((1, int(model.n_features_in_)))
    if not isinstance(model.init_, str) and type(model.init_).__name__ != "DummyClassifier":
        raise ModelError(f"it begins with another model, init={shown(model.init_)}. Train it with init=None or 'zero'")
    base = np.asarray(model._raw_predict_init(rows)[0], np.float64)
    return forest_of(
        [
            _tree(member.tree_, model.learning_rate * member.tree_.value[:, 0, 0], output)
            for stage in model.estimators_
            for output, member in enumerate(stage)
        ],
        base=base,
        width=int(model.n_features_in_),
        link=_link(len(base)),
        divisor=0.5 if model.loss == "exponential" else 1.0,
        precision="float64",
        takes_missing=False,
        largest=LARGEST_FLOAT32,
    )


def _histogram(model: Any) -> Forest:
    """It compares doubles. For its trees the columns with categories come first, and those are numbered from 0."""
    width = int(model.n_features_in_)
    columns, known = np.arange(width), {}
    if model.is_categorical_ is not None:
        with_categories = np.flatnonzero(model.is_categorical_)
        columns = np.concatenate([with_categories, np.flatnonzero(~model.is_categorical_)])
        encoder = model._preprocessor.named_transformers_["encoder"]
        known = {int(i): _codes(found, int(i)) for i, found in zip(with_categories, encoder.categories_, strict=True)}
    base = np.asarray(model._baseline_prediction, np.float64).reshape(-1)
    return forest_of(
        [
            _histogram_tree(predictor, output, columns, known)
            for stage in model._predictors
            for output, predictor in enumerate(stage)
        ],
        base=base,
        width=width,
        link=_link(len(base)),
        divisor=1.0,
        precision="float64",
    )


def _codes(categories: Any, column: int) -> Floats:
    """The values of a column with categories, in the order of their numbers; NaN among them counts as missing."""
    if categories.dtype.kind not in "iufb":
        raise ModelError(
            f"column {column} holds categories that are no numbers: {shown(list(categories[:3]))}. Code them as "
            "numbers in front of the model"
        )
    codes: Floats = categories.astype(np.float64)
    return codes[~np.isnan(codes)]


def _histogram_tree(predictor: Any, output: int, columns: Any, known: dict[int, Floats]) -> Tree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    column = np.where(leaf, LEAF, columns[np.where(leaf, 0, nodes["feature_idx"])])
    numeric = ~leaf & ~nodes["is_categorical"].astype(np.bool_)
    return Tree(
        feature=column.astype(np.int64),
        threshold=np.where(numeric, nodes["num_threshold"], 0.0),
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_) & ~leaf,
        value=np.where(leaf, nodes["value"], 0.0),
        output=output,
        categories=dict(_sets(predictor, np.flatnonzero(~leaf & ~numeric), column, known)),
    )


def _sets(predictor: Any, with_sets: Any, column: Any, known: dict[int, Floats]) -> Iterator[tuple[int, Categories]]:
    """Bit j of a set tells whether the j-th category goes left. Categories that are not known go where NaN goes."""
    for node in with_sets:
        codes = known[int(column[node])]
        words = predictor.raw_left_cat_bitsets[predictor.nodes["bitset_idx"][node]].astype(np.int64)
        lefts = ((words[:, None] >> np.arange(32)) & 1).reshape(-1)[: len(codes)] > 0
        other_left = bool(predictor.nodes["missing_go_to_left"][node])
        yield int(node), Categories(codes[lefts != other_left], other_left)
