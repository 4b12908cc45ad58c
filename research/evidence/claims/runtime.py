"""The claim on runtime."""

from __future__ import annotations

from collections.abc import Iterable

from research.evidence.claims.claim import Claim
from research.evidence.claims.places import OTHERS, SAMPLED
from research.evidence.gains import FOUR
from research.evidence.results import Row

ITERATIONS = {"MS": 100_000, "BCMS": 1_000, "CCMS": 2_000, "KL": 50_000}  # inner iterations of one run


def of_runtime(rows: Iterable[Row]) -> Claim:
    """With the paper's numbers of iterations."""
    seconds = {row["solver"]: float(row["seconds_total"]) for row in rows if row["solver"] in FOUR}
    claim = Claim(
        "In all, BCMS and CCMS take no longer than MS and KL.",
        "it takes no longer than either, reckoned in seconds",
    )
    if set(FOUR) <= set(seconds):
        for solver in SAMPLED:
            some = {name: seconds[name] for name in (solver, *OTHERS)}
            claim.tried("", seconds[solver] <= min(seconds[name] for name in OTHERS), some, ",.0f", solver)
    return claim
