"""CatBoost: the tables of its .json export, which its objects give too. Left goes what is float32(x) <= border."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from maxflip._util.messages import shown
from maxflip._util.types import Floats
from maxflip.errors import ModelError
from maxflip.models.trees.build import Read, Tree, forest_of, reals
from maxflip.models.trees.forest import LEAF, Link
from maxflip.models.trees.tables import list_of, numbers_in, table_in, text_in
from maxflip.models.trees.thresholds import float32_at_most

LINKS: dict[str, Link] = {"Logloss": "sigmoid", "CrossEntropy": "sigmoid", "MultiClass": "softmax"}
DEEPEST = 16  # levels of an oblivious tree, as in CatBoost
OTHER_COLUMNS = ("categorical_features", "text_features", "embedding_features")
MISSING_LEFT = {"AsFalse": True, "AsTrue": False, "AsIs": True}  # NaN is -infinity, infinity, or compared as it is


def from_object(model: Any) -> Read:
    """A CatBoostClassifier or CatBoost model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return from_tables(json.loads(path.read_bytes()))


def from_tables(content: Mapping[str, Any]) -> Read:
    columns_of = table_in(content, "features_info")
    for kind in OTHER_COLUMNS:
        if columns_of.get(kind):
            raise ModelError(
                f"it has {kind.replace('_', ' ')}, whose values CatBoost replaces by statistics of its own. Train it "
                "on numbers, or give BlackBoxClassifier(model.predict_proba)"
            )
    info = table_in(content, "model_info")
    loss = _loss(info)
    if loss not in LINKS:
        raise ModelError(f"its loss {shown(loss)} is none that is read; known are {', '.join(LINKS)}")
    missing_left, names = _columns(columns_of)
    scale, bias = _scale_and_bias(content)
    if len(bias) != 1 and LINKS[loss] == "sigmoid":
        raise ModelError(f"scale_and_bias has {len(bias)} numbers for two classes")
    forest = forest_of(
        _trees(content, missing_left, scale, len(bias)),
        base=bias,
        width=len(missing_left),
        link=LINKS[loss],
        divisor=1.0,
        precision="float64",
    )
    return Read("CatBoost", forest, names, _classes(info))


def _loss(info: Mapping[str, Any]) -> str:
    loss = table_in(table_in(info, "params"), "loss_function")
    return text_in(loss, "type")


def _classes(info: Mapping[str, Any]) -> tuple[str, ...] | None:
    names = info.get("class_params", {}).get("class_names") if isinstance(info.get("class_params"), Mapping) else None
    return tuple(str(name) for name in names) if isinstance(names, list) and names else None


def _columns(info: Mapping[str, Any]) -> tuple[list[bool], tuple[str, ...] | None]:
    """By column, where NaN goes; and the names, if they have any."""
    columns = list_of(info, "float_features")
    ways, names = [], []
    for place, column in enumerate(columns):
        if not isinstance(column, Mapping) or column.get("flat_feature_index") != place:
            raise ModelError(f"features_info: column {place} is missing or damaged")
        way = column.get("nan_value_treatment", "AsIs")
        if way not in MISSING_LEFT:
            raise ModelError(f"features_info: {shown(way)} is no known way with NaN")
        ways.append(MISSING_LEFT[way])
        names.append(str(column.get("feature_id", "")))
    unnamed = names in ([""] * len(names), [str(i) for i in range(len(names))])
    return ways, None if unnamed else tuple(names)


def _scale_and_bias(content: Mapping[str, Any]) -> tuple[float, Any]:
    found = list_of(content, "scale_and_bias")
    if len(found) != 2 or isinstance(found[0], bool) or not isinstance(found[0], (int, float)):
        raise ModelError(f"scale_and_bias: wanted [scale, [bias, ...]], got {shown(found)}")
    return float(found[0]), reals(found[1], "scale_and_bias")


def _trees(content: Mapping[str, Any], missing_left: list[bool], scale: float, columns: int) -> Iterator[Tree]:
    ways, output = np.array(missing_left, np.bool_), 0 if columns == 1 else -1
    if "oblivious_trees" in content:
        for number, tree in enumerate(list_of(content, "oblivious_trees")):
            yield _oblivious(tree, ways, scale, columns, output, f"tree {number}")
    else:
        for number, tree in enumerate(list_of(content, "trees")):
            yield _unlike(tree, ways, scale, columns, output, f"tree {number}")


def _split(split: Any, ways: Any, where: str) -> tuple[int, float, bool]:
    """column, threshold, and whether NaN goes left"""
    if not isinstance(split, Mapping) or split.get("split_type") != "FloatFeature":
        raise ModelError(f"{where}: a split is {shown(split)}; read are those of numbers (FloatFeature)")
    column, border = split.get("float_feature_index"), split.get("border")
    if type(column) is not int or not 0 <= column < len(ways):
        raise ModelError(f"{where}: a split names the column {shown(column)}; the model has {len(ways)}")
    if isinstance(border, bool) or not isinstance(border, (int, float)):
        raise ModelError(f"{where}: a split has the border {shown(border)}; wanted a number")
    with np.errstate(over="ignore"):
        return column, float(float32_at_most(np.float32(border))), bool(ways[column])


def _oblivious(tree: Any, ways: Any, scale: float, columns: int, output: int, where: str) -> Tree:
    """All nodes of a level make the same split; split i sets bit i of the number of the leaf.

    So the last split stands at the root. Node j has the children 2 j + 1 and 2 j + 2, and the leaves of the last level
    come in the order of their bits.
    """
    if not isinstance(tree, Mapping):
        raise ModelError(f"{where}: wanted a table")
    splits = [_split(split, ways, where) for split in list_of(tree, "splits", where)][::-1]
    depth, inner = len(splits), (1 << len(splits)) - 1
    if depth > DEEPEST:
        raise ModelError(f"{where} has {depth} levels; at most {DEEPEST} are read")
    value = reals(numbers_in(tree, "leaf_values", where), f"{where}: leaf_values", (inner + 1) * columns)
    value = scale * value.reshape(inner + 1, columns)
    levels = np.repeat(np.arange(depth), 1 << np.arange(depth))
    nodes, leaves = np.arange(inner), np.zeros(inner + 1)
    column, threshold, lefts = (np.array([split[part] for split in splits]) for part in range(3))
    return Tree(
        feature=np.concatenate([column[levels].astype(np.int64), leaves.astype(np.int64) + LEAF]),
        threshold=np.concatenate([threshold[levels], leaves]),
        left=np.concatenate([2 * nodes + 1, leaves.astype(np.int64)]),
        right=np.concatenate([2 * nodes + 2, leaves.astype(np.int64)]),
        missing_left=np.concatenate([lefts[levels].astype(np.bool_), leaves > 0]),
        value=np.concatenate([np.zeros((inner, columns)), value]),
        output=output,
    )


def _unlike(tree: Any, ways: Any, scale: float, columns: int, output: int, where: str) -> Tree:
    """A tree of grow_policy="Depthwise" or "Lossguide": tables within each other, visited parents first."""
    feature: list[int] = []
    threshold: list[float] = []
    missing_left: list[bool] = []
    left: list[int] = []
    right: list[int] = []
    value: list[Floats] = []
    waiting = [tree]
    while len(feature) < len(waiting):
        node = waiting[len(feature)]
        if not isinstance(node, Mapping):
            raise ModelError(f"{where}: wanted a table for each node")
        if "split" in node:
            column, border, lefts = _split(node["split"], ways, where)
            left.append(len(waiting))
            right.append(len(waiting) + 1)
            waiting += [node.get("left"), node.get("right")]
            value.append(np.zeros(columns))
        else:
            column, border, lefts = LEAF, 0.0, False
            left.append(0)
            right.append(0)
            stated = node.get("value")
            stated = stated if isinstance(stated, list) else [stated]
            value.append(scale * reals(stated, f"{where}: a leaf", columns))
        feature.append(column)
        threshold.append(border)
        missing_left.append(lefts)
    return Tree(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        missing_left=np.array(missing_left, np.bool_),
        value=np.array(value),
        output=output,
    )
