"""Forest: all trees of an ensemble as arrays, the same for every library, and its evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maxflip._util.types import Floats, Mask
from maxflip.models.trees.walk import leaf_sums, leaves, packed

Ints = NDArray[np.int32]
Link = Literal["sigmoid", "softmax", "mean"]
Codes = Literal["exact", "floor", "truncated"]

LEAF = -1  # in `feature`
NUMERIC = -1  # in `cat_begin`
EVERY_COLUMN = -1  # in `output`


@dataclass(frozen=True, eq=False)
class Forest:
    """The T trees of an ensemble over F columns as N nodes, and how K raw scores become class probabilities.

        raw_k(x) = base_k + sum of value[leaf of x in tree t, k] over the trees t that add to column k

    Each node but a root has one parent: nothing is shared, so a subtree is a box of inputs. A sample goes left at a
    numeric node if and only if x <= threshold, compared in float64 with the stored value x. Readers convert the rule of
    each library exactly: `x < t` becomes the largest double below t, and a library that casts x to float32 first gets
    the largest double whose cast goes left. So x is never cast.

    One representation of leaves serves all: `value (N, K)`, zeros at inner nodes. A tree of a boosted multi-class
    model has one column that is not zero, output[t]; the trees of a random forest fill all columns (output[t] = -1).

    Attributes:
        feature: (N,) the column tested; -1 at a leaf.
        threshold: (N,) 0 at leaves and categorical nodes.
        missing_left: (N,) where NaN goes.
        left, right: (N,) numbers of nodes; at a leaf its own.
        roots: (T,) numbers of nodes.
        cat_begin, cat_end: (N,) the part of `cats` that belongs to a categorical node; cat_begin is -1 at others.
        cats: (C,) codes, ascending in each part. A listed code goes left unless cat_other_left, and every other code
            the other way.
        cat_other_left: (N,) where codes go that are not listed.
        value: (N, K) what a leaf adds to the raw scores.
        output: (T,) the column that the tree adds to; -1: all.
        base: (K,) where sums begin.
        link: "sigmoid": K = 1, p = 1 / (1 + exp(-z)) is the probability of the second of two classes; "softmax" of
            the K scores; "mean": the K scores are the probabilities. z = raw / divisor.
        divisor: number of trees where leaves are averaged, otherwise usually 1.
        precision: of sums and link. Sums run from `base` tree by tree in this precision, as in the library.
        width: F.
        takes_missing: False where the library refuses NaN.
        largest: the largest |x| that the library accepts; infinity if any.
        codes: how a category is read from x: as it is ("exact"); rounded down after a cast to float32 ("floor"); or
            rounded towards 0 ("truncated"). Whole codes mean the same in all three.
    """

    feature: Ints
    threshold: Floats
    missing_left: Mask
    left: Ints
    right: Ints
    roots: Ints
    cat_begin: Ints
    cat_end: Ints
    cats: Floats
    cat_other_left: Mask
    value: Floats
    output: Ints
    base: Floats
    link: Link
    divisor: float
    precision: Literal["float64", "float32"]
    width: int
    takes_missing: bool = True
    largest: float = np.inf
    codes: Codes = "exact"

    @property
    def n_classes(self) -> int:
        return 2 if self.link == "sigmoid" else len(self.base)

    @cached_property
    def has_categories(self) -> bool:
        """Whether any node tells categories apart."""
        return bool((self.cat_begin >= 0).any())

    @cached_property
    def packed(self) -> NDArray[Any]:
        """The nodes as the compiled walk reads them."""
        return packed(self)

    def leaves(self, x: Floats) -> Ints:
        """(n, F) -> (n, T): the number of the leaf that each row reaches in each tree."""
        return leaves(self, x)

    def raw(self, x: Floats) -> Floats:
        """(n, F) -> (n, K): raw scores, rounded as the library's."""
        return leaf_sums(self, x).astype(np.float64)

    def probabilities(self, x: Floats) -> Floats:
        """(n, F) -> (n, classes)"""
        return self.linked(self.raw(x))

    def linked(self, raw: Floats) -> Floats:
        """(n, K) raw scores -> (n, classes) probabilities, rounded to `precision` where the library rounds."""
        kind = np.dtype(self.precision)
        z = raw.astype(kind) / kind.type(self.divisor)
        if self.link == "sigmoid":
            p = 1 / (1 + _exp(-z))
            z = np.hstack([1 - p, p])
        elif self.link == "softmax":
            powers = _exp(z - z.max(axis=1, keepdims=True))
            z = powers / powers.sum(axis=1, keepdims=True, dtype=np.float64).astype(kind)
        found: Floats = z.astype(np.float64)
        return found


def _exp(z: NDArray[Any]) -> NDArray[Any]:
    """e^z, rounded once to the type of z: numpy's own exp of float32 is less exact. Infinite where z is too large."""
    with np.errstate(over="ignore"):
        return np.exp(z.astype(np.float64)).astype(z.dtype)
