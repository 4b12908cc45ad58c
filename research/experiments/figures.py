"""The figures, drawn from result files alone.

Points are means over seeds, bars 95 % intervals of Student's t; the estimate is a black line. Axes of what is never
below 0 begin there, so that heights can be compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from research.evidence.files import FOLDER
from research.evidence.gains import Gain, compared, gains_over_kl_by_size
from research.evidence.intervals import Interval, paired
from research.evidence.results import Results, Row
from research.experiments.hold import picture
from research.experiments.hold.points import read as read_held
from research.experiments.protocol import BUDGETS, SHARES
from research.experiments.styles import STYLES, marker_size

PANELS = (
    ("count", "(a) samples flipped, |S~|"),
    ("consumption_per_picked", "(b) consumption per picked sample"),
    ("unspent", "(c) budget residual (unspent share)"),
    ("prediction_gap", "(d) prediction gap"),
)
CURVES = (
    ("count", "samples flipped, |S~|"),
    ("mean_lambda", "mean λ"),
    ("mean_mu", "mean μ"),
    ("grad_mu", "|∇μ L|"),
)
TITLES = {"icu": "ICU patients", "oulad": "students (OULAD)", "insurance": "insurance-like sequences"}
KINDS = {"paper": "the paper's budgets (of unlimited KL)", "binding": "our binding budgets (of the cheapest flips)"}
LEGEND = 0.55  # inches below the panels
Point = tuple[float, Interval]


def draw_all(results: Path = FOLDER, pictures: Path = Path("docs/pictures")) -> list[Path]:
    """Every figure whose result file is there, that of `hold` too."""
    pictures.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = []
    for file, draw in DRAWN.items():
        if (results / f"{file}.parquet").is_file():
            for name, figure in draw(results):
                drawn.append(_saved(figure, pictures / f"{name}.svg"))
    if held := read_held(results):
        drawn.append(picture.draw(held, pictures / picture.PICTURE.name))
    return drawn


def _saved(figure: Figure, path: Path) -> Path:
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "maxflip"}):
        figure.savefig(path, metadata={"Date": None})
    return path


MOST = "estimate of the most"
Drawn = Iterable[tuple[str, Figure]]


def of_budgets(results: Path) -> Drawn:
    """Panels a to d for each dataset and kind of budget; and all datasets against how much there is of the budgets."""
    rows = compared(Results(results).rows("budget"))
    for dataset in _seen(rows, "dataset"):
        for source in _seen(rows, "budget_source"):
            here = _where(rows, dataset=dataset, budget_source=source)
            if here:
                title = f"{TITLES[dataset]}, {KINDS[source]}"
                ticks = [f"{name}\n({SHARES[source][name]:.0%})" for name in BUDGETS]
                yield f"study_budget_{dataset}_{source}", _panels(here, title, _budget_place, ticks)
    yield "study_frontier", _frontier([row for row in rows if row["budget_source"] == "binding"])
    yield "study_gap", _gaps([row for row in rows if row["budget_source"] == "binding"])


def of_sizes(results: Path) -> Drawn:
    """One pool and the paper's groups; the estimate is that of one pool, which can do whatever groups can."""
    joint, groups = (
        compared(Results(results).rows("scalability"), allocation) for allocation in ("joint", "proportional")
    )
    for part in (joint, groups):
        for dataset, scaling in itertools.product(_seen(part, "dataset"), _seen(part, "scaling")):
            here = _where(part, dataset=dataset, scaling=scaling)
            if here:
                pool = "one pool" if part is joint else f"{here[0]['groups']} groups"
                warm = "; open markers: warm start" if _where(here, start="warm") else ""
                title = f"{TITLES[dataset]}, {pool}, middle budget {scaling}{warm}"
                name = f"study_sizes_{dataset}_{here[0]['allocation']}_{scaling}"
                yield name, _panels(here, title, _size, None, _where(joint, dataset=dataset, scaling=scaling))
    gains = gains_over_kl_by_size(with_the_most(Results(results).rows("scalability")), also=(MOST,))
    for dataset in dict.fromkeys(gain.where[0] for gain in gains):
        yield f"study_improvement_{dataset}", _improvement([gain for gain in gains if gain.where[0] == dataset])


def of_iterations(results: Path) -> Drawn:
    rows = [row for row in compared(Results(results).rows("iterations")) if row["budget"] == "middle"]
    for dataset in _seen(rows, "dataset"):
        for source in _seen(rows, "budget_source"):
            here = _where(rows, dataset=dataset, budget_source=source)
            if here:
                title = f"{TITLES[dataset]}, middle of {KINDS[source]}"
                yield f"study_iterations_{dataset}_{source}", _curves(here, title, _ceiling(results, dataset, source))


def of_prices(results: Path) -> Drawn:
    rows = [
        row
        for row in Results(results).rows("prices")
        if row["budget"] == "middle" and row["budget_source"] == "binding"
    ]
    if rows:
        yield "study_prices", _prices(rows)


DRAWN: dict[str, Callable[[Path], Drawn]] = {
    "budget": of_budgets,
    "scalability": of_sizes,
    "iterations": of_iterations,
    "prices": of_prices,
}


def _panels(
    rows: Sequence[Row],
    title: str,
    place: Callable[[Row], float],
    ticks: Sequence[str] | None,
    estimated: Sequence[Row] | None = None,
) -> Figure:
    """estimated: the rows that the estimate is taken from; None: the same"""
    figure, axes = _sheet(2, 2, title)
    for axis, (column, label) in zip(axes, PANELS, strict=True):
        axis.set_title(label, fontsize=9)
        for start in ("random", "warm"):
            part = [row for row in rows if row.get("start", "random") == start]
            _lines(axis, part, column, place, is_open=start == "warm")
        if column == "count":
            ceiling = rows if estimated is None else estimated
            _estimate(axis, [row for row in ceiling if row.get("start", "random") == "random"], place)
        _from_zero(axis)
        if ticks is not None:
            axis.set_xticks(range(len(ticks)), ticks)
        else:
            axis.set_xticks(sorted({place(row) for row in rows}))
            axis.set_xlabel("samples", fontsize=8)
    return _with_legend(figure, axes[0])


def _from_zero(axis: Axes) -> None:
    axis.set_ylim(0.0, 1.05 * axis.get_ylim()[1])


def _size(row: Row) -> float:
    return float(row["n"])


def _budget_place(row: Row) -> float:
    return float(BUDGETS.index(row["budget"]))


def _lines(axis: Axes, rows: Sequence[Row], column: str, place: Callable[[Row], float], *, is_open: bool) -> None:
    solvers = [name for name in STYLES if any(row["solver"] == name for row in rows)]
    for number, solver in enumerate(solvers):
        points = _points((row for row in rows if row["solver"] == solver), column, place)
        _line(axis, solver, points, number - (len(solvers) - 1) / 2, is_open=is_open)


def _points(rows: Iterable[Row], column: str, place: Callable[[Row], float]) -> list[Point]:
    values: dict[float, list[float]] = {}
    for row in rows:
        if row[column] is not None and math.isfinite(row[column]):
            values.setdefault(place(row), []).append(row[column])
    return [(x, paired(values[x])) for x in sorted(values)]


def _line(axis: Axes, solver: str, points: Sequence[Point], shift: float, *, is_open: bool = False) -> None:
    """shift: in places of a row of solvers, so that bars do not hide each other"""
    style = STYLES[solver]
    step = min((b[0] - a[0] for a, b in itertools.pairwise(points)), default=1.0)
    axis.errorbar(
        [x + 0.03 * step * shift for x, _ in points],
        [at.mean for _, at in points],
        yerr=[0.0 if math.isnan(at.low) else at.high - at.mean for _, at in points],
        color=style.colour,
        marker=style.marker,
        linestyle="none" if is_open else style.line,
        markerfacecolor="white" if is_open else style.colour,
        markersize=marker_size(style),
        linewidth=1.2,
        capsize=2,
        elinewidth=0.8,
        label=None if is_open else solver,
    )


def with_the_most(rows: Sequence[Row]) -> list[Row]:
    """And, as if a solver had flipped as many, the most that each run of Prices tells of."""
    ours = [row for row in rows if row["solver"] == "Prices"]
    return [*rows, *({**row, "solver": MOST, "count": _most(row)} for row in ours if _most(row) is not None)]


def _most(row: Row) -> float | None:
    """What is known of the most that can be flipped: a proved bound where there is one, or the estimate."""
    most: float | None = row["estimate"] if row["bound"] is None else row["bound"]
    return most


def _estimate(axis: Axes, rows: Sequence[Row], place: Callable[[Row], float]) -> None:
    ours = [{**row, "most": _most(row)} for row in rows]
    points = _points((row for row in ours if row["solver"] == "Prices"), "most", place)
    if points:
        xs, ys = [x for x, _ in points], [at.mean for _, at in points]
        axis.plot(xs, ys, color="black", linewidth=0.8, label=MOST, zorder=1)


def _frontier(rows: Sequence[Row]) -> Figure:
    datasets = _seen(rows, "dataset")
    figure, axes = _sheet(1, len(datasets), "Samples flipped against how much there is of every budget")

    def share(row: Row) -> float:
        return 100.0 * SHARES[row["budget_source"]][row["budget"]]

    for axis, dataset in zip(axes, datasets, strict=True):
        here = _where(rows, dataset=dataset)
        axis.set_title(TITLES[dataset], fontsize=9)
        _lines(axis, here, "count", share, is_open=False)
        _estimate(axis, here, share)
        _from_zero(axis)
        axis.set_xticks(sorted({share(row) for row in here}))
        axis.set_xlabel("% of what the cheapest flips consume", fontsize=8)
    return _with_legend(figure, axes[0])


def _gaps(rows: Sequence[Row]) -> Figure:
    datasets = _seen(rows, "dataset")
    figure, axes = _sheet(1, len(datasets), "What is missing to the estimate, in % of it")
    most = {
        (row["dataset"], row["budget"], row["seed"]): row["estimate"]
        for row in rows
        if row["solver"] == "Prices" and row["estimate"]
    }
    for axis, dataset in zip(axes, datasets, strict=True):
        here = [
            {**row, "gap": 100.0 * (1.0 - row["count"] / most[row["dataset"], row["budget"], row["seed"]])}
            for row in _where(rows, dataset=dataset)
            if (row["dataset"], row["budget"], row["seed"]) in most
        ]
        axis.set_title(TITLES[dataset], fontsize=9)
        _lines(axis, here, "gap", _budget_place, is_open=False)
        axis.axhline(0.0, color="black", linewidth=0.8, label=MOST)
        axis.set_xticks(range(len(BUDGETS)), [f"{name}\n({SHARES['binding'][name]:.0%})" for name in BUDGETS])
    return _with_legend(figure, axes[0])


def _improvement(gains: Sequence[Gain]) -> Figure:
    """Random start; budgets fixed and growing side by side"""
    scalings = list(dict.fromkeys(gain.where[2] for gain in gains))
    title = f"{TITLES[gains[0].where[0]]}: more samples flipped than by KL, in % (one pool, random start)"
    figure, axes = _sheet(1, len(scalings), title)
    for axis, scaling in zip(axes, scalings, strict=True):
        axis.set_title(f"middle budget {scaling}", fontsize=9)
        here = [gain for gain in gains if gain.where[2:] == (scaling, "random")]
        for number, solver in enumerate(dict.fromkeys(gain.solver for gain in here)):
            points = sorted(
                ((float(gain.where[1]), gain.percent) for gain in here if gain.solver == solver), key=lambda p: p[0]
            )
            if solver == MOST:
                ys = [percent.mean for _, percent in points]
                axis.plot([x for x, _ in points], ys, ":", color="black", linewidth=0.8, label=MOST, zorder=1)
            else:
                _line(axis, solver, points, number - 1)
        axis.axhline(0.0, color="black", linewidth=0.8, label="KL")
        axis.set_xticks(sorted({float(gain.where[1]) for gain in here}))
        axis.set_xlabel("samples", fontsize=8)
    return _with_legend(figure, axes[0])


def prolonged(rows: Sequence[Row]) -> list[Row]:
    """Runs that ended early stay as they ended, up to the last iteration that any made: else late means would be of the
    few that went on."""
    last = max((row["outer"] for row in rows), default=0)
    ends: dict[tuple[str, int], Row] = {}
    for row in sorted(rows, key=lambda row: int(row["outer"])):
        ends[row["solver"], row["seed"]] = row
    more = [{**end, "outer": outer} for end in ends.values() for outer in range(end["outer"] + 1, last + 1)]
    return [*rows, *more]


def _curves(rows: Sequence[Row], title: str, ceiling: float | None) -> Figure:
    figure, axes = _sheet(2, 2, title)
    rows = prolonged(rows)
    for axis, (column, label) in zip(axes, CURVES, strict=True):
        axis.set_title(label, fontsize=9)
        _lines(axis, rows, column, lambda row: float(row["outer"]), is_open=False)
        if column == "count" and ceiling is not None:
            axis.axhline(ceiling, color="black", linewidth=0.8, label=MOST)
        axis.set_xticks(sorted({row["outer"] for row in rows}))
        axis.set_xlabel("outer iteration", fontsize=8)
    return _with_legend(figure, axes[0])


def _ceiling(results: Path, dataset: str, source: str) -> float | None:
    """Mean over seeds of the estimate at the middle budget"""
    if not (results / "budget.parquet").is_file():
        return None
    rows = _where(compared(Results(results).rows("budget")), dataset=dataset, budget_source=source, solver="Prices")
    found = [row["estimate"] for row in rows if row["budget"] == "middle" and row["estimate"] is not None]
    return sum(found) / len(found) if found else None


def _prices(rows: Sequence[Row]) -> Figure:
    """What the whole of each budget is worth at its price: prices themselves have units that cannot be compared"""
    datasets = _seen(rows, "dataset")
    figure, axes = _sheet(1, len(datasets), "Worth of each budget at its price, in samples (middle binding budgets)")
    for axis, dataset in zip(axes, datasets, strict=True):
        here = _where(rows, dataset=dataset)
        features = _seen(here, "feature")
        worth = [paired(row["price"] * row["amount"] for row in here if row["feature"] == name) for name in features]
        axis.barh(
            range(len(features)),
            [at.mean for at in worth],
            xerr=[0.0 if math.isnan(at.low) else at.high - at.mean for at in worth],
            color=STYLES["Prices"].colour,
            edgecolor="black",
            linewidth=0.5,
            error_kw={"elinewidth": 0.8, "capsize": 2},
        )
        axis.set_yticks(range(len(features)), features, fontsize=6)
        axis.invert_yaxis()
        axis.set_title(TITLES[dataset], fontsize=9)
        axis.set_xlabel("price x amount", fontsize=8)
    figure.tight_layout()
    return figure


def _sheet(rows: int, columns: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(3.4 * max(columns, 2), 2.6 * rows + 0.8), layout=None)
    found: Any = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title, fontsize=10)
    axes: list[Axes] = list(found.reshape(-1))
    for axis in axes:
        axis.tick_params(labelsize=8)
        axis.grid(visible=True, linewidth=0.3, color="#bbbbbb")
        axis.set_axisbelow(True)
    return figure, axes


def _with_legend(figure: Figure, axis: Axes) -> Figure:
    handles, labels = axis.get_legend_handles_labels()
    figure.tight_layout(rect=(0, LEGEND / figure.get_figheight(), 1, 1))
    figure.legend(handles, labels, loc="lower center", ncol=4, fontsize=8, frameon=False)
    return figure


def _seen(rows: Iterable[Row], column: str) -> list[Any]:
    return list(dict.fromkeys(row[column] for row in rows))


def _where(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]
