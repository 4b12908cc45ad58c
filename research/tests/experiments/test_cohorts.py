"""Who is drawn: real stays and students, made-up customers, and a plan for some of them that an auditor passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maxflip_verify
from maxflip import Nearest, solve
from maxflip.datasets.physionet_variables import LABS
from research.experiments.cohorts import WEIGHTS, Pool, _customers, _patients, _students
from research.tests.experiments.stage import small
from tests.real_data import real_data


def pool_of(n: int) -> Pool:
    data = small(n)
    return Pool(data, WEIGHTS / "none", "high", ("pressure",), np.flatnonzero(data.labels == 0), {})


def test_a_smaller_draw_is_part_of_a_larger_one_and_seeds_differ() -> None:
    pool = pool_of(60)
    few, more, other = pool.drawn(5, 3), pool.drawn(12, 3), pool.drawn(5, 4)
    assert more.ids[:5] == few.ids
    assert set(other.ids) != set(few.ids)
    assert not more.labels.any()


def test_more_than_there_are_cannot_be_drawn() -> None:
    pool = pool_of(20)
    with pytest.raises(ValueError, match=f"1000 asked for, but only {len(pool.candidates)} can be drawn"):
        pool.drawn(1000, 0)


def test_patients_are_planned_for_and_the_plan_is_audited(tmp_path: Path) -> None:
    problem = _patients(real_data("physionet2012")).problem(6, 0)
    assert {problem.cohort.features[i] for i in problem.slots.feature} <= set(LABS)
    asked = problem.changed(budgets=dict.fromkeys(LABS, 1e9))
    plan = solve(asked, Nearest())
    assert plan.count >= 5
    assert not (plan.fates == "already").any()
    ragged = problem.cohort.ragged
    assert ragged is not None
    for row, change in zip(plan.selected.tolist(), plan.changes, strict=True):
        assert not change[np.isnan(problem.cohort.values[ragged.begin[row] : ragged.begin[row + 1]])].any()
    model = WEIGHTS / "grud_30_day.safetensors"
    plan.save(tmp_path / "plan", problem=asked, model=model)
    assert maxflip_verify.audit(tmp_path / "plan", model=model).passed


def test_students_are_those_who_failed_or_withdrew() -> None:
    pool = _students(real_data("oulad"))
    assert {pool.data.classes[label] for label in pool.data.labels[pool.candidates]} == {"Fail", "Withdrawn"}
    problem = pool.problem(4, 0)
    assert list(problem.budgets) == ["score", "days_late"]


def test_customers_have_169_features_of_which_19_may_change() -> None:
    pool = _customers()
    assert len(pool.data.features) + len(pool.data.static_features) == 169
    assert len(pool.changeable) == 19
    assert not (pool.data.labels[pool.candidates] == pool.data.classes.index(pool.target)).any()
    assert len(pool.candidates) >= 900
