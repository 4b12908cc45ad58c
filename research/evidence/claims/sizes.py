"""Claims on the scalability experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from research.evidence.claims.claim import Claim
from research.evidence.claims.places import SAMPLED, by_seed, mean, name_of
from research.evidence.gains import smallest
from research.evidence.results import Row

WHERE = ("dataset", "budget_source", "allocation", "scaling")
NEGLIGIBLE = 0.02  # of the count


def of_sizes(rows: Iterable[Row]) -> list[Claim]:
    """From the scalability experiment. Datasets have sizes and counts of their own, and are never averaged."""
    some = [row for row in rows if row["solver"] in (*SAMPLED, "KL")]
    return [_grows(some), _warm(some)]


def _grows(rows: Sequence[Row]) -> Claim:
    claim = Claim(
        "The gain over KL grows, linearly, with the number of samples.",
        "it is more, in % and by the mean of both starts, with each next larger size (how evenly is not asked)",
    )
    by_size = by_seed(_of_both_starts(rows), (*WHERE, "n"), "count")
    for place in dict.fromkeys(key[:-1] for key in by_size):
        sizes = {n: found for (*at, n), found in sorted(by_size.items()) if tuple(at) == place}
        for solver in SAMPLED:
            found = {n: of for n, of in sizes.items() if {solver, "KL"} <= set(of) and all(of["KL"].values())}
            gains = {n: {s: 100 * (of[solver][s] / of["KL"][s] - 1) for s in of["KL"]} for n, of in found.items()}
            if len(gains) > 1:
                means_of = {f"n = {n}": mean(each) for n, each in gains.items()}
                in_order = list(means_of.values())
                first, *_, last = gains.values()
                growth = [last[s] - first[s] for s in first.keys() & last.keys()]
                claim.tried(name_of(place), in_order == sorted(set(in_order)), means_of, "+.1f", solver, growth)
    return claim


def _of_both_starts(rows: Sequence[Row]) -> list[Row]:
    """The counts of a random and of a warm start averaged, as the paper does, where there are both."""
    counts: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        counts.setdefault(tuple(row[name] for name in (*WHERE, "n", "solver", "seed")), []).append(row["count"])
    return [
        dict(zip((*WHERE, "n", "solver", "seed"), key, strict=True)) | {"count": float(np.mean(each))}
        for key, each in counts.items()
    ]


def _warm(rows: Sequence[Row]) -> Claim:
    claim = Claim(
        "A warm start from the subset is of negligible benefit.",
        f"it flips within {100 * NEGLIGIBLE:.0f} % of a random start",
    )
    least = smallest(rows)
    for (*at, n, solver), starts in by_seed(rows, (*WHERE, "n", "solver"), "count", "start").items():
        if {"random", "warm"} <= set(starts) and n > least[at[0]]:
            both = {start: mean(starts[start]) for start in ("random", "warm")}
            is_small = abs(both["warm"] - both["random"]) <= NEGLIGIBLE * both["random"]
            rest = [NEGLIGIBLE * own - abs(starts["warm"][seed] - own) for seed, own in starts["random"].items()]
            claim.tried(name_of((*at, n)), is_small, both, ".1f", solver, rest)
    return claim
