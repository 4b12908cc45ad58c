"""Claims on the scalability experiment."""

from __future__ import annotations

from collections.abc import Iterable

from evidence.claims.claim import Claim
from evidence.claims.places import SAMPLED, by_seed, mean, name_of
from evidence.gains import smallest
from evidence.results import Row

NEGLIGIBLE = 0.02  # of the count


def of_sizes(rows: Iterable[Row]) -> list[Claim]:
    """From the scalability experiment. Datasets have sizes and counts of their own, and are never averaged."""
    some = [row for row in rows if row["solver"] in (*SAMPLED, "KL")]
    grows = Claim(
        "grows",
        "The gain over KL grows with the number of samples.",
        "it is more, in % and from a random start, with each next larger size",
    )
    warm = Claim(
        "warm",
        "A warm start from the subset is of negligible benefit.",
        f"it flips within {100 * NEGLIGIBLE:.0f} % of a random start",
    )
    where = ("dataset", "allocation", "scaling")
    cold = by_seed([row for row in some if row["start"] == "random"], (*where, "n"), "count")
    for place in dict.fromkeys(key[:-1] for key in cold):
        by_size = {n: found for (*at, n), found in sorted(cold.items()) if tuple(at) == place}
        for solver in SAMPLED:
            found = {n: of for n, of in by_size.items() if {solver, "KL"} <= set(of) and all(of["KL"].values())}
            gains = {n: {s: 100 * (of[solver][s] / of["KL"][s] - 1) for s in of["KL"]} for n, of in found.items()}
            if len(gains) > 1:
                means_of = {f"n = {n}": mean(each) for n, each in gains.items()}
                in_order = list(means_of.values())
                first, *_, last = gains.values()
                growth = [last[s] - first[s] for s in first.keys() & last.keys()]
                grows.tried(name_of(place), in_order == sorted(set(in_order)), means_of, "+.1f", solver, growth)
    least = smallest(some)
    for (*at, n, solver), starts in by_seed(some, (*where, "n", "solver"), "count", "start").items():
        if {"random", "warm"} <= set(starts) and n > least[at[0]]:
            both = {start: mean(starts[start]) for start in ("random", "warm")}
            is_small = abs(both["warm"] - both["random"]) <= NEGLIGIBLE * both["random"]
            rest = [NEGLIGIBLE * own - abs(starts["warm"][seed] - own) for seed, own in starts["random"].items()]
            warm.tried(name_of((*at, n)), is_small, both, ".1f", solver, rest)
    return [grows, warm]
