"""Texts in the cohort: columns of texts become one-hot codes, and give the plans that the codes themselves give."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

import maxflip_verify
from maxflip import Budget, Cohort, InputError, Plan, Problem, ProblemError, Quota, TorchClassifier, solve
from maxflip.cli.main import app
from maxflip.io.job.read import read_job
from maxflip_verify import inputs
from maxflip_verify.inputs import Case
from maxflip_wall import Unreadable
from tests.examples import linear_net
from tests.verify.good_plan import export

N = 30
RNG = np.random.default_rng(5)
IDS = [f"P-{j:02}" for j in range(N)]
PLAN = RNG.choice(["basic", "plus", "pro"], N).tolist()
SITE = RNG.choice([1, 2], N).tolist()
AGE, BMI = RNG.normal(size=(2, N)).tolist()
ONE_HOT = {"plan": ["plan_basic", "plan_plus", "plan_pro"], "site": ["site_1", "site_2"]}
FEATURES = ["age", *ONE_HOT["plan"], "bmi", *ONE_HOT["site"]]
CODES = {f"plan_{v}": [int(p == v) for p in PLAN] for v in ("basic", "plus", "pro")}
CODES |= {f"site_{v}": [int(s == v) for s in SITE] for v in (1, 2)}
IN_TEXTS = {"id": IDS, "age": AGE, "plan": PLAN, "bmi": BMI, "site": SITE}
IN_CODES = {"id": IDS} | {name: ({"age": AGE, "bmi": BMI} | CODES)[name] for name in FEATURES}


def net() -> torch.nn.Module:
    made = torch.nn.Linear(7, 2).double()
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[0.0] * 7, [1.0, -1.0, 0.5, 2.0, 1.5, 0.0, 0.5]]))
        made.bias.copy_(torch.tensor([0.0, -2.0]))
    return made


ASKED: dict[str, Any] = {
    "classifier": TorchClassifier(net(), output="logits"), "target": 1, "margin": 0.1,
    "choices": {"plan": {"plus": 2.0, "pro": 5.0}, "site": {"2": 1.0}},
    "budgets": {"plan": 30.0, "site": 3.0, "bmi": Budget(4.0, only=("plan_pro", 0.0))},
}  # fmt: skip


def asked(cohort: Any, **other: Any) -> Problem:
    return Problem(cohort=cohort, **(ASKED | other))


def by_codes() -> Problem:
    return asked(Cohort.table(pd.DataFrame(IN_CODES), id="id"), one_hot=ONE_HOT)


def same(plan: Plan, other: Plan) -> bool:
    tables = plan.table().equals(other.table()) and plan.ids.tolist() == other.ids.tolist()
    return bool(tables and plan.spend == other.spend and np.array_equal(plan.moves, other.moves))


def categorical(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"plan": "category"})


FRAMES = {
    "pandas": pd.DataFrame(IN_TEXTS),
    "pandas categories": categorical(pd.DataFrame(IN_TEXTS)),
    "polars": pl.DataFrame(IN_TEXTS),
    "polars categories": pl.DataFrame(IN_TEXTS).with_columns(pl.col("plan").cast(pl.Categorical)),
    "arrow": pa.table(IN_TEXTS),
    "arrow dictionaries": pa.table(IN_TEXTS | {"plan": pa.array(PLAN).dictionary_encode()}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_texts_become_the_columns_of_their_code(kind: str) -> None:
    cohort = Cohort.table(FRAMES[kind], id="id", one_hot=ONE_HOT)
    assert cohort.features == tuple(FEATURES)  # each code in the place of its texts
    assert np.array_equal(cohort.values, np.array([IN_CODES[name] for name in FEATURES], dtype=float).T)
    assert cohort.ignored == ()
    assert cohort.column("plan") == PLAN
    ordered = Cohort.table(FRAMES[kind], id="id", features=["site_2", "site_1", *FEATURES[:-2]], one_hot=ONE_HOT)
    assert np.array_equal(ordered.values[:, :2], np.array([CODES["site_2"], CODES["site_1"]]).T)


def test_a_frame_with_texts_gives_the_plan_of_one_with_codes() -> None:
    wanted = solve(by_codes())
    assert {"plan = pro", "site = 2", "bmi"} <= set(wanted.table()["feature"].to_pylist())
    assert same(solve(asked(Cohort.table(FRAMES["polars"], id="id", one_hot=ONE_HOT))), wanted)
    raw = FRAMES["pandas"].set_index("id")
    problem = asked(raw, one_hot=ONE_HOT, features=FEATURES)
    assert same(solve(problem), wanted)
    assert problem.menu.one_hot == {name: tuple(own) for name, own in ONE_HOT.items()}


def test_a_cohort_carries_its_codes() -> None:
    cohort = Cohort.table(FRAMES["arrow"], id="id", one_hot=ONE_HOT)
    assert dict(asked(cohort).menu.one_hot) == dict(cohort.one_hot) == {n: tuple(own) for n, own in ONE_HOT.items()}
    assert asked(cohort, one_hot={"plan": ONE_HOT["plan"]}).menu.one_hot == asked(cohort).menu.one_hot
    with pytest.raises(
        ProblemError, match=r"one_hot\.plan: the Cohort was made with 'plan_basic', 'plan_plus', 'plan_"
    ):
        asked(cohort, one_hot={"plan": ["plan_basic", "plan_plus"]})


def test_booleans_and_names_without_the_prefix() -> None:
    frame = pd.DataFrame({"smoker": pd.array([True, False, True], dtype="boolean"), "job": ["nurse", "cook", "cook"]})
    cohort = Cohort.table(frame, one_hot={"smoker": ["smoker_false", "smoker_true"], "job": ["nurse", "job_cook"]})
    assert cohort.values.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]
    assert (
        Cohort.table(frame.astype({"smoker": bool}), one_hot=cohort.one_hot).values.tolist() == cohort.values.tolist()
    )


@pytest.mark.parametrize(
    ("columns", "arguments", "says"),
    [
        (
            {"plan": ["gold", *PLAN[1:]]}, {},
            r"cohort: column 'plan', row 1 \(id P-00\): 'gold'; one_hot.plan has features for 'basic', 'plus', 'pro'\.",
        ),
        (
            {"plan": [*PLAN[:2], None, *PLAN[3:]]}, {},
            r"column 'plan', row 3 \(id P-02\): the cell is empty; one_hot.plan has features for",
        ),
        ({"plan": [*PLAN[:2], "", *PLAN[3:]]}, {}, r"row 3 \(id P-02\): the cell is empty"),
        ({"plan": ["Pro"] * N}, {}, r"column 'plan': \.\.\. and 20 more in this column"),
        ({"site": [1.5, *SITE[1:]]}, {}, r"column 'site', row 1 \(id P-00\): '1.5'; one_hot.site has features for '1'"),
        (
            {"plan_pro": [1.0] * N}, {},
            r"has the column 'plan' and columns of its code \(one_hot.plan\): 'plan_pro'. Keep the texts or the code",
        ),
        ({}, {"features": ["age", "plan"]}, "features: 'plan' is a category of one_hot. Name the features of its code"),
        ({}, {"features": ["age"]}, "one_hot.plan: no feature is called 'plan_basic'"),
        ({}, {"one_hot": {"plan": ["plan_pro"]}}, "one_hot.plan = .*: must be a list of at least two features"),
        ({}, {"one_hot": {"plan": ["plan_pro", "pro"]}}, "one_hot.plan: two features stand for 'pro'"),
        ({}, {"one_hot": {"tariff": ["a", "b"]}, "features": ["age"]}, "one_hot.tariff: no feature is called 'a'"),
    ],
)  # fmt: skip
def test_faults_name_the_row_and_what_there_is(columns: dict[str, Any], arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Cohort.table(pl.DataFrame(IN_TEXTS | columns), id="id", **({"one_hot": ONE_HOT} | arguments))


JOB = """format = 1
cohort = { file = "FILE", id = "id", features = FEATURES }
model = { file = "model.pt2", output = "logits" }
goal = { target = 1, margin = 0.1 }
report.frontier = false
budgets.plan = { amount = 30.0 }
budgets.site = { amount = 3.0 }
budgets.bmi = { amount = 4.0, only = { column = "plan_pro", value = 0.0 } }
choices.plan = { plus = 2.0, pro = 5.0 }
choices.site = { 2 = 1.0 }
one_hot = { plan = ["plan_basic", "plan_plus", "plan_pro"], site = ["site_1", "site_2"] }
"""


def put(folder: Path, file: str, table: pa.Table) -> None:
    (pa.csv.write_csv if file.endswith(".csv") else pq.write_table)(table, folder / file)


def job_in(folder: Path, file: str, columns: dict[str, Any], *, with_model: bool = True) -> Path:
    put(folder, file, pa.table(columns))
    if with_model:
        (folder / "model.pt2").write_bytes(export(net(), torch.zeros(2, 7, dtype=torch.float64)))
    else:
        (folder / "model.pt2").touch()
    text = JOB.replace("FILE", file).replace("FEATURES", str(FEATURES).replace("'", '"'))
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


def problem_of(path: Path) -> Problem:
    job = read_job(path)
    return job.problem(job.read_cohort(), job.load_classifier(lambda _: None))


def rehashed(plan: Path) -> list[str]:
    """The findings of an audit after the files were changed and their hashes mended."""
    said = json.loads((plan / "summary.json").read_text())
    for entry in said["inputs"].values():
        entry["sha256"] = sha256((plan / entry["path"]).read_bytes()).hexdigest()
    (plan / "summary.json").write_text(json.dumps(said))
    return list(maxflip_verify.audit(plan).findings)


@pytest.mark.parametrize("file", ["people.parquet", "people.csv"])
def test_a_job_takes_texts_and_its_plan_is_audited(tmp_path: Path, file: str) -> None:
    job, plan = job_in(tmp_path, file, IN_TEXTS), tmp_path / "plan"
    done = CliRunner().invoke(app, ["solve", str(job), "--out", str(plan)])
    assert done.exit_code == 0, done.output
    assert same(Plan.load(plan), solve(by_codes()))
    assert maxflip_verify.audit(plan).passed

    swapped = [{"pro": "basic", "basic": "pro"}.get(text, text) for text in PLAN]
    put(tmp_path, file, pa.table(IN_TEXTS | {"plan": swapped}))
    assert maxflip_verify.audit(plan).findings[0].startswith("summary.json: inputs: cohort")
    assert any(finding.startswith("fates.parquet: ") for finding in rehashed(plan))
    put(tmp_path, file, pa.table(IN_TEXTS))
    assert rehashed(plan) == []

    text = (plan / "job.toml").read_text()
    other_order = text.replace('"plan_basic", "plan_plus", "plan_pro"]', '"plan_pro", "plan_plus", "plan_basic"]')
    (plan / "job.toml").write_text(other_order)
    assert maxflip_verify.audit(plan).findings[0].startswith("summary.json: inputs: job")
    assert rehashed(plan) == []  # names tell what a column stands for, not its place
    assert other_order.count('"plan_pro", "plan_plus"') == 1
    (plan / "job.toml").write_text(text.replace('"age", "plan_basic", "plan_plus"', '"age", "plan_plus", "plan_basic"'))
    assert any(finding.startswith("fates.parquet: ") for finding in rehashed(plan))  # the model takes columns by place


def test_a_saved_plan_has_its_codes_as_numbers(tmp_path: Path) -> None:
    cohort = Cohort.table(FRAMES["pandas"], id="id", one_hot=ONE_HOT)
    problem = asked(
        cohort, budgets={"plan": 30.0, "bmi": Budget(4.0, only=("plan", "basic"))},
        quotas=[Quota(("plan", "basic"), at_least=2), Quota(("site", 1), at_least=2)],
    )  # fmt: skip
    plan = solve(problem)
    (tmp_path / "model.pt2").write_bytes(export(net(), torch.zeros(2, 7, dtype=torch.float64)))
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "model.pt2")
    names = pq.read_schema(tmp_path / "plan" / "cohort.parquet").names
    assert set(FEATURES) < set(names)
    assert not {"plan", "site"} & set(names)  # beside the code, texts would contradict it
    assert maxflip_verify.audit(tmp_path / "plan").passed
    assert same(solve(problem_of(tmp_path / "plan" / "job.toml")), plan)


@pytest.mark.parametrize("file", ["people.parquet", "people.csv"])
def test_faults_of_a_file_name_the_row_and_the_auditor_refuses_it_too(tmp_path: Path, file: str) -> None:
    wrong = {
        "plan": (
            ["gold", *PLAN[1:]],
            "people.*: column 'plan', row 1 .id P-00.: 'gold'; one_hot.plan has features",
        ),
        "site": ([None, *SITE[1:]], "people.*: column 'site', row 1 .id P-00.: the cell is empty; one_hot.site has"),
        "plan_pro": ([1.0] * N, "has the column 'plan' and columns of its code .one_hot.plan.: 'plan_pro'. Keep the"),
    }
    for column, (cells, says) in wrong.items():
        job = job_in(tmp_path, file, IN_TEXTS | {column: cells}, with_model=False)
        with pytest.raises(InputError, match=says):
            read_job(job).read_cohort()
        with pytest.raises(Unreadable, match=f"column {'plan' if column == 'plan_pro' else column!r}"):
            read_as_the_auditor(job)
    job = job_in(tmp_path, file, IN_TEXTS, with_model=False)
    read = read_job(job).read_cohort().cohort
    assert np.array_equal(read.values, read_as_the_auditor(job).start)


def read_as_the_auditor(path: Path) -> Case:
    job = inputs.read_job(path.read_bytes())
    job["model"]["classes"] = ["0", "1"]
    file = path.parent / job["cohort"]["file"]
    return inputs.read_case(job, {"cohort": file.read_bytes()}, {"cohort": file.name})


def test_a_wrong_code_is_one_fault() -> None:
    """The category is there, though its code is not right: nothing says that it is unknown."""
    with pytest.raises(ProblemError) as refused:
        Problem(
            classifier=TorchClassifier(linear_net([1.0, 1.0, 1.0]), output="logits"),
            cohort=[[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]],
            features=["x", "plan_a", "plan_b"],
            target=1,
            margin=0.1,
            budgets={"x": 1.0, "euro": Budget(3.0, {"plan": 1.0}, "absolute")},
            one_hot={"plan": ["plan_a", "plan_b"]},
            choices={"plan": {"a": 1.0}},
        )
    (fault,) = refused.value.problems
    assert fault.startswith("one_hot.plan")
