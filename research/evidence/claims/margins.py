"""What the margin is there for: whether flips hold in retrained models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from research.evidence.claims.claim import Claim
from research.evidence.claims.places import mean, of_common_seeds
from research.evidence.gains import SIX
from research.evidence.results import Row
from research.experiments.hold.cases import AS_CLOSE

FEW = 0.05  # of all flips

Shares = dict[tuple[str, float], dict[int, float]]  # (solver, margin) -> seed -> the share that holds


def of_margins(by_dataset: Mapping[str, Iterable[Row]]) -> Claim:
    """A change is adversarial where its flips hold less often than people do who stand there by themselves."""
    claim = Claim(
        "The margin avoids a purely adversarial change.",
        f"its flips hold at most {100 * FEW:.0f} points less often than people do who are as close to the margin "
        "without a change",
    )
    for dataset, rows in by_dataset.items():
        shares = _shares(rows)
        for (solver, margin), own in shares.items():
            both = of_common_seeds({"flips": own, AS_CLOSE: shares.get((AS_CLOSE, margin), {})})
            if solver in SIX and margin > 0 and both:
                said = {name: mean(each) for name, each in both.items()}
                spare = [each + FEW - both[AS_CLOSE][seed] for seed, each in both["flips"].items()]
                claim.tried(
                    f"{dataset} margin {margin:g}", said["flips"] + FEW >= said[AS_CLOSE], said, ".2f", solver, spare
                )
    return claim


def _shares(rows: Iterable[Row]) -> Shares:
    """Of all judges together; nothing of a cohort in which nobody was flipped"""
    sums: dict[tuple[str, float], dict[int, tuple[int, int]]] = {}
    for row in rows:
        cohorts = sums.setdefault((row["solver"], row["margin"]), {})
        held, count = cohorts.get(row["seed"], (0, 0))
        cohorts[row["seed"]] = held + row["held"], count + row["count"]
    return {
        key: {seed: held / count for seed, (held, count) in sorted(cohorts.items()) if count}
        for key, cohorts in sums.items()
    }
