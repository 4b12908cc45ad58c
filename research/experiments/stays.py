"""GRU-D on PhysioNet 2012: who dies of those in intensive care."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maxflip.datasets import physionet2012
from maxflip.datasets.physionet import Label
from maxflip.networks import GRUD, SequenceNetwork
from research.experiments.fitting import Recipe
from research.experiments.metrics import auc, rightly_predicted
from research.experiments.packed import Packed
from research.experiments.splits import folds, stratified
from research.experiments.tasks import Rows, Task, Tell, keep, write_record

HIDDEN = 49  # of the published network: 33 inputs and 49 hidden units
RECIPE = Recipe(rate=3e-3, decay=0.3, averaging=0.98)
INNER_SHARE = 0.2
INNER_SEED = 0  # the inner part is the same for all networks, so that the best of them can be told
INPUTS = "33 variables, means of each hour in which something was measured; five descriptors at the head"
DIED = 1
CHECKED = 400  # stays of set b, the first ones, on which a test measures the kept weights again


def task(root: str | Path, label: Label, chosen: str = "a") -> Task:
    data = physionet2012(root, chosen, label=label)

    def build(part: Packed) -> GRUD:
        moments = part.moments()
        # A few liver values are a hundred times the usual ones: medians and mean distances from them feel that less.
        centre = part.values.nanmedian(0).values
        return GRUD(
            *(data.features, HIDDEN, data.classes, data.static_features),
            shift=centre,
            scale=(part.values - centre).abs().nanmean(0),
            static_shift=moments.static_mean,
            static_scale=moments.static_spread,
        )

    def split(rows: Rows, _seed: int) -> tuple[Rows, Rows]:
        return stratified(rows, data.labels, INNER_SHARE, INNER_SEED)

    return Task(data, build, RECIPE, auc, split)


def cross_validate(root: Path, out: Path, label: Label, number: int, tell: Tell) -> None:
    """The AUC of set a in folds. Nothing is chosen by it: each fold's network stops by an inner part of its own."""
    stays = task(root, label)
    rows = []
    for fold, (rest, test) in enumerate(folds(stays.data.labels, number, seed=0)):
        made = stays.trained(rest, 0, tell, f"fold {fold}")
        found = auc(stays.logits(made.net, test), stays.labels(test))
        tell(f"fold {fold}: AUC {found:.4f}")
        rows.append({"fold": fold, "auc": round(found, 4), **made.story})
    each = [row["auc"] for row in rows]
    tell(f"mean {np.mean(each):.4f}, standard deviation {np.std(each):.4f}")
    record = {"inputs": INPUTS, "auc_mean": round(float(np.mean(each)), 4), "auc_std": round(float(np.std(each)), 4)}
    out.mkdir(parents=True, exist_ok=True)
    command = f"grud --data DIR --label {label} --folds {number}"
    write_record(out / f"grud_{label}_folds.json", command, {"recipe": asdict(RECIPE), **record, "folds": rows})


def train(root: Path, out: Path, label: Label, seeds: int, tell: Tell) -> None:
    """Networks of several seeds from set a; the one that is best on the inner part is kept, and measured on set b."""
    stays = task(root, label)
    everyone = np.arange(len(stays.data))
    runs = [stays.trained(everyone, seed, tell, f"set a, {label}, seed {seed}") for seed in range(seeds)]
    seed = max(range(seeds), key=lambda seed: runs[seed].inner_score)
    others = task(root, label, "b")
    each = [measured(run.net, others, len(others.data)) for run in runs]  # after the choice, which knows nothing of it
    net, found = runs[seed].net, each[seed]
    tell(f"seed {seed}, set b: {found}")
    record = {
        "inputs": INPUTS,
        "label": label,
        "seed": seed,
        "runs": [{**run.story, "auc_on_set_b": on_b["auc"]} for run, on_b in zip(runs, each, strict=True)],
        "set_b": found,
        "checked": measured(net, others, CHECKED),
    }
    keep(net, out, f"grud_{label}", f"grud --data DIR --label {label} --seeds {seeds}", RECIPE, record)


def measured(net: SequenceNetwork, others: Task, n: int) -> dict[str, Any]:
    """On the first n stays of a set."""
    rows = np.arange(n)
    logits, labels = others.logits(net, rows), others.labels(rows)
    return {
        "stays": n,
        "auc": round(auc(logits, labels), 4),
        **others.measured(net, rows),
        "rightly_predicted_to_die": rightly_predicted(logits, labels, DIED),
    }
