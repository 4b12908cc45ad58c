"""The weights in the repository are those of their records."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from maxflip import Nearest, Problem, TorchClassifier, solve
from maxflip.datasets import insurance
from maxflip.networks import load_network
from research.experiments import customers, stays, students
from research.experiments.train import WEIGHTS
from tests.real_data import real_data

NAMES = ["grud_in_hospital", "grud_30_day", "oulad", "insurance"]
CLOSE = 5e-4  # records are rounded to 1e-4, and processors add up in different orders


def record(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((WEIGHTS / f"{name}.json").read_text())
    return held


def test_every_file_has_its_record() -> None:
    assert sorted(path.stem for path in WEIGHTS.glob("*.safetensors")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_small_and_what_its_record_says(name: str) -> None:
    path, held = WEIGHTS / f"{name}.safetensors", record(name)
    assert path.stat().st_size < 1_000_000
    net = load_network(path)
    assert all(tensor.dtype == torch.float32 for tensor in net.state_dict().values())
    assert type(net).__name__ == held["network"]
    assert net.hidden == held["hidden"]
    assert sum(p.numel() for p in net.parameters()) == held["parameters"]


@pytest.mark.parametrize("label", ["in_hospital", "30_day"])
def test_grud_is_as_good_as_recorded(label: Any) -> None:
    others = stays.task(real_data("physionet2012"), label, "b")
    net = load_network(WEIGHTS / f"grud_{label}.safetensors")
    assert (net.features, net.static_features) == (others.data.features, others.data.static_features)
    held = record(f"grud_{label}")
    assert stays.measured(net, others, stays.CHECKED) == pytest.approx(held["checked"], abs=CLOSE)


def test_enough_stays_for_the_experiment() -> None:
    """75 patients who are rightly predicted to die."""
    assert record("grud_30_day")["set_b"]["rightly_predicted_to_die"] >= 75


def test_the_folds() -> None:
    held = record("grud_in_hospital_folds")
    assert held["auc_mean"] >= 0.83
    assert held["auc_mean"] == pytest.approx(np.mean([fold["auc"] for fold in held["folds"]]), abs=1e-4)
    assert len(held["folds"]) == 5


def test_oulad_is_as_good_as_recorded() -> None:
    courses, held = students.task(real_data("oulad")), record("oulad")
    _, test = students.outer_split(courses.data)
    net = load_network(WEIGHTS / "oulad.safetensors")
    assert (net.features, net.static_features) == (courses.data.features, courses.data.static_features)
    assert courses.measured(net, test[: students.CHECKED]) == pytest.approx(held["checked"], abs=CLOSE)
    assert held["accuracy_mean"] > held["accuracy_of_logistic_regression"]


def test_insurance_is_as_good_as_recorded() -> None:
    others, held = customers.task(insurance(*customers.TESTED)), record("insurance")
    net = load_network(WEIGHTS / "insurance.safetensors")
    assert others.measured(net, np.arange(customers.CHECKED)) == pytest.approx(held["checked"], abs=CLOSE)
    assert held["tested"]["accuracy"] > held["accuracy_of_logistic_regression"]


def test_maxflip_predicts_what_training_predicted() -> None:
    """Who is in class D before any change: the same of the cohort as of the batches that were trained with."""
    data = insurance(150, 2)
    net = load_network(WEIGHTS / "insurance.safetensors")
    problem = Problem(
        classifier=TorchClassifier(net, output="logits", classes=list(data.classes)),
        cohort=data.cohort(),
        target="D",
        margin=0.0,
        budgets={"dense_0": 0.0},
    )
    already = [fate == "already" for fate in solve(problem, Nearest()).fates]
    predicted = customers.task(data).logits(net, np.arange(150)).argmax(axis=1) == data.classes.index("D")
    assert 10 < predicted.sum() < 140
    assert already == predicted.tolist()
