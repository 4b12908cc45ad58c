"""Which margin, ensemble or both keeps flips in models trained again.

    python -m research.benchmarks.hold_margin --data DIR

Cohorts and networks are those of research/experiments/hold: credit customers whom a network of their own predicts to
default. Models at hand may be planned with: members of the ensemble, and judges of `suggest_margin`. Fresh models
only judge.

    planned against   the network; an Ensemble of it and of 2 or 4 others trained again
    margin            fixed; or suggested, by judges at hand: trained again, or these and one of another kind
    fresh models      of the same kind: 3 other seeds, 3 bootstraps; of other kinds: boosted trees, a random forest,
                      logistic regression

Every plan of a cohort has the same budgets: a quarter of what everyone's nearest flip draws, by a margin of 0.1.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from maxflip import Ensemble, Plan, solve, suggest_margin
from maxflip.models import Classifier
from research.benchmarks.sections import add_keep, tell
from research.evidence.files import made_here
from research.evidence.report import report
from research.experiments.hold.cases import MATES, NETWORKS, PARTS, Case, Judge, specs
from research.experiments.hold.credit import TREES, WIDE, Credit
from research.experiments.metrics import Floats

COHORTS = PARTS
MARGINS = (0.0, 0.1, 0.3, 0.5)
HOLD = 0.9
JUDGES = specs("bootstrap", (7, 8, 9), 300)  # at hand, for suggest_margin
FRESH = [*specs("seed", (1, 2, 3), 200), *specs("bootstrap", (1, 2, 3), 300)]
SIZES = (1, 3, 5)  # models that a plan is made against


def of_other_kinds(source: Credit) -> list[Judge[Floats]]:
    x, y = source.halves[0]
    forest = RandomForestClassifier(min_samples_leaf=5, random_state=0).fit(x, y)
    line = LogisticRegression(max_iter=1000).fit(x, y)
    judges = [Judge("random forest", "another", forest.predict_proba), Judge("logistic", "another", line.predict_proba)]
    return [Judge("boosted trees", "another", source.judge(TREES).probabilities), *judges]


def plans(source: Credit, seed: int, case: Case[Floats]) -> Iterator[tuple[int, str, bool | None, float, Plan]]:
    """(models planned against, how the margin came about, whether flips hold in the judges at hand, margin, plan)"""
    budgets = case.budgets(source.share)
    again = {spec.name: source.classifier(spec) for spec in JUDGES}
    judges: dict[str, dict[str, Classifier]] = {
        "trained again": again,
        "trained again, another kind": again | {WIDE.name: source.classifier(WIDE)},
    }
    for size in SIZES:
        members = [source.classifier(spec) for spec in (NETWORKS[seed], *MATES[: size - 1])]
        planned = members[0] if size == 1 else Ensemble(members)
        for margin in MARGINS:
            yield size, "fixed", None, margin, solve(case.problem(case.cohort, planned, budgets, margin))
        for name, models in judges.items():
            found = suggest_margin(case.problem(case.cohort, planned, budgets, 0.0), models, HOLD)
            tell(f"{name}: {found.margin:.3f}, reached: {found.reached}, tried: {len(found.trail)}")
            yield size, name, found.reached, found.margin, found.plan


def measured(source: Credit, seed: int, fresh: Sequence[Judge[Floats]]) -> list[dict[str, Any]]:
    case = source.case(seed, source.size)
    rows = []
    for size, how, reached, margin, plan in plans(source, seed, case):
        people = case.changed(case.cohort, plan)
        for judge in fresh:
            held = int((case.asked(judge, people) >= 0).sum()) if plan.count else 0
            rows.append(
                {"cohort": seed, "people": len(case.cohort), "models": size, "how": how, "reached": reached}
                | {"margin": margin, "count": plan.count, "judge": judge.name, "kind": judge.kind, "held": held}
            )
        mean = np.mean([row["held"] for row in rows[-len(fresh) :]]) / max(plan.count, 1)
        tell(f"cohort {seed}: {size} models, {how}, margin {margin:.3f}: {plan.count}, {mean:.0%} hold on average")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of public data")
    add_keep(parser)
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as weights:
        source = Credit(given.data, Path(weights))
        for spec in (*NETWORKS[:COHORTS], *source.learned(0)[1:], *JUDGES):
            source.learn(spec)
        fresh = [*(source.judge(spec) for spec in FRESH), *of_other_kinds(source)]
        for seed in range(COHORTS):
            rows += measured(source, seed, fresh)
    packages = ("torch", "numpy", "scikit-learn")
    made = made_here("python -m research.benchmarks.hold_margin --data DIR --keep", time.monotonic() - began, packages)
    report({"hold_margin": rows}, made, ["hold.recipe"], keep=given.keep)


if __name__ == "__main__":
    main()
