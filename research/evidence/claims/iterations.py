"""Claims on the curves by outer iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from research.evidence.claims.claim import Claim
from research.evidence.claims.places import SAMPLED, mean, name_of, of_common_seeds, tuned
from research.evidence.gains import FOUR, WHERE
from research.evidence.results import Row

STAYS = 0.95  # of the most that was reached
SHRUNK = 0.1  # of the first norm

Curve = Sequence[float]  # what there was after each outer iteration
Runs = dict[str, dict[int, list[float]]]  # solver -> seed -> its curve


def runs(rows: Iterable[Row], of: str) -> dict[tuple[Any, ...], Runs]:
    """Each place that has all four, of the seeds that all of them have."""
    found: dict[tuple[Any, ...], Runs] = {}
    for row in sorted(tuned(rows), key=lambda row: int(row["outer"])):
        place = tuple(row[name] for name in WHERE)
        found.setdefault(place, {}).setdefault(row["solver"], {}).setdefault(row["seed"], []).append(float(row[of]))
    every = {place: of_common_seeds(each) for place, each in found.items() if set(FOUR) <= set(each)}
    return {place: some for place, some in every.items() if some}


def mean_curve(each: Iterable[Curve]) -> list[float]:
    """By outer iteration; what ended early stays as it ended."""
    curves = [list(curve) for curve in each]
    longest = max(map(len, curves))
    found: list[float] = np.mean([curve + [curve[-1]] * (longest - len(curve)) for curve in curves], axis=0).tolist()
    return found


def arrives(curve: Curve) -> int:
    """The first outer iteration, from 1, that has nearly all that is ever reached."""
    return next(k for k, value in enumerate(curve, 1) if value >= STAYS * max(curve))


def erratic(curve: Curve) -> float:
    """How far it goes back and forth, in parts of the most that it reaches: a mean over steps from one outer iteration
    to the next. A steady rise has none, however steep it is."""
    if len(curve) == 1:
        return 0.0
    travelled, won = np.abs(np.diff(curve)).sum(), abs(curve[-1] - curve[0])
    return float((travelled - won) / (len(curve) - 1) / max(*curve, 1.0))


def of_iterations(rows: Iterable[Row]) -> list[Claim]:
    rows = list(rows)
    counts = runs(rows, "count")
    return [_stays(counts), _faster(counts), *_multipliers(rows), _shrinks(runs(rows, "grad_mu")), _erratic(counts)]


def _stays(counts: Mapping[tuple[Any, ...], Runs]) -> Claim:
    claim = Claim(
        "The number of flips rises and stays at its highest.",
        f"the last is at least {100 * STAYS:.0f} % of the most, and no fewer than the first",
    )

    def spare(curve: Curve) -> float:
        return curve[-1] - max(curve[0], STAYS * max(curve))

    for place, of in counts.items():
        for solver in FOUR:
            curve = mean_curve(of[solver].values())
            ends = {"first": curve[0], "most": max(curve), "last": curve[-1]}
            claim.tried(name_of(place), spare(curve) >= 0, ends, ".1f", solver, map(spare, of[solver].values()))
    return claim


def _faster(counts: Mapping[tuple[Any, ...], Runs]) -> Claim:
    claim = Claim(
        "BCMS converges faster than CCMS, and so does KL.",
        f"it is earlier than CCMS at {100 * STAYS:.0f} % of its most",
    )
    for place, of in counts.items():
        arrived = {solver: {seed: float(arrives(curve)) for seed, curve in of[solver].items()} for solver in FOUR}
        for solver in ("BCMS", "KL"):
            pair = {name: mean(arrived[name]) for name in (solver, "CCMS")}
            earlier = [arrived["CCMS"][seed] - own for seed, own in arrived[solver].items()]
            claim.tried(name_of(place), pair[solver] < pair["CCMS"], pair, ".1f", solver, earlier)
    return claim


def _multipliers(rows: Sequence[Row]) -> list[Claim]:
    falls = Claim("lambda falls.", "the last mean is below the first")
    rises = Claim("mu rises; KL's falls.", "the last mean is above the first, KL's below it")
    for claim, column in ((falls, "mean_lambda"), (rises, "mean_mu")):
        for place, of in runs(rows, column).items():
            for solver in FOUR:
                sign = 1 if claim is rises and solver != "KL" else -1
                first, last = _ends(of[solver])
                risen = [sign * (curve[-1] - curve[0]) for curve in of[solver].values()]
                ends = {"first": first, "last": last}
                claim.tried(name_of(place), sign * (last - first) > 0, ends, ".3g", solver, risen)
    return [falls, rises]


def _shrinks(norms: Mapping[tuple[Any, ...], Runs]) -> Claim:
    claim = Claim(
        "The norm of the gradient in mu shrinks to zero (MS, BCMS, CCMS).",
        f"the last is at most {100 * SHRUNK:.0f} % of the first",
    )
    for place, of in norms.items():
        for solver in ("MS", *SAMPLED):
            first, last = _ends(of[solver])
            spare = [SHRUNK * curve[0] - curve[-1] for curve in of[solver].values()]
            claim.tried(name_of(place), last <= SHRUNK * first, {"first": first, "last": last}, ".3g", solver, spare)
    return claim


def _ends(of: Mapping[int, Curve]) -> tuple[float, float]:
    curve = mean_curve(of.values())
    return curve[0], curve[-1]


def _erratic(counts: Mapping[tuple[Any, ...], Runs]) -> Claim:
    """Run by run: ups and downs of several cancel out in their mean."""
    claim = Claim("MS is erratic.", "its count goes back and forth more than that of the other three")
    for place, of in counts.items():
        steps = {solver: {seed: erratic(curve) for seed, curve in of[solver].items()} for solver in FOUR}
        means = {solver: mean(each) for solver, each in steps.items()}
        more = [own - max(steps[s][seed] for s in FOUR if s != "MS") for seed, own in steps["MS"].items()]
        claim.tried(name_of(place), means["MS"] > max(means[s] for s in FOUR if s != "MS"), means, ".3f", "", more)
    return claim
