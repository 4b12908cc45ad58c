"""LightGBM: the text of a booster, which its objects give too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maxflip._util.messages import shown
from maxflip._util.types import Floats, Mask
from maxflip.errors import ModelError
from maxflip.models.trees.build import Categories, Read, Tree, check_classes, check_codes, forest_of, reals, whole
from maxflip.models.trees.forest import LEAF, Link

VERSIONS = ("v3", "v4")
IS_CATEGORY, DEFAULT_LEFT = 1, 2  # bits of decision_type
ZERO_IS_MISSING, NAN_IS_MISSING = 1, 2  # its bits 2 and 3; 0: nothing is
ZERO = float(np.float32(1e-35))  # numbers at most this large are read as 0
SIGMOIDS = {"binary", "cross_entropy", "xentropy"}
SOFTMAX = "multiclass"
FRAME = "pandas_categorical:"


def from_object(model: Any) -> Read:
    """A Booster, or an LGBMClassifier with names of its classes."""
    booster = getattr(model, "booster_", model)
    found = from_text(booster.model_to_string().split("\n"))
    classes = getattr(model, "classes_", None)
    return Read(
        found.library, found.forest, found.features, None if classes is None else tuple(str(name) for name in classes)
    )


def from_text(lines: Sequence[str]) -> Read:
    """The lines of booster.save_model(...)."""
    header, blocks = _blocks(lines)
    check_codes(_categories_of_frame(lines))
    if header.get("version") not in VERSIONS:
        raise ModelError(f"LightGBM's format {shown(header.get('version'))} is not known; known are {VERSIONS}")
    columns = check_classes(_number(header, "num_tree_per_iteration"))
    link, divisor = _link(header.get("objective", ""), columns)
    width = _number(header, "max_feature_idx") + 1
    names = tuple(header.get("feature_names", "").split(" "))
    if len(names) != width:
        raise ModelError(f"it names {len(names)} columns and has {width}")
    trees = [_tree(block, number, number % columns) for number, block in enumerate(blocks)]
    if len(trees) != len(header.get("tree_sizes", "").split()):
        raise ModelError(f"it holds {len(trees)} trees, and its head speaks of another number")
    if "average_output" in header:
        divisor *= len(trees) // columns
    forest = forest_of(
        trees,
        base=np.zeros(columns),
        width=width,
        link=link,
        divisor=divisor,
        precision="float64",
        codes="truncated",
    )
    unnamed = names == tuple(f"Column_{i}" for i in range(width))
    return Read("LightGBM", forest, None if unnamed else names, None)


def _blocks(lines: Sequence[str]) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The entries before the first tree, and those of each tree."""
    blocks: list[dict[str, str]] = [{}]
    for line in lines[1:]:
        key, _, entry = line.rstrip("\r").partition("=")
        if key == "end of trees":
            return blocks[0], blocks[1:]
        if key == "Tree":
            blocks.append({})
        elif key:
            if key in blocks[-1]:
                raise ModelError(f"{shown(key)} occurs twice")
            blocks[-1][key] = entry
    raise ModelError("it is truncated: 'end of trees' is missing")


def _categories_of_frame(lines: Sequence[str]) -> list[list[Any]]:
    """Of each column of categories of a pandas frame, its values; the last line says them."""
    line = next((line for line in reversed(lines) if line.startswith(FRAME)), FRAME)
    try:
        found = json.loads(line.removeprefix(FRAME) or "null") or []
    except ValueError as error:
        raise ModelError(f"{FRAME} {error}") from error
    if not isinstance(found, list) or not all(isinstance(values, list) for values in found):
        raise ModelError(f"{FRAME} wanted lists, got {shown(found)}")
    return found


def _link(objective: str, columns: int) -> tuple[Link, float]:
    """How raw scores become probabilities, and by what they are divided before."""
    kind, _, rest = objective.partition(" ")
    options = dict(part.partition(":")[::2] for part in rest.split())
    if kind in SIGMOIDS and columns == 1:
        return "sigmoid", 1 / float(options.get("sigmoid", "1"))
    if kind == SOFTMAX and columns > 1:
        return "softmax", 1.0
    why = "gives probabilities that do not sum to 1" if kind == "multiclassova" else "is none of a classifier"
    raise ModelError(f"its objective {shown(objective or 'of your own')} {why}; known are binary and multiclass")


def _tree(block: Mapping[str, str], number: int, output: int) -> Tree:
    where = f"tree {number}"
    if block.get("is_linear", "0") != "0":
        raise ModelError(f"{where} has linear models in its leaves, which are not read. Train with linear_tree=False")
    leaves = _number(block, "num_leaves")
    inner = leaves - 1
    value = reals(_split(block, "leaf_value"), f"{where}: leaf_value", leaves)
    if not inner:
        none, nowhere = np.zeros(1), np.zeros(1, np.int64)
        return Tree(nowhere + LEAF, none, nowhere, nowhere, none > 0, value, output)

    def integers(key: str) -> Any:
        return whole(_split(block, key), f"{where}: {key}", inner)

    def children(key: str) -> Any:
        """Inner nodes first, then leaves: ~leaf stands for them in the text."""
        child = integers(key)
        return np.concatenate([np.where(child < 0, inner + ~child, child), np.zeros(leaves, np.int64)])

    kind = integers("decision_type")
    threshold = reals(_split(block, "threshold"), f"{where}: threshold", inner)
    column = integers("split_feature")
    exact, missing_left = _rule(kind, threshold, where)
    pad = np.zeros(leaves)
    return Tree(
        feature=np.concatenate([column, np.full(leaves, LEAF)]),
        threshold=np.concatenate([exact, pad]),
        left=children("left_child"),
        right=children("right_child"),
        missing_left=np.concatenate([missing_left, pad > 0]),
        value=np.concatenate([np.zeros(inner), value]),
        output=output,
        categories=dict(_categories(block, kind, threshold, where)),
    )


def _rule(kind: Any, threshold: Floats, where: str) -> tuple[Floats, Mask]:
    """Thresholds, and where NaN goes, of numeric nodes.

    Numbers next to 0 are read as 0. NaN is read as 0 unless it counts as missing; where 0 counts as missing, it goes
    the default way, which is then that of its threshold too or cannot be told by one threshold.
    """
    numeric, default, missing = (kind & IS_CATEGORY) == 0, (kind & DEFAULT_LEFT) > 0, (kind >> 2) & 3
    if (missing > NAN_IS_MISSING).any():
        raise ModelError(f"{where}: decision_type {kind.max()} is not known")
    by_default = missing == ZERO_IS_MISSING
    zero_left = np.where(by_default, default, threshold >= 0)
    at_zero = np.abs(threshold) <= ZERO
    if (numeric & by_default & ~at_zero & (default != (threshold >= 0))).any():
        raise ModelError(
            f"{where}: 0 counts as missing and goes another way than the numbers around it. Train it without "
            "zero_as_missing"
        )
    next_to_zero = np.where(zero_left, ZERO, np.nextafter(-ZERO, -np.inf))
    exact = np.where(numeric, np.where(at_zero, next_to_zero, threshold), 0.0)
    return exact, numeric & np.where(missing == NAN_IS_MISSING, default, zero_left)


def _categories(block: Mapping[str, str], kind: Any, threshold: Any, where: str) -> Iterator[tuple[int, Categories]]:
    """The codes that go left, from sets of bits: entry i of cat_boundaries begins the i-th set."""
    nodes = np.flatnonzero(kind & IS_CATEGORY)
    if not len(nodes):
        return
    bounds = whole(_split(block, "cat_boundaries"), f"{where}: cat_boundaries")
    words = whole(_split(block, "cat_threshold"), f"{where}: cat_threshold")
    for node in nodes:
        place = int(threshold[node]) if 0 <= threshold[node] < len(bounds) - 1 else -1
        begin, end = (int(bounds[place]), int(bounds[place + 1])) if place >= 0 else (-1, -1)
        if not 0 <= begin <= end <= len(words) or (words[begin:end] < 0).any():
            raise ModelError(f"{where}: the categories of node {node} are damaged")
        bits = (words[begin:end, None] >> np.arange(32)) & 1
        yield int(node), Categories(np.flatnonzero(bits).astype(np.float64))


def _number(entries: Mapping[str, str], key: str) -> int:
    number = int(whole(_split(entries, key), key, 1)[0])
    if number < 0 or (number == 0 and key != "max_feature_idx"):
        raise ModelError(f"{key} = {number} makes no sense")
    return number


def _split(entries: Mapping[str, str], key: str) -> list[float]:
    if key not in entries:
        raise ModelError(f"{key} is missing")
    try:
        return [float(number) for number in entries[key].split()]
    except ValueError as error:
        raise ModelError(f"{key}: {error}") from error
