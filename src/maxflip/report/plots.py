"""Plots of a plan for notebooks, with matplotlib. Each function draws on the given axes, or on new ones.

Names and ids are user texts: they are never parsed as mathtext, and are cut to the length of a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxflip._util.messages import did_you_mean, one_line, shown
from maxflip._util.types import Floats
from maxflip.errors import InputError
from maxflip.plan.plan import Fate, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxflip.study.frontier import Frontier

MOST = 30  # bars per plot
LONGEST = 32  # characters of a label
LINE, QUIET, UP, DOWN = "#0072b2", "#8a94a0", "#0072b2", "#d55e00"
ROW = 0.32  # inches of height per bar
SMALLEST, LARGEST = 6.0, 160.0  # area of a dot in points squared: for no change, and for a feature's largest change


def plot_frontier(frontier: Frontier, plan: Plan | None = None, ax: Axes | None = None) -> Axes:
    """Worth over the scale of the budgets, with bound or estimate if known; `plan` as a horizontal line."""
    ax = _axes(ax)
    worths = [p.worth for p in frontier.plans]
    ax.plot(frontier.scales, worths, marker="o", color=LINE, label="plan")
    for name in ("bound", "estimate"):
        known = [(s, getattr(p, name)) for s, p in zip(frontier.scales, frontier.plans, strict=True)]
        known = [(s, value) for s, value in known if value is not None and math.isfinite(value)]
        if known:
            kind = "proved bound" if name == "bound" else "estimate, not proved"
            ax.plot(*zip(*known, strict=True), marker="_", linestyle="--", color=QUIET, label=kind)
    if plan is not None:
        ax.axhline(plan.worth, linestyle=":", color=QUIET, label="this plan")
    ax.set(xlabel="all budgets, multiplied by", ylabel=_counts(*frontier.plans), ylim=(0, None))
    ax.legend(frameon=False)
    return ax


def plot_spend(plan: Plan, ax: Axes | None = None) -> Axes:
    """A bar per budget: the share of it that is spent."""
    names = list(plan.budgets)
    amounts = {name: plan.budgets[name].amount for name in names}
    shares = {n: plan.spend[n] / amounts[n] if 0 < amounts[n] < math.inf else 0.0 for n in names}
    notes = {n: f"{_number(plan.spend[n])}{_of(amounts[n])}" for n in names}
    ax = _bars(ax, sorted(names, key=lambda n: -shares[n]) if len(names) > MOST else names, shares, notes, "budgets")
    ax.set(xlim=(0, 1.4), xticks=[0, 0.25, 0.5, 0.75, 1], xticklabels=["0", "25 %", "50 %", "75 %", "100 %"])
    ax.set_title("Share of each budget spent", loc="left")
    return ax


def plot_prices(plan: Plan, ax: Axes | None = None) -> Axes:
    """A bar per budget: price x amount. The note gives the price, which is in units of its own budget."""
    if plan.prices is None:
        raise InputError("plot_prices: this plan has no prices. Solve with Prices().")
    prices = plan.prices
    worth = {n: prices[n] * b.amount if b.amount < math.inf else 0.0 for n, b in plan.budgets.items()}
    notes = {n: f"{prices[n]:.2g} per unit" if plan.budgets[n].amount else "not known" for n in worth}
    ax = _bars(ax, sorted(worth, key=lambda n: -worth[n]), worth, notes, "budgets")
    ax.set_title("Price times amount of each budget", loc="left")
    ax.set_xlabel(_counts(plan))
    ax.margins(x=0.3)
    return ax


def plot_changes(plan: Plan, ax: Axes | None = None) -> Axes:
    """Two bars per feature that changes by amounts: how many values are raised (to the right) and lowered (left)."""
    picked, slot = np.nonzero(plan.moves)
    moves, feature = plan.moves[picked, slot], plan.slot_features[slot]
    counts = np.bincount(feature, minlength=len(plan.features))
    counts[[i for i, name in enumerate(plan.features) if name in plan.levers]] = 0  # `plot_actions` draws these
    chosen = np.flatnonzero(counts)
    if len(chosen) > MOST:
        chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST])
    up, down, notes = {}, {}, {}
    for i in chosen.tolist():
        own = moves[feature == i]
        name = plan.features[i]
        up[name], down[name] = float((own > 0).sum()), -float((own < 0).sum())
        notes[name] = f"median {_signed(float(np.median(own)))} {plan.units.get(name, '')}".rstrip()
    left_out = int((counts > 0).sum()) - len(chosen)
    ax = _bars(ax, list(up), up, notes, "features", UP, left_out)
    ax.barh(range(len(down)), list(down.values()), color=DOWN)
    ax.axvline(0, color=QUIET, linewidth=0.8)
    ax.set_title("Lowered (left) and raised (right)", loc="left")
    ax.set_xlabel(plan.places.changed_noun)
    ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    low, high = min(down.values(), default=0.0), max(up.values(), default=1.0)
    ax.set_xlim(low - 0.05 * (high - low), high + 0.55 * (high - low))  # room for the notes
    return _nobody(plan, ax)


def plot_actions(plan: Plan, ax: Axes | None = None) -> Axes:
    """A bar per action and switch: how many people get it. The note tells what it does."""
    if not plan.levers:
        raise InputError("plot_actions: nothing of the kind was asked. A Problem has actions=[...] or choices={...}.")
    counts = {name: float(np.count_nonzero(plan.moves[:, plan.features.index(name)])) for name in plan.levers}
    names = sorted(counts, key=lambda name: -counts[name])
    ax = _bars(ax, names, counts, dict(plan.levers), "actions")
    ax.set_title("Who gets which action", loc="left")
    ax.set_xlabel("people")
    ax.margins(x=0.6)  # room for the notes
    return _nobody(plan, ax)


def plot_convergence(plan: Plan, ax: Axes | None = None) -> Axes:
    """Solver progress per step: the dual value D of Prices; for other solvers the worth of each step's plan."""
    trace = plan.trace
    name = next((n for n in ("dual", "worth") if len(trace.get(n, ())) > 1), None)
    if name is None:
        raise InputError(
            "plot_convergence: the trace of this plan has no steps to draw. Prices, MS, BCMS, CCMS and KL leave some."
        )
    ax = _axes(ax)
    groups = trace.get("group", [0] * len(trace[name]))
    for group in dict.fromkeys(groups):
        values = [v for v, g in zip(trace[name], groups, strict=True) if g == group]
        label = "dual value D over the flips found" if name == "dual" else "worth of the plan of each step"
        ax.plot(range(len(values)), values, marker=".", label=f"group {group}" if "group" in trace else label)
    if "group" not in trace:
        ax.axhline(plan.worth, linestyle=":", color=QUIET, label="this plan")
    ax.set(xlabel="step of the solver", ylabel=_counts(plan))
    ax.legend(frameon=False)
    return ax


def plot_person(plan: Plan, id: str, ax: Axes | None = None) -> Axes:  # noqa: A002 (as in Cohort.table)
    """The changes of one person: each change divided by the largest change of its feature in the plan.

    For a table a bar per feature; for a sequence a dot per measurement over time, larger for a larger change.
    """
    row = _row_of(plan, id)
    slots = np.flatnonzero(plan.moves[row])
    feature, moves = plan.slot_features[slots], plan.moves[row, slots]
    parts = moves / _largest(plan)[feature]
    shown_features = list(dict.fromkeys(np.sort(feature).tolist()))
    names = [plan.features[i] for i in shown_features]
    if plan.places.has_steps:
        ax = _axes(ax, rows=len(names))
        height = np.array([shown_features.index(i) for i in feature.tolist()])
        colours = np.where(moves > 0, UP, DOWN).tolist()
        sizes = SMALLEST + (LARGEST - SMALLEST) * np.abs(parts)
        ax.scatter(plan.places.columns(row, slots)["time"], height, s=sizes, c=colours, alpha=0.7)
        _name_rows(ax, names)
        ax.set_xlabel("time")
    else:
        before = plan.before[row, slots]
        notes = {
            n: f"{_number(b)} → {_number(b + d)} {plan.units.get(n, '')}".rstrip()
            for n, b, d in zip(names, before.tolist(), moves.tolist(), strict=True)
        }
        most = sorted(range(len(names)), key=lambda k: -abs(parts[k]))[:MOST]
        kept = [names[k] for k in sorted(most)]
        bars = dict(zip(names, parts.tolist(), strict=True))
        ax = _bars(ax, kept, bars, notes, "features", left_out=len(names) - len(kept))
        for bar, name in zip(ax.patches[-len(kept) :], kept, strict=True):
            bar.set_color(UP if bars[name] > 0 else DOWN)
        ax.axvline(0, color=QUIET, linewidth=0.8)
        ax.set_xlim(-1.1, 1.9)
        ax.set_xlabel("change / largest change of the feature in the plan")
    ax.set_title(f"{_label(id)}: changes (blue up, orange down)", loc="left", parse_math=False)
    return ax


def _row_of(plan: Plan, id_: Any) -> int:
    picked: list[str] = plan.ids.tolist()
    if id_ in picked:
        return picked.index(id_)
    everyone = plan.all_ids.tolist()
    if id_ not in everyone:
        raise InputError(f"plot_person: nobody has the id {shown(id_)}.{did_you_mean(id_, picked)}")
    fate = Fate(plan.fates[everyone.index(id_)])
    raise InputError(f"plot_person: the plan changes nothing for {shown(id_)}: {fate.value} ({fate.meaning}).")


def _largest(plan: Plan) -> Floats:
    """(F,): the largest absolute change of each feature"""
    largest = np.zeros(len(plan.features))
    np.maximum.at(largest, plan.slot_features, np.abs(plan.moves).max(axis=0, initial=0.0))
    return largest


def _bars(
    ax: Axes | None,
    names: Sequence[str],
    values: dict[str, float],
    notes: dict[str, str],
    kind: str,
    colour: str = LINE,
    left_out: int = 0,
) -> Axes:
    """One bar per name, from the top down, with a note at its end; the title states how many were left out."""
    left_out += max(0, len(names) - MOST)
    names = names[:MOST]
    ax = _axes(ax, rows=len(names))
    bars = ax.barh(range(len(names)), [values[n] for n in names], color=colour)
    for bar, name in zip(bars, names, strict=True):
        place = (max(0.0, bar.get_width()), bar.get_y() + bar.get_height() / 2)
        note = _label(notes[name], LONGEST + 16)
        ax.annotate(note, place, (4, 0), textcoords="offset points", va="center", fontsize="small", parse_math=False)
    _name_rows(ax, names)
    if left_out:
        ax.set_title(f"and {left_out} more {kind}", loc="right", fontsize="small")
    return ax


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), labels=[_label(n) for n in names], parse_math=False)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)


def _nobody(plan: Plan, ax: Axes) -> Axes:
    if not plan.count:
        ax.text(0.5, 0.5, "The plan moves nobody.", transform=ax.transAxes, ha="center", va="center")
    return ax


def _axes(ax: Axes | None, rows: int = 0) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise InputError("Plots need matplotlib, which is not installed: pip install maxflip[plots]") from error
    if ax is not None:
        return ax
    size = (7.0, max(1.8, 1.0 + ROW * rows)) if rows else None
    new: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return new


def _counts(*plans: Plan) -> str:
    return "people moved" if all(bool((p.worths == 1).all()) for p in plans) else "worth of those moved"


def _label(text: object, most: int = LONGEST) -> str:
    """The text on one line, non-printable characters escaped, cut in the middle to at most `most` characters.

    >>> _label("a\\nb"), _label("x" * 40 + "end", most=12)
    ('a\\\\nb', 'xxxxxxxx…end')
    """
    clean = one_line(str(text))
    tail = most // 4
    return clean if len(clean) <= most else f"{clean[: most - 1 - tail]}…{clean[len(clean) - tail :]}"


def _number(value: float) -> str:
    return f"{value:,.4g}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "−")


def _of(amount: float) -> str:
    return ", no limit" if amount == math.inf else f" of {_number(amount)}"
