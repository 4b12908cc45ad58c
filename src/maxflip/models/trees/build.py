"""Single trees as the readers find them, and their union as a Forest, after checks of every number and node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxflip._util.messages import counted, shown
from maxflip._util.types import Floats, Mask, Rows
from maxflip.errors import ModelError
from maxflip.models.trees.forest import LEAF, NUMERIC, Forest, Ints

DEEPEST = 4096  # levels; a chain of a million nodes is no tree that anyone trains
MOST_NODES = 1 << 27  # of all trees, times the number of raw scores
MOST_CLASSES = 10_000


@dataclass(frozen=True, eq=False)
class Categories:
    """Of one node: the codes that go left, or those that go right if all others go left."""

    codes: Floats
    other_left: bool = False


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree, whose first node is its root. Nodes are numbered from 0; at leaves feature is -1.

    value (n, K), or (n,) for the column `output`   missing_left (n,)   categories: by node
    """

    feature: Rows
    threshold: Floats
    left: Rows
    right: Rows
    missing_left: Mask
    value: Floats
    output: int
    categories: Mapping[int, Categories] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Read:
    """What a reader found: the forest, and the names of columns and classes where the library keeps them."""

    library: str
    forest: Forest
    features: tuple[str, ...] | None
    classes: tuple[str, ...] | None


def check_classes(number: int) -> int:
    """The number of raw scores, unless it is damaged: sums of so many are made before any tree is read."""
    if not 1 <= number <= MOST_CLASSES:
        raise ModelError(f"it has {number} classes; from 1 to {MOST_CLASSES} are read")
    return number


def check_codes(categories: Iterable[Any]) -> None:
    """Refuse categories that were numbers other than their places: the model knows places alone, and a cohort would
    hold the numbers. Texts must be coded in front of the model anyway.

    categories: of each column, the values that it had in a data frame
    """
    for values in categories:
        is_numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        if is_numbers and list(values) != list(range(len(values))):
            raise ModelError(
                f"a column of its data frame had the categories {shown(list(values))}, and the model tells them by "
                "their places 0, 1, 2, ... Train it on these (frame[column].cat.codes)"
            )


def whole(numbers: ArrayLike, what: str, size: int | None = None) -> Rows:
    """Whole numbers as an array (size,); ModelError otherwise."""
    found = reals(numbers, what, size)
    if not (found == np.floor(found)).all() or (np.abs(found) > 2**32).any():
        raise ModelError(f"{what}: wanted whole numbers")
    return found.astype(np.int64)


def reals(numbers: Any, what: str, size: int | None = None) -> Floats:
    """Numbers as an array (size,); ModelError otherwise."""
    bad = f"{what}: wanted {'' if size is None else f'{size} '}numbers in one list"
    try:
        found = np.asarray(numbers)
    except ValueError as error:
        raise ModelError(bad) from error
    if found.ndim != 1 or size not in (None, len(found)) or (found.size and found.dtype.kind not in "iufb"):
        raise ModelError(bad)
    return found.astype(np.float64)


def forest_of(trees: Iterable[Tree], *, base: ArrayLike, width: int, **how: Any) -> Forest:
    """All trees as one Forest; `how` are its further fields. ModelError names the first tree and node that is wrong."""
    base = np.asarray(base, np.float64).reshape(-1)
    if not np.isfinite(base).all():
        raise ModelError("the model's base score is not a finite number")
    trees = [_checked(tree, number, width, len(base)) for number, tree in enumerate(trees)]
    if not trees:
        raise ModelError("the model has no trees")
    begins = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    if begins[-1] * len(base) > MOST_NODES:
        raise ModelError(f"its {begins[-1]} nodes with {len(base)} numbers each are too many; read are {MOST_NODES}")
    starts = begins[:-1].astype(np.int32)
    is_leaf = np.concatenate([tree.feature < 0 for tree in trees])
    own = np.arange(begins[-1])

    def nodes(of: Sequence[Rows]) -> Ints:
        there = np.concatenate([part + begin for part, begin in zip(of, begins, strict=False)])
        return np.where(is_leaf, own, there).astype(np.int32)

    value = np.zeros((begins[-1], len(base)))
    for tree, begin in zip(trees, begins, strict=False):
        columns = slice(None) if tree.output < 0 else slice(tree.output, tree.output + 1)
        value[begin : begin + len(tree.feature), columns] = tree.value.reshape(len(tree.feature), -1)
    value[~is_leaf] = 0
    return Forest(
        feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        missing_left=np.concatenate([tree.missing_left for tree in trees]),
        left=nodes([tree.left for tree in trees]),
        right=nodes([tree.right for tree in trees]),
        roots=starts,
        value=value,
        output=np.array([tree.output for tree in trees], np.int32),
        base=base,
        width=width,
        **_categories(trees, begins),
        **how,
    )


def _categories(trees: Sequence[Tree], begins: NDArray[np.int64]) -> dict[str, Any]:
    begin, end = np.full(begins[-1], NUMERIC, np.int32), np.zeros(begins[-1], np.int32)
    other_left, cats, filled = np.zeros(begins[-1], np.bool_), [np.empty(0)], 0
    for tree, start in zip(trees, begins, strict=False):
        for node, categories in tree.categories.items():
            codes = np.unique(categories.codes)
            begin[start + node], end[start + node] = filled, filled + len(codes)
            other_left[start + node] = categories.other_left
            cats.append(codes)
            filled += len(codes)
    return {"cat_begin": begin, "cat_end": end, "cats": np.concatenate(cats), "cat_other_left": other_left}


def _checked(tree: Tree, number: int, width: int, columns: int) -> Tree:
    """The tree without nodes that no walk reaches; ModelError if it is none."""
    size, where = len(tree.feature), f"tree {number}"
    inner, leaf = tree.feature >= 0, tree.feature == LEAF
    if not size or not (inner | leaf).all() or tree.feature.max() >= width:
        raise ModelError(f"{where}: a node tests a column that is not among the model's {counted(width, 'column')}")
    if not -1 <= tree.output < columns:
        raise ModelError(f"{where} adds to the class {tree.output}; the model has {columns}")
    reached = _reached(tree, where, inner)
    if not reached.all():
        return _checked(_only(tree, reached), number, width, columns)
    numeric = inner.copy()
    numeric[list(tree.categories)] = False
    if len(bad := np.flatnonzero(numeric & np.isnan(tree.threshold))):
        raise ModelError(f"{where}: the threshold of node {bad[0]} is NaN")
    values = tree.value.reshape(size, -1)
    if len(bad := np.flatnonzero(leaf & ~np.isfinite(values).all(axis=1))):
        raise ModelError(f"{where}: the leaf at node {bad[0]} holds {values[bad[0]].tolist()}, no finite number")
    return tree


def _only(tree: Tree, kept: Mask) -> Tree:
    """The tree with these nodes alone, numbered anew."""
    new = np.cumsum(kept) - 1
    leaf = tree.feature[kept] < 0
    return Tree(
        feature=tree.feature[kept],
        threshold=tree.threshold[kept],
        left=np.where(leaf, 0, new[np.where(leaf, 0, tree.left[kept])]),
        right=np.where(leaf, 0, new[np.where(leaf, 0, tree.right[kept])]),
        missing_left=tree.missing_left[kept],
        value=tree.value[kept],
        output=tree.output,
        categories={int(new[node]): found for node, found in tree.categories.items() if kept[node]},
    )


def _reached(tree: Tree, where: str, inner: Mask) -> Mask:
    """The nodes below the root. Each must be the child of one node: then there are no circles, and walks end."""
    seen = np.zeros(len(tree.feature), np.bool_)
    level, depth = np.zeros(1, np.int64), 0
    while len(level):
        seen[level] = True
        above = level[inner[level]]
        level = np.concatenate([tree.left[above], tree.right[above]])
        outside = (level < 0) | (level >= len(seen))
        if outside.any() or seen[level].any() or len(np.unique(level)) < len(level) or depth > DEEPEST:
            raise ModelError(f"{where} is no tree: a node has no place, two parents, or more than {DEEPEST} levels")
        depth += 1
    return seen
