"""XGBoost: the tables of .json and .ubj, which its objects give too. It casts x to float32 and adds up in float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maxflip._util.messages import shown
from maxflip._util.types import Floats
from maxflip.errors import ModelError
from maxflip.models.trees.build import Categories, Read, Tree, check_classes, check_codes, forest_of, reals, whole
from maxflip.models.trees.forest import LEAF, Link
from maxflip.models.trees.tables import entry, list_of, numbers_in, table_in, text_in
from maxflip.models.trees.thresholds import LARGEST_FLOAT32, float32_below
from maxflip_wall import parse_trees

VERSIONS = (1, 2, 3)  # of XGBoost itself
LINKS: dict[str, Link] = {"binary:logistic": "sigmoid", "multi:softprob": "softmax", "multi:softmax": "softmax"}


def from_object(model: Any) -> Read:
    """A Booster, or an XGBClassifier with names of its classes."""
    missing = getattr(model, "missing", np.nan)
    if missing is not None and not np.isnan(missing):
        raise ModelError(f"it reads {missing} as missing (missing=...). Train it with NaN for what is missing")
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    content = parse_trees(bytes(booster.save_raw("ubj")), "the booster").content
    found = from_tables(content, by_classifier=booster is not model)
    classes = getattr(model, "classes_", None)
    return Read(
        found.library, found.forest, found.features, None if classes is None else tuple(str(name) for name in classes)
    )


def from_tables(content: Mapping[str, Any], *, by_classifier: bool | None = None) -> Read:
    """What save_model wrote. An XGBClassifier (it says so in its file) predicts with the best iteration's trees, if
    training was stopped early; a Booster with all."""
    version = numbers_in(content, "version")
    if not len(version) or version[0] not in VERSIONS:
        raise ModelError(f"XGBoost's format {shown(version.tolist())} is not known; known are versions {VERSIONS}")
    learner = table_in(content, "learner")
    booster = table_in(learner, "gradient_booster")
    if (kind := text_in(booster, "name")) not in ("gbtree", "dart"):
        raise ModelError(f"its booster is {shown(kind)}; read are trees, those with booster='gbtree' or 'dart'")
    model = table_in(table_in(booster, "gbtree") if kind == "dart" else booster, "model")
    settings = table_in(learner, "learner_model_param")
    check_codes(_categories_of_frame(model))
    objective = text_in(table_in(learner, "objective"), "name")
    if objective not in LINKS:
        raise ModelError(f"its objective {shown(objective)} is none of a classifier; known are {', '.join(LINKS)}")
    link = LINKS[objective]
    columns = 1 if link == "sigmoid" else check_classes(int(_number(settings, "num_class")))
    attributes = table_in(learner, "attributes") if "attributes" in learner else {}
    if by_classifier is None:
        by_classifier = "scikit_learn" in attributes
    trees = list(_trees(model, _used(model, attributes) if by_classifier else None))
    if kind == "dart":
        trees = list(_weighted(trees, reals(numbers_in(booster, "weight_drop"), "weight_drop")))
    width = int(_number(settings, "num_feature"))
    forest = forest_of(
        trees,
        base=_base(settings, link, columns),
        width=width,
        link=link,
        divisor=1.0,
        precision="float32",
        largest=LARGEST_FLOAT32,
        codes="floor",
    )
    names = [str(name) for name in list_of(learner, "feature_names")] if "feature_names" in learner else []
    if len(names) not in (0, width):
        raise ModelError(f"it names {len(names)} columns and has {width}")
    return Read("XGBoost", forest, tuple(names) or None, None)


def _categories_of_frame(model: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Of each column of categories of a data frame, its values where they are numbers; texts have offsets."""
    for column in list_of(table_in(model, "cats"), "enc") if "cats" in model else ():
        if isinstance(column, Mapping) and "values" in column and "offsets" not in column:
            yield numbers_in(column, "values").tolist()


def _base(settings: Mapping[str, Any], link: Link, columns: int) -> Floats:
    """(K,) raw scores of the start: of two classes the file states a probability p, and log(p / (1 - p)) is it."""
    text = text_in(settings, "base_score").strip("[]")
    try:
        stated = np.array([float(part) for part in text.split(",")], np.float32)
    except ValueError as error:
        raise ModelError(f"base_score: {error}") from error
    if len(stated) not in (1, columns):
        raise ModelError(f"base_score has {len(stated)} numbers for {columns} columns")
    if link == "sigmoid":
        if not 0 < stated[0] < 1:
            raise ModelError(f"base_score = {stated[0]} is no probability")
        stated = -np.log((np.float32(1) / stated - np.float32(1)).astype(np.float64)).astype(np.float32)
    return np.broadcast_to(stated.astype(np.float64), (columns,))


def _used(model: Mapping[str, Any], attributes: Mapping[str, Any]) -> int | None:
    """How many trees a classifier uses whose training was stopped early; None: all."""
    if "best_iteration" not in attributes or "iteration_indptr" not in model:
        return None
    ends, best = numbers_in(model, "iteration_indptr"), _number(attributes, "best_iteration")
    return int(ends[int(best) + 1]) if 0 <= best < len(ends) - 1 else None


def _trees(model: Mapping[str, Any], used: int | None) -> Iterator[Tree]:
    outputs = whole(numbers_in(model, "tree_info"), "tree_info")
    trees = list_of(model, "trees")
    if len(outputs) != len(trees):
        raise ModelError(f"tree_info speaks of {len(outputs)} trees, there are {len(trees)}")
    for number, tree in enumerate(trees[:used]):
        if not isinstance(tree, Mapping):
            raise ModelError(f"tree {number}: wanted a table")
        yield _tree(tree, int(outputs[number]), f"tree {number}")


def _weighted(trees: Sequence[Tree], weights: Floats) -> Iterator[Tree]:
    """Each tree times its weight (dart), in float32."""
    if len(weights) < len(trees):
        raise ModelError(f"weight_drop has {len(weights)} numbers for {len(trees)} trees")
    for tree, weight in zip(trees, weights, strict=False):
        value = tree.value.astype(np.float32) * np.float32(weight)
        yield replace(tree, value=value.astype(np.float64))


def _tree(tree: Mapping[str, Any], output: int, where: str) -> Tree:
    settings = table_in(tree, "tree_param", where)
    if _number(settings, "size_leaf_vector", "1") > 1:
        raise ModelError(f"{where} has vectors as leaves (multi_strategy='multi_output_tree'), which are not read")
    left = whole(numbers_in(tree, "left_children", where), f"{where}: left_children")

    def integers(key: str) -> Any:
        return whole(numbers_in(tree, key, where), f"{where}: {key}", len(left))

    leaf = left == -1
    stated = reals(numbers_in(tree, "split_conditions", where), f"{where}: split_conditions", len(left))
    with np.errstate(over="ignore"):
        condition = stated.astype(np.float32)
    categorical = integers("split_type") > 0 if "split_type" in tree else np.zeros(len(left), np.bool_)
    numeric = ~leaf & ~categorical
    return Tree(
        feature=np.where(leaf, LEAF, integers("split_indices")),
        threshold=np.where(numeric, float32_below(np.where(numeric, condition, np.float32(0))), 0.0),
        left=left,
        right=integers("right_children"),
        missing_left=(integers("default_left") > 0) & ~leaf,
        value=np.where(leaf, condition.astype(np.float64), 0.0),
        output=output,
        categories=dict(_categories(tree, np.flatnonzero(categorical & ~leaf), where)),
    )


def _categories(tree: Mapping[str, Any], nodes: Sequence[int] | Any, where: str) -> Iterator[tuple[int, Categories]]:
    """The codes listed go right, all others left."""
    if not len(nodes):
        return
    listed, begins, sizes, codes = (
        whole(numbers_in(tree, key, where), f"{where}: {key}")
        for key in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    )
    if len(begins) != len(listed) or len(sizes) != len(listed) or set(listed.tolist()) != set(map(int, nodes)):
        raise ModelError(f"{where}: its lists of categories do not fit its nodes")
    for node, begin, size in zip(listed, begins, sizes, strict=True):
        if begin < 0 or size < 0 or begin + size > len(codes):
            raise ModelError(f"{where}: the categories of node {node} are damaged")
        yield int(node), Categories(codes[begin : begin + size].astype(np.float64), other_left=True)


def _number(table: Mapping[str, Any], key: str, default: str | None = None) -> float:
    """XGBoost writes single numbers as texts."""
    text = default if default is not None and key not in table else entry(table, key)
    try:
        number = float(text)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{key} = {shown(text)}: wanted a number") from error
    if not 0 <= number < 2**31 or number != int(number):
        raise ModelError(f"{key} = {shown(text)}: wanted a whole number from 0 on")
    return number
