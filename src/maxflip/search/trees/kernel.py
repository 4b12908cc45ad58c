"""The cheapest flip of each sample through its trees, compiled.

All compiled code is in this file: numba keeps `search` on disk with all that it calls, and compiles it anew only where
this file has changed. Functions take few arrays: each argument is paid for when it is compiled.

1. The trees of a sample: everything its slots cannot change is decided (`_smaller`). The thresholds that are left cut
   the line of each slot into cells, and a state is a cell for each slot. A cell costs what its nearest point to the
   start costs that may be stored (`_point`).
2. Profiles: the scores as a function of each slot's cell, with all others as they are, for all slots in one pass.
3. Walk: the move with the most margin per cost, until the sample passes. At each state the cheapest move that ends
   the walk makes a flip, of which the best is kept. Then the moves back that save most, as long as the sample passes
   (`_shortened`).
4. Beam, if asked for: the same with several states at a time.
5. Destroy and repair: some changes are taken back, a walk leads to a flip again, and the cheapest one stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from maxflip._util.types import Floats, Mask
from maxflip.search.trees.arrays import (
    LINEAR,
    MEAN,
    SOFTMAX_MASS,
    Bytes,
    Costs,
    Effort,
    Ints,
    Lattices,
    Marks,
    Numbers,
    Small,
    Trees,
    Wanted,
)

TRIES = 8  # multiples, or neighbouring floats, that are tried: rounding is off by fewer
DEEP = 8192  # nodes on a stack: at most one for each level
LEAF, OPEN, LEFT, RIGHT = -2, -1, 0, 1
NONE = -1


Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(function: Function) -> Function:
    """Compiled with what calls it."""
    return cast(
        Function, njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    )


class Move(NamedTuple):
    """slot: NONE if there is no move   cell: its new cell   margin: after it   cost: of all changes after it"""

    slot: int
    cell: int
    margin: float
    cost: float


class Table(NamedTuple):
    """What is computed for one state after the other.   z (C,), rise (cells, C): see `_profiles`

    here (C,): scores of a cell   looks (1,): number of states
    """

    z: Floats
    rise: Floats
    here: Floats
    looks: Numbers


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def search(
    trees: Trees,
    wanted: Wanted,
    x: Floats,
    column: Ints,
    lattices: Lattices,
    costs: Costs,
    known: Floats,
    limit: Floats,
    effort: Effort,
) -> tuple[Floats, Floats, Floats, int]:
    """The cheapest flips found.

    x (B, F)   column (A,): the column of each slot   lattices, costs: (B, A) each   known (B, A): changes to begin
    from; 0: from the start   limit (B,): flips that cost more are of no use
    Returns changes (B, A); their cost (B,), inf if none was found; an upper bound of the margin within the limits (B,);
    and the number of states that were looked at.
    """
    changes, cost, count = np.zeros(known.shape), np.full(len(x), np.inf), 0
    highest = np.full(len(x), np.inf)
    for b in range(len(x)):
        lattice = _lattice(lattices, b)
        small = _smaller(trees, x[b], column, lattice, _costs(costs, b))
        table = _new_table(small)
        found = small.at.copy()
        cost[b] = _cheapest(small, wanted, table, known[b], limit[b], effort, found)
        count += table.looks[0]
        highest[b] = _highest(small, wanted)
        if cost[b] < np.inf:
            for a in range(len(column)):
                if found[a] != small.at[a]:
                    changes[b, a] = small.point[small.cells[a] + found[a]]
    return changes, cost, highest, count


@_compiled
def _highest(small: Small, wanted: Wanted) -> float:
    """An upper bound of the margin: each tree gives its best leaf. Inf where the margin is not linear in the scores."""
    if len(small.root) == 0:
        return _margin(small.base, wanted)
    left, right, root, base, value = small.left, small.right, small.root, small.base, small.value
    least = np.inf
    for m in range(len(wanted.kind)):
        if wanted.kind[m] != LINEAR:
            continue
        c = wanted.first[m]
        total = base[c] - wanted.line[m]
        for k in range(len(root)):
            if small.first[k] <= c < small.last[k]:
                best = -np.inf
                for node in range(root[k], root[k + 1] if k + 1 < len(root) else len(left)):
                    if left[node] < 0:
                        best = max(best, value[~left[node], c])
                    if right[node] < 0:
                        best = max(best, value[~right[node], c])
                total += best
        least = min(least, total)
    return least


@_compiled
def _lattice(all_: Lattices, b: int) -> Lattices:
    return Lattices(all_.low[b], all_.high[b], all_.step[b], all_.top[b], all_.bottom[b], all_.base[b], all_.least[b])


@_compiled
def _costs(all_: Costs, b: int) -> Costs:
    return Costs(all_.squared_up[b], all_.absolute_up[b], all_.squared_down[b], all_.absolute_down[b])


@_compiled
def _cheapest(
    small: Small,
    wanted: Wanted,
    table: Table,
    known: Floats,
    limit: float,
    effort: Effort,
    best: Ints,
) -> float:
    """Fills `best` (A,) with the cells of the cheapest flip and returns its cost, inf if none was found."""
    if len(small.root) == 0:
        return np.inf
    cell, trial = small.at.copy(), small.at.copy()
    lowest, even, begins = np.inf, np.ones(len(cell)), False
    for a in range(len(cell)):
        begins |= known[a] != 0
    if begins:
        lowest = _from_known(small, wanted, table, known, effort, limit, cell, best)
        _copy(small.at, cell)
    one = _walked(small, wanted, cell, table, even, 0.0, effort.most, min(limit, lowest), trial)
    if one < np.inf:
        one = _shortened(small, wanted, trial, table)
        if one < lowest:
            _copy(trial, best)
            lowest = one
    if effort.beam > 0:
        one = _beam(small, wanted, table, effort, min(limit, lowest), trial)
        if one < np.inf:
            one = _shortened(small, wanted, trial, table)
            if one < lowest:
                _copy(trial, best)
                lowest = one
    return _repaired(small, wanted, table, effort, limit, lowest, best)


@_compiled
def _from_known(
    small: Small,
    wanted: Wanted,
    table: Table,
    known: Floats,
    effort: Effort,
    limit: float,
    cell: Ints,
    best: Ints,
) -> float:
    """Begins from known changes, in the cells that they lead to, and goes on from there if they do not pass."""
    for a in range(len(cell)):
        if known[a] != 0.0:
            cell[a] = _nearest(small, a, known[a])
    if _moved(small, cell) > effort.most:
        return np.inf
    trial = cell.copy()
    lowest = _walked(small, wanted, cell, table, np.ones(len(cell)), 0.0, effort.most, limit, trial)
    if lowest < np.inf:
        _copy(trial, best)
        lowest = _shortened(small, wanted, best, table)
    return lowest


@_compiled
def _nearest(small: Small, a: int, change: float) -> int:
    """The cell of slot a that the change leads to: the farthest one whose point is not beyond it."""
    cell = int(small.at[a])
    way = 1 if change > 0 else -1
    begin, end = small.cells[a], small.cells[a + 1] - 1
    k = begin + cell + way
    while begin <= k < end:
        if small.cost[k] < np.inf:
            if abs(small.point[k]) > abs(change):
                break
            cell = k - begin
        k += way
    return cell


@_compiled
def _repaired(
    small: Small,
    wanted: Wanted,
    table: Table,
    effort: Effort,
    limit: float,
    lowest: float,
    best: Ints,
) -> float:
    """Destroy and repair: some changes are taken back, others grow dear for a round, and a walk leads to a flip again.

    Each change is taken back alone first, then several at random. Some walks begin anew at random cells, and all do
    without a flip.
    """
    slots = len(best)
    cell, trial, weight = best.copy(), best.copy(), np.ones(slots)
    state = np.full(1, 88172645463325252, np.uint64)
    alone = 0
    for turn in range(effort.lost * effort.restarts):
        if turn >= effort.restarts and lowest < np.inf:
            break
        if lowest < np.inf and turn % effort.anew != effort.anew - 1:
            _copy(best, cell)
            while alone < slots and best[alone] == small.at[alone]:
                alone += 1
            part = effort.fewest + (effort.most_taken - effort.fewest) * _chance(state)
            for a in range(slots):
                weight[a] = _spread(state)
                if cell[a] != small.at[a] and (a == alone if alone < slots else _chance(state) < part):
                    cell[a] = small.at[a]
                    weight[a] *= 2.0
            alone += 1
        else:
            for a in range(slots):
                weight[a] = _spread(state)
            _scattered(small, state, effort.most, min(limit, lowest), cell)
        pad = effort.pad * _chance(state) * lowest if lowest < np.inf else 0.0
        one = _walked(small, wanted, cell, table, weight, pad, effort.most, min(limit, effort.dearer * lowest), trial)
        if one < np.inf:
            one = _shortened(small, wanted, trial, table)
            if one < lowest * (1 - 1e-12) and one < limit:
                _copy(trial, best)
                lowest, alone = one, 0
    return lowest


@_compiled
def _scattered(small: Small, state: Marks, most: int, limit: float, cell: Ints) -> None:
    """One, two or three slots at random cells, which together cost less than `limit`."""
    _copy(small.at, cell)
    for _ in range(min(most, 1 + int(3 * _chance(state)))):
        a = int(_chance(state) * len(cell))
        before, count = cell[a], small.cells[a + 1] - small.cells[a] - 1
        cell[a] = int(_chance(state) * count)
        if not _cost_of(small, cell) < limit:
            cell[a] = before


@_compiled
def _smaller(trees: Trees, x: Floats, column: Ints, lattice: Lattices, costs: Costs) -> Small:
    """x (F,): the sample   column (A,): of each slot   lattice, costs: its own, (A,) each"""
    slots = len(column)
    slot_of = np.full(len(trees.begin) - 1, -1, np.int32)
    for a in range(slots):
        if not np.isnan(x[column[a]]) and (lattice.low[a] < 0 or lattice.high[a] > 0):
            slot_of[column[a]] = a
    least, most = _within(trees, x, column, slot_of, lattice)
    way = _ways(trees, x, slot_of, least, most)
    used = np.zeros(len(trees.thresholds), np.bool_)
    slot, rank, left, right, root, tree, base = _kept(trees, way, slot_of, used)
    first, last = trees.first[tree], trees.last[tree]
    place, cells = _numbered(trees, column, slot_of, used)
    begin = trees.begin
    for k in range(len(slot)):
        rank[k] = place[begin[column[slot[k]]] + rank[k]]
    at, points, cost = _cells(trees, x, column, slot_of, used, cells, lattice, costs)
    return Small(slot, rank, left, right, root, first, last, trees.value, base, cells, points, cost, at)


@_compiled
def _within(trees: Trees, x: Floats, column: Ints, slot_of: Ints, lattice: Lattices) -> tuple[Ints, Ints]:
    """(A,), (A,): the least and the largest rank of a cell that the box reaches"""
    least, most = np.zeros(len(column), np.int32), np.zeros(len(column), np.int32)
    for a in range(len(column)):
        i = column[a]
        if slot_of[i] == a:
            mine = trees.thresholds[trees.begin[i] : trees.begin[i + 1]]
            least[a] = np.searchsorted(mine, x[i] + lattice.low[a])
            most[a] = np.searchsorted(mine, x[i] + lattice.high[a])
    return least, most


@_compiled
def _ways(trees: Trees, x: Floats, slot_of: Ints, least: Ints, most: Ints) -> Bytes:
    """(N,): LEFT or RIGHT where the sample goes so whatever its slots do, OPEN where they decide, and LEAF"""
    feature, rank, threshold, missing_left = trees.feature, trees.rank, trees.threshold, trees.missing_left
    cat_begin, codes = trees.cat_begin, trees.codes
    way = np.empty(len(feature), np.int8)
    for node in range(len(feature)):
        i = feature[node]
        if i < 0:
            way[node] = LEAF
            continue
        a = slot_of[i]
        if a >= 0:
            way[node] = LEFT if rank[node] >= most[a] else RIGHT if rank[node] < least[a] else OPEN
        elif np.isnan(x[i]):
            way[node] = LEFT if missing_left[node] else RIGHT
        elif cat_begin[node] < 0:
            way[node] = LEFT if x[i] <= threshold[node] else RIGHT
        else:
            listed = _is_listed(trees.cats, cat_begin[node], trees.cat_end[node], x[i], codes[node])
            way[node] = LEFT if listed != trees.cat_other_left[node] else RIGHT
    return way


@_compiled
def _is_listed(cats: Floats, begin: int, end: int, value: float, codes: int) -> bool:
    """Whether the category of the value is in cats[begin:end]."""
    code = value
    if codes == 1:
        code = np.floor(np.float64(np.float32(value)))
    elif codes == 2:
        code = np.trunc(value)
    listed = False
    for k in range(begin, end):
        listed |= cats[k] == code
    return listed


@_compiled
def _settled(node: int, way: Bytes, left: Ints, right: Ints) -> int:
    """The first node from here on that a slot decides, or a leaf."""
    while way[node] >= LEFT:
        node = left[node] if way[node] == LEFT else right[node]
    return node


@_compiled
def _kept(trees: Trees, way: Bytes, slot_of: Ints, used: Mask) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Floats]:
    """The inner nodes that are left, the roots, and the scores of the trees that are leaves now."""
    feature, ranks, lefts, rights, begin = trees.feature, trees.rank, trees.left, trees.right, trees.begin
    roots, first, last, value = trees.roots, trees.first, trees.last, trees.value
    size = len(feature) // 2 + 1
    slot, rank = np.empty(size, np.int32), np.empty(size, np.int32)
    left, right = np.empty(size, np.int32), np.empty(size, np.int32)
    root, tree = np.empty(len(roots), np.int32), np.empty(len(roots), np.int32)
    base, count, kept = trees.base.copy(), 0, 0
    nodes, parents = np.empty(DEEP, np.int32), np.empty(DEEP, np.int32)
    for t in range(len(roots)):
        node = _settled(roots[t], way, lefts, rights)
        if way[node] == LEAF:
            for c in range(first[t], last[t]):
                base[c] += value[node, c]
            continue
        root[kept], tree[kept] = count, t
        kept += 1
        nodes[0], parents[0], depth = node, -1, 1
        while depth > 0:
            depth -= 1
            node, parent = nodes[depth], parents[depth]
            if parent >= 0:  # a right child: left ones follow their parents
                right[parent] = count
            while True:
                here = count
                count += 1
                slot[here], rank[here] = slot_of[feature[node]], ranks[node]
                used[begin[feature[node]] + ranks[node]] = True
                other = _settled(rights[node], way, lefts, rights)
                if way[other] == LEAF:
                    right[here] = ~other
                else:
                    nodes[depth], parents[depth] = other, here
                    depth += 1
                node = _settled(lefts[node], way, lefts, rights)
                if way[node] == LEAF:
                    left[here] = ~node
                    break
                left[here] = count
    return slot[:count], rank[:count], left[:count], right[:count], root[:kept], tree[:kept], base


@_compiled
def _numbered(trees: Trees, column: Ints, slot_of: Ints, used: Mask) -> tuple[Ints, Ints]:
    """The number of each used threshold among those of its feature, and where the cells of each slot begin."""
    place, cells = np.zeros(len(used), np.int32), np.zeros(len(column) + 1, np.int32)
    for a in range(len(column)):
        count, i = 0, column[a]
        if slot_of[i] == a:
            for k in range(trees.begin[i], trees.begin[i + 1]):
                place[k] = count
                count += used[k]
        cells[a + 1] = cells[a] + count + 2
    return place, cells


@_compiled
def _cells(
    trees: Trees,
    x: Floats,
    column: Ints,
    slot_of: Ints,
    used: Mask,
    cells: Ints,
    lattice: Lattices,
    costs: Costs,
) -> tuple[Ints, Floats, Floats]:
    """The cell of x in each slot, and each cell's point and cost."""
    at = np.zeros(len(column), np.int32)
    points, cost = np.zeros(cells[-1]), np.full(cells[-1], np.inf)
    for a in range(len(column)):
        i = column[a]
        edges = np.full(cells[a + 1] - cells[a], np.inf)  # cell c: edges[c] < value <= edges[c + 1]
        edges[0], count = -np.inf, 1
        if slot_of[i] == a:
            for k in range(trees.begin[i], trees.begin[i + 1]):
                if used[k]:
                    edges[count] = trees.thresholds[k]
                    count += 1
        while slot_of[i] == a and edges[at[a] + 1] < x[i]:
            at[a] += 1
        cost[cells[a] + at[a]] = 0.0
        for c in range(count):
            if c != at[a]:
                d = _into(x[i], edges[c], edges[c + 1], lattice, a, c > at[a])
                k = cells[a] + c
                points[k] = d
                if d > 0:
                    cost[k] = costs.squared_up[a] * d * d + costs.absolute_up[a] * d
                elif d < 0:
                    cost[k] = costs.squared_down[a] * d * d - costs.absolute_down[a] * d
    return at, points, cost


@_compiled
def _into(x: float, above: float, upto: float, lattice: Lattices, a: int, is_up: bool) -> float:
    """The change into the cell above < value <= upto, which does not hold x; NaN if none may be stored."""
    step, top, bottom = lattice.step[a], lattice.top[a], lattice.bottom[a]
    base, least = lattice.base[a], lattice.least[a]
    if is_up:
        return _point(x, above, upto, lattice.high[a], step, top, bottom, base, least)
    after = np.nextafter(upto, np.inf)  # the mirror image: -value > -after, and -value < -above
    within = np.nextafter(-above, -np.inf) if above > -np.inf else np.inf
    return -_point(-x, -after, within, -lattice.low[a], step, top, bottom, -base, least)


@_compiled
def _point(
    x: float,
    above: float,
    upto: float,
    high: float,
    step: float,
    top: float,
    bottom: float,
    base: float,
    least: float,
) -> float:
    """The smallest d > 0 with above < x + d <= upto as float64 computes it, d <= high and on the lattice; NaN if none.

    A value reached with steps is the very float that Grid stores.
    """
    if step > 0:
        d = _multiple(x, above, step, top, bottom, base, least)
    else:
        d = max(_beyond(x, above), least)
    return d if d <= high and x + d <= upto else np.nan


@_compiled
def _beyond(x: float, above: float) -> float:
    """The least d, about, with x + d > above: a d that rounds to x + d = above is moved on by the spacing there."""
    after = np.nextafter(above, np.inf)
    d = after - x
    for _ in range(TRIES):
        if x + d > above and d > 0:
            return float(d)
        d += max(after - above, np.spacing(abs(d)))
    return np.nan


@_compiled
def _multiple(x: float, above: float, step: float, top: float, bottom: float, base: float, least: float) -> float:
    """The same on the grid; see Grid: multiples of the step where base = x, so many whole steps where base = 0."""
    n = np.rint((max(above - x, least) + base) / step) - 2
    for _ in range(TRIES):
        d = n * top / bottom - base
        if d > 0 and x + d > above and abs(np.rint(d / step) * top / bottom) >= least:
            return float(d)
        n += 1
    return np.nan


@_compiled
def _margin(z: Floats, wanted: Wanted) -> float:
    """The least margin of the members at scores z (C,):

    linear        z - aim, of one score                          aim: such that 0 is the line
    softmax       max log p_w - log(max p_u + aim)               aim: the required lead of probabilities
    softmax mass  log sum exp z_w - log sum exp z_u - aim        aim: logit of the threshold
    mean          max z_w - max z_u - aim
    """
    least = np.inf
    for m in range(len(wanted.kind)):
        kind, first, last, aim = wanted.kind[m], wanted.first[m], wanted.last[m], wanted.aim[m]
        if kind == LINEAR:
            least = min(least, z[first] - aim)
            continue
        best, other = -np.inf, -np.inf
        for c in range(first, last):
            if wanted.wanted[c]:
                best = max(best, z[c])
            else:
                other = max(other, z[c])
        if kind == MEAN:
            least = min(least, best - other - aim)
            continue
        good, bad = 0.0, 0.0
        for c in range(first, last):
            if wanted.wanted[c]:
                good += np.exp(z[c] - best)
            else:
                bad += np.exp(z[c] - other)
        if kind == SOFTMAX_MASS:
            least = min(least, best + np.log(good) - other - np.log(bad) - aim)
        else:
            high = max(best, other)
            all_ = good * np.exp(best - high) + bad * np.exp(other - high)
            need = np.exp(other - high) + aim * all_
            least = min(least, best - high - np.log(need))
    return least


@_compiled
def _profiles(small: Small, cell: Ints, z: Floats, rise: Floats) -> None:
    """z (C,): the scores here   rise (cells, C): by how much they rise from each cell of a slot to the next

    Of each tree, only slots that are tested on the way to its leaf can change anything alone. From the first node that
    tests one, both ways are gone there, and where it is tested again those that its cells allow.
    """
    _copy(small.base, z)
    for k in range(len(rise)):
        for c in range(len(z)):
            rise[k, c] = 0.0
    path = np.empty(DEEP // 2, np.int32)
    nodes, lows, highs = np.empty(DEEP, np.int32), np.empty(DEEP, np.int32), np.empty(DEEP, np.int32)
    stamp, seen = np.zeros(len(cell), np.int64), 0
    slot, rank, left, right, cells = small.slot, small.rank, small.left, small.right, small.cells
    root, firsts, lasts, value = small.root, small.first, small.last, small.value
    for k in range(len(root)):
        node, length = root[k], 0
        while node >= 0:
            path[length] = node
            length += 1
            node = left[node] if cell[slot[node]] <= rank[node] else right[node]
        own = ~node
        first, last = firsts[k], lasts[k]
        for c in range(first, last):
            z[c] += value[own, c]
        seen += 1
        for j in range(length):
            a = slot[path[j]]
            if stamp[a] == seen:
                continue
            stamp[a] = seen
            begin = cells[a]
            nodes[0], lows[0], highs[0], depth = path[j], 0, cells[a + 1] - begin - 2, 1
            while depth > 0:
                depth -= 1
                node, low, high = nodes[depth], lows[depth], highs[depth]
                while node >= 0:
                    r = rank[node]
                    if slot[node] != a:
                        node = left[node] if cell[slot[node]] <= r else right[node]
                    elif high <= r:
                        node = left[node]
                    elif low > r:
                        node = right[node]
                    else:
                        nodes[depth], lows[depth], highs[depth] = right[node], r + 1, high
                        depth += 1
                        node, high = left[node], r
                leaf = ~node
                if leaf != own:
                    for c in range(first, last):
                        more = value[leaf, c] - value[own, c]
                        rise[begin + low, c] += more
                        rise[begin + high + 1, c] -= more


@_compiled
def _copy(given: Any, to: Any) -> None:
    """to[:] = given, which takes longer to compile"""
    for k in range(len(to)):
        to[k] = given[k]


@_compiled
def _new_table(small: Small) -> Table:
    scores = len(small.base)
    return Table(np.zeros(scores), np.zeros((small.cells[-1], scores)), np.zeros(scores), np.zeros(1, np.int64))


@_compiled
def _cost_of(small: Small, cell: Ints) -> float:
    total = 0.0
    for a in range(len(cell)):
        total += small.cost[small.cells[a] + cell[a]]
    return total


@_compiled
def _moved(small: Small, cell: Ints) -> int:
    """The number of slots that are not where they started."""
    count = 0
    for a in range(len(cell)):
        count += cell[a] != small.at[a]
    return count


@_compiled
def _look(small: Small, cell: Ints, table: Table) -> None:
    _profiles(small, cell, table.z, table.rise)
    table.looks[0] += 1


@_compiled
def _onward(
    small: Small, wanted: Wanted, cell: Ints, table: Table, weight: Floats, pad: float, most: int, limit: float
) -> tuple[Move, Move]:
    """Of all moves from a state that fails: the one with the most margin per cost, and the cheapest one that passes.

    Margin beyond 0 is of no use.   weight (A,): of the cost of each slot in the comparison   most: slots that may
    change   limit: total cost below which a move must stay
    """
    have, spent, count = _margin(table.z, wanted), _cost_of(small, cell), _moved(small, cell)
    best, done = Move(NONE, 0, 0.0, 0.0), Move(NONE, 0, 0.0, limit)
    highest, cells, cost, here, rise = 0.0, small.cells, small.cost, table.here, table.rise
    for a in range(len(cell)):
        begin, end = cells[a], cells[a + 1] - 1
        if end - begin < 2 or (count >= most and cell[a] == small.at[a]):
            continue
        own, before, fresh = cost[begin + cell[a]], -np.inf, True
        _copy(table.z, here)
        for k in range(begin, end):
            for c in range(len(here)):
                if rise[k, c] != 0:
                    here[c] += rise[k, c]
                    fresh = True
            total = spent - own + cost[k]
            if not total < limit or k == begin + cell[a]:
                continue
            if fresh:
                before, fresh = _margin(here, wanted), False
            if before < 0 and before <= have:
                continue
            if before >= 0 and total < done.cost:
                done = Move(a, k - begin, before, total)
            extra, gain = weight[a] * (cost[k] - own), min(before, 0.0) - have
            extra = extra + pad if extra > 0 else extra
            ratio = gain / extra if extra > 0 else np.inf
            if ratio > highest or (ratio == highest and ratio == np.inf and gain > min(best.margin, 0.0) - have):
                highest, best = ratio, Move(a, k - begin, before, total)
    return best, done


@_compiled
def _backward(small: Small, wanted: Wanted, cell: Ints, table: Table) -> Move:
    """Of all moves from a state that passes to states that pass: the one that saves most."""
    spent = _cost_of(small, cell)
    best = Move(NONE, 0, 0.0, spent * (1 - 1e-12))
    cells, cost, here, rise = small.cells, small.cost, table.here, table.rise
    for a in range(len(cell)):
        begin, end = cells[a], cells[a + 1] - 1
        if end - begin < 2 or cell[a] == small.at[a]:
            continue
        own = cost[begin + cell[a]]
        _copy(table.z, here)
        for k in range(begin, end):
            for c in range(len(here)):
                here[c] += rise[k, c]
            total = spent - own + cost[k]
            if total < best.cost and _margin(here, wanted) >= 0:
                best = Move(a, k - begin, 0.0, total)
    return best


@_compiled
def _shortened(small: Small, wanted: Wanted, cell: Ints, table: Table) -> float:
    """Lowers the cost of the passing state `cell`, in place, move by move. Returns its cost."""
    while True:
        _look(small, cell, table)
        move = _backward(small, wanted, cell, table)
        if move.slot == NONE:
            return _cost_of(small, cell)
        cell[move.slot] = move.cell


@_compiled
def _walked(
    small: Small,
    wanted: Wanted,
    cell: Ints,
    table: Table,
    weight: Floats,
    pad: float,
    most: int,
    limit: float,
    found: Ints,
) -> float:
    """Walks from `cell`, in place, to flips that cost less than `limit`; the cheapest one goes to `found`.

    Returns its cost, inf if there is none. At each state, the cheapest move that ends the walk is a flip; the walk goes
    on by the move with the most margin per cost.
    """
    lowest = np.inf
    for _ in range(4 * len(cell) + 8):
        _look(small, cell, table)
        if _margin(table.z, wanted) >= 0:
            total = _cost_of(small, cell)
            if total < min(limit, lowest):
                _copy(cell, found)
                lowest = total
            return lowest
        move, done = _onward(small, wanted, cell, table, weight, pad, most, min(limit, lowest))
        if done.slot != NONE:
            _copy(cell, found)
            lowest = done.cost
            found[done.slot] = done.cell
        if move.slot == NONE or (move.slot == done.slot and move.cell == done.cell):
            return lowest
        cell[move.slot] = move.cell
    return lowest


@_compiled
def _beam(small: Small, wanted: Wanted, table: Table, effort: Effort, limit: float, found: Ints) -> float:
    """The cheapest flip on the way goes to `found`; its cost, inf if none costs less than `limit`.

    A state counts by (margin - margin of the start) / cost. Of all moves of all states, the best `beam` make the next.
    """
    width, slots = effort.beam, len(small.at)
    states, count = np.empty((width, slots), np.int32), 1
    following = np.empty((width, slots), np.int32)
    _copy(small.at, states[0])
    lowest, worst = np.inf, 0.0
    ratio, parent = np.empty(width), np.empty(width, np.int32)
    slot, target, key = np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.uint64)
    for level in range(slots + 8):
        filled = 0
        for s in range(count):
            _look(small, states[s], table)
            have, spent = _margin(table.z, wanted), _cost_of(small, states[s])
            if level == 0:
                worst = have
            full, name = _moved(small, states[s]) >= effort.most, _name(small, states[s])
            for a in range(slots):
                begin, end = small.cells[a], small.cells[a + 1] - 1
                if end - begin < 2 or (full and states[s, a] == small.at[a]):
                    continue
                own, before, fresh = small.cost[begin + states[s, a]], 0.0, True
                _copy(table.z, table.here)
                for k in range(begin, end):
                    for c in range(len(table.here)):
                        if table.rise[k, c] != 0:
                            table.here[c] += table.rise[k, c]
                            fresh = True
                    total = spent - own + small.cost[k]
                    if not total < min(limit, lowest) or k == begin + states[s, a]:
                        continue
                    if fresh:
                        before, fresh = _margin(table.here, wanted), False
                    if before >= 0:
                        _copy(states[s], found)
                        lowest = total
                        found[a] = k - begin
                    elif before > have:
                        one = (before - worst) / max(total, 1e-300)
                        if filled == width and one <= ratio[width - 1]:
                            continue
                        other = name ^ _mark(begin + states[s, a]) ^ _mark(k)
                        filled = _inserted(ratio, parent, slot, target, key, filled, one, s, a, k - begin, other)
        for j in range(filled):
            _copy(states[parent[j]], following[j])
            following[j, slot[j]] = target[j]
        states, following, count = following, states, filled
        if not filled:
            break
    return lowest


@_compiled
def _mark(place: int) -> np.uint64:
    """A number without pattern for a cell (splitmix64)."""
    z = np.uint64(place + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@_compiled
def _name(small: Small, cell: Ints) -> np.uint64:
    """A state's own number, which a move changes by the marks of its two cells."""
    name = np.uint64(0)
    for a in range(len(cell)):
        name ^= _mark(small.cells[a] + cell[a])
    return name


@_compiled
def _inserted(
    ratio: Floats,
    parent: Ints,
    slot: Ints,
    target: Ints,
    key: Marks,
    filled: int,
    one: float,
    s: int,
    a: int,
    cell: int,
    other: np.uint64,
) -> int:
    """The list, in falling order of `ratio`, with one more, unless the same state stands there. Its new length."""
    for j in range(filled):
        if key[j] == other:
            return filled
    place = min(filled, len(ratio) - 1)
    filled = min(filled + 1, len(ratio))
    while place > 0 and ratio[place - 1] < one:
        ratio[place], parent[place], slot[place] = ratio[place - 1], parent[place - 1], slot[place - 1]
        target[place], key[place] = target[place - 1], key[place - 1]
        place -= 1
    ratio[place], parent[place], slot[place], target[place], key[place] = one, s, a, cell, other
    return filled


@_compiled
def _chance(state: Marks) -> float:
    """In [0, 1): xorshift64.   state (1,), uint64: changed in place"""
    s = state[0]
    s ^= s << np.uint64(13)
    s ^= s >> np.uint64(7)
    s ^= s << np.uint64(17)
    state[0] = s
    return float(s >> np.uint64(11)) / 9007199254740992.0


@_compiled
def _spread(state: Marks) -> float:
    """A factor around 1, between 1/2 and 2."""
    return float(2.0 ** (2.0 * _chance(state) - 1.0))
