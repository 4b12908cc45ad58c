"""docs/results/training.md says what the records say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from experiments.train import WEIGHTS

PAGE = (WEIGHTS.parent.parent / "docs" / "results" / "training.md").read_text()


def record(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((WEIGHTS / f"{name}.json").read_text())
    return held


def rows_under(header: str) -> list[list[str]]:
    """The cells of the table with this first line."""
    _, _, after = PAGE.partition(header + "\n")
    assert after, f"the page has no table {header!r}"
    rows = after.split("\n\n")[0].splitlines()[1:]
    return [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in rows]


def test_the_folds() -> None:
    held = record("grud_in_hospital_folds")
    *folds, total = rows_under("| fold | AUC | inner validation | epochs |")
    assert [row[:3] for row in folds] == [
        [str(fold["fold"]), f"{fold['auc']:.4f}", f"{fold['inner_score']:.4f}"] for fold in held["folds"]
    ]
    assert total[1] == f"{held['auc_mean']:.4f} ± {held['auc_std']:.4f}"


@pytest.mark.parametrize(("label", "words"), [("in_hospital", "in-hospital death"), ("30_day", "death within 30 days")])
def test_set_b(label: str, words: str) -> None:
    held = record(f"grud_{label}")
    (row,) = [
        row
        for row in rows_under("| label | kept | AUC on b | accuracy | rightly predicted to die |")
        if row[0] == words
    ]
    found = held["set_b"]
    assert row[1:4] == [f"seed {held['seed']}", f"{found['auc']:.4f}", f"{found['accuracy']:.4f}"]
    assert row[4] == str(found["rightly_predicted_to_die"])
    seeds = [
        row for row in rows_under("| seed | inner, in hospital | on b | inner, 30 days | on b |") if row[0].isdigit()
    ]
    at = 1 if label == "in_hospital" else 3
    assert [row[at : at + 2] for row in seeds] == [
        [f"{run['inner_score']:.4f}", f"{run['auc_on_set_b']:.4f}"] for run in held["runs"]
    ]


def test_oulad() -> None:
    held = record("oulad")
    *seeds, total = rows_under("| seed | test accuracy | cross entropy | inner validation |")
    assert [row[1] for row in seeds] == [f"{run['accuracy']:.4f}" for run in held["runs"]]
    assert total[1] == f"{held['accuracy_mean']:.4f}"
    assert f"same split: {held['accuracy_of_logistic_regression']:.4f}" in PAGE


def test_insurance() -> None:
    held = record("insurance")
    assert [row[1] for row in rows_under("| | accuracy |")] == [
        f"{number:.4f}"
        for number in (
            held["tested"]["accuracy"],
            held["accuracy_of_logistic_regression"],
            held["share_of_the_commonest_class"],
        )
    ]


def test_commands_are_those_of_the_records() -> None:
    stated = set(re.findall(r"^    python -m experiments.train (\w+)", PAGE, re.MULTILINE))
    assert stated == {record(path.stem)["command"].split()[3] for path in WEIGHTS.glob("*.json")}


def test_nothing_is_left_to_fill_in() -> None:
    assert "@@" not in PAGE
