"""The claims of the paper's section on experiments, each beside what was measured here.

A claim is tried in places (an algorithm, on a dataset with a kind and a size of budgets), by means over the seeds that
everything compared there was run with. It is *clear* in a place where the 95 % interval over these seeds of what
decides lies on the side of the outcome, so never with one seed. A claim is *confirmed* where it holds in every place,
and clearly in at least half of them; *in part* where it holds in at least half; else *not confirmed*. Of curves by
iteration and runtime there are no intervals: they go by means alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from evidence.gains import FOUR, SIX, WHERE, smallest
from evidence.intervals import paired
from evidence.results import Results, Row

SAMPLED, OTHERS = ("BCMS", "CCMS"), ("KL", "MS")
KINDS = ("paper", "binding")
BUDGETS = ("small", "middle", "large")
ITERATIONS = {"MS": 100_000, "BCMS": 1_000, "CCMS": 2_000, "KL": 50_000}  # inner iterations of one run
MARGIN = 0.1
NEGLIGIBLE = 0.02  # of the count
STAYS = 0.95  # of the most that was reached
SHRUNK = 0.1  # of the first norm

Spot = tuple[str, str]  # where, of whom


@dataclass(frozen=True)
class Tried:
    """numbers: what decided   form: how they are said

    is_clear: whether chance is left out of how it went; None where the claim goes by means alone
    """

    holds: bool
    numbers: Mapping[str, float]
    form: str = ".3g"
    is_clear: bool | None = None

    @property
    def said(self) -> str:
        return ", ".join(f"{name} {number:{self.form}}" for name, number in self.numbers.items())


@dataclass
class Claim:
    """key: what others know it by   says: the paper   rule: when it holds in one place

    places: (where, of whom) -> how it went. A claim about several algorithms is tried of each.
    """

    key: str
    says: str
    rule: str
    places: dict[Spot, Tried] = field(default_factory=dict)

    def tried(
        self,
        where: str,
        holds: bool,
        numbers: Mapping[str, float],
        form: str = ".3g",
        whom: str = "",
        decides: Iterable[float] | None = None,
    ) -> None:
        """decides: what is above 0 where the claim holds, for each seed"""
        is_clear = None if decides is None else paired(decides).sign == (1 if holds else -1)
        self.places[where, whom] = Tried(bool(holds), dict(numbers), form, is_clear)

    @property
    def held(self) -> int:
        return sum(place.holds for place in self.places.values())

    @property
    def has_intervals(self) -> bool:
        return any(place.is_clear is not None for place in self.places.values())

    @property
    def clear(self) -> int:
        """Places in which it holds clearly."""
        return sum(place.holds and bool(place.is_clear) for place in self.places.values())

    @property
    def clearly_not(self) -> int:
        return sum(not place.holds and bool(place.is_clear) for place in self.places.values())

    @property
    def verdict(self) -> str:
        if not self.places:
            return "not measured yet"
        if self.held == len(self.places) and (not self.has_intervals or 2 * self.clear >= len(self.places)):
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
        for name, place in zip(names, self.places.values(), strict=True):
            found.setdefault(name, []).append(place.holds)
        return ", ".join(f"{n} {sum(each)} of {len(each)}" for n, each in found.items()) if len(found) > 1 else ""

    @property
    def failing(self) -> dict[Spot, Tried]:
        return {spot: place for spot, place in self.places.items() if not place.holds}


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


Seeds = dict[str, dict[int, float]]  # solver, or size of budgets -> seed -> number


def by_seed(rows: Iterable[Row], by: Sequence[str], of: str, name: str = "solver") -> dict[tuple[Any, ...], Seeds]:
    """The numbers in each place, of the seeds that all that is compared there has. name: the column of what that is"""
    places: dict[tuple[Any, ...], Seeds] = {}
    for row in rows:
        if row[of] is not None:
            places.setdefault(tuple(row[c] for c in by), {}).setdefault(row[name], {})[row["seed"]] = float(row[of])
    return {place: _of_common_seeds(found) for place, found in places.items()}


def _of_common_seeds(found: Seeds) -> Seeds:
    common = sorted(set.intersection(*(set(each) for each in found.values()))) if found else []
    return {name: {seed: each[seed] for seed in common} for name, each in found.items()} if common else {}


def by_place(rows: Iterable[Row], by: Sequence[str], of: str) -> dict[tuple[Any, ...], Seeds]:
    """Each place that has all four."""
    return {place: found for place, found in by_seed(rows, by, of).items() if set(FOUR) <= set(found)}


def _mean(each: Mapping[int, float]) -> float:
    return float(np.mean(list(each.values())))


def tuned(rows: Iterable[Row]) -> list[Row]:
    return [
        row for row in rows if row["solver"] in FOUR and row["protocol"] == "tuned" and row["allocation"] == "joint"
    ]


def _name(place: Sequence[Any]) -> str:
    return " ".join(str(part) for part in place)


def _of_four(
    rows: list[Row],
    key: str,
    says: str,
    rule: str,
    of: str,
    lead: Callable[[Mapping[str, float]], float],
    form: str = ".3g",
) -> Claim:
    """lead: above 0 where the claim holds"""
    claim = Claim(key, says, rule)
    for place, found in by_place(rows, WHERE, of).items():
        four = {solver: _mean(found[solver]) for solver in FOUR}
        leads = [lead({solver: found[solver][seed] for solver in FOUR}) for seed in found["KL"]]
        claim.tried(_name(place), lead(four) > 0, four, form, decides=leads)
    return claim


def _of_pairs(rows: list[Row], key: str, says: str, rule: str, of: str, sign: int, form: str) -> Claim:
    """BCMS and CCMS, each beside KL and MS. sign: 1 where theirs must be more, -1 where it must be less"""
    claim = Claim(key, says, rule)
    for place, found in by_place(rows, WHERE, of).items():
        for ours, other in product(SAMPLED, OTHERS):
            pair = {name: _mean(found[name]) for name in (ours, other)}
            ahead = [sign * (found[ours][seed] - found[other][seed]) for seed in found[ours]]
            holds = sign * (pair[ours] - pair[other]) > 0
            claim.tried(_name(place), holds, pair, form, f"{ours} beside {other}", ahead)
    return claim


def of_budgets(rows: Iterable[Row]) -> list[Claim]:
    four = tuned(rows)
    larger = Claim(
        "larger",
        "A larger budget flips more, for all algorithms.",
        "it flips never fewer with the next larger budget, and more with the largest than with the smallest",
    )
    for (dataset, source, solver), found in by_seed(
        four, ("dataset", "budget_source", "solver"), "count", "budget"
    ).items():
        if set(BUDGETS) <= set(found):
            sizes = {budget: _mean(found[budget]) for budget in BUDGETS}
            first, *_, last = BUDGETS
            holds = list(sizes.values()) == sorted(sizes.values()) and sizes[last] > sizes[first]
            more = [found[last][seed] - found[first][seed] for seed in found[first]]
            larger.tried(_name((dataset, source)), holds, sizes, ".1f", solver, more)
    gaps = Claim(
        "gap", "Their prediction gap is smaller than KL's, yet above the margin.", f"it is between {MARGIN} and KL's"
    )
    for place, found in by_place(four, WHERE, "prediction_gap").items():
        for solver in SAMPLED:
            pair = {name: _mean(found[name]) for name in (solver, "KL")}
            inside = [min(own - MARGIN, found["KL"][seed] - own) for seed, own in found[solver].items()]
            gaps.tried(_name(place), MARGIN < pair[solver] < pair["KL"], pair, ".2f", solver, inside)
    return [
        _of_pairs(
            four,
            "count",
            "BCMS and CCMS flip more samples than KL and MS.",
            "it flips more than the other",
            "count",
            1,
            ".1f",
        ),
        _of_pairs(
            four,
            "consumption",
            "Their consumption per flip is lower.",
            "it draws less per flip than the other",
            "consumption_per_picked",
            -1,
            ".3g",
        ),
        larger,
        _of_pairs(
            four,
            "unspent",
            "They leave less of the budgets unspent.",
            "it leaves a smaller part than the other",
            "unspent",
            -1,
            ".2f",
        ),
        gaps,
        _of_four(
            [row for row in four if row["dataset"] == "icu"],
            "kl_spends",
            "Patients in intensive care: KL uses a bigger portion of the budgets than the others.",
            "it uses more than all three",
            "spent",
            lambda c: c["KL"] - max(c[s] for s in ("MS", *SAMPLED)),
            ".2f",
        ),
        _of_four(
            four,
            "best",
            "BCMS is the best of the four, CCMS a close second.",
            "BCMS flips more than CCMS, CCMS more than MS and KL",
            "count",
            lambda c: min(c["BCMS"] - c["CCMS"], c["CCMS"] - max(c[s] for s in OTHERS)),
            ".1f",
        ),
    ]


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
                means_of = {f"n = {n}": _mean(each) for n, each in gains.items()}
                in_order = list(means_of.values())
                first, *_, last = gains.values()
                growth = [last[s] - first[s] for s in first.keys() & last.keys()]
                grows.tried(_name(place), in_order == sorted(set(in_order)), means_of, "+.1f", solver, growth)
    least = smallest(some)
    for (*at, n, solver), starts in by_seed(some, (*where, "n", "solver"), "count", "start").items():
        if {"random", "warm"} <= set(starts) and n > least[at[0]]:
            both = {start: _mean(starts[start]) for start in ("random", "warm")}
            is_small = abs(both["warm"] - both["random"]) <= NEGLIGIBLE * both["random"]
            rest = [NEGLIGIBLE * own - abs(starts["warm"][seed] - own) for seed, own in starts["random"].items()]
            warm.tried(_name((*at, n)), is_small, both, ".1f", solver, rest)
    return [grows, warm]


def runs(rows: Iterable[Row], of: str) -> dict[tuple[Any, ...], dict[str, list[list[float]]]]:
    """place -> solver -> for each seed, what there was after each outer iteration"""
    found: dict[tuple[Any, ...], dict[str, dict[int, list[float]]]] = {}
    for row in sorted(tuned(rows), key=lambda row: int(row["outer"])):
        place = tuple(row[name] for name in WHERE)
        found.setdefault(place, {}).setdefault(row["solver"], {}).setdefault(row["seed"], []).append(float(row[of]))
    return {
        place: {solver: list(seeds.values()) for solver, seeds in each.items()}
        for place, each in found.items()
        if set(FOUR) <= set(each)
    }


def curves(rows: Iterable[Row], of: str) -> dict[tuple[Any, ...], dict[str, list[float]]]:
    """place -> solver -> means over seeds by outer iteration; what ended early stays as it ended."""
    return {
        place: {solver: _mean_curve(each) for solver, each in found.items()} for place, found in runs(rows, of).items()
    }


def _mean_curve(each: list[list[float]]) -> list[float]:
    longest = max(map(len, each))
    whole = [run + [run[-1]] * (longest - len(run)) for run in each]
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
    stays = Claim(
        "stays",
        "The number of flips rises and stays at its highest.",
        f"the last is at least {100 * STAYS:.0f} % of the most, and no fewer than the first",
    )
    faster = Claim(
        "faster",
        "BCMS converges faster than CCMS, and so does KL.",
        f"it is earlier than CCMS at {100 * STAYS:.0f} % of its most",
    )
    falls = Claim("falls", "lambda falls.", "the last mean is below the first")
    rises = Claim("rises", "mu rises; KL's falls.", "the last mean is above the first, KL's below it")
    shrinks = Claim(
        "shrinks",
        "The norm of the gradient in mu shrinks to zero (MS, BCMS, CCMS).",
        f"the last is at most {100 * SHRUNK:.0f} % of the first",
    )
    moves = Claim("erratic", "MS is erratic.", "it moves more from one iteration to the next than the other three")
    for place, of in curves(rows, "count").items():
        where = _name(place)
        first = {solver: float(arrives(of[solver])) for solver in FOUR}
        for solver in FOUR:
            curve = of[solver]
            ends = {"first": curve[0], "most": max(curve), "last": curve[-1]}
            stays.tried(where, curve[-1] >= max(curve[0], STAYS * max(curve)), ends, ".1f", solver)
        for solver in ("BCMS", "KL"):
            pair = {solver: first[solver], "CCMS": first["CCMS"]}
            faster.tried(where, first[solver] < first["CCMS"], pair, ".0f", solver)
    # One by one: ups and downs of several runs cancel out in their mean.
    for place, each in runs(rows, "count").items():
        steps = {solver: float(np.mean([erratic(run) for run in each[solver]])) for solver in FOUR}
        moves.tried(_name(place), steps["MS"] > max(steps[s] for s in FOUR if s != "MS"), steps, ".2f")
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
    claim = Claim(
        "runtime",
        "In all, BCMS and CCMS take no longer than MS and KL.",
        "it takes no longer than either, reckoned in seconds",
    )
    if set(FOUR) <= set(seconds):
        for solver in SAMPLED:
            some = {name: seconds[name] for name in (solver, *OTHERS)}
            claim.tried("", seconds[solver] <= min(seconds[name] for name in OTHERS), some, ",.0f", solver)
    return claim


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
            some = _of_common_seeds({f"margin {margin:g}": each for margin, each in shares.items() if each})
            if len(some) > 1:
                said = {name: _mean(each) for name, each in some.items()}
                first, *_, last = some
                more = [some[last][seed] - some[first][seed] for seed in some[first]]
                claim.tried(dataset, said[last] > said[first], said, ".2f", solver, more)
    return claim


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
