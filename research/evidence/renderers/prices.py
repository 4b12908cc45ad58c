"""docs/results/prices.md"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from research.evidence.intervals import paired, with_interval
from research.evidence.markdown import made_line, percent, table
from research.evidence.registry import text, values
from research.evidence.results import Results, Row

SHARE, GAP, GRADIENTS = 0.995, 0.005, 100  # the bars: of the reference, between count and bound, per sample
AT_SCALE = {"of_estimate": 0.998, "gib": 2e9 / 2**30, "exponent": 1.1, "passes": 150}
ON_A_GPU = {1_000_000: 2.5, 10_000_000: 25.0}  # seconds
GPU_GIB = 60e9 / 2**30
Number = Callable[[Row], float]


def gap(row: Row) -> float:
    return float(row["bound"] / row["count"] - 1)


def better(row: Row) -> int:
    return int(max(row["unit"], row["nearest"]))


def gain(row: Row) -> float:
    return float(row["count"] / better(row) - 1)


def share(row: Row) -> float:
    return float(row["count"] / row["reference_value"])


@text("prices.linear")
def linear(results: Results) -> str:
    rows = results.rows("prices_linear")
    one = rows[0]
    lines = [
        [
            row["shape"],
            *(str(row[name]) for name in ("unit", "nearest", "count")),
            f"{row['bound']:.0f}",
            percent(gap(row)),
            *(f"{row[name]:.2f}" for name in ("seconds_nearest", "seconds")),
            f"{row['gradients']:.1f}",
        ]
        for row in rows
    ]
    head = ["budgets", "Nearest, unit prices", "Nearest, 1/B", "Prices", "proved bound", "gap"]
    head += ["seconds, Nearest", "seconds, Prices", "gradients per sample"]
    said = (
        f"{one['model']}: {one['samples']} of {one['samples_found']:,} correctly predicted defaulters, "
        f"{one['budgets']} budgets. Largest gap between count and bound: **{percent(max(map(gap, rows)))}** (bar: "
        f"{percent(GAP, 1)})."
    )
    return "\n\n".join([made_line(results.made("prices_linear")), said, table(head, lines)])


@text("prices.networks")
def networks(results: Results) -> str:
    rows = results.rows("prices_networks")
    short = sum(share(row) < SHARE for row in rows)
    below = sum(row["count"] < better(row) for row in rows)
    many = sum(row["gradients"] > GRADIENTS for row in rows)
    said = (
        f"{len(rows)} problems. Count below {percent(SHARE, 1)} of the reference in **{short}** (bar: none; the least "
        f"is {percent(min(map(share, rows)))}); below a Nearest in **{below}** (bar: none); more than {GRADIENTS} "
        f"gradients per sample in **{many}** (bar: none; the most is {max(row['gradients'] for row in rows):.0f})."
    )
    parts = [made_line(results.made("prices_networks")), said]
    for model in dict.fromkeys(row["model"] for row in rows):
        some = [row for row in rows if row["model"] == model]
        parts += [f"### {model}", _network_table(some), _methods(some)]
    return "\n\n".join(parts)


def _network_table(rows: Sequence[Row]) -> str:
    head = ["budgets", "Nearest, unit prices", "Nearest, 1/B", "Prices", "gain over the better Nearest"]
    head += ["estimate", "reference", "count / estimate", "count / reference", "the least"]
    head += ["cost / best known", "gradients", "forwards", "seconds"]
    lines = []
    for kind in dict.fromkeys(row["shape"] for row in rows):
        some = [row for row in rows if row["shape"] == kind]
        mean = {name: mean_of(some, lambda row, name=name: row[name]) for name in some[0] if name not in _NO_NUMBERS}  # type: ignore[misc]
        lines.append(
            [
                kind,
                *(f"{mean[name]:.1f}" for name in ("unit", "nearest", "count")),
                f"{interval(some, lambda row: 100 * gain(row), '+.1f')} %",
                *(f"{mean[name]:.1f}" for name in ("estimate", "reference_value")),
                f"{mean_of(some, lambda row: 100 * row['count'] / row['estimate']):.2f} %",
                f"{interval(some, lambda row: 100 * share(row), '.2f')} %",
                percent(min(map(share, some))),
                f"{mean['reference_over']:.4f}",
                *(f"{mean[name]:.0f}" for name in ("gradients", "forwards")),
                f"{mean['seconds']:.1f}",
            ]
        )
    return table(head, lines)


_NO_NUMBERS = ("model", "shape", "reference_methods")


def mean_of(rows: Sequence[Row], of: Number) -> float:
    return float(np.mean([of(row) for row in rows]))


def interval(rows: Sequence[Row], of: Number, form: str) -> str:
    """Mean and half of its 95 % interval over cohorts; the splits of one cohort are averaged first."""
    cohorts = sorted({row["cohort"] for row in rows})
    return with_interval(
        paired(mean_of([row for row in rows if row["cohort"] == cohort], of) for cohort in cohorts), form
    )


def _methods(rows: Sequence[Row]) -> str:
    names = rows[0]["reference_methods"]
    means = [f"{name} {mean_of(rows, lambda row, name=name: row['reference_methods'][name]):.4f}" for name in names]  # type: ignore[misc]
    missed = sum(row["reference_missed"] for row in rows)
    return (
        f"Mean cost / best known of the reference's methods alone: {', '.join(means)}. Flipped by others only: "
        f"{missed} samples."
    )


@text("prices.ablations")
def ablations(results: Results) -> str:
    rows = results.rows("prices_ablations")
    kinds, solvers = (list(dict.fromkeys(row[name] for row in rows)) for name in ("shape", "solver"))
    whats = {"count": "", "estimate": ".1f", "gradients": ".0f", "seconds": ".1f"}
    head = ["solver"] + [
        f"{kind}: {'its estimate' if what == 'estimate' else what}" for kind in kinds for what in whats
    ]
    by = {(row["solver"], row["shape"]): row for row in rows}
    lines = [
        [solver, *(f"{by[solver, kind][what]:{form}}" for kind in kinds for what, form in whats.items())]
        for solver in solvers
    ]
    one = rows[0]
    said = f"{one['model']}, one cohort of {one['samples']:,}. Gradients per sample; seconds of processor time."
    return "\n\n".join([made_line(results.made("prices_ablations")), said, table(head, lines)])


@values("prices.ablation")
def lost(results: Results) -> Mapping[str, str]:
    """Parts of the flips that are lost, and how many times the gradients, from the least to the most by shape."""
    by = {(row["solver"], row["shape"]): row for row in results.rows("prices_ablations")}
    kinds = list(dict.fromkeys(shape for _, shape in by))

    def lost_without(solver: str) -> str:
        parts = [100 * (1 - by[solver, kind]["count"] / by["whole", kind]["count"]) for kind in kinds]
        return f"{min(parts):.1f} to {max(parts):.1f} %"

    subgradient = "no surface model: subgradient, 12 rounds"
    times = [by[subgradient, kind]["gradients"] / by["whole", kind]["gradients"] for kind in kinds]
    return {
        "columns": lost_without("no column generation, no merge"),
        "band": lost_without("no band: greedy by price"),
        "touching": lost_without("no touching up"),
        "following": lost_without("no following of others"),
        "gradients": f"{min(times):.1f} to {max(times):.1f}",
    }


@text("prices.growth")
def growth(results: Results) -> str:
    rows = results.rows("prices_growth")
    lines = [
        [
            *(f"{row[name]:,}" for name in ("samples", "open", "count")),
            percent(row["of_estimate"]),
            f"{row['seconds']:.1f}",
            f"{row['processor_seconds']:.1f} ({row['choosing_processor_seconds']:.1f})",
            f"{1000 * row['pass_seconds']:.1f}",
            f"{row['passes']:.0f}",
            f"{row['processor_passes']:.0f}",
            f"{row['gradients']:.0f}",
            f"{row['peak_gib']:.2f} GiB",
        ]
        for row in rows
    ]
    logs = np.log([[row["samples"], row["seconds"], row["processor_seconds"]] for row in rows])
    wall, own = (np.polyfit(logs[:, 0], logs[:, k], 1)[0] for k in (1, 2))
    head = ["samples", "of them open", "flipped", "count / estimate", "seconds"]
    head += ["processor seconds (of it choosing)"]
    head += ["one pass, ms", "solve in passes", "the same, processor time", "gradients per open sample", "peak memory"]
    said = (
        f"Time exponent, fitted: **{own:.2f}** by processor time, {wall:.2f} by the clock (bar: "
        f"{AT_SCALE['exponent']}); between the last two sizes {rows[-1]['exponent_from_the_size_before']:.2f}. Bars at "
        f"{rows[-1]['samples']:,}: {AT_SCALE['passes']} passes, {percent(AT_SCALE['of_estimate'], 1)} of the estimate, "
        "2 GB."
    )
    return "\n\n".join([made_line(results.made("prices_growth")), said, table(head, lines)])


@text("prices.gpu")
def gpu(results: Results) -> str:
    rows = results.rows("prices_gpu")
    lines = [
        [
            *(f"{row[name]:,}" for name in ("samples", "open", "count")),
            f"{100 * row['of_estimate']:.7g} %",
            f"{row['seconds']:.2f}",
            f"{row['passes']:,.0f}",
            f"{row['gpu_gib']:.1f} GiB",
            f"{row['main_gib']:.1f} GiB",
        ]
        for row in rows
    ]
    head = [
        "samples",
        "open",
        "flipped",
        "of the estimate",
        "seconds",
        "passes over the open",
        "GPU memory",
        "main memory",
    ]
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in rows[0]["stages"].items() if seconds is not None)
    bars = " and ".join(f"{seconds:g} s for {samples:,}" for samples, seconds in ON_A_GPU.items())
    said = (
        f"The bars are {bars}, and 60 GB of GPU memory: **{_met(_gpu_is_met(rows))}**. Stages of the first: {stages}."
    )
    return "\n\n".join([made_line(results.made("prices_gpu")), table(head, lines), said])


def _gpu_is_met(rows: Sequence[Row]) -> bool:
    """Sizes that have no bar are measured too."""
    in_time = all(row["seconds"] <= ON_A_GPU.get(row["samples"], row["seconds"]) for row in rows)
    return in_time and all(row["gpu_gib"] < GPU_GIB for row in rows)


def _met(is_met: bool) -> str:
    return "met" if is_met else "not met"


@text("prices.short")
def short(results: Results) -> str:
    """Each bar beside what was measured; what is within a twentieth of a per cent of its bar is called nearly met."""
    linear_rows, rows = results.rows("prices_linear"), results.rows("prices_networks")
    largest = results.rows("prices_growth")[-1]
    gpu_rows = results.rows("prices_gpu")
    gaps, shares = list(map(gap, linear_rows)), list(map(share, rows))
    reached, below = sum(s >= SHARE for s in shares), sum(row["count"] < better(row) for row in rows)
    by_shape = [
        mean_of([row for row in rows if (row["model"], row["shape"]) == which], gain)
        for which in {(row["model"], row["shape"]) for row in rows}
    ]
    if reached == len(rows):
        verdict = "met"
    else:
        verdict = "**nearly**" if min(shares) >= SHARE - 0.0005 else "**not met**"
    most = max(row["gradients"] for row in rows)
    exponent = largest["exponent_from_the_size_before"]
    scale_met = (
        largest["of_estimate"] >= AT_SCALE["of_estimate"]
        and largest["peak_gib"] < AT_SCALE["gib"]
        and exponent <= AT_SCALE["exponent"]
    )
    passes = largest["processor_passes"], largest["passes"]
    equal = f"equal in all {len(gaps)} problems" if max(gaps) == 0 else f"within {percent(max(gaps))} in {len(gaps)}"
    gpu_seconds = [max(r["seconds"] for r in gpu_rows if r["samples"] == samples) for samples in ON_A_GPU]
    n = f"{largest['samples']:,}"
    lines = [
        [f"linear: proved bound within {percent(GAP, 1)} of the count", equal, _met(max(gaps) <= GAP)],
        [
            "never below a Nearest",
            f"in {below or 'none'} of {len(rows)} problems (gains from {100 * min(by_shape):.1f} to "
            f"{100 * max(by_shape):.0f} %, by network and shape)",
            _met(below == 0),
        ],
        [
            f"networks: count at least {percent(SHARE, 1)} of the reference",
            f"{reached} of {len(rows)} problems, the least {percent(min(shares))}",
            verdict,
        ],
        [f"at most {GRADIENTS} gradients per sample", f"at most {most:.0f}", _met(most <= GRADIENTS)],
        [
            f"{n} samples: at least {percent(AT_SCALE['of_estimate'], 1)} of the estimate, under 2 GB, exponent at "
            f"most {AT_SCALE['exponent']}",
            f"{percent(largest['of_estimate'])}, {largest['peak_gib']:.1f} GiB, {exponent:.2f} from the size before",
            _met(scale_met),
        ],
        [
            f"{n} samples in at most {AT_SCALE['passes']} passes",
            f"{passes[0]:.0f} by processor time, {passes[1]:.0f} by the clock ({largest['seconds']:.1f} s)",
            _met(max(passes) <= AT_SCALE["passes"]),
        ],
        [
            "one H200: "
            + ", ".join(f"{samples:,} samples in at most {s:g} s" for samples, s in ON_A_GPU.items())
            + ", under 60 GB",
            ", ".join(f"{s:.2f} s" for s in gpu_seconds) + f", {max(r['gpu_gib'] for r in gpu_rows):.1f} GiB",
            _met(_gpu_is_met(gpu_rows)),
        ],
    ]
    return table(["bar", "measured", ""], lines)


@values("prices.near")
def near(results: Results) -> Mapping[str, str]:
    """The problem that is nearest to its bar, or furthest below."""
    rows = results.rows("prices_networks")
    worst = min(rows, key=share)
    skewed = [row for row in rows if "ReLU" in row["model"] and row["shape"].startswith("20 %")]
    return {
        "skewed": f"{100 * min(map(share, skewed)):.1f} to {100 * max(map(share, skewed)):.1f} %",
        "least": f"{percent(share(worst))} ({worst['count']} of {worst['reference_value']:.1f})",
        "torch": results.made("prices_networks").versions["torch"],
        "one": f"{100 / worst['count']:.1f} %",
    }
