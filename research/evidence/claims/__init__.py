"""The claims of the paper's section on experiments, each beside what was measured here.

A claim is tried in places (an algorithm, on a dataset with a kind and a size of budgets), by means over the seeds that
everything compared there was run with. It is *clear* in a place where the 95 % interval over these seeds of what
decides lies on the side of the outcome, so never with one seed. A claim is *confirmed* where it holds in every place,
and clearly in at least half of them; *in part* where it holds in at least half, *not confirmed* where in fewer; and
*mixed* where the rest of the places says otherwise more than half as often clearly. Runtime was measured once, and has
no intervals.
"""

from __future__ import annotations

from research.evidence.claims.budgets import of_budgets
from research.evidence.claims.claim import Claim
from research.evidence.claims.iterations import of_iterations
from research.evidence.claims.margins import of_margins
from research.evidence.claims.runtime import of_runtime
from research.evidence.claims.sizes import of_sizes
from research.evidence.results import Results, Row


def all_claims(results: Results) -> list[Claim]:
    """In the order of the paper; what waits for a result file is tried nowhere."""

    def rows(name: str) -> list[Row]:
        return results.rows(name) if results.has(name) else []

    of_four = of_budgets(rows("budget"))
    return [
        *of_four[:-1],
        *of_sizes(rows("scalability")),
        *of_iterations(rows("iterations")),
        of_runtime(rows("runtime")),
        of_four[-1],
        of_margins({dataset: rows(f"hold_{dataset}") for dataset in ("credit", "icu")}),
    ]
