"""The auditor's own evaluation of trees: each library's rule as the library applies it, on its own numbers.

Nothing is converted to a common form of threshold: XGBoost and CatBoost compare in float32, LightGBM in float64 with
its rules for 0 and for missing values.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxflip_wall import Broken, Unreadable, parse_trees, reading

Array = NDArray[Any]
DEEPEST = 4096  # levels
MOST_SUMS = 10_000  # classes
PAIRS = 1 << 18  # of row and tree, at once
TINY = np.float64(np.float32(1e-35))  # LightGBM reads numbers up to this size as 0
BASIC = {"column": np.int64, "split": np.float64, "left": np.int64, "right": np.int64, "kind": np.int64}


@dataclass
class Nodes:
    """All nodes of all trees in lists. column: -1 at a leaf   kind: the library's own bits   sets: codes by node"""

    column: list[Any] = field(default_factory=list)
    split: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)
    right: list[Any] = field(default_factory=list)
    kind: list[Any] = field(default_factory=list)
    value: list[Any] = field(default_factory=list)  # of leaves: K numbers
    roots: list[int] = field(default_factory=list)
    sets: dict[int, set[int]] = field(default_factory=dict)

    def add(self, column: int, split: float, left: int, right: int, kind: int, value: list[float]) -> None:
        for name, entry in zip((*BASIC, "value"), (column, split, left, right, kind, value), strict=True):
            getattr(self, name).append(entry)


@dataclass(frozen=True)
class Trees:
    """A file of trees: call `outputs` on rows. `finish` makes probabilities of sums; `goes_left` is the rule."""

    library: str
    width: int
    features: list[str] | None
    classes: list[str] | None
    dtype: torch.dtype
    nodes: Nodes
    table: dict[str, Array]
    start: Array  # (K,)
    goes_left: Callable[[Array, Array, Array], Array]  # (values, split, kind) of numeric nodes
    code_left: Callable[[float, set[int], int], bool]  # (value, codes, kind) of one node with codes
    finish: Callable[[Array], Array]

    @property
    def says(self) -> dict[str, Any]:
        """Entries of a job's [model] table that the file states."""
        return {"output": "probabilities", **({} if self.classes is None else {"classes": self.classes})}

    def outputs(self, points: Array) -> NDArray[np.float64]:
        """(n, F) -> (n, k)"""
        if points.shape[1] != self.width:
            raise Broken(f"the model takes {self.width} columns; the job names {points.shape[1]}")
        at_once = max(1, PAIRS // len(self.nodes.roots))
        parts = [self._outputs(points[i : i + at_once]) for i in range(0, len(points), at_once)]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])

    def _outputs(self, points: Array) -> Array:
        """Rows walk down all trees together; the leaves are added up tree by tree."""
        t, trees = self.table, len(self.nodes.roots)
        who, node = np.repeat(np.arange(len(points)), trees), np.tile(self.nodes.roots, len(points))
        for _ in range(DEEPEST):
            inner = np.flatnonzero(t["column"][node] >= 0)
            if not len(inner):
                break
            at = node[inner]
            values = points[who[inner], t["column"][at]]
            left = self.goes_left(values, t["split"][at], t["kind"][at])
            for i in np.flatnonzero(t["coded"][at]):
                left[i] = self.code_left(float(values[i]), self.nodes.sets[int(at[i])], int(t["kind"][at[i]]))
            node[inner] = np.where(left, t["left"][at], t["right"][at])
        else:
            raise Unreadable(f"a walk down its trees does not end within {DEEPEST} levels")
        leaves = t["value"][node.reshape(len(points), trees)]
        start = np.broadcast_to(self.start, (len(points), 1, len(self.start)))
        terms = np.concatenate([start, leaves], axis=1).astype(self.start.dtype)
        return self.finish(np.cumsum(terms, axis=1)[:, -1])


def read_trees(data: bytes, name: str) -> Trees:
    """The model in a file of trees. Raises Unreadable or Broken."""
    file = parse_trees(data, name)
    with reading(name):
        if file.library == "lightgbm":
            return _lightgbm(file.content)
        return _xgboost(file.content) if file.library == "xgboost" else _catboost(file.content)


def _made(library: str, nodes: Nodes, start: Array, **rest: Any) -> Trees:
    table: dict[str, Array] = {key: np.array(getattr(nodes, key), kind) for key, kind in BASIC.items()}
    table["coded"] = np.isin(np.arange(len(nodes.column)), list(nodes.sets))
    table["value"] = np.array(nodes.value, start.dtype).reshape(len(nodes.column), len(start))
    dtype = torch.float32 if start.dtype == np.float32 else torch.float64
    return Trees(library, dtype=dtype, nodes=nodes, table=table, start=start, **rest)


def _sums(number: str) -> int:
    """How many sums of leaves there are: each node has a list of so many."""
    if not 1 <= int(number) <= MOST_SUMS:
        raise Unreadable(f"has {int(number)} classes; wanted 1 to {MOST_SUMS}")
    return int(number)


def _sigmoid(z: Array) -> Array:
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(-z))
    return np.concatenate([1 - p, p], axis=1)


def _softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


# LightGBM


def _lightgbm(lines: list[str]) -> Trees:
    head, blocks = _texts(lines)
    if head["version"] not in ("v3", "v4"):
        raise Unreadable(f"its format {head['version']!r:.20} is not known")
    columns, (kind, *options) = _sums(head["num_tree_per_iteration"]), head["objective"].split()
    if len(blocks) != len(head["tree_sizes"].split()):
        raise Unreadable(f"holds {len(blocks)} trees, and its head speaks of another number")
    steep = float(dict(option.split(":") for option in options if ":" in option).get("sigmoid", 1))
    if (kind in ("binary", "cross_entropy", "xentropy")) != (columns == 1) or (columns > 1 and kind != "multiclass"):
        raise Unreadable(f"its objective {kind!r:.40} is not known")
    rounds = len(blocks) // columns if "average_output" in head else 1
    nodes = Nodes()
    for number, block in enumerate(blocks):
        _add_text(nodes, block, number % columns, columns)
    names = head["feature_names"].split(" ")
    unnamed = names == [f"Column_{i}" for i in range(len(names))]
    return _made(
        "LightGBM", nodes, np.zeros(columns), width=len(names), features=None if unnamed else names, classes=None,
        goes_left=_left_in_lightgbm, code_left=lambda x, codes, _: bool(np.isfinite(x)) and int(x) in codes,
        finish=lambda z: _sigmoid(steep * (z / rounds)) if columns == 1 else _softmax(z / rounds),
    )  # fmt: skip


def _texts(lines: list[str]) -> tuple[dict[str, str], list[dict[str, str]]]:
    if "end of trees" not in lines:
        raise Unreadable("it is truncated: 'end of trees' is missing")
    tables: list[dict[str, str]] = [{}]
    for line in lines[: lines.index("end of trees")]:
        if line.startswith("Tree="):
            tables.append({})
        key, _, text = line.partition("=")
        tables[-1][key] = text
    return tables[0], tables[1:]


def _add_text(nodes: Nodes, block: dict[str, str], output: int, columns: int) -> None:
    if block.get("is_linear", "0") != "0":
        raise Unreadable("has linear models in its leaves")
    first, inner = len(nodes.column), int(block["num_leaves"]) - 1
    nodes.roots.append(first)

    def of(key: str) -> list[float]:
        return [float(text) for text in block.get(key, "").split()]

    def place(child: float) -> int:
        return first + int(child if child >= 0 else inner + ~int(child))

    parts = (of(key) for key in ("split_feature", "threshold", "left_child", "right_child", "decision_type"))
    for column, split, left, right, kind in zip(*parts, strict=True) if inner else ():
        if int(kind) & 1:
            bounds, words = of("cat_boundaries"), of("cat_threshold")
            mine = words[int(bounds[int(split)]) : int(bounds[int(split) + 1])]
            nodes.sets[len(nodes.column)] = {
                32 * w + b for w, bits in enumerate(mine) for b in range(32) if int(bits) >> b & 1
            }
        nodes.add(int(column), split, place(left), place(right), int(kind), [0.0] * columns)
    for leaf in of("leaf_value"):
        nodes.add(-1, 0.0, 0, 0, 0, [leaf if k == output else 0.0 for k in range(columns)])
    if len(nodes.column) != first + 2 * inner + 1:
        raise Unreadable("a tree has another number of nodes than it says")


def _left_in_lightgbm(values: Array, split: Array, kind: Array) -> Array:
    missing, nan = kind >> 2 & 3, np.isnan(values)
    read = np.where((nan & (missing != 2)) | (np.abs(values) <= TINY), 0.0, values)
    absent = np.where(missing == 1, read == 0, (missing == 2) & nan)
    return np.where(absent, kind & 2 > 0, read <= split)


# XGBoost


def _xgboost(content: dict[str, Any]) -> Trees:
    if content["version"][0] not in (1, 2, 3):
        raise Unreadable(f"its format {content['version']!r:.20} is not known")
    learner = content["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    if objective not in ("binary:logistic", "multi:softprob", "multi:softmax"):
        raise Unreadable(f"its objective {objective!r:.40} is not known")
    if booster["name"] not in ("gbtree", "dart"):
        raise Unreadable(f"its booster {booster['name']!r:.40} is not known")
    model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    columns = 1 if objective == "binary:logistic" else _sums(learner["learner_model_param"]["num_class"])
    nodes, used = Nodes(), len(model["trees"])
    said = learner.get("attributes", {})
    if "scikit_learn" in said and "best_iteration" in said:  # training was stopped early
        used = int(model["iteration_indptr"][int(said["best_iteration"]) + 1])
    for number, tree in enumerate(model["trees"][:used]):
        weight = np.float32(booster["weight_drop"][number] if booster["name"] == "dart" else 1)
        _add_xgboost(nodes, tree, int(model["tree_info"][number]), columns, weight)
    start = np.array([float(text) for text in learner["learner_model_param"]["base_score"].strip("[]").split(",")])
    start = start.astype(np.float32)
    if columns == 1:
        start = -np.log((np.float32(1) / start - np.float32(1)).astype(np.float64)).astype(np.float32)
    names = list(learner.get("feature_names", []))
    return _made(
        "XGBoost", nodes, np.broadcast_to(start, columns), width=int(learner["learner_model_param"]["num_feature"]),
        features=names or None, classes=None, goes_left=_left_in_xgboost, code_left=_other_in_xgboost,
        finish=_sigmoid if columns == 1 else _softmax,
    )  # fmt: skip


def _add_xgboost(nodes: Nodes, tree: dict[str, Any], output: int, columns: int, weight: np.float32) -> None:
    first = len(nodes.column)
    nodes.roots.append(first)
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise Unreadable("has vectors as leaves")
    lists = ("left_children", "right_children", "split_indices", "split_conditions", "default_left")
    coded = tree.get("split_type", [0] * len(tree["left_children"]))
    for left, right, column, number, default, is_coded in zip(*(tree[key] for key in lists), coded, strict=True):
        if left == -1:
            leaf = float(weight * np.float32(number))
            nodes.add(-1, 0.0, 0, 0, 0, [leaf if k == output else 0.0 for k in range(columns)])
        else:
            if is_coded:
                nodes.sets[len(nodes.column)] = set()
            if min(left, right) < 0:
                raise Unreadable("a node has no place")
            kind = 2 * int(default) + int(is_coded)
            nodes.add(int(column), float(number), first + int(left), first + int(right), kind, [0.0] * columns)
    for node, begin, size in _segments(tree):
        nodes.sets[first + node] = {int(code) for code in tree["categories"][begin : begin + size]}


def _segments(tree: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    keys = ("categories_nodes", "categories_segments", "categories_sizes")
    return (
        (int(node), int(begin), int(size)) for node, begin, size in zip(*(tree.get(k, ()) for k in keys), strict=True)
    )


def _left_in_xgboost(values: Array, split: Array, kind: Array) -> Array:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return np.where(np.isnan(single), kind & 2 > 0, single < split.astype(np.float32))


def _other_in_xgboost(value: float, codes: set[int], kind: int) -> bool:
    """Listed codes go right, all others left."""
    if np.isnan(value):
        return kind & 2 > 0
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return not (single >= 0 and np.isfinite(single) and int(single) in codes)


# CatBoost


def _catboost(content: dict[str, Any]) -> Trees:
    info, columns = content["model_info"], content["features_info"]
    if any(columns.get(kind) for kind in ("categorical_features", "text_features", "embedding_features")):
        raise Unreadable("has columns that are no numbers")
    loss = info["params"]["loss_function"]["type"]
    if loss not in ("Logloss", "CrossEntropy", "MultiClass"):
        raise Unreadable(f"its loss {loss!r:.40} is not known")
    scale, bias = content["scale_and_bias"]
    nodes, numbers = Nodes(), columns["float_features"]
    high = [column.get("nan_value_treatment") == "AsTrue" for column in numbers]
    for tree in content.get("oblivious_trees", []):
        _add_oblivious(nodes, tree, high, scale, len(bias))
    for tree in content.get("trees", []) if "oblivious_trees" not in content else []:
        _add_nested(nodes, tree, high, scale, len(bias))
    names = [column.get("feature_id", "") for column in numbers]
    unnamed = names in ([""] * len(names), [str(i) for i in range(len(names))])
    classes = info.get("class_params", {}).get("class_names")
    return _made(
        "CatBoost", nodes, np.array(bias, np.float64), width=len(numbers), features=None if unnamed else names,
        classes=[str(label) for label in classes] if classes else None, goes_left=_left_in_catboost,
        code_left=lambda *_: False, finish=_sigmoid if len(bias) == 1 else _softmax,
    )  # fmt: skip


def _split_of(split: dict[str, Any], high: list[bool]) -> tuple[int, float, int]:
    """column, border, and 1 where NaN counts as infinity"""
    if split["split_type"] != "FloatFeature" or split["float_feature_index"] < 0:
        raise Unreadable(f"has a split of {split!r:.80}")
    column = int(split["float_feature_index"])
    return column, float(np.float32(split["border"])), int(high[column])


def _add_oblivious(nodes: Nodes, tree: dict[str, Any], high: list[bool], scale: float, columns: int) -> None:
    """Split i sets bit i of the leaf's number: the tree is built from its leaves upwards."""
    splits, leaves = [_split_of(split, high) for split in tree["splits"]], tree["leaf_values"]
    if len(splits) > 16 or len(leaves) != columns << len(splits):
        raise Unreadable("a tree has another number of leaves than splits tell")
    level = []
    for number in range(1 << len(splits)):
        level.append(len(nodes.column))
        nodes.add(-1, 0.0, 0, 0, 0, [scale * leaf for leaf in leaves[columns * number : columns * (number + 1)]])
    for column, border, kind in splits:
        above = []
        for left, right in zip(level[::2], level[1::2], strict=True):
            above.append(len(nodes.column))
            nodes.add(column, border, left, right, kind, [0.0] * columns)
        level = above
    nodes.roots.append(level[0])


def _add_nested(nodes: Nodes, tree: dict[str, Any], high: list[bool], scale: float, columns: int) -> None:
    nodes.roots.append(len(nodes.column))
    waiting = [(tree, -1, "left")]
    while waiting:
        table, parent, side = waiting.pop()
        if parent >= 0:
            getattr(nodes, side)[parent] = len(nodes.column)
        if "split" in table:
            here = len(nodes.column)
            waiting += [(table["right"], here, "right"), (table["left"], here, "left")]
            column, border, kind = _split_of(table["split"], high)
            nodes.add(column, border, 0, 0, kind, [0.0] * columns)
        else:
            value = table["value"] if isinstance(table["value"], list) else [table["value"]]
            nodes.add(-1, 0.0, 0, 0, 0, [scale * leaf for leaf in value])


def _left_in_catboost(values: Array, split: Array, kind: Array) -> Array:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return np.where(np.isnan(single), kind == 0, single <= split.astype(np.float32))
