"""Walks rows down the trees: level by level with numpy, or compiled if numba is installed. Both give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
    if find_spec("numba") is not None:
        return compiled_sums(forest, x)
    return numpy_sums(forest, x)


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
    for j in np.flatnonzero((forest.cat_begin[node] >= 0) & ~np.isnan(x)):
        part = forest.cats[forest.cat_begin[node[j]] : forest.cat_end[node[j]]]
        lefts[j] = bool(code_of(x[j], forest.codes) in part) != forest.cat_other_left[node[j]]
    return lefts


def code_of(x: float, codes: str) -> float:
    """The category that a value stands for; see Forest.codes."""
    if codes == "floor":
        return float(np.floor(np.float32(x)))
    return float(np.trunc(x)) if codes == "truncated" else float(x)


def compiled_sums(forest: Forest, x: Floats) -> NDArray[Any]:
    sums = np.empty((len(x), len(forest.base)), forest.precision)
    sums[:] = forest.base
    f = forest
    nodes = (f.feature, f.threshold, f.missing_left, f.left, f.right)
    categories = (f.cat_begin, f.cat_end, f.cats, f.cat_other_left, CODES[f.codes])
    _kernel()(np.ascontiguousarray(x), nodes, categories, f.roots, f.value, f.output, sums)
    return sums


@cache
def _kernel() -> Callable[..., None]:
    """The compiled loop over blocks of rows, trees and rows; a block stays in the cache while the trees go by."""
    import numba

    listed = numba.njit(nogil=True)(_listed)

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def add(x: Any, nodes: Any, categories: Any, roots: Any, value: Any, output: Any, sums: Any) -> None:
        feature, threshold, missing_left, left, right = nodes
        cat_begin, cat_end, cats, cat_other_left, codes = categories
        for begin in range(0, len(x), BLOCK):
            end = min(begin + BLOCK, len(x))
            for tree in range(len(roots)):
                for row in range(begin, end):
                    node = roots[tree]
                    while feature[node] >= 0:
                        tested = x[row, feature[node]]
                        if np.isnan(tested):
                            lefts = missing_left[node]
                        elif cat_begin[node] < 0:
                            lefts = tested <= threshold[node]
                        else:
                            found = listed(cats, cat_begin[node], cat_end[node], tested, codes)
                            lefts = found != cat_other_left[node]
                        node = left[node] if lefts else right[node]
                    if output[tree] >= 0:
                        sums[row, output[tree]] += value[node, output[tree]]
                    else:
                        for k in range(value.shape[1]):
                            sums[row, k] += value[node, k]

    return add  # type: ignore[no-any-return]


BLOCK = 1024  # rows: of 16, 64, 256 and 1024 the quickest


def _listed(cats: Floats, begin: int, end: int, x: float, codes: int) -> bool:
    """Whether the category of x stands in cats[begin:end]. Compiled by numba."""
    code = x
    if codes == 1:
        code = np.floor(np.float64(np.float32(x)))
    elif codes == 2:
        code = np.trunc(x)
    place = begin + np.searchsorted(cats[begin:end], code)
    return bool(place < end and cats[place] == code)
