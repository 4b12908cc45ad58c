"""docs/results/flips.md, and the example of docs/flips.md."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from research.evidence.markdown import made_line, table
from research.evidence.registry import text, values
from research.evidence.results import Results, Row

OURS, YARDSTICK = "maxflip", "DDN, 100 steps"


def by_network(results: Results) -> dict[str, dict[str, Row]]:
    """The rows of each network by method."""
    found: dict[str, dict[str, Row]] = {}
    for row in results.rows("flips"):
        found.setdefault(row["network"], {})[row["method"]] = row
    return found


def speed(rows: Mapping[str, Row], method: str = OURS, beside: str = YARDSTICK) -> float:
    return float(rows[method]["samples_per_second"] / rows[beside]["samples_per_second"])


@text("flips.short")
def short(results: Results) -> str:
    lines = [
        [
            network,
            str(rows[OURS]["flipped_by_any"] - rows[OURS]["flipped"]),
            f"{rows[OURS]['cost_over_best']:.4f}",
            f"{speed(rows):.2f}",
        ]
        for network, rows in by_network(results).items()
    ]
    head = ["network", "flipped by something, but not by maxflip", "mean cost / best known"]
    return made_line(results.made("flips")) + "\n\n" + table([*head, f"speed / that of {YARDSTICK}"], lines)


@text("flips.networks")
def networks(results: Results) -> str:
    head = ["method", "flipped", "mean cost / best known", "within 0.5 % of it", "samples per second"]
    parts = []
    for network, rows in by_network(results).items():
        ours = rows[OURS]
        lines = [
            [
                method,
                str(row["flipped"]),
                f"{row['cost_over_best']:.4f}",
                f"{row['close']:.3f}",
                f"{row['samples_per_second']:,.0f}",
            ]
            for method, row in rows.items()
        ]
        parts += [
            f"## {network[0].upper()}{network[1:]}",
            f"{ours['samples']} samples, {ours['flipped_by_any']} of them flipped by something; maxflip: "
            f"{ours['gradients']:.0f} gradients, {ours['forwards']:.0f} forwards per sample.",
            table(head, lines),
        ]
    return "\n\n".join(parts)


@values("flips.bars")
def bars(results: Results) -> Mapping[str, str]:
    found = by_network(results).values()
    most, least = max(rows[OURS]["cost_over_best"] for rows in found), min(map(speed, found))
    missed = sum(rows[OURS]["flipped_by_any"] - rows[OURS]["flipped"] for rows in found)
    is_met = missed == 0 and most <= 1.005 and least >= 1
    return {
        "holds": "holds in every row" if is_met else "**does not hold in every row**",
        "cost": f"{most:.4f}",
        "speed": f"{least:.2f}",
    }


@values("flips.others")
def others(results: Results) -> Mapping[str, str]:
    found = by_network(results).values()
    fmn, alma = "FMN, 100 steps", "ALMA, 3 x 1,000 steps"
    close = sum(rows[fmn]["cost_over_best"] < 1.01 for rows in found)
    cheap = sum(rows[alma]["cost_over_best"] <= rows[OURS]["cost_over_best"] for rows in found)
    of_ours = [[speed(rows, method, OURS) for rows in found] for method in (fmn, alma)]
    return {
        "networks": str(len(found)),
        "fmn_close": str(close),
        "fmn_speed": f"{100 * np.mean(of_ours[0]):.0f} %",
        "fmn_missed": str(sum(rows[fmn]["flipped_by_any"] - rows[fmn]["flipped"] for rows in found)),
        "alma_cheap": str(cheap),
        "alma_speed": f"{100 * np.mean(of_ours[1]):.0f} %",
    }


@values("flips.steep")
def steep(results: Results) -> Mapping[str, str]:
    ours = by_network(results)["the same, steep"][OURS]
    names = {"least": "least_margin", "half": "median_margin", "most": "upper_quartile_margin"}
    numbers = {short: f"{ours[name]:.0f}" for short, name in names.items()}
    everyone = ours["flipped"] == ours["samples"]
    return {
        **numbers,
        "flipped": "All are flipped" if everyone else f"{ours['flipped']} of {ours['samples']} are flipped",
    }


@text("flips.picture")
def picture(results: Results) -> str:
    lines = [
        [
            row["flip"],
            "(" + ", ".join(f"{value:+.4f}" for value in row["change"]) + ")",
            f"{row['cost']:.5f}",
            f"{row['on_grid']:.5f}",
            f"{row['confidence']:.6f}",
        ]
        for row in results.rows("flip_picture")
    ]
    return table(["flip", "change", "cost", "cheapest on the grid", "confidence after"], lines)
