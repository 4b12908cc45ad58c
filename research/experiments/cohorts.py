"""Whom the study is about: of each dataset, those whom its network rightly puts into a class that is not wanted.

icu        PhysioNet 2012, set b, which GRU-D has not learned from: died within 30 days; nine labs may change, in every
           hour in which they were measured, within the range seen among those drawn
oulad      students whom the Sparse Time LSTM has not learned from: failed or withdrew; marks and days of delay may
           change, within the range seen among those drawn
insurance  made-up sequences of a seed that the network has not learned from: four of five classes; 19 of 169 features
           may change, without limits
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxflip import Problem, TorchClassifier
from maxflip.datasets import Sequences, insurance, oulad, physionet2012
from maxflip.datasets.insurer import CHANGEABLE
from maxflip.datasets.physionet_variables import LABS
from maxflip.networks import load_network
from research.experiments import students
from research.experiments.packed import Packed, logits_of
from research.experiments.tasks import Rows

WEIGHTS = Path(__file__).parent / "weights"
DATASETS = ("icu", "oulad", "insurance")
FOLDERS = {"icu": "physionet2012", "oulad": "oulad"}  # in the folder of public data; insurance is made up
MARGIN = 0.1  # the paper's delta
BATCHES = {"cpu": 8192, "cuda": 2**16}  # a GPU takes all sequences at once
POOL = (4000, 2)  # n and seed of the generator: neither learned from nor tested on


@dataclass(frozen=True, eq=False)
class Pool:
    """Everyone who may be drawn. candidates: rows of `data`   changeable: features   options: more for Problem"""

    data: Sequences
    weights: Path
    target: Any
    changeable: tuple[str, ...]
    candidates: Rows
    options: Mapping[str, Any]

    def drawn(self, n: int, seed: int) -> Sequences:
        """The first n of everyone in an order of this seed: of two sizes, the smaller one is part of the larger one."""
        if n > len(self.candidates):
            raise ValueError(f"{self.data.source}: {n} asked for, but only {len(self.candidates)} can be drawn")
        return self.data.take(np.random.default_rng(seed).permutation(self.candidates)[:n])

    def problem(self, n: int, seed: int, device: str = "cpu") -> Problem:
        """Those drawn, one budget of squared change per feature; the amounts, 1 each, mean nothing yet."""
        net = load_network(self.weights).to(device)
        return Problem(
            classifier=TorchClassifier(
                net, output="logits", classes=net.class_names, device=device, batch_size=BATCHES[device]
            ),
            cohort=self.drawn(n, seed).cohort(),
            target=self.target,
            margin=MARGIN,
            steps="all",
            budgets=dict.fromkeys(self.changeable, 1.0),
            **self.options,
            tidy=False,  # measured as the algorithms leave them
        )


@lru_cache(maxsize=4)
def problem_of(dataset: str, data: str | None, n: int, seed: int, device: str = "cpu") -> Problem:
    """data: the folder that holds those of FOLDERS"""
    return _pool(dataset, data).problem(n, seed, device)


@cache
def _pool(dataset: str, data: str | None) -> Pool:
    if dataset == "insurance":
        return _customers()
    root = Path(data or "") / FOLDERS[dataset]
    return _patients(root) if dataset == "icu" else _students(root)


def _patients(root: Path) -> Pool:
    stays = physionet2012(root, "b", label="30_day")
    weights = WEIGHTS / "grud_30_day.safetensors"
    limits = {"limits": dict.fromkeys(LABS, "observed")}
    return Pool(stays, weights, "survived", LABS, _rightly(stays, weights, {"survived"}), limits)


def _students(root: Path) -> Pool:
    courses = students.with_gaps(oulad(root))
    weights, wanted = WEIGHTS / "oulad.safetensors", {"Pass", "Distinction"}
    tested = students.outer_split(courses)[1]
    rows = np.intersect1d(_rightly(courses, weights, wanted), tested)
    changeable = ("score", "days_late")
    return Pool(courses, weights, wanted, changeable, rows, {"limits": dict.fromkeys(changeable, "observed")})


def _customers() -> Pool:
    made = insurance(*POOL)
    weights, wanted = WEIGHTS / "insurance.safetensors", made.classes[0]
    return Pool(made, weights, wanted, CHANGEABLE, _rightly(made, weights, {wanted}), {})


def _rightly(data: Sequences, weights: Path, wanted: set[str]) -> Rows:
    """Rows whose likeliest class is their own, and not wanted."""
    said = logits_of(load_network(weights), Packed.of(data), torch.arange(len(data))).argmax(axis=1)
    unwanted = ~np.isin(data.labels, [data.classes.index(name) for name in wanted])
    return np.flatnonzero((said == data.labels) & unwanted)
