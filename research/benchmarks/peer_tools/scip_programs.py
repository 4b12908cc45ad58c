"""pyscipopt-ml: the whole question, budgets and choice, as one program that SCIP solves to the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from pyscipopt import Model, quicksum
from pyscipopt_ml.add_predictor import add_predictor_constr

from research.benchmarks.peer_tools.question import TARGET, Floats, Question
from research.benchmarks.peer_tools.running import Answer, main
from research.benchmarks.peer_tools.torch_model import network

SECONDS = 60.0  # for each shape
FURTHEST = 200.0  # by so much the logits of a sample that is not picked may miss; they do by far less


def program(question: Question) -> Callable[[], Answer]:
    def answered() -> Answer:
        parts = [_one_shape(question, s) for s in range(len(question.shapes))]
        return Answer(np.stack([changes for changes, _ in parts]), np.array([bound for _, bound in parts]))

    return answered


def _one_shape(question: Question, s: int) -> tuple[Floats, float]:
    """(n, F) with NaN for those not picked, and the optimum, NaN where time was over before it was proved."""
    rows = np.flatnonzero(question.members[s])
    x, width = question.x[rows], question.x.shape[1]
    if not len(rows):
        return np.full(question.x.shape, np.nan), 0.0
    scip = Model()
    scip.hideOutput()
    scip.setParam("limits/time", SECONDS)
    scip.setParam("numerics/feastol", 1e-9)  # by its default, flips miss the margin by more than the judge forgives
    # No change of a plan is longer than its feature's whole budget allows; who is not picked need not change.
    most = np.where(question.frozen, 0.0, np.sqrt(question.amounts[s]))
    change = np.array([[scip.addVar(lb=-most[i], ub=most[i]) for i in range(width)] for _ in rows])
    value = np.array(
        [[scip.addVar(lb=x[j, i] - most[i], ub=x[j, i] + most[i]) for i in range(width)] for j in range(len(x))]
    )
    logits = np.array([[scip.addVar(lb=None, ub=None) for _ in range(2)] for _ in rows])
    picked = [scip.addVar(vtype="B") for _ in rows]
    for j in range(len(rows)):
        for i in range(width):
            scip.addCons(value[j, i] == float(x[j, i]) + change[j, i])
        gap = logits[j, TARGET] - logits[j, 1 - TARGET] - question.head_start
        scip.addCons(gap >= -FURTHEST * (1 - picked[j]))
    for i in np.flatnonzero(~question.frozen).tolist():
        scip.addCons(quicksum(d * d for d in change[:, i]) <= float(question.amounts[s, i]) * (1 - 1e-6))
    add_predictor_constr(scip, network(question), value, logits, unique_naming_prefix="net_")
    scip.setObjective(quicksum(picked), sense="maximize")
    scip.optimize()
    changes = np.full(question.x.shape, np.nan)
    if scip.getNSols():
        taken = [j for j in range(len(rows)) if scip.getVal(picked[j]) > 0.5]
        for j in taken:
            changes[rows[j]] = [scip.getVal(d) for d in change[j]]
        changes[rows[taken]] = question.changes_to(question.x + np.nan_to_num(changes))[rows[taken]]
    return changes, float(scip.getDualbound()) if scip.getStatus() == "optimal" else np.nan


if __name__ == "__main__":
    main("pyscipopt-ml", {"SCIP": program})
