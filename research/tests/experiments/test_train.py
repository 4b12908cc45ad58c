"""The commands, on little data: what they leave behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxflip.datasets import Sequences, insurance
from maxflip.networks import GRUD, SparseTimeLSTM, load_network
from research.experiments import customers, stays, students
from research.experiments.fitting import Recipe
from research.experiments.train import main
from research.tests.experiments.stage import small

QUICK = Recipe(rate=0.01, batch=16, epochs=3)


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_sets(root: Path, chosen: str, *, label: str) -> Sequences:
        assert root == Path("folder/physionet2012")
        assert label == "30_day"
        return small(seed=("a", "b").index(chosen))

    def courses(root: Path) -> Sequences:
        assert root == Path("folder/oulad")
        found = small()
        return replace(found, ids=tuple(f"AAA/2013J/{j // 2}" for j in range(len(found))))

    monkeypatch.setattr(stays, "physionet2012", two_sets)
    monkeypatch.setattr(students, "oulad", courses)
    monkeypatch.setattr(students, "baseline", lambda *_: 0.5)  # its columns are those of the real data
    for module in (stays, students, customers):
        monkeypatch.setattr(module, "RECIPE", QUICK)
        monkeypatch.setattr(module, "HIDDEN", 4)
        monkeypatch.setattr(module, "CHECKED", 20)
    monkeypatch.setattr(customers, "LEARNED", (60, 0))
    monkeypatch.setattr(customers, "TESTED", (40, 1))


def record(path: Path) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(path.read_text())
    return held


@pytest.mark.usefixtures("little")
def test_grud(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--out", str(tmp_path), "grud", "--data", "folder", "--label", "30_day", "--seeds", "2"])
    held, net = record(tmp_path / "grud_30_day.json"), load_network(tmp_path / "grud_30_day.safetensors")
    assert isinstance(net, GRUD)
    assert net.features == ("pressure", "glucose")
    scores = [run["inner_score"] for run in held["runs"]]
    assert len(scores) == 2
    assert scores[held["seed"]] == max(scores)
    assert all(run["trained_on"] + run["inner_validation"] == 200 for run in held["runs"])
    assert held["recipe"]["rate"] == 0.01
    others = stays.task(Path("folder/physionet2012"), "30_day", "b")
    assert held["set_b"] == stays.measured(net, others, 200)
    assert held["checked"] == stays.measured(net, others, 20)
    assert "epoch 0" in capsys.readouterr().out


@pytest.mark.usefixtures("little")
def test_folds(tmp_path: Path) -> None:
    main(["--out", str(tmp_path), "grud", "--data", "folder", "--label", "30_day", "--folds", "3"])
    held = record(tmp_path / "grud_30_day_folds.json")
    each = [fold["auc"] for fold in held["folds"]]
    assert len(each) == 3
    assert held["auc_mean"] == pytest.approx(np.mean(each), abs=1e-4)
    assert [path.name for path in tmp_path.iterdir()] == ["grud_30_day_folds.json"]


@pytest.mark.usefixtures("little")
def test_oulad(tmp_path: Path) -> None:
    main(["--out", str(tmp_path), "oulad", "--data", "folder", "--seeds", "2"])
    held, net = record(tmp_path / "oulad.json"), load_network(tmp_path / "oulad.safetensors")
    assert isinstance(net, SparseTimeLSTM)
    assert net.features == ("pressure", "glucose", "days_since")
    assert net.time == [2]
    assert [run["seed"] for run in held["runs"]] == [0, 1]
    courses = students.task(Path("folder/oulad"))
    _, test = students.outer_split(courses.data)
    assert held["checked"] == courses.measured(net, test[:20])  # the first seed's network is the one kept


@pytest.mark.usefixtures("little")
def test_insurance(tmp_path: Path) -> None:
    main(["--out", str(tmp_path), "insurance"])
    held, net = record(tmp_path / "insurance.json"), load_network(tmp_path / "insurance.safetensors")
    assert isinstance(net, SparseTimeLSTM)
    assert (len(net.dense), len(net.sparse), len(net.time)) == (40, 97, 8)
    assert (len(net.static_time), len(net.static_plain)) == (4, 20)
    assert not net.shift[net.sparse].any()
    assert held["tested"] == customers.task(insurance(40, 1)).measured(net, np.arange(40))


def test_days_since_the_assessment_before() -> None:
    data = small(30)
    more = students.with_gaps(data)
    assert more.features[-1] == "days_since"
    for steps, before, times in zip(more.values, data.values, data.times, strict=True):
        np.testing.assert_array_equal(steps[:, :-1], before)
        assert steps[0, -1] == 0
        np.testing.assert_allclose(steps[:, -1].cumsum(), times - times[0])
