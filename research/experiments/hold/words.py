"""How the pages say what the result files of `hold` hold: shares, differences, and what their intervals allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from research.experiments.hold.cases import AS_CLOSE, ENSEMBLE, UNCHANGED
from research.experiments.hold.points import Mean

STANDINGS = ("ahead of", "level with", "behind")


def markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *rest = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rest))


def named(line: str) -> str:
    return {ENSEMBLE: "`Prices` for an `Ensemble`", UNCHANGED: "*unchanged*", AS_CLOSE: "*unchanged, as close*"}.get(
        line, f"`{line}`"
    )


def share(mean: Mean) -> str:
    return f"{100 * mean.value:.0f}" + ("" if mean.half is None else f" ± {100 * mean.half:.0f}") + " %"


def number(mean: Mean) -> str:
    return f"{mean.value:,.0f}" if mean.value >= 100 else f"{mean.value:.1f}"


def signed(mean: Mean, times: float = 1.0) -> str:
    return f"{times * mean.value:+.1f}" + ("" if mean.half is None else f" ± {times * mean.half:.1f}")


def all_of(words: Sequence[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def at_margin(*margins: float) -> str:
    """Of one or several."""
    some = [f"{margin:g}" for margin in margins if margin]
    parts = ["without a margin"] if len(some) < len(margins) else []
    return all_of([*parts, *([f"with a margin of {all_of(some)}"] if some else [])])


def often(difference: Mean) -> str:
    """How shares that hold compare, as far as the interval of their difference says."""
    if difference.half is None:
        return "not known how often"
    return {-1: "clearly less often", 0: "about as often", 1: "clearly more often"}[difference.sign]


def standing(difference: Mean) -> str:
    """How numbers compare, likewise."""
    if difference.half is None:
        return "not known to differ from"
    return STANDINGS[1 - difference.sign]


def where(by_margin: Mapping[float, Mean], less: str = "clearly less often", more: str = "clearly more often") -> str:
    """At which margins the interval of a difference is below 0, or above."""
    said = []
    for sign, words in ((-1, less), (1, more)):
        margins = [margin for margin, mean in by_margin.items() if mean.sign == sign]
        if margins:
            said.append(f"{words} {_margins(margins, len(by_margin))}")
    return ", ".join(said) or "no clear difference at any margin"


def _margins(some: Sequence[float], of: int) -> str:
    if len(some) == of > 1:
        return "at every margin"
    return f"at margin{'s' if len(some) > 1 else ''} {all_of([f'{margin:g}' for margin in some])}"
