"""Patients in intensive care whom GRU-D predicts to die: which labs would have to be others for it to say otherwise?

    python -m experiments.clinic --data DIR [--patients 75] [--out FOLDER] [--keep]

PhysioNet 2012, set b: the first patients (by record) who died within 30 days and whom the network of
experiments/weights says so of. Nine labs may change, at any hour at which they were measured, within the range seen in
these patients; budgets are 40, 60 and 80 % of what an unlimited KL consumes. Every plan is saved and audited.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evidence.files import made_here
from evidence.report import report
from maxflip import BCMS, CCMS, KL, MS, Nearest, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.datasets import physionet2012
from maxflip.datasets.physionet_variables import LABS
from maxflip.networks import load_network
from maxflip.sizing import size_budgets
from maxflip.solvers import Solver

WEIGHTS = Path(__file__).parent / "weights" / "grud_30_day.safetensors"
MARGIN, SHARES, GROUPS = 0.1, (0.4, 0.6, 0.8), 5
BRIEF = {"outer": 5, "inner": 60, "optimizer": "adam"}
SOLVERS: dict[str, Solver] = {
    "KL": KL.scale_free(**BRIEF),
    "MS": MS.scale_free(keep_moving=True, **BRIEF),
    "BCMS": BCMS.scale_free(**BRIEF),
    "CCMS": CCMS.scale_free(choices=0.25, alpha=1e-4, **BRIEF),
    "Nearest": Nearest(),
    "Prices": Prices(),
}
DIED = 1


def patients(root: Path, number: int) -> Problem:
    """Those rightly predicted to die, their labs to be changed; budgets are set later."""
    stays = physionet2012(root, "b", label="30_day")
    net = load_network(WEIGHTS)
    classifier = TorchClassifier(net, output="logits", classes=net.class_names)
    asked = Problem(
        classifier=classifier,
        cohort=stays.cohort(),
        target=stays.classes[1 - DIED],
        margin=MARGIN,
        steps="all",
        budgets=dict.fromkeys(LABS, 1.0),
    )
    with classifier.borrowed(), torch.no_grad():
        said = np.empty(len(stays), dtype=np.int64)
        for part in asked.batches(np.arange(len(stays))):
            batch = asked.inputs(np.arange(len(stays))[part], classifier.device, np.arange(0)).at(slice(None))
            said[part] = classifier.scores(batch).argmax(dim=1).numpy()
    rows = np.flatnonzero((said == DIED) & (stays.labels == DIED))[:number]
    return Problem(
        classifier=classifier,
        cohort=stays.take(rows).cohort(),
        target=stays.classes[1 - DIED],
        margin=MARGIN,
        steps="all",
        limits=dict.fromkeys(LABS, "observed"),
        budgets=dict.fromkeys(LABS, 1.0),
    )


@dataclass(frozen=True)
class Result:
    solver: str
    share: float
    allocation: str
    plan: Plan
    seconds: float
    unlimited_count: int

    @property
    def residual(self) -> float:
        """The mean part of a budget that is left over."""
        parts = [1 - self.plan.spend[name] / b.amount for name, b in self.plan.budgets.items() if b.amount > 0]
        return float(np.mean(parts))


def untouched(problem: Problem, plan: Plan) -> bool:
    """Whether no value that was not measured has a change."""
    ragged = problem.cohort.ragged
    return ragged is not None and all(
        not change[np.isnan(problem.cohort.values[ragged.begin[row] : ragged.begin[row + 1]])].any()
        for row, change in zip(plan.selected.tolist(), plan.changes, strict=True)
    )


def audited(problem: Problem, plan: Plan, folder: Path) -> None:
    """Saved with cohort and job; `save` releases nothing that the auditor has not passed."""
    plan.save(folder, problem=problem, model=WEIGHTS, overwrite=True)
    if not untouched(problem, plan):
        raise RuntimeError(f"{folder}: a missing value was changed")


def run(problem: Problem, out: Path) -> list[Result]:
    sizing = size_budgets(problem, SHARES, KL.scale_free(**BRIEF))
    print(
        f"{len(problem)} patients, lengths {problem.cohort.ragged.lengths.min()} to "  # type: ignore[union-attr]
        f"{problem.cohort.ragged.lengths.max()}; "  # type: ignore[union-attr]
        f"an unlimited KL (a = {sizing.a:g}) flips {sizing.plan.count}",
        flush=True,
    )
    results = []
    for share in SHARES:
        asked = problem.changed(budgets=sizing.budgets[share])
        for name, solver in SOLVERS.items():
            for allocation in ("joint", "proportional"):
                began = time.monotonic()
                parts = {} if allocation == "joint" else {"allocation": "proportional", "groups": GROUPS}
                plan = solve(asked, solver, **parts)  # type: ignore[arg-type]
                result = Result(name, share, allocation, plan, time.monotonic() - began, sizing.plan.count)
                audited(asked, plan, out / f"{name.lower()}-{share:g}-{allocation}")
                results.append(result)
                print(
                    f"{share:.0%} {name:8s} {allocation:12s} {plan.count:3d} flipped, {result.seconds:6.1f} s",
                    flush=True,
                )
    return results


def rows_of(results: list[Result]) -> list[dict[str, Any]]:
    return [
        {
            "patients": len(r.plan.fates),
            "unlimited_count": r.unlimited_count,
            "share": r.share,
            "solver": r.solver,
            "allocation": r.allocation,
            "count": r.plan.count,
            "estimate": r.plan.estimate,
            "left_over": r.residual,
            "seconds": r.seconds,
        }
        for r in results
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds physionet2012/")
    parser.add_argument("--patients", type=int, default=75)
    parser.add_argument("--out", type=Path, help="folder for the plans; a temporary one otherwise")
    parser.add_argument("--keep", action="store_true", help="write the result file and render the pages")
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = run(patients(given.data / "physionet2012", given.patients), given.out or Path(folder))
    made = made_here("python -m experiments.clinic --data DIR --keep", time.monotonic() - began)
    report({"clinic": rows_of(results)}, made, ["sequences.clinic"], keep=given.keep)


if __name__ == "__main__":
    main()
