"""Benchmarks leave rows that the renderers understand."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from maxflip.search.surface import Evaluations
from research.benchmarks.flips import Case, rows_of, start_margins
from research.benchmarks.prices import Line, Reference, row_of
from research.benchmarks.sections import Section, parser_of, run
from research.evidence.files import made_here, write
from research.evidence.rendering import rendered
from research.evidence.report import Files
from research.evidence.results import Results


def measured(samples: int) -> Files:
    row = {"samples": samples, "features": 2, "count": 7, "seconds": 1.5, "solving_seconds": 0.5, "peak_gib": 0.25}
    return {"scale": [row]}


def asked(given: argparse.Namespace) -> int:
    return int(given.samples)


def started(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["x", *arguments])
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    parser = parser_of("words")
    parser.add_argument("--samples", type=int, default=1000)
    run("x", parser, {"one": Section(measured, "scale.jobs")}, asked)


def test_a_section_prints_what_the_page_would_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started(monkeypatch, "--samples", "2000")
    said = capsys.readouterr().out
    assert said.startswith("## one\n")
    assert "| 2,000 | 7 | 1.5 | 0.5 | 0.25 GiB |" in said


def test_an_unknown_section_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        started(monkeypatch, "--only", "two")
    assert "--only: unknown two" in capsys.readouterr().err


def test_lines_of_networks_are_rendered(tmp_path: Path) -> None:
    reference = Reference(dual=100.0, value=100.0, over=1.25, missed=1, methods={"DDN": 1.5})
    lines = [
        Line(cohort, "40 %", unit=50, nearest=40, count=75, estimate=100.0, gradients=8.0, forwards=6.0, seconds=2.0,
             reference=reference)
        for cohort in (0, 1)
    ]  # fmt: skip
    write("prices_networks", [row_of("tanh", line) for line in lines], made_here("x"), tmp_path)
    text = rendered("prices.networks", Results(tmp_path))
    cells = (
        "50.0 | 40.0 | 75.0 | +50.0 ± 0.0 % | 100.0 | 100.0 | 75.00 % | 75.00 ± 0.00 % | 75.00 % | 1.2500 | 8 | 6 | 2.0"
    )
    assert f"| 40 % | {cells} |" in text
    assert "alone: DDN 1.5000. Flipped by others only: 2 samples." in text


def test_rows_of_flips_are_rendered(tmp_path: Path) -> None:
    """Two samples; ours costs 1 and 3 where 1 and 2 are known, the other method flips the first alone."""
    net = nn.Linear(1, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0], [0.0]]))
        net.bias.zero_()
    case = Case("tanh", net.eval(), np.array([[-1.0], [-3.0]]))
    results = {
        "maxflip": (np.array([1.0, 3.0]), 0.5),
        "DDN, 100 steps": (np.array([1.0, np.inf]), 1.0),
    }
    rows = rows_of(case, results, np.array([1.0, 2.0]), Evaluations(gradients=20, forwards=10))
    write("flips", rows, made_here("x"), tmp_path)
    text = rendered("flips.networks", Results(tmp_path))
    assert "2 samples, 2 of them flipped by something; maxflip: 10 gradients, 5 forwards per sample." in text
    assert "| maxflip | 2 | 1.3333 | 0.500 | 4 |" in text
    assert "| DDN, 100 steps | 1 | 1.0000 | 0.500 | 2 |" in text
    assert "| tanh | 0 | 1.3333 | 2.00 |" in rendered("flips.short", Results(tmp_path))
    first, second = start_margins(case)
    assert second < first < 0
