"""Quotas in job files and plan folders: read, refused with their lines, written from Python, audited, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import maxflip_verify
from maxflip import Cohort, InputError, Nearest, Plan, Problem, ProblemError, Quota, TorchClassifier, solve
from maxflip._util.events import silent
from maxflip.io.job.places import lines_of
from maxflip.io.job.read import read_job
from maxflip.report import render
from tests.examples import small_net
from tests.jobs import export, job_text
from tests.report.plans import Page
from tests.sequences.stays import JOB as STAYS
from tests.sequences.stays import static_table, write_stays
from tests.test_cli import invoke

QUOTAS = """
[[quotas]]
column = "sex"
value = "F"
at_least = 0.6

[[quotas]]
column = "visits"   # numbers
value = 2
at_most = 3

[[quotas]]
ids = ["P-1", "P-2", "P-3"]
at_least = 1
at_most = 1.0
"""


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"who": [f"P-{j}" for j in range(n)], **{f"x{i}": rng.normal(size=n) for i in range(3)}})
    return frame.assign(
        sex=rng.choice(["F", "M"], n),
        visits=rng.integers(1, 4, n),
        site=["Oslo" if one < 0.5 else None for one in rng.random(n)],
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    export(small_net(3, seed=1), path)
    return path


def job_file(folder: Path, quotas: str, model: Path | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    people().to_csv(folder / "cohort.csv", index=False)
    (folder / "model.pt2").write_bytes(b"" if model is None else model.read_bytes())
    path = folder / "job.toml"
    path.write_text(job_text(["x0", "x1", "x2"], {f"x{i}": 6.0 for i in range(3)}) + quotas)
    return path


def problem_of(path: Path) -> Problem:
    job = read_job(path)
    classifier = job.load_classifier(silent)
    return job.with_classes_of(classifier).problem(job.read_cohort(), classifier)


def in_python(frame: pd.DataFrame, quotas: list[Quota], **options: Any) -> Problem:
    return Problem(
        classifier=TorchClassifier(small_net(3, seed=1), output="logits", classes=["worse", "stable"]),
        cohort=Cohort.table(frame, id="who", features=["x0", "x1", "x2"]),
        target="stable",
        margin=0.1,
        budgets={f"x{i}": 6.0 for i in range(3)},
        quotas=quotas,
        **options,
    )


ASKED = [
    Quota(("sex", "F"), at_least=0.6),
    Quota(("visits", 2.0), at_most=3),
    Quota(frozenset({"P-1", "P-2", "P-3"}), at_least=1, at_most=1.0),
]


def test_a_job_asks_what_python_asks(tmp_path: Path, model: Path) -> None:
    by_job, by_hand = problem_of(job_file(tmp_path, QUOTAS, model)), in_python(people(), ASKED)
    assert by_job.quotas.asked == by_hand.quotas.asked == tuple(ASKED)
    np.testing.assert_array_equal(by_job.quotas.inside, by_hand.quotas.inside)
    assert by_job.notices == ("cohort.csv: columns that are no features are ignored: site.",)
    assert [type(quota.at_least) for quota in by_job.quotas.asked] == [float, type(None), int]


def test_the_program_makes_audits_and_shows_such_a_plan(tmp_path: Path, model: Path) -> None:
    path = job_file(tmp_path, QUOTAS, model)
    ran = invoke("solve", path, "--out", tmp_path / "plan")
    assert ran.exit_code == 0, ran.output
    plan = Plan.load(tmp_path / "plan")
    table = {line.split("  ")[0]: line for line in ran.output.splitlines()}
    first = plan.quotas[0]
    assert table["sex = 'F'"].split()[3:12] == f"at least 60 % of those picked {first.count} of".split()
    assert "at most 3 people" in table["visits = 2"]
    assert "3 people named by id" in table
    assert first.count >= 0.6 * plan.count > 0
    assert invoke("verify", tmp_path / "plan").exit_code == 0
    text = Page((tmp_path / "plan" / "report.html").read_text()).text
    assert "Quotassex = 'F': at least 60 % of those picked; visits = 2: at most 3 people; 3 people named by id:" in text
    assert f"sex = 'F'at least 60 % of those picked{first.count} of {plan.count}" in text


def test_a_plan_is_saved_with_its_quotas_and_a_job_that_asks_the_same(tmp_path: Path, model: Path) -> None:
    frame = people().rename(columns={"sex": "id"})  # the group's column keeps its name, and the id gets another one
    problem = in_python(frame, [Quota(("id", "F"), at_least=0.6), *ASKED[1:], Quota(("site", "Oslo"), at_most=9)])
    plan = solve(problem, Nearest())
    plan.save(tmp_path / "plan", problem=problem, model=model)
    audit = maxflip_verify.audit(tmp_path / "plan")
    assert audit.passed, audit.findings
    again = Plan.load(tmp_path / "plan")
    assert again.question == plan.question
    assert again.answers(problem)
    assert [(q.quota, q.count, q.price, q.cost) for q in again.quotas] == [
        (q.quota, q.count, q.price, q.cost) for q in plan.quotas
    ]
    for one, other in zip(again.quotas, plan.quotas, strict=True):
        np.testing.assert_array_equal(one.members, other.members)
    assert again.what_if({"x0": 1.0}).at_least >= plan.worth
    assert problem_of(tmp_path / "plan" / "job.toml").quotas.asked == problem.quotas.asked
    columns = pq.read_table(tmp_path / "plan" / "cohort.parquet").column_names
    assert columns == ["x0", "x1", "x2", "id_", "id", "visits", "site"]
    told = json.loads((tmp_path / "plan" / "summary.json").read_text())
    assert told["quotas"][2]["ids"] == ["P-1", "P-2", "P-3"]
    assert "quotas" not in told["question"]


def test_a_plan_without_quotas_says_nothing_of_them(tmp_path: Path) -> None:
    solve(in_python(people(), []), Nearest()).save(tmp_path / "plan")
    told = json.loads((tmp_path / "plan" / "summary.json").read_text())
    assert "quotas" not in told
    assert "quotas" not in told["question"]
    assert "uota" not in (tmp_path / "plan" / "report.html").read_text().partition("</style>")[2]


def test_sequences_have_groups_in_their_static_file(tmp_path: Path) -> None:
    static = static_table() | {"ward": ["A" if j % 3 else "B" for j in range(24)]}
    quotas = '\n[[quotas]]\ncolumn = "ward"\nvalue = "B"\nat_least = 0.5\n'
    quotas += f'\n[[quotas]]\ncolumn = "age"\nvalue = {static["age"][0]}\nat_most = 1\n'
    path = write_stays(tmp_path, STAYS + quotas, static=static)
    ran = invoke("solve", path, "--out", tmp_path / "plan", "--quiet")
    assert ran.exit_code == 0, ran.output
    plan = Plan.load(tmp_path / "plan")
    wards = dict(zip(static["stay"], static["ward"], strict=True))
    assert plan.count > 0
    assert sum(wards[name] == "B" for name in plan.ids) == plan.quotas[0].count >= 0.5 * plan.count
    problem = problem_of(path)
    plan.save(tmp_path / "again", problem=problem, model=tmp_path / "model.safetensors")
    assert maxflip_verify.audit(tmp_path / "again").passed


@pytest.mark.parametrize(
    ("quota", "fault"),
    [
        (
            'column = "sex"\nat_least = 1',
            "quotas.column, quotas.ids, entry 2: a group is `column` and `value`, or `ids`",
        ),
        ('column = "sex"\nvalue = "F"\nids = ["P-1"]\nat_least = 1', "got column and value and ids"),
        ("at_least = 1", "got neither"),
        ('ids = ["P-1"]', "quotas.at_least, quotas.at_most, entry 2: give at least one of the two."),
        ('ids = ["P-1"]\nat_least = 40.0', "quotas.at_least, entry 2 = 40.0: a float is a share of those picked."),
        ('ids = ["P-1"]\nat_least = "1"', "quotas.at_least, entry 2 = '1': must be a number."),
        ('ids = "P-1"\nat_least = 1', "quotas.ids, entry 2 = 'P-1': must be a list."),
        ('ids = ["P-1", 2]\nat_least = 1', "quotas.ids, entry 2, entry 2 = 2: must be a text."),
        ('colum = "sex"\nids = ["P-1"]\nat_least = 1', "quotas.colum, entry 2: there is no such key. Did you mean"),
        ('column = "sex"\nvalue = ["F"]\nat_least = 1', "quotas.value, entry 2 = ['F']: must be a number."),
        ('column = "who"\nvalue = "P-1"\nat_least = 1', "'who' is the id column. Name people in `ids`."),
    ],
)
def test_a_wrong_quota_is_told_with_its_line(quota: str, fault: str, tmp_path: Path) -> None:
    right = '\n[[quotas]]\nids = ["P-1"]\nat_least = 1\n'
    path = job_file(tmp_path, f"{right}\n[[quotas]] # wrong\n{quota}\n")
    with pytest.raises(InputError) as refused:
        read_job(path)
    (said,) = refused.value.problems
    assert fault in said
    number = int(said.partition("line ")[2].partition(":")[0])
    lines = path.read_text().splitlines()
    assert number > lines.index("[[quotas]] # wrong")


@pytest.mark.parametrize(
    ("quotas", "fault"),
    [
        ("quotas = 3\n", "quotas = 3: must be tables [[quotas]]."),
        ('[quotas]\ncolumn = "sex"\n', "quotas = {'column': 'sex'}: must be tables [[quotas]]."),
    ],
)
def test_quotas_are_a_list_of_tables(quotas: str, fault: str, tmp_path: Path) -> None:
    path = job_file(tmp_path, "")
    path.write_text(quotas + path.read_text() if quotas.startswith("quotas") else path.read_text() + quotas)
    with pytest.raises(InputError, match="must be tables") as refused:
        read_job(path)
    assert fault in str(refused.value)


def test_columns_and_values_are_looked_for_in_the_file(tmp_path: Path, model: Path) -> None:
    wrong = '\n[[quotas]]\ncolumn = "sex"\nvalue = "f"\nat_least = 1\n'
    wrong += '\n[[quotas]]\ncolumn = "visits"\nvalue = "2"\nat_most = 1\n'
    path = job_file(tmp_path, wrong, model)
    at = [number for number, line in enumerate(path.read_text().splitlines(), 1) if line == "[[quotas]]"]
    with pytest.raises(ProblemError) as refused:
        problem_of(path)
    assert refused.value.problems == (
        f"{path}: line {at[0]}: quotas.group, entry 1: nobody has 'f' in column 'sex'. There are 'F', 'M'.",
        f"{path}: line {at[1]}: quotas.group, entry 2: nobody has '2' in column 'visits'. There are 1, 2, 3.",
    )
    with pytest.raises(InputError, match=r"cohort\.csv: has no column 'sx'"):
        read_job(job_file(tmp_path, '\n[[quotas]]\ncolumn = "sx"\nvalue = "F"\nat_least = 1\n', model)).read_cohort()


def test_what_is_asked_for_and_cannot_be_is_told_with_its_line(tmp_path: Path, model: Path) -> None:
    path = job_file(tmp_path, '\n[[quotas]]\ncolumn = "sex"\nvalue = "F"\nat_least = 25\n', model)
    ran = invoke("solve", path, "--out", tmp_path / "plan", "--quiet")
    assert ran.exit_code == 2
    line = path.read_text().splitlines().index("at_least = 25") + 1
    assert f"{path}: line {line}: quotas.at_least, entry 1: asks for 25 people" in ran.output


def test_groups_of_sequences_need_a_static_file_and_a_joint_allocation(tmp_path: Path) -> None:
    quotas = '\n[[quotas]]\ncolumn = "ward"\nvalue = "B"\nat_least = 0.5\n'
    plain = STAYS.replace('static = "static.parquet"\nstatic_features = ["age"]\n', "").replace(', age = "years"', "")
    divided = plain.replace("[solver]\n", '[solver]\nallocation = "proportional"\ngroups = 2\n')
    with pytest.raises(InputError) as refused:
        read_job(write_stays(tmp_path, divided + quotas))
    assert [said.partition(": line ")[2].partition(": ")[2] for said in refused.value.problems] == [
        "quotas.column, entry 1: for sequences, a column with one value per id must be in the static file. Name it in "
        "cohort.static.",
        "quotas, solver.allocation: a proportional allocation divides the cohort, and a quota is about everybody "
        "picked. Leave out one.",
    ]


def test_tables_of_one_name_have_numbered_lines() -> None:
    text = "[[quotas]]\na = 1\n[x]\n[[quotas]]\n\na = 2\n"
    tables = {"quotas": [{"a": 1}, {"a": 2}], "x": {}}
    assert lines_of(text, tables) == {
        ("quotas",): 1,
        ("quotas", "1"): 1,
        ("quotas", "1", "a"): 2,
        ("x",): 3,
        ("quotas", "2"): 4,
        ("quotas", "2", "a"): 6,
    }


def test_a_page_without_people_says_nothing_of_small_groups() -> None:
    frame = people()
    plan = solve(in_python(frame, ASKED), Nearest())
    page = Page(render(plan, people="none")).text
    assert "not shown: fewer than five people are in the group" in page
    assert page.count("not shown: fewer than five people are in the group") == 1
    assert "P-1" not in page
    assert "not shown: fewer than five people are in the group" not in Page(render(plan)).text


def test_a_page_says_what_quotas_cost_and_why_nobody_is_picked() -> None:
    frame = people()
    dear = solve(in_python(frame, [Quota(("sex", "F"), at_most=0.1)]), Nearest())
    page = Page(render(dear)).text
    assert dear.quotas[0].cost is not None
    assert f"{dear.quotas[0].count} of {dear.count} (" in page
    assert f"%)about {dear.quotas[0].cost:.2g} people" in page
    nobody = Page(render(solve(in_python(frame, [Quota(frame["who"].tolist(), at_most=0)]), Nearest()))).text
    assert "The budgets and quotas leave no place for anybody whom a change is known to move." in nobody
    assert "a quota leaves no place for them" in nobody
