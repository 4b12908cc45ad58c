"""docs/results/training.md: the records that training leaves beside the weights, and what was tried on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from research.evidence.files import ROOT
from research.evidence.markdown import table
from research.evidence.registry import text, values
from research.evidence.results import Results

WEIGHTS = ROOT / "research" / "experiments" / "weights"
LABELS = {"in_hospital": "in-hospital death", "30_day": "death within 30 days"}


def record(name: str) -> dict[str, Any]:
    held: dict[str, Any] = json.loads((WEIGHTS / f"{name}.json").read_text())
    return held


@text("training.short")
def short(results: Results) -> str:  # noqa: ARG001
    folds, in_hospital, within_30 = record("grud_in_hospital_folds"), record("grud_in_hospital"), record("grud_30_day")
    oulad, insurance = record("oulad"), record("insurance")
    accuracies = [run["accuracy"] for run in oulad["runs"]]
    lines = [
        [
            "GRU-D, in-hospital death",
            "PhysioNet 2012, five folds of set a",
            f"AUC {folds['auc_mean']:.4f} ± {folds['auc_std']:.4f}",
            "published 0.8424 ± 0.012; the bar was 0.83",
        ],
        [
            "`grud_in_hospital`",
            "learned from set a, measured on set b",
            f"AUC {in_hospital['set_b']['auc']:.4f}",
            "the bar was 0.84",
        ],
        [
            "`grud_30_day`",
            "the same, death within 30 days",
            f"AUC {within_30['set_b']['auc']:.4f}; {within_30['set_b']['rightly_predicted_to_die']} stays of set b "
            "rightly predicted to die",
            "the experiment needs 75",
        ],
        [
            "`oulad`, a Sparse Time LSTM",
            "OULAD, four classes, five seeds",
            f"accuracy {oulad['accuracy_mean']:.3f} ({min(accuracies):.3f} to {max(accuracies):.3f})",
            f"logistic regression on aggregates {oulad['accuracy_of_logistic_regression']:.3f}",
        ],
        [
            "`insurance`, a Sparse Time LSTM",
            "made up, five classes",
            f"accuracy {insurance['tested']['accuracy']:.3f}",
            f"logistic regression {insurance['accuracy_of_logistic_regression']:.3f}, the commonest class "
            f"{insurance['share_of_the_commonest_class']:.3f}",
        ],
    ]
    return table(["network", "data", "measured", "beside it"], lines)


@text("training.folds")
def folds(results: Results) -> str:  # noqa: ARG001
    held = record("grud_in_hospital_folds")
    lines = [
        [
            str(fold["fold"]),
            f"{fold['auc']:.4f}",
            f"{fold['inner_score']:.4f}",
            f"best {fold['best_epoch']}, of {fold['epochs']}",
        ]
        for fold in held["folds"]
    ]
    lines.append(["mean", f"**{held['auc_mean']:.4f} ± {held['auc_std']:.4f}**", "", ""])
    return table(["fold", "AUC", "inner validation", "epochs"], lines)


@text("training.set_b")
def set_b(results: Results) -> str:  # noqa: ARG001
    held = {label: record(f"grud_{label}") for label in LABELS}
    kept = [
        [
            words,
            f"seed {held[label]['seed']}",
            f"**{held[label]['set_b']['auc']:.4f}**",
            f"{held[label]['set_b']['accuracy']:.4f}",
            str(held[label]["set_b"]["rightly_predicted_to_die"]),
        ]
        for label, words in LABELS.items()
    ]
    runs = [held[label]["runs"] for label in LABELS]
    seeds = [
        [str(seed), *(f"{run[name]:.4f}" for run in pair for name in ("inner_score", "auc_on_set_b"))]
        for seed, pair in enumerate(zip(*runs, strict=True))
    ]
    means = [f"{np.mean([run['auc_on_set_b'] for run in of_label]):.4f}" for of_label in runs]
    seeds.append(["mean", "", means[0], "", means[1]])
    first = table(["label", "kept", "AUC on b", "accuracy", "rightly predicted to die"], kept)
    return first + "\n\n" + table(["seed", "inner, in hospital", "on b", "inner, 30 days", "on b"], seeds)


@text("training.tried")
def tried(results: Results) -> str:
    lines = []
    for row in results.rows("training_tried"):
        scores = [f"{score:.3f}" for score in row["scores"]]
        lines.append(
            [row["recipe"], *scores, *[""] * (4 - len(scores)), "" if row["mean"] is None else f"{row['mean']:.3f}"]
        )
    return table(["", "split 0", "1", "2", "3", "mean"], lines)


@text("training.oulad")
def oulad(results: Results) -> str:  # noqa: ARG001
    held = record("oulad")
    lines = [
        [str(run["seed"]), f"{run['accuracy']:.4f}", f"{run['cross_entropy']:.4f}", f"{run['inner_score']:.4f}"]
        for run in held["runs"]
    ]
    lines.append(["mean", f"**{held['accuracy_mean']:.4f}**", "", ""])
    return table(["seed", "test accuracy", "cross entropy", "inner validation"], lines)


@text("training.insurance")
def insurance(results: Results) -> str:  # noqa: ARG001
    held = record("insurance")
    lines = [
        ["the network", f"**{held['tested']['accuracy']:.4f}**"],
        [
            "logistic regression on means over time and static features",
            f"{held['accuracy_of_logistic_regression']:.4f}",
        ],
        ["the commonest class", f"{held['share_of_the_commonest_class']:.4f}"],
    ]
    return table(["", "accuracy"], lines)


@values("training")
def numbers(results: Results) -> Mapping[str, str]:
    gru_d, within_30, lstm, insurer = (record(n) for n in ("grud_in_hospital", "grud_30_day", "oulad", "insurance"))
    first = [held["runs"][0]["auc_on_set_b"] for held in (gru_d, within_30)]
    by = {row["recipe"]: row["scores"][0] for row in results.rows("training_tried_lstm")}
    return {
        "first_on_b": " and ".join(f"{auc:.4f}" for auc in first),
        "torch": gru_d["versions"]["torch"].removesuffix("+cpu"),
        "python": gru_d["versions"]["python"],
        "grud_parameters": f"{gru_d['parameters']:,}",
        "oulad_parameters": f"{lstm['parameters']:,}",
        "insurance_parameters": f"{insurer['parameters']:,}",
        "oulad_tested": f"{lstm['test']:,}",
        "oulad_logistic": f"{lstm['accuracy_of_logistic_regression']:.4f}",
        "tried_logistic": f"{by['logistic regression']:.3f}",
        "tried_48": f"{by['48 units']:.4f}",
        "tried_64": f"{by['64 units, dropout 0.2']:.4f}",
        "tried_64_fast": f"{by['64 units, dropout 0.1, rate 0.006, batches of 256']:.4f}",
        "tried_8000": f"{by['insurance, 8,000 sequences, rate 0.003, dropout 0.3']:.3f}",
        "insurance_inner": f"{insurer['inner_score']:.3f}",
    }
