"""Plans for patients: the network of the experiment, real stays, and an audit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import maxflip_verify
from experiments.clinic import WEIGHTS, audited, patients, untouched
from maxflip import Nearest, solve
from maxflip.datasets.physionet_variables import LABS
from tests.real_data import real_data


def test_patients_are_planned_for_and_the_plan_is_audited(tmp_path: Path) -> None:
    problem = patients(real_data("physionet2012"), 6)
    assert len(problem) == 6
    assert {problem.cohort.features[i] for i in problem.slots.feature} <= set(LABS)
    asked = problem.changed(budgets=dict.fromkeys(LABS, 1e9))
    plan = solve(asked, Nearest())
    assert plan.count >= 5
    assert not (plan.fates == "already").any()
    audited(asked, plan, tmp_path / "plan")
    assert maxflip_verify.audit(tmp_path / "plan", model=WEIGHTS).passed


def test_a_change_of_a_missing_value_would_be_seen() -> None:
    problem = patients(real_data("physionet2012"), 3)
    plan = solve(problem.changed(budgets=dict.fromkeys(LABS, 1e9)), Nearest())
    assert untouched(problem, plan)
    row = int(plan.selected[0])
    ragged = problem.cohort.ragged
    assert ragged is not None
    values = problem.cohort.values[ragged.begin[row] : ragged.begin[row + 1]]
    changed = plan.changes[0].copy()
    changed[tuple(np.argwhere(np.isnan(values))[0])] = 1.0
    touched: Any = SimpleNamespace(selected=plan.selected[:1], changes=[changed])
    assert not untouched(problem, touched)
