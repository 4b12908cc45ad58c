"""The claims of the paper's section on experiments, each beside what was measured here.

A claim is tried in places (an algorithm, on a dataset with a kind and a size of budgets), by means over seeds. It is
*confirmed* where it holds in every place, *in part* in at least half of them, else *not confirmed*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import gt, lt
from typing import Any

import numpy as np

from evidence.results import Results, Row

FOUR, SAMPLED, OTHERS = ("MS", "BCMS", "CCMS", "KL"), ("BCMS", "CCMS"), ("KL", "MS")
KINDS = ("paper", "binding")
SOLVERS = (*FOUR, "Nearest", "Prices")
BUDGETS = ("small", "middle", "large")
MARGIN = 0.1
NEGLIGIBLE = 0.02  # of the count
STAYS = 0.95  # of the most that was reached
SHRUNK = 0.1  # of the first norm
TOLD = 3  # places in which a claim fails that are named


@dataclass
class Claim:
    """says: the paper   rule: when it holds in one place

    places: (where, of whom) -> (does it hold, the numbers). A claim about several algorithms is tried of each.
    """

    says: str
    rule: str
    places: dict[tuple[str, str], tuple[bool, str]] = field(default_factory=dict)

    def tried(self, where: str, holds: bool, numbers: Mapping[str, float], form: str = ".3g", whom: str = "") -> None:
        said = ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())
        self.places[where, whom] = bool(holds), said

    @property
    def held(self) -> int:
        return sum(holds for holds, _ in self.places.values())

    @property
    def verdict(self) -> str:
        if not self.places:
            return "not tried"
        if self.held == len(self.places):
            return "confirmed"
        return "in part" if 2 * self.held >= len(self.places) else "not confirmed"

    @property
    def shares(self) -> str:
        """Of each algorithm, and with each kind of budgets, where there are several."""
        of_whom = self._tally([whom for _, whom in self.places])
        of_kind = self._tally([_kind(where) for where, _ in self.places])
        return "; ".join(part for part in (of_whom, of_kind) if part)

    def _tally(self, names: Sequence[str]) -> str:
        found: dict[str, list[bool]] = {}
        for name, (holds, _) in zip(names, self.places.values(), strict=True):
            found.setdefault(name, []).append(holds)
        return ", ".join(f"{n} {sum(each)} of {len(each)}" for n, each in found.items()) if len(found) > 1 else ""

    @property
    def why(self) -> str:
        """Where it fails, with numbers."""
        fails = [
            f"{' '.join(filter(None, place))}: {said}" for place, (holds, said) in self.places.items() if not holds
        ]
        more = f"; and {len(fails) - TOLD} more" if len(fails) > TOLD else ""
        return "; ".join(fails[:TOLD]) + more


def _kind(where: str) -> str:
    return next((f"{kind} budgets" for kind in KINDS if kind in where.split()), "")


Means = dict[tuple[Any, ...], float]


def means(rows: Iterable[Row], by: Sequence[str], of: str) -> Means:
    """Over seeds, of what is known."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row[of] is not None:
            found.setdefault(tuple(row[name] for name in by), []).append(row[of])
    return {key: float(np.mean(each)) for key, each in found.items()}


def by_place(rows: Iterable[Row], by: Sequence[str], of: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """The mean of each solver in each place that has all four."""
    places: dict[tuple[Any, ...], dict[str, float]] = {}
    for (*place, solver), mean in means(rows, [*by, "solver"], of).items():
        places.setdefault(tuple(place), {})[solver] = mean
    return {place: found for place, found in places.items() if set(FOUR) <= set(found)}


def tuned(rows: Iterable[Row]) -> list[Row]:
    return [
        row for row in rows if row["solver"] in FOUR and row["protocol"] == "tuned" and row["allocation"] == "joint"
    ]


_WHERE = ("dataset", "budget_source", "budget")


def _name(place: Sequence[Any]) -> str:
    return " ".join(str(part) for part in place)


def _of_four(
    rows: list[Row], says: str, rule: str, of: str, holds: Callable[[Mapping[str, float]], bool], form: str = ".3g"
) -> Claim:
    claim = Claim(says, rule)
    for place, found in by_place(rows, _WHERE, of).items():
        four = {solver: found[solver] for solver in FOUR}
        claim.tried(_name(place), holds(four), four, form)
    return claim


def _of_pairs(
    rows: list[Row], says: str, rule: str, of: str, is_ahead: Callable[[float, float], bool], form: str
) -> Claim:
    """BCMS and CCMS, each beside KL and MS."""
    claim = Claim(says, rule)
    for place, found in by_place(rows, _WHERE, of).items():
        for ours, other in product(SAMPLED, OTHERS):
            pair = {ours: found[ours], other: found[other]}
            claim.tried(_name(place), is_ahead(*pair.values()), pair, form, f"{ours} beside {other}")
    return claim


def of_budgets(rows: Iterable[Row]) -> list[Claim]:
    four = tuned(rows)
    larger = Claim("A larger budget flips more, for all algorithms.", "never fewer with the next larger budget")
    by_solver: dict[tuple[Any, ...], dict[str, float]] = {}
    for (*of, budget), mean in means(four, ("dataset", "budget_source", "solver", "budget"), "count").items():
        by_solver.setdefault(tuple(of), {})[budget] = mean
    for (dataset, source, solver), found in by_solver.items():
        sizes = {budget: found[budget] for budget in BUDGETS if budget in found}
        larger.tried(_name((dataset, source)), list(sizes.values()) == sorted(sizes.values()), sizes, ".1f", solver)
    gaps = Claim("Their prediction gap is smaller than KL's, yet above the margin.", f"between {MARGIN} and KL's")
    for place, found in by_place(four, _WHERE, "prediction_gap").items():
        for solver in SAMPLED:
            pair = {solver: found[solver], "KL": found["KL"]}
            gaps.tried(_name(place), MARGIN < found[solver] < found["KL"], pair, ".2f", solver)
    return [
        _of_pairs(four, "BCMS and CCMS flip more samples than KL and MS.", "more", "count", gt, ".1f"),
        _of_pairs(four, "Their consumption per flip is lower.", "less", "consumption_per_picked", lt, ".3g"),
        larger,
        _of_pairs(four, "They leave less of the budgets unspent.", "less", "unspent", lt, ".2f"),
        gaps,
        _of_four(
            [row for row in four if row["dataset"] == "icu"],
            "Patients in intensive care: KL uses a bigger portion of the budgets than the others.",
            "more than all three",
            "spent",
            lambda c: c["KL"] > max(c[s] for s in ("MS", *SAMPLED)),
            ".2f",
        ),
        _of_four(
            four,
            "BCMS is the best of the four, CCMS a close second.",
            "BCMS at least CCMS, CCMS at least MS and KL",
            "count",
            lambda c: c["BCMS"] >= c["CCMS"] >= max(c[s] for s in OTHERS),
            ".1f",
        ),
    ]


def of_sizes(rows: Iterable[Row]) -> list[Claim]:
    """From the scalability experiment."""
    counts = means(
        [row for row in rows if row["solver"] in (*SAMPLED, "KL")],
        ("allocation", "scaling", "start", "solver", "n"),
        "count",
    )
    grows = Claim("The gain over KL grows with the number of samples.", "more, in %, with each next larger size")
    warm = Claim("A warm start from the subset is of negligible benefit.", f"within {NEGLIGIBLE:.0%} of a random start")
    sizes = sorted({key[-1] for key in counts})
    for allocation, scaling, start, solver in dict.fromkeys(key[:-1] for key in counts):
        place = (allocation, scaling, start, solver)
        if solver in SAMPLED and start == "random":
            gains = {}
            for n in sizes:
                other = counts.get((allocation, scaling, start, "KL", n))
                if other and (*place, n) in counts:
                    gains[f"n = {n}"] = 100 * (counts[(*place, n)] / other - 1)
            in_order = list(gains.values())
            where = _name((allocation, scaling))
            grows.tried(where, len(gains) > 1 and in_order == sorted(set(in_order)), gains, "+.1f", solver)
        if start == "warm":
            for n in sizes[1:]:
                cold = counts.get((allocation, scaling, "random", solver, n))
                if cold and (*place, n) in counts:
                    both = {"random": cold, "warm": counts[(*place, n)]}
                    is_small = abs(both["warm"] - cold) <= NEGLIGIBLE * cold
                    warm.tried(_name((allocation, scaling, n)), is_small, both, ".1f", solver)
    return [grows, warm]


def curves(rows: Iterable[Row], of: str) -> dict[tuple[Any, ...], dict[str, list[float]]]:
    """place -> solver -> means over seeds by outer iteration; what ended early stays as it ended."""
    runs: dict[tuple[Any, ...], dict[str, dict[int, list[float]]]] = {}
    for row in sorted(tuned(rows), key=lambda row: int(row["outer"])):
        place = tuple(row[name] for name in _WHERE)
        runs.setdefault(place, {}).setdefault(row["solver"], {}).setdefault(row["seed"], []).append(float(row[of]))
    return {
        place: {solver: _mean_curve(list(seeds.values())) for solver, seeds in found.items()}
        for place, found in runs.items()
        if set(FOUR) <= set(found)
    }


def _mean_curve(runs: list[list[float]]) -> list[float]:
    longest = max(map(len, runs))
    whole = [run + [run[-1]] * (longest - len(run)) for run in runs]
    mean: list[float] = np.mean(whole, axis=0).tolist()
    return mean


def arrives(curve: Sequence[float]) -> int:
    """The first outer iteration, from 1, that has nearly all that is ever reached."""
    return next(k for k, value in enumerate(curve, 1) if value >= STAYS * max(curve))


def erratic(curve: Sequence[float]) -> float:
    """How far it moves from one outer iteration to the next, in parts of the most that it reaches."""
    return float(np.abs(np.diff(curve)).mean() / max(*curve, 1.0)) if len(curve) > 1 else 0.0


def of_iterations(rows: Iterable[Row]) -> list[Claim]:
    rows = list(rows)
    stays = Claim("The number of flips rises and stays at its highest.", f"the last at least {STAYS:.0%} of the most")
    faster = Claim("BCMS converges faster than CCMS, and so does KL.", f"not later at {STAYS:.0%} of its most")
    falls = Claim("lambda falls.", "the last mean below the first")
    rises = Claim("mu rises; KL's falls.", "the last mean above the first; KL's below it")
    shrinks = Claim(
        "The norm of the gradient in mu shrinks to zero (MS, BCMS, CCMS).",
        f"the last at most {SHRUNK:.0%} of the first",
    )
    moves = Claim("MS is erratic.", "it moves more from one iteration to the next than the other three")
    for place, of in curves(rows, "count").items():
        where = _name(place)
        first = {solver: float(arrives(of[solver])) for solver in FOUR}
        for solver in FOUR:
            curve = of[solver]
            ends = {"first": curve[0], "most": max(curve), "last": curve[-1]}
            stays.tried(where, curve[-1] >= max(curve[0], STAYS * max(curve)), ends, ".1f", solver)
        for solver in ("BCMS", "KL"):
            pair = {solver: first[solver], "CCMS": first["CCMS"]}
            faster.tried(where, first[solver] <= first["CCMS"], pair, ".0f", solver)
        steps = {solver: erratic(of[solver]) for solver in FOUR}
        moves.tried(where, steps["MS"] > max(steps[s] for s in FOUR if s != "MS"), steps, ".2f")
    for claim, column in ((falls, "mean_lambda"), (rises, "mean_mu")):
        for place, of in curves(rows, column).items():
            for solver in FOUR:
                begin, end = of[solver][0], of[solver][-1]
                is_rising = claim is rises and solver != "KL"
                holds = end > begin if is_rising else end < begin
                claim.tried(_name(place), holds, {"first": begin, "last": end}, ".3g", solver)
    for place, of in curves(rows, "grad_mu").items():
        for solver in ("MS", *SAMPLED):
            begin, end = of[solver][0], of[solver][-1]
            shrinks.tried(_name(place), end <= SHRUNK * begin, {"first": begin, "last": end}, ".3g", solver)
    return [stays, faster, falls, rises, shrinks, moves]


def of_runtime(rows: Iterable[Row]) -> Claim:
    """With the paper's numbers of iterations."""
    seconds = {row["solver"]: float(row["seconds_total"]) for row in rows if row["solver"] in FOUR}
    claim = Claim("In all, BCMS and CCMS take no longer than MS and KL.", "no longer than either, reckoned in seconds")
    if set(FOUR) <= set(seconds):
        for solver in SAMPLED:
            some = {name: seconds[name] for name in (solver, *OTHERS)}
            claim.tried("", seconds[solver] <= min(seconds[name] for name in OTHERS), some, ",.0f", solver)
    return claim


def of_margins(by_dataset: Mapping[str, Iterable[Row]]) -> Claim:
    """From flips that models which were learned anew were asked about."""
    claim = Claim(
        "The margin avoids a purely adversarial change.", "more flips hold with the largest margin than with none"
    )
    for dataset, rows in by_dataset.items():
        found: dict[str, dict[float, tuple[int, int]]] = {}
        for row in rows:
            if row["solver"] in SOLVERS:
                held, count = found.setdefault(row["solver"], {}).get(row["margin"], (0, 0))
                found[row["solver"]][row["margin"]] = held + row["held"], count + row["count"]
        for solver, of in found.items():
            shares = {margin: held / count for margin, (held, count) in sorted(of.items()) if count}
            if len(shares) > 1:
                said = {f"margin {margin:g}": share for margin, share in shares.items()}
                claim.tried(dataset, shares[max(shares)] > shares[min(shares)], said, ".2f", solver)
    return claim


def all_claims(results: Results) -> list[Claim]:
    """In the order of the paper."""
    of_four = of_budgets(results.rows("budget"))
    return [
        *of_four[:-1],
        *of_sizes(results.rows("scalability")),
        *of_iterations(results.rows("iterations")),
        of_runtime(results.rows("runtime")),
        of_four[-1],
        of_margins({d: results.rows(f"hold_{d}") for d in ("credit", "icu") if results.has(f"hold_{d}")}),
    ]
