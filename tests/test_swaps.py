"""Swaps on relaxations whose best whole selections are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxflip.select.local_search import tabu_search
from maxflip.select.relaxation import Candidates, Relaxed, relaxed


def posed(share: list[list[float]], sample: list[int], worth: list[float], must: list[bool]) -> Candidates:
    return Candidates(np.array(worth), np.array(share), np.array(sample), np.array(must))


def reached(candidates: Candidates, aim: float) -> list[int] | None:
    limit = relaxed(candidates)
    assert limit is not None
    found = tabu_search(
        candidates, limit, np.ones(candidates.share.shape[1]), np.ones(candidates.samples, dtype=bool), aim, enough=aim
    )
    return None if found is None else found.tolist()


def test_a_pair_that_fits_is_found() -> None:
    """The relaxation takes the smallest and a part of the next."""
    shares = [[0.9], [0.62], [0.58], [0.4]]
    assert reached(posed(shares, [0, 1, 2, 3], [1.0] * 4, [False] * 4), aim=2.0) == [2, 3]


def test_an_aim_beyond_reach_leaves_the_best_seen() -> None:
    """Two budgets, each for one of the two samples: one is all that there can be."""
    assert reached(posed([[0.6, 0.1], [0.6, 0.9]], [0, 1], [2.0, 1.0], [False] * 2), aim=3.0) == [0]


def test_a_sample_takes_its_other_candidate_where_that_makes_room() -> None:
    """Sample 0 draws on the first budget or on the second; sample 1 needs the first, sample 2 a little of both."""
    share = [[0.8, 0.0], [0.0, 0.8], [0.9, 0.0], [0.1, 0.2]]
    assert reached(posed(share, [0, 0, 1, 2], [1.0] * 4, [False] * 4), aim=3.0) == [1, 2, 3]


def test_who_must_be_picked_is_never_given_up() -> None:
    """Sample 0 must be; it leaves room for one of the others, where without it there would be two."""
    share = [[0.6], [0.35], [0.35], [0.3]]
    must = [True, False, False, False]
    assert reached(posed(share, [0, 1, 2, 3], [1.0] * 4, [False] * 4), aim=3.0) == [1, 2, 3]
    found = reached(posed(share, [0, 1, 2, 3], [1.0] * 4, must), aim=3.0)
    assert found is not None
    assert found[0] == 0
    assert len(found) == 2


def test_those_who_are_not_free_stay_as_the_relaxation_has_them() -> None:
    candidates = posed([[0.5], [0.5], [0.4], [0.4]], [0, 1, 2, 3], [1.0] * 4, [False] * 4)
    held: NDArray[np.float64] = np.array([1.0, 0.0, 0.0, 0.0])
    limit = Relaxed(held, bound=2.25, prices=np.array([2.0]))
    found = tabu_search(
        candidates, limit, np.ones(candidates.share.shape[1]), np.array([False, False, True, True]), aim=2.0, enough=2.0
    )
    assert found is not None
    assert found.tolist() in ([0, 2], [0, 3])


def test_nothing_is_returned_where_the_budgets_cannot_be_kept() -> None:
    candidates = posed([[0.7], [0.7]], [0, 1], [1.0] * 2, [True] * 2)
    limit = Relaxed(np.ones(2), bound=2.0, prices=np.array([1.0]))
    assert (
        tabu_search(candidates, limit, np.ones(candidates.share.shape[1]), np.ones(2, dtype=bool), aim=2.0, enough=2.0)
        is None
    )
