"""docs/results/scale.md, and the speed of docs/networks.md."""

from __future__ import annotations

from collections.abc import Mapping

from research.evidence.markdown import made_line, table
from research.evidence.registry import text, values
from research.evidence.results import Results


@text("scale.jobs")
def jobs(results: Results) -> str:
    lines = [
        [
            f"{row['samples']:,}",
            f"{row['count']:,}",
            f"{row['seconds']:.1f}",
            f"{row['solving_seconds']:.1f}",
            f"{row['peak_gib']:.2f} GiB",
        ]
        for row in results.rows("scale")
    ]
    head = ["samples", "flipped", "seconds, command to audited plan", "of it solving", "peak memory"]
    return made_line(results.made("scale")) + "\n\n" + table(head, lines)


@values("speed")
def numbers(results: Results) -> Mapping[str, str]:
    """Of the largest."""
    largest = max(results.rows("scale"), key=lambda row: int(row["samples"]))
    return {"samples": f"{largest['samples']:,} people", "seconds": f"{largest['seconds']:.1f} s"}


@text("scale.choose")
def choose(results: Results) -> str:
    lines = [
        [
            f"{row['samples']:,}",
            str(row["budgets"]),
            row["flips"],
            f"{row['bound']:,.1f}",
            f"{row['chosen']:,}",
            f"{row['seconds']:.2f}",
            f"{row['programs_alone']:,}",
            f"{row['programs_seconds']:.2f}",
        ]
        for row in results.rows("choose")
    ]
    head = ["samples", "budgets", "flips", "bound", "chosen", "seconds", "programs alone", "seconds"]
    return made_line(results.made("choose")) + "\n\n" + table(head, lines)


@text("actions.menu")
def actions(results: Results) -> str:
    lines = [
        [
            f"{row['samples']:,}",
            f"{row['actions']:,}",
            f"{row['combinations']:,}",
            f"{row['asked'] / row['samples']:.0f}",
            f"{row['count']:,}",
            f"{row['bound']:,.0f}",
            f"{row['unreachable']:,}",
            f"{row['seconds']:.0f}",
            f"{row['processor_seconds']:.0f}",
            f"{row['peak_gib']:.2f} GiB",
        ]
        for row in results.rows("actions")
    ]
    head = ["people", "actions", "combinations", "asked per person", "moved", "proved bound", "unreachable"]
    head += ["seconds", "processor seconds", "peak memory"]
    return made_line(results.made("actions")) + "\n\n" + table(head, lines)


@text("networks.speed")
def networks(results: Results) -> str:
    """Two sizes side by side, ours alone."""
    rows = results.rows("networks_speed")
    by = {(row["inputs"], row["network"]): row for row in rows if (row["sequences"], row["steps"]) == (300, 75)}
    (small, hidden), (large, more) = sorted({(row["inputs"], row["hidden"]) for row in by.values()})
    lines = []
    for network, name in _OURS.items():
        one, other = by[small, network], by[large, network]
        lines.append(
            [
                name,
                *(
                    cell
                    for row in (one, other)
                    for cell in (_ms(row["ms"]), f"{row['of_gru']:.1f}", f"{row['of_lstm']:.1f}")
                ),
                _ms(other["mixed_ms"]),
            ]
        )
    ratios = ["of `nn.GRU`", "of `nn.LSTM`"]
    head = ["", f"{small} features, {hidden} hidden", *ratios, f"{large} features, {more} hidden", *ratios]
    return made_line(results.made("networks_speed")) + "\n\n" + table([*head, "the same, lengths 1 to 75"], lines)


_OURS = {
    "GRUD": "`GRUD`",
    "SparseTimeLSTM, dense columns": "`SparseTimeLSTM`, dense columns only",
    "SparseTimeLSTM, all kinds": "`SparseTimeLSTM`, all kinds",
    "SequenceTransformer": "`SequenceTransformer`",
}


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms"
