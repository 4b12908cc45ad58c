"""Jobs whose budgets differ between people: columns of the cohort as fees, weights and parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from maxflip import InputError, Nearest, Plan, ProblemError, TorchClassifier, Ways, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from maxflip.problem.own import Own, Part
from tests.examples import small_net
from tests.files.test_job import faults, job, line_of
from tests.sequences.stays import edited, static_table, write_stays
from tests.sequences.test_jobs import problem_of

PEOPLE = """\
pid,age,bmi,bp,site,fee,tier,hours
007,61,27.5,120,Oslo,1.5,1,0.5
P-2,48,31,111,Bergen,0,2,1
P-3,70,22,140,Oslo,2,1,3
"""


@pytest.fixture(scope="module")
def classifier() -> TorchClassifier:
    return TorchClassifier(small_net(3, dtype=torch.float64), output="logits", classes=["worse", "stable"])


def test_columns_say_fees_weights_and_parts(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(
        tmp_path,
        ("uses = { bmi = 0.2, bp = 0.5 }", 'uses = { bmi = "hours", bp = { up = "tier", down = 0.5 } }\nfee = "fee"'),
        ("amount = inf\n", 'amount = 2\nonly = { column = "tier", value = 1 }\nfee = 2.5\n'),
        ("amount = 4000", 'amount = 4000\nonly = { column = "site", value = "Oslo" }\nuses = { bp = "age" }'),
    )
    (tmp_path / "people.csv").write_text(PEOPLE)
    problem = found.problem(found.read_cohort(), classifier)
    hours, people, bp = (problem.budgets[name] for name in ("nurse_hours", "people", "bp"))
    assert hours.weights == {"bmi": Own(np.array([0.5, 1.0, 3.0])), "bp": Ways(Own(np.array([1.0, 2.0, 1.0])), 0.5)}
    assert hours.fee == Own(np.array([1.5, 0.0, 2.0]))
    assert (people.fee, people.only) == (2.5, Part(("tier", 1.0), np.array([True, False, True])))
    assert bp.weights == {"bp": Own(np.array([61.0, 48.0, 70.0]))}
    assert bp.only == people.only
    assert problem.cohort.ignored == ()
    drawn = problem.bill(np.array([1, 2]), np.array([[0.0, -1.0, 2.0], [0.0, 2.0, -4.0]])).consumption
    np.testing.assert_allclose(drawn, [[0.0, 1.0 + 4.0, 0.0], [70.0 * 16, 6.0 + 2.0 + 2.0, 2.5]])


def test_ids_are_a_part_too(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(tmp_path, ("amount = inf\n", 'amount = 1\nonly = { ids = ["P-3", "P-2"] }\n'))
    problem = found.problem(found.read_cohort(), classifier)
    assert problem.budgets["people"].only == Part(frozenset(["P-2", "P-3"]), np.array([False, True, True]))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("bmi = 0.2", "bmi = { up = 1 }", "budgets.nurse_hours.uses.bmi = {'up': 1}: must be a number, a column, or"),
        ("bmi = 0.2", "bmi = { up = 1, down = -1 }", "budgets.nurse_hours.uses.bmi = {'up': 1, 'down': -1}: must be a"),
        ("bmi = 0.2", 'bmi = ""', "budgets.nurse_hours.uses.bmi = '': must not be empty."),
        ("amount = 300.0", "amount = 300.0\nfee = -1", "budgets.nurse_hours.fee = -1: must be a finite number >= 0."),
        ("amount = 300.0", "amount = 300.0\nfee = [1]", "budgets.nurse_hours.fee = [1]: must be a number."),
        ("amount = inf", 'amount = 1\nonly = "Oslo"', "budgets.people.only = 'Oslo': must be { column = "),
        (
            "amount = inf",
            'amount = 1\nonly = { column = "site" }',
            "budgets.people.only = {'column': 'site'}: must be {",
        ),
        ("amount = inf", "amount = 1\nonly = { ids = [3] }", "budgets.people.only = {'ids': [3]}: must be a text."),
        ("[budgets.bp]", "[budgets.money]\nfee = 2", 'One of fees alone is a count: cost = "count".'),
        ("[limits.bmi]", "[limits.age]\nmin = 3\n\n[limits.bmi]", "limits.age: the feature draws on no budget"),
    ],
)
def test_a_wrong_value_is_named_by_its_key(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert sum(fault in sentence for sentence in faults(tmp_path, (old, new))) == 1


def test_faults_of_columns_name_file_row_and_id(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(tmp_path, ("amount = 300.0", 'amount = 300.0\nfee = "fee"'))
    (tmp_path / "people.csv").write_text(PEOPLE.replace("Oslo,2,", "Oslo,-2,").replace("Bergen,0,", "Bergen,none,"))
    with pytest.raises(InputError) as caught:
        found.read_cohort()
    assert caught.value.problems == (
        "people.csv: column 'fee', row 2 (id P-2): 'none' is no number; wanted a finite number >= 0.",
        "people.csv: column 'fee', row 3 (id P-3): -2.0; wanted a finite number >= 0.",
    )
    found = job(tmp_path, ("amount = inf", 'amount = 1\nonly = { column = "site", value = "Olso" }'))
    (tmp_path / "people.csv").write_text(PEOPLE)
    with pytest.raises(ProblemError) as refused:
        found.problem(found.read_cohort(), classifier)
    (sentence,) = refused.value.problems
    assert sentence.endswith("budgets.people.only: nobody has 'Olso' in column 'site'. There are 'Bergen', 'Oslo'.")
    assert f"line {line_of(found, 'only')}: " in sentence
    found = job(tmp_path, ("amount = 300.0", 'amount = 300.0\nfee = "fees"'))
    (tmp_path / "people.csv").write_text(PEOPLE)
    with pytest.raises(InputError, match=r"people\.csv: has no column 'fees'\. Did you mean 'fee'\?"):
        found.read_cohort()


def test_columns_of_sequences_come_from_the_static_file(tmp_path: Path) -> None:
    """... and the plan of such a job passes its audit."""
    changes = (
        (
            "uses = { bp = 0.1, glucose = 0.5 }",
            'uses = { bp = "value", glucose = { up = 0.5, down = "age" } }\nfee = "age"',
        ),
        ("amount = 900.0", 'amount = 9000.0\nfee = 1.5\nonly = { column = "wish", value = "stable" }'),
        ("amount = 60.0", "amount = 2000.0"),
    )
    path, beside = write_stays(tmp_path, edited(*changes)), static_table()
    problem = problem_of(path)
    place = [beside["stay"].index(text) for text in problem.cohort.ids]
    hours, bp = problem.budgets["hours"], problem.budgets["bp"]
    assert hours.fee == Own(np.array([beside["age"][k] for k in place], dtype=float))
    assert hours.weights["bp"] == Own(np.array([beside["value"][k] for k in place], dtype=float))
    assert bp.only == Part(("wish", "stable"), np.array([beside["wish"][k] == "stable" for k in place]))
    plan = solve(problem, Nearest())
    assert plan.count > 0
    run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    saved = Plan.load(tmp_path / "plan")
    assert saved.spend == plan.spend
    assert saved.budgets == plan.budgets
    wrong = (('static = "static.parquet"\nstatic_features = ["age"]\n', ""), changes[1])
    with pytest.raises(InputError, match=r"budgets\.bp: for sequences, a column with one value per id must be in"):
        read_job(write_stays(tmp_path, edited(*wrong)))
