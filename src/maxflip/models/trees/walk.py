"""Walks rows down the trees: level by level with numpy, or compiled if numba is installed. Both give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxflip._util.parallel import filled
from maxflip._util.types import Floats, Mask

if TYPE_CHECKING:
    from maxflip.models.trees.forest import Forest

AT_ONCE = 1 << 18  # pairs of row and tree per block: what numpy holds at once
CODES = {"exact": 0, "floor": 1, "truncated": 2}


def leaves(forest: Forest, x: Floats) -> NDArray[np.int32]:
    """(n, F) -> (n, T) numbers of leaves"""
    at = np.empty((len(x), len(forest.roots)), np.int32)
    rows = max(1, AT_ONCE // len(forest.roots))
    for begin in range(0, len(x), rows):
        at[begin : begin + rows] = _leaves(forest, x[begin : begin + rows])
    return at


def leaf_sums(forest: Forest, x: Floats) -> NDArray[Any]:
    """(n, F) -> (n, K): base and leaf values added up tree by tree, in the forest's precision."""
    if _has_numba():
        return compiled_sums(forest, x)
    return numpy_sums(forest, x)


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None


def numpy_sums(forest: Forest, x: Floats) -> NDArray[Any]:
    """leaf_sums without numba: np.add.accumulate adds in order, and so rounds as a loop does."""
    sums = np.empty((len(x), len(forest.base)), forest.precision)
    rows = max(1, AT_ONCE // len(forest.roots))
    for begin in range(0, len(x), rows):
        at = _leaves(forest, x[begin : begin + rows])
        for k, base in enumerate(forest.base):
            mine = at[:, (forest.output == k) | (forest.output < 0)]
            terms = np.empty((len(at), mine.shape[1] + 1), forest.precision)
            terms[:, 0], terms[:, 1:] = base, forest.value[mine, k]
            sums[begin : begin + rows, k] = np.add.accumulate(terms, axis=1, dtype=terms.dtype)[:, -1]
    return sums


def _leaves(forest: Forest, x: Floats) -> NDArray[np.int32]:
    """(n, F) -> (n, T): all trees of all rows go down one level at a time."""
    trees = len(forest.roots)
    row = np.repeat(np.arange(len(x)), trees)
    at = np.tile(forest.roots, len(x))
    going = np.flatnonzero(forest.feature[at] >= 0)
    while len(going):
        node = at[going]
        tested = x[row[going], forest.feature[node]]
        node = np.where(_goes_left(forest, node, tested), forest.left[node], forest.right[node])
        at[going] = node
        going = going[forest.feature[node] >= 0]
    return at.reshape(len(x), trees)


def _goes_left(forest: Forest, node: NDArray[np.int32], x: Floats) -> Mask:
    """Whether the value x goes left at the node, for each pair.   (m,), (m,) -> (m,)"""
    lefts = np.where(np.isnan(x), forest.missing_left[node], x <= forest.threshold[node])
    if forest.has_categories:
        known = ~np.isnan(x)
        for one in np.unique(node[forest.cat_begin[node] >= 0]):
            here = (node == one) & known
            part = forest.cats[forest.cat_begin[one] : forest.cat_end[one]]
            lefts[here] = np.isin(_codes(x[here], forest.codes), part) != forest.cat_other_left[one]
    return lefts


def _codes(x: Floats, rule: str) -> Floats:
    """The categories that values stand for; see Forest.codes."""
    if rule == "floor":
        return np.floor(x.astype(np.float32)).astype(np.float64)
    return np.trunc(x) if rule == "truncated" else x


def compiled_sums(forest: Forest, x: Floats) -> NDArray[Any]:
    """leaf_sums compiled; parts of the rows run in several threads where the context has them (_util/parallel)."""
    rows, kernel = np.ascontiguousarray(x), _kernel(forest.has_categories)
    where = (
        forest.packed,
        forest.roots,
        (forest.cats, forest.cat_other_left),
        CODES[forest.codes],
        forest.value,
        forest.output,
    )

    def sums(part: slice) -> NDArray[Any]:
        found = np.empty((len(rows[part]), len(forest.base)), forest.precision)
        found[:] = forest.base
        kernel(rows[part], *where, found)
        return found

    return filled(sums, (len(rows), len(forest.base)), forest.precision)


def packed(forest: Forest) -> NDArray[Any]:
    """(N,): all that a step needs of a node beside each other, as it is in one line of the cache. A leaf leads to
    itself."""
    nodes = np.zeros(len(forest.feature), NODE)
    nodes["threshold"], nodes["column"] = forest.threshold, np.maximum(forest.feature, 0)
    nodes["left"], nodes["right"] = forest.left, forest.right
    nodes["cat_begin"], nodes["cat_end"] = forest.cat_begin, forest.cat_end
    nodes["missing_left"] = forest.missing_left
    return nodes


@cache
def _kernel(has_categories: bool) -> Callable[..., None]:
    """The compiled loop. Eight rows go down a tree side by side, so that the processor need not wait for each step of
    one: twice as quick as one by one. Asking for categories takes the loop as much time as all else, so it is left out
    where there are none. A block of rows meets all trees before the next block, out of the cache."""
    import numba

    listed = numba.njit(nogil=True)(_listed)

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def add(x: Any, nodes: Any, roots: Any, sets: Any, codes: Any, value: Any, output: Any, sums: Any) -> None:
        cats, other_left = sets
        at = np.empty(ABREAST, np.int32)
        for block in range(0, len(x), BLOCK):
            for tree in range(len(roots)):
                for begin in range(block, min(block + BLOCK, len(x)), ABREAST):
                    end = min(begin + ABREAST, len(x))
                    at[:] = roots[tree]
                    moved = True
                    while moved:
                        moved = False
                        for row in range(begin, end):
                            here = at[row - begin]
                            node = nodes[here]
                            tested = x[row, node.column]
                            is_missing = tested != tested  # noqa: PLR0124
                            lefts = (tested <= node.threshold) | (is_missing & (node.missing_left != 0))
                            if has_categories and node.cat_begin >= 0 and not is_missing:
                                found = listed(cats, node.cat_begin, node.cat_end, tested, codes)
                                lefts = found != other_left[here]
                            there = node.left if lefts else node.right
                            moved |= there != here
                            at[row - begin] = there
                    for row in range(begin, end):
                        leaf = at[row - begin]
                        if output[tree] >= 0:
                            sums[row, output[tree]] += value[leaf, output[tree]]
                        else:
                            for k in range(value.shape[1]):
                                sums[row, k] += value[leaf, k]

    return add  # type: ignore[no-any-return]


ABREAST, BLOCK = 8, 1024  # rows; of 8, 16 and 64 abreast, 8 is the quickest for trees of unlike depth
NODE = np.dtype(  # 32 bytes, so that no node lies across two lines of the cache
    [("threshold", np.float64)]
    + [(name, np.int32) for name in ("column", "left", "right", "missing_left", "cat_begin", "cat_end")]
)


def _listed(cats: Floats, begin: int, end: int, x: float, codes: int) -> bool:
    """Whether the category of x stands in cats[begin:end]. Compiled by numba."""
    code = x
    if codes == 1:
        code = np.floor(np.float64(np.float32(x)))
    elif codes == 2:
        code = np.trunc(x)
    place = begin + np.searchsorted(cats[begin:end], code)
    return bool(place < end and cats[place] == code)
