"""What the margin is there for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evidence.claims.claim import Claim
from evidence.claims.places import mean, of_common_seeds
from evidence.gains import SIX
from evidence.results import Row


def of_margins(by_dataset: Mapping[str, Iterable[Row]]) -> Claim:
    """From flips that models which were learned anew were asked about."""
    claim = Claim(
        "margin",
        "The margin avoids a purely adversarial change.",
        "more flips hold with the largest margin than with none",
    )
    for dataset, rows in by_dataset.items():
        found: dict[str, dict[float, dict[int, tuple[int, int]]]] = {}
        for row in rows:
            if row["solver"] in SIX:
                cohorts = found.setdefault(row["solver"], {}).setdefault(row["margin"], {})
                held, count = cohorts.get(row["seed"], (0, 0))
                cohorts[row["seed"]] = held + row["held"], count + row["count"]
        for solver, of in found.items():
            shares = {
                margin: {seed: held / count for seed, (held, count) in sorted(cohorts.items()) if count}
                for margin, cohorts in sorted(of.items())
            }
            some = of_common_seeds({f"margin {margin:g}": each for margin, each in shares.items() if each})
            if len(some) > 1:
                said = {name: mean(each) for name, each in some.items()}
                first, *_, last = some
                more = [some[last][seed] - some[first][seed] for seed in some[first]]
                claim.tried(dataset, said[last] > said[first], said, ".2f", solver, more)
    return claim
