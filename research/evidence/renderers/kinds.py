"""docs/results/kinds.md"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from research.evidence.markdown import made_line, percent, table
from research.evidence.registry import text, waits_for
from research.evidence.results import Results, Row

SHARE, GRADIENTS, TIMES = 0.995, 100, 3.0  # the bars: of the reference, per sample, of the time of squared budgets
ALIKE = ("model", "samples", "seed")  # what cells have in common whose times are compared


def is_counted(row: Row) -> bool:
    """Whether everybody is worth 1."""
    return bool(row["worth"] == row["count"])


def ceiling(row: Row) -> float | None:
    """What the plan says that none can exceed: proved, or else estimated."""
    said = row["bound"] if row["bound"] is not None else row["estimate"]
    return None if said is None else float(said)


def reference(row: Row) -> float | None:
    """What no plan is worth more than, about; whole where people are counted, since no plan picks half of one."""
    known = [value for value in (row["reference_value"], row["bound"]) if value is not None]
    if not known:
        return None
    return float(math.floor(min(known) + 1e-6)) if is_counted(row) else float(min(known))


def share(row: Row, of: str = "worth") -> float | None:
    most = reference(row)
    return row[of] / most if most and row[of] is not None else None


def times_squared(row: Row, rows: Sequence[Row]) -> float | None:
    """Processor time, by that of squared budgets of the same model, size and draw."""
    same = [other for other in rows if other["kind"] == "squared" and all(other[k] == row[k] for k in ALIKE)]
    if not same or row["seconds"] is None or not same[0]["seconds"]:
        return None
    return float(row["seconds"] / same[0]["seconds"])


def most_found(row: Row) -> float | None:
    """The worth of the best plan that anything found."""
    plans = [row.get(name) for name in ("worth", "thorough_worth", "resolved", "nearest", "unit", "reference_whole")]
    return max((float(worth) for worth in plans if worth is not None), default=None)


def excess(row: Row) -> float | None:
    """By how many samples, of the mean worth of those picked, the best plan found exceeds what the plan said."""
    most, said = most_found(row), ceiling(row)
    if most is None or said is None or not row["count"]:
        return None
    return float(max(0.0, most - said) * row["count"] / row["worth"])


def over_nearest(row: Row) -> float | None:
    """The plan's worth over that of the better of the two."""
    worths = [row[name] for name in ("nearest", "unit") if row[name]]
    return float(row["worth"] / max(worths)) if worths and row["worth"] is not None else None


@dataclass(frozen=True)
class Bar:
    """value: of a cell among all, None where it was not measured   is_met, shown: of such a value"""

    name: str
    value: Callable[[Row, Sequence[Row]], float | None]
    is_met: Callable[[float], bool]
    worst: Callable[[Sequence[float]], float]
    shown: Callable[[float], str]

    def verdict(self, row: Row, rows: Sequence[Row]) -> bool:
        """A cell that was stopped meets nothing; what was not asked is not held against it."""
        value = self.value(row, rows)
        return not row["stopped"] if value is None else self.is_met(value)


BARS = (
    Bar(
        f"at least {percent(SHARE, 1)} of the reference",
        lambda row, _: share(row),
        lambda value: value >= SHARE,
        min,
        percent,
    ),
    Bar(
        f"at most {GRADIENTS} gradients per sample",
        lambda row, _: row["gradients"],
        lambda value: value <= GRADIENTS,
        max,
        lambda value: f"{value:.0f}",
    ),
    Bar(
        f"at most {TIMES:g} times the processor time of squared budgets",
        times_squared,
        lambda value: value <= TIMES,
        max,
        lambda value: f"{value:.1f} times",
    ),
    Bar(
        "no plan found exceeds the estimate by more than one sample",
        lambda row, _: excess(row),
        lambda value: value <= 1.0,
        max,
        lambda value: f"{value:.1f} samples",
    ),
    Bar(
        "never below a Nearest",
        lambda row, _: over_nearest(row),
        lambda value: value >= 1.0,
        min,
        percent,
    ),
)


@text("kinds.short")
@waits_for("kinds")
def short(results: Results) -> str:
    """Each bar, how many cells meet it, and which is furthest from it."""
    rows = results.rows("kinds")
    lines = []
    for bar in BARS:
        for which, some in (("", _tuned(rows)), (", held out", [row for row in rows if row["held_out"]])):
            if some:
                lines.append([bar.name + which, *_standing(bar, some, rows)])
    stopped = sum(bool(row["stopped"]) for row in rows)
    said = f"{len(rows)} cells" + (
        f", of which {stopped} were stopped for their time." if stopped else ", none stopped."
    )
    return "\n\n".join([said, table(["bar", "cells that meet it", "the worst", ""], lines)])


def _tuned(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row["held_out"]]


def _standing(bar: Bar, some: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    met = sum(bar.verdict(row, rows) for row in some)
    known = {k: value for k, row in enumerate(some) if (value := bar.value(row, rows)) is not None}
    if not known:
        return [f"{met} of {len(some)}", "not measured", ""]
    worst = bar.worst(list(known.values()))
    where = some[next(k for k, value in known.items() if value == worst)]
    named = f"{bar.shown(worst)} ({where['model']}, {where['kind']}, {where['samples']:,})"
    return [f"{met} of {len(some)}", named, "met" if met == len(some) else "**not met**"]


@text("kinds.effort")
@waits_for("kinds")
def effort(results: Results) -> str:
    """What three times the effort wins, over the cells of networks that do not reach the reference at once."""
    rows = [row for row in results.rows("kinds") if row.get("thorough_worth") is not None]
    if not rows:
        return "Not measured yet."
    lines = []
    for samples in sorted({row["samples"] for row in rows}):
        some = [row for row in rows if row["samples"] == samples]
        for name, of in (("1", ""), ("3", "thorough_")):
            shares = [reached for row in some if (reached := share(row, f"{of}worth")) is not None]
            lines.append(
                [
                    f"{samples:,}",
                    name,
                    str(len(some)),
                    percent(sum(shares) / len(shares)),
                    percent(min(shares)),
                    f"{sum(reached >= SHARE for reached in shares)} of {len(shares)}",
                    f"{sum(row[f'{of}gradients'] for row in some) / len(some):.0f}",
                    f"{sum(row[f'{of}seconds'] for row in some) / len(some):.1f}",
                ]
            )
    head = ["samples", "effort", "cells", "worth / reference, mean", "worst", f"at least {percent(SHARE, 1)}"]
    return table([*head, "gradients per sample, mean", "seconds, mean"], lines)


@text("kinds.table")
@waits_for("kinds")
def cells(results: Results) -> str:
    rows = results.rows("kinds")
    commits = sorted({row["commit"] for row in rows})
    parts = [made_line(results.made("kinds"))]
    if len(commits) > 1:
        parts.append(f"Cells were measured at the commits {', '.join(commits)}.")
    for model in dict.fromkeys(row["model"] for row in rows):
        parts += [f"### {model}", _model_table([row for row in rows if row["model"] == model], rows)]
    return "\n\n".join(parts)


HEAD = ["budgets", "samples", "worth", "people", "reference", "worth / reference", "estimate or bound", "most found"]
HEAD += ["Nearest", "used up", "gradients", "forwards", "seconds", "times squared", "MiB", "bars missed"]


def _model_table(some: Sequence[Row], rows: Sequence[Row]) -> str:
    return table(HEAD, [_line(row, rows) for row in some])


def _line(row: Row, rows: Sequence[Row]) -> list[str]:
    if row["worth"] is None:
        return [row["kind"], f"{row['samples']:,}", f"stopped: {'; '.join(row['stopped'])}", *[""] * (len(HEAD) - 3)]
    missed = [str(k + 1) for k, bar in enumerate(BARS) if not bar.verdict(row, rows)]
    reached, times = share(row), times_squared(row, rows)
    best = max((row[name] for name in ("nearest", "unit") if row[name] is not None), default=None)
    error = f" ± {number(row['reference_error'], 1)}" if row["reference_error"] else ""
    return [
        row["kind"],
        f"{row['samples']:,}",
        number(row["worth"]),
        f"{row['count']:,}",
        number(row["reference_value"], 1) + error,
        "" if reached is None else percent(reached),
        number(ceiling(row), 1),
        number(most_found(row)),
        number(best),
        f"{row['used_up']} of {row['budgets']}",
        *(f"{row[name]:.0f}" for name in ("gradients", "forwards")),
        f"{row['seconds']:.1f}",
        "" if times is None else f"{times:.1f}",
        f"{row['peak_mib']:.0f}",
        ", ".join(missed) or "none",
    ]


def number(value: float | None, digits: int = 0) -> str:
    """Of large ones no digits behind the point."""
    return "" if value is None else f"{value:,.{digits if value < 1e5 else 0}f}"
