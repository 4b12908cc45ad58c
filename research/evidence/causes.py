"""Why a claim of the paper is not confirmed here: what the places where it fails have in common.

Sentences are chosen by rules from result files, never typed for one outcome: with other results they say other things.
Some say how a claim fails rather than why (who is ahead instead, say); none of them proves a cause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from research.evidence.claims.claim import Claim, Spot, Tried
from research.evidence.claims.places import Means, means, tuned
from research.evidence.claims.runtime import ITERATIONS
from research.evidence.gains import FOUR, WHERE, compared
from research.evidence.results import Results, Row

LOOSE = 0.5  # of the budgets, left by Prices: they hardly bind
CLOSE = 0.9  # of the most that one of the four flips, by the one that flips least: they are about equal
CARRIED = 0.75  # of the share flipped on the draw for tuning
SHORT = 0.5  # of the paper's iterations
HIGH = 10.0  # the most that lambda starts at
COMMON = 0.75  # of the places where a claim fails, for what they have in common to be told
SPREAD = 0.9  # of all places: what nearly all have tells nothing
WORTH_TELLING = 0.1  # of the places where it fails
TOLD = 3  # tests, of those that are met most often

_SAID = {"paper": "with the paper's budgets", "binding": "with binding budgets"}
_SAID |= {size: f"with {size} budgets" for size in ("small", "middle", "large", "fixed", "scaled")}
_SAID |= {"joint": "in one pool", "proportional": "in groups"}
_SAID |= {solver: f"for {solver}" for solver in (*FOUR, "Nearest", "Prices")}


class Facts:
    """Of the budget experiment, by place."""

    def __init__(self, rows: Iterable[Row], tried: Iterable[Row], grown: Iterable[Row]) -> None:
        rows, tried = compared(rows), [row for row in tried if row["chosen"]]
        self._by: dict[str, Means] = {
            of: means(rows, (*WHERE, "solver"), of)
            for of in ("count", "unspent", "consumption_per_picked", "prediction_gap", "iterations_made")
            if rows and of in rows[0]
        }
        shares = [row | {"share": row["count"] / row["n"]} for row in tuned(rows) if row["budget"] == "middle"]
        self._now = means(shares, ("dataset", "budget_source", "solver"), "share")
        self._then = {(row["dataset"], row["budget_source"], row["solver"]): row["count"] / row["n"] for row in tried}
        self._lambda = {
            (row["dataset"], row["budget_source"], row["solver"]): float(found.group(1))
            for row in tried
            if (found := re.search(r"start_lambda=([^,)]+)", row["options"]))
        }
        self._grown = means(
            [row for row in grown if row["start"] == "random"],
            ("dataset", "budget_source", "allocation", "scaling", "solver", "n"),
            "count",
        )

    def of(self, column: str, where: str, solver: str) -> float | None:
        return self._by.get(column, {}).get((*where.split(), solver))

    def is_loose(self, where: str) -> bool:
        left = self.of("unspent", where, "Prices")
        return left is not None and left > LOOSE

    def is_close(self, where: str) -> bool:
        counts = [count for solver in FOUR if (count := self.of("count", where, solver)) is not None]
        return len(counts) == len(FOUR) and min(counts) >= CLOSE * max(counts)

    def has_carried(self, where: str, solver: str) -> bool:
        dataset, source, _ = where.split()
        now, then = self._now.get((dataset, source, solver)), self._then.get((dataset, source, solver))
        return now is None or then is None or now >= CARRIED * then

    def is_more(self, column: str, where: str, pair: str) -> bool:
        """pair: "BCMS beside KL"; whether the first has more than the second"""
        first, second = (self.of(column, where, solver) for solver in pair.split(" beside "))
        return first is not None and second is not None and first > second

    def starts_low(self, where: str, solver: str) -> bool:
        dataset, source, _ = where.split()
        return self._lambda.get((dataset, source, solver), HIGH) < HIGH

    def shrinks(self, where: str, solver: str) -> bool:
        """Whether it flips fewer of the most samples than of the fewest, which are among them."""
        counts = [count for (*at, _), count in sorted(self._grown.items()) if at == [*where.split(), solver]]
        return len(counts) > 1 and counts[-1] < counts[0]

    def is_short(self, where: str, solver: str) -> bool:
        made = self.of("iterations_made", where, solver)
        return made is not None and made < SHORT * ITERATIONS[solver]


Test = Callable[[Facts, str, str, Tried], bool]  # of a place: facts, where, of whom, how it went

_ABOUT_COUNTS: dict[str, Test] = {
    "the budgets hardly bind (`Prices` leaves more than half of them)": lambda facts, where, _, __: facts.is_loose(
        where
    ),
    "the four flip about as many (within a tenth)": lambda facts, where, _, __: facts.is_close(where),
}


def _settings_were_lost(facts: Facts, where: str, whom: str, _: Tried) -> bool:
    return not all(facts.has_carried(where, solver) for solver in (whom.split()[:1] or ["BCMS", "CCMS"]))


def _is_ahead(solver: str) -> Test:
    return lambda _, __, ___, tried: max(tried.numbers, key=lambda name: tried.numbers[name]) == solver


def _is_behind(solver: str) -> Test:
    return lambda _, __, ___, tried: min(tried.numbers, key=lambda name: tried.numbers[name]) == solver


_LOST = {"tuned settings did not carry over from the draw that they were chosen on": _settings_were_lost}
_SHORT: dict[str, Test] = {
    "the run has less than half of the paper's iterations": lambda facts, where, whom, _: facts.is_short(where, whom)
}
TESTS: dict[str, dict[str, Test]] = {
    "count": {**_ABOUT_COUNTS, **_LOST},
    "best": {**_ABOUT_COUNTS, **_LOST, **{f"{solver} flips the most": _is_ahead(solver) for solver in FOUR}},
    "consumption": {
        "it flips more than the other, so also those who are dearer": lambda facts, where, whom, _: facts.is_more(
            "count", where, whom
        ),
        "it goes further beyond the line than the other": lambda facts, where, whom, _: facts.is_more(
            "prediction_gap", where, whom
        ),
    },
    "unspent": {
        "it flips no more than the other": lambda facts, where, whom, _: not facts.is_more("count", where, whom),
        "it pays no more for a flip": lambda facts, where, whom, _: (
            not facts.is_more("consumption_per_picked", where, whom)
        ),
    },
    "larger": {
        "the smallest budget already buys as much as the largest": lambda _, __, ___, tried: (
            len(set(tried.numbers.values())) == 1
        )
    },
    "kl_spends": {f"{solver} uses the most": _is_ahead(solver) for solver in ("MS", "BCMS", "CCMS")},
    "erratic": {f"{solver} goes back and forth the most": _is_ahead(solver) for solver in ("BCMS", "CCMS", "KL")},
    "runtime": {f"{solver} takes the least": _is_behind(solver) for solver in FOUR},
    "faster": {
        "both arrive in the same iteration": lambda _, __, ___, tried: len(set(tried.numbers.values())) == 1,
    },
    "warm": {
        "the warm start flips more": lambda _, __, ___, tried: tried.numbers["warm"] > tried.numbers["random"],
        "the warm start flips fewer": lambda _, __, ___, tried: tried.numbers["warm"] < tried.numbers["random"],
    },
    "grows": {
        "it flips fewer of the most samples than of the fewest, which are among them: settings did not carry over": (
            lambda facts, where, whom, _: facts.shrinks(where, whom)
        ),
        "the gain is smaller with most samples than with fewest": lambda _, __, ___, tried: _is_falling(tried.numbers),
    },
    "stays": _SHORT,
    "falls": {
        **_SHORT,
        f"the settings start lambda below {HIGH:g}": lambda facts, where, whom, _: facts.starts_low(where, whom),
        "it hardly moves (by less than a fifth)": lambda _, __, ___, tried: 0.8 < _ends_over_begins(tried) < 1.2,
    },
    "rises": _SHORT,
    "shrinks": {
        **_SHORT,
        "it does shrink, but by less": lambda _, __, ___, tried: not tried.holds and _ends_over_begins(tried) < 1.0,
    },
}


def _is_falling(numbers: Mapping[str, float]) -> bool:
    first, *_, last = numbers.values()
    return last < first


def _ends_over_begins(tried: Tried) -> float:
    begin, end = tried.numbers["first"], tried.numbers["last"]
    return end / begin if begin else 1.0


class Causes:
    def __init__(self, results: Results) -> None:
        def rows(name: str) -> list[Row]:
            return results.rows(name) if results.has(name) else []

        self._facts = Facts(rows("budget"), rows("tuning"), rows("scalability"))

    def of(self, claim: Claim) -> str:
        """Nothing of what is confirmed or not measured."""
        if claim.verdict in ("confirmed", "not measured yet"):
            return ""
        if not claim.failing:
            return "In more than half of the places it may be chance."
        return " ".join(filter(None, (self._tally(claim), in_common(claim)))) or _chance(claim)

    def _tally(self, claim: Claim) -> str:
        """In how many of the places where it fails its tests are met. One that is met as often where the claim holds
        explains little: it is told only where there is no other, and that is said."""
        fails = claim.failing
        holds = {spot: tried for spot, tried in claim.places.items() if tried.holds}
        told: dict[bool, list[tuple[int, str]]] = {True: [], False: []}  # by whether it tells failures apart
        for said, test in TESTS.get(claim.key, {}).items():
            n = self._met(test, fails)
            if n and n >= WORTH_TELLING * len(fails):
                told[not holds or self._tells(test, fails, holds)].append((n, said))
        tells = bool(told[True])
        most = sorted(told[tells], key=lambda each: -each[0])[:TOLD]
        if not most:
            return ""
        as_often = "" if tells else " (as often where it holds)"
        if len(fails) == 1:
            return f"The one failure: {', '.join(said for _, said in most)}{as_often}."
        return f"Of {len(fails)} failures: {', '.join(f'in {_all(n, len(fails))} {s}' for n, s in most)}{as_often}."

    def _tells(self, test: Test, fails: Mapping[Spot, Tried], holds: Mapping[Spot, Tried]) -> bool:
        """Whether it is met more often where the claim fails than where it holds, algorithm by algorithm: what one of
        them has everywhere, of which the claim fails more often, tells nothing."""
        both = {whom for _, whom in fails} & {whom for _, whom in holds}
        if not both:
            return self._met(test, fails) * len(holds) > self._met(test, holds) * len(fails)
        more = 0.0
        for whom in both:
            own, other = ({spot: t for spot, t in places.items() if spot[1] == whom} for places in (fails, holds))
            more += self._met(test, own) - self._met(test, other) * len(own) / len(other)
        return more > 0

    def _met(self, test: Test, places: Mapping[Spot, Tried]) -> int:
        return sum(test(self._facts, where, whom, tried) for (where, whom), tried in places.items())


def _chance(claim: Claim) -> str:
    """Where no rule says anything."""
    unclear = sum(tried.is_clear is False for tried in claim.failing.values())
    return f"In {unclear} of {len(claim.failing)} failures it may be chance." if unclear else "No rule finds a reason."


def _all(n: int, of: int) -> str:
    return "all" if n == of else str(n)


def in_common(claim: Claim) -> str:
    """Which datasets, budgets or algorithms nearly all places have where it fails, though not all that were tried."""
    everywhere, fails = _labels(claim.places), _labels(claim.failing)
    common = [
        label
        for label, n in fails.items()
        if n >= COMMON * len(claim.failing) and everywhere[label] <= SPREAD * len(claim.places)
    ]
    if not common:
        return ""
    always = all(fails[label] == len(claim.failing) for label in common)
    said = ", ".join(_SAID.get(label, f"on {label}") for label in common)
    return f"It fails {'only' if always else 'mostly'} {said}."


def _labels(places: Iterable[Spot]) -> Counter[str]:
    found: Counter[str] = Counter()
    for where, whom in places:
        found.update(dict.fromkeys([*(word for word in where.split() if not word.isdigit()), *whom.split()[:1]], 1))
    return found
