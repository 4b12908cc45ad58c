"""What the compiled search works on, as tuples of arrays. Shapes: F columns, A slots, N nodes, T trees, C scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxflip._util.types import Floats, Mask

Ints = NDArray[np.int32]
Numbers = NDArray[np.int64]
Bytes = NDArray[np.int8]
Marks = NDArray[np.uint64]

LINEAR, SOFTMAX, SOFTMAX_MASS, MEAN = 0, 1, 2, 3  # kinds of margins: see `kernel._margin`


class Trees(NamedTuple):
    """All trees of all members, over the C scores that the margin depends on; see `compiled`.

    feature, left, right (N,), roots (T,): as in Forest   rank (N,): of the node's threshold among `thresholds` of its
    feature   begin (F + 1,): where the thresholds of each feature begin   first, last (T,): the scores that a tree adds
    to   base (C,)   cat_begin, cat_end, cats, cat_other_left, missing_left: as in Forest   codes (N,): how a category
    is read: 0 exact, 1 floor, 2 truncated
    """

    feature: Ints
    rank: Ints
    threshold: Floats
    left: Ints
    right: Ints
    roots: Ints
    missing_left: Mask
    cat_begin: Ints
    cat_end: Ints
    cats: Floats
    cat_other_left: Mask
    codes: Ints
    value: Floats
    first: Ints
    last: Ints
    base: Floats
    begin: Ints
    thresholds: Floats


class Wanted(NamedTuple):
    """When the margin of scores z (C,) is >= 0, for each member: its least counts.

    kind (M,): see `kernel._margin`   first, last (M,): its scores   aim (M,)   line (M,): the aim without guards,
    for proofs   wanted (C,)
    """

    kind: Ints
    first: Ints
    last: Ints
    aim: Floats
    line: Floats
    wanted: Mask


class Lattices(NamedTuple):
    """Which changes may be stored, (A,) each, or (B, A) for a batch: see Grid.

    low, high: box   step, top, bottom: 0, 0, 1 where there are no steps   base: x where steps are counted from 0, and 0
    where from the start   least: smallest size, of |g(d)| with steps
    """

    low: Floats
    high: Floats
    step: Floats
    top: Floats
    bottom: Floats
    base: Floats
    least: Floats


class Costs(NamedTuple):
    """Rates of changes up and down, (A,) each, or (B, A) for a batch."""

    squared_up: Floats
    absolute_up: Floats
    squared_down: Floats
    absolute_down: Floats


class Effort(NamedTuple):
    """most: slots that may change   others: see `settings.TreeSearch`"""

    restarts: int
    beam: int
    most: int
    pad: float
    dearer: float
    fewest: float
    most_taken: float
    anew: int
    lost: int


class Small(NamedTuple):
    """The trees of one sample, where all that cannot change is decided, and the cells of its slots.

    slot, rank, left, right (n,): inner nodes; a child >= 0 is an inner node, and ~child a leaf of Trees   root, first,
    last (t,): of the trees that are left   value (N, C): of Trees   base (C,): scores of the other trees
    cells (A + 1,): where the cells of each slot begin; each slot has one place more than cells, for sums
    point, cost: of each cell: the change, and what it costs, inf where nothing may be stored   at (A,): cell of x
    """

    slot: Ints
    rank: Ints
    left: Ints
    right: Ints
    root: Ints
    first: Ints
    last: Ints
    value: Floats
    base: Floats
    cells: Ints
    point: Floats
    cost: Floats
    at: Ints
