"""The auditor computes what follows from a plan's changes by code of its own, and catches what says otherwise."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import maxflip_verify
from maxflip import Cohort, Nearest, Plan, Problem, TorchClassifier, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from maxflip.networks import GRUD, save_network
from maxflip_wall import Unreadable
from tests.examples import linear_net
from tests.jobs import export
from tests.test_cli import invoke
from tests.test_derived import PULSE, Scaled, asked, people
from tests.verify.test_verify_audit import down, run, up

JOB = """\
format = 1

[cohort]
file = "cohort.parquet"
id = "who"
features = ["age", "systolic BP", "diastolic", "pulse", "mean"]

[model]
file = "model.pt2"
output = "logits"
classes = ["worse", "stable"]

[goal]
target = "stable"
margin = 0.1

[budgets."systolic BP"]
amount = 1500.0

[budgets.diastolic]
amount = 200.0

[derived]
mean = "diastolic + pulse / 3"
pulse = "'systolic BP' - diastolic"

[must_hold]
uptake = 0.9

[solver]
name = "nearest"

[report]
frontier = false
"""
WEIGHTS = [-0.02, -0.03, -0.01, -0.03, -0.03]


def write_files(root: Path, job: str = JOB) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    age, systolic, diastolic, pulse = people(40).T
    mean = diastolic + pulse / 3
    columns = {"age": age, "systolic BP": systolic, "diastolic": diastolic, "pulse": pulse, "mean": mean}
    pq.write_table(pa.table({"who": [f"P-{j}" for j in range(40)], **columns}), root / "cohort.parquet")
    export(linear_net(WEIGHTS, 10.5), root / "model.pt2", features=5, dtype=torch.float64)
    (root / "job.toml").write_text(job)
    return root / "job.toml"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("good")
    plan = run_job(write_files(root), root / "plan", overwrite=False, watch=silent).plan
    assert plan.count > 5
    assert plan.implied is not None
    assert len(plan.implied) == 2 * plan.count
    return root


class Broken:
    """A copy of the good folder whose parts can be changed; `write` states the hash of the job as it is then."""

    def __init__(self, good: Path, root: Path) -> None:
        shutil.copytree(good, root, dirs_exist_ok=True)
        self.folder = root / "plan"
        self.plan: list[dict[str, Any]] = pq.read_table(self.folder / "plan.parquet").to_pylist()
        self.implied: list[dict[str, Any]] = pq.read_table(self.folder / "implied.parquet").to_pylist()
        self.job = (self.folder / "job.toml").read_text()
        self.summary: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())

    def write(self) -> Path:
        for name, rows in (("plan", self.plan), ("implied", self.implied)):
            file = self.folder / f"{name}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(file)), file)
        (self.folder / "job.toml").write_text(self.job)
        self.summary["inputs"]["job"]["sha256"] = hashlib.sha256(self.job.encode()).hexdigest()
        (self.folder / "summary.json").write_text(json.dumps(self.summary))
        return self.folder


Forge = Callable[[Broken], Any]


def test_what_is_right_passes(good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(Broken(good, tmp_path).write(), capsys)
    assert code == 0, text
    for line in ("summary.json: derived", "cohort: derived 'mean'", "implied.parquet: rows", "implied.parquet: after"):
        assert f"ok\t{line}" in text


def say(broken: Broken, name: str, text: str) -> None:
    """The job and the summary say another expression."""
    broken.summary["question"]["derived"][name] = text
    lines = [
        f"{name} = {json.dumps(text)}" if line.startswith(f"{name} = ") else line for line in broken.job.split("\n")
    ]
    broken.job = "\n".join(lines)


FORGERIES: dict[str, tuple[Forge, str]] = {
    "not recomputed": (
        lambda b: b.implied[0].update(after=b.implied[0]["before"]),
        "implied.parquet: after: id 'P-",
    ),
    "up by one ulp": (lambda b: b.implied[3].update(after=up(b.implied[3]["after"])), "implied.parquet: after"),
    "down by one ulp": (lambda b: b.implied[-1].update(after=down(b.implied[-1]["after"])), "implied.parquet: after"),
    "before by one ulp": (lambda b: b.implied[1].update(before=up(b.implied[1]["before"])), "implied.parquet: before"),
    "no number": (lambda b: b.implied[0].update(after=float("nan")), "implied.parquet: after"),
    "a row missing": (lambda b: b.implied.pop(2), "implied.parquet: rows: id 'P-"),
    "all rows missing": (lambda b: b.implied.clear(), "implied.parquet: rows"),
    "a row twice": (lambda b: b.implied.insert(0, b.implied[0]), "implied.parquet: order"),
    "rows out of order": (lambda b: b.implied.reverse(), "implied.parquet: order"),
    "a row of somebody not picked": (
        lambda b: b.implied.append({"id": "P-99", "step": 0, "feature": "pulse", "before": 1.0, "after": 2.0}),
        "implied.parquet: stray: id 'P-99', step 0, feature 'pulse'",
    ),
    "a row of a feature that follows from nothing": (
        lambda b: b.implied.insert(0, b.implied[0] | {"feature": "age"}),
        "implied.parquet: stray",
    ),
    "a row of another step": (lambda b: b.implied[0].update(step=1), "implied.parquet: stray"),
    "another expression in the summary": (
        lambda b: b.summary["question"]["derived"].update(pulse="diastolic - 'systolic BP'"),
        "summary.json: derived",
    ),
    "no expression in the summary": (lambda b: b.summary["question"].pop("derived"), "summary.json: derived: got {}"),
    "no question in the summary": (lambda b: b.summary.pop("question"), "summary.json: derived: got {}"),
    "an expression that the cohort is not": (
        lambda b: say(b, "pulse", "'systolic BP' - diastolic + 0.001"),
        "cohort: derived 'pulse': id 'P-0': got",
    ),
    "a change of what follows": (
        lambda b: b.plan.insert(2, b.plan[1] | {"feature": "pulse", "before": b.implied[0]["before"], "change": -1.0}),
        "plan.parquet: frozen",
    ),
    "a change of what it follows from": (
        lambda b: b.plan[0].update(change=b.plan[0]["change"] - 1e-6),
        "implied.parquet: after",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_caught(name: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge, finding = FORGERIES[name]
    broken = Broken(good, tmp_path)
    forge(broken)
    code, text = run(broken.write(), capsys)
    assert code == 5, text
    assert finding in text


def test_flips_that_hold_only_if_nothing_follows_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan of the same job without [derived], under a job that has it."""
    root = tmp_path / "plain"
    start, end = JOB.index("[derived]"), JOB.index("[must_hold]")
    run_job(write_files(root, JOB[:start] + JOB[end:]), root / "plan", overwrite=False, watch=silent)
    told = Plan.load(root / "plan").notices
    assert any("pulse = 'systolic BP' - diastolic in every row" in text for text in told)
    follows = {"id": "P-0", "step": 0, "feature": "pulse", "before": 0.0, "after": 0.0}
    empty = pa.Table.from_pylist([follows]).slice(0, 0).cast(IMPLIED)
    pq.write_table(empty, root / "plan/implied.parquet")
    broken = Broken(root, tmp_path / "forged")
    broken.job = JOB
    broken.summary["question"]["derived"] = read_job(write_files(tmp_path / "job")).derived
    code, text = run(broken.write(), capsys)
    assert code == 5
    for finding in (
        "implied.parquet: rows",
        "fates.parquet: flipped",
        "fates.parquet: confidence_after",
        "must_hold: ",
    ):
        assert finding in text


IMPLIED = pa.schema(
    {"id": pa.string(), "step": pa.int32(), "feature": pa.string(), "before": pa.float64(), "after": pa.float64()}
)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('pulse = "systolic - diastolic"', "wanted some of"),
        ('pulse = "2"', "wanted some of"),
        ('puls = "diastolic"', "wanted some of"),
        ('pulse = "diastolic ** 2"', "cannot stand there"),
        ('pulse = "__import__(1)"', "cannot stand there"),
        ('pulse = "diastolic.x"', "cannot be read behind character 9"),
        ('pulse = "mean"\nmean = "pulse"', "are computed from each other"),
        ('pulse = "pulse"', "are computed from each other"),
        ('diastolic = "pulse"', "has budgets ['diastolic'] or limits"),
        ("pulse = 3", "derived: pulse: got 3, wanted text"),
        ('pulse = "mean"\n[limits.pulse]\nmin = 3', "or limits; wanted neither"),
    ],
)
def test_what_cannot_be_meant_is_unreadable(
    table: str, words: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Broken(good, tmp_path)
    start, end = broken.job.index("[derived]"), broken.job.index("[must_hold]")
    broken.job = f"{broken.job[:start]}[derived]\n{table}\n{broken.job[end:]}"
    code, text = run(broken.write(), capsys)
    assert (code, words in text) == (2, True), text


def test_a_missing_file_is_named(good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Broken(good, tmp_path).write()
    (folder / "implied.parquet").unlink()
    code, text = run(folder, capsys)
    assert code == 2
    assert "implied.parquet" in text
    assert invoke("verify", folder).exit_code != 0


def test_a_value_that_is_not_finite_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A change onto the pole of 1 / x, which the library never makes, in a folder that is right in all else."""
    x = np.array([[1.0, 1.0], [3.0, 1 / 3]])
    net = linear_net([-3.0, 0.0], 1.0)
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=Cohort.table(x, features=["x", "y"]),
        target=1,
        margin=0.1,
        budgets={"x": 5.0},
        derived={"y": "1 / x"},
        exclude=["1"],
    )
    export(net, tmp_path / "net.pt2", features=2, dtype=torch.float64)
    solve(problem, Nearest()).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2")
    broken = Broken(tmp_path, tmp_path / "forged")
    broken.plan[0]["change"] = -1.0
    broken.implied[0]["after"] = math.inf
    code, text = run(broken.write(), capsys)
    assert (code, "implied.parquet: finite: id '0', feature 'y': got inf" in text) == (5, True), text


# --- the way there and back


def test_a_saved_plan_has_a_job_that_asks_the_same(tmp_path: Path) -> None:
    net = Scaled()
    problem = asked(net, derived=PULSE)
    plan = solve(problem, Nearest())
    export(net, tmp_path / "net.pt2", features=4, dtype=torch.float64)
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2")
    text = (tmp_path / "plan/job.toml").read_text()
    assert '[derived]\npulse_pressure = "systolic - diastolic"\n' in text
    job = read_job(tmp_path / "plan/job.toml")
    classifier = job.load_classifier(silent)
    again = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert again.derived.texts == PULSE
    assert np.array_equal(solve(again, Nearest()).moves, plan.moves)
    assert json.loads((tmp_path / "plan/summary.json").read_text())["question"]["derived"] == PULSE
    assert invoke("verify", tmp_path / "plan").exit_code == 0
    loaded = Plan.load(tmp_path / "plan")
    assert loaded.implied_table().equals(plan.implied_table())


def test_names_that_are_no_words_are_written_and_read(tmp_path: Path) -> None:
    x = np.column_stack([people(20)[:, 1], people(20)[:, 2], people(20)[:, 1] - people(20)[:, 2]])
    net = linear_net([-0.03, -0.01, -0.05], 7.0)
    features = ["it's sys", 'a "dia"', "pulse (mmHg)"]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=Cohort.table(x, features=features),
        target=1,
        margin=0.1,
        budgets={"it's sys": 100.0},
        derived={"pulse (mmHg)": '"it\'s sys" - \'a "dia"\''},
    )
    export(net, tmp_path / "net.pt2", dtype=torch.float64)
    plan = solve(problem, Nearest())
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.pt2")
    assert plan.count > 2
    assert read_job(tmp_path / "plan/job.toml").derived == problem.derived.texts
    assert maxflip_verify.audit(tmp_path / "plan").passed


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[derived]\npulse = "systolic - diastolic"', "derived.pulse: 'systolic - diastolic': character 1: no feature"),
        ('[derived]\npuls = "diastolic"', "derived.puls: no feature is called 'puls'. Did you mean 'pulse'?"),
        ("[derived]\npulse = 3", "derived.pulse: got 3; wanted an expression, as text."),
        ("derived = 3", "derived = 3: must be a table."),
        ('[derived]\npulse = "mean"\nmean = "pulse"', "derived.pulse: is computed from itself: pulse -> mean -> pulse"),
        ('[derived]\ndiastolic = "pulse"', "budgets.diastolic: the feature is computed from others (derived)"),
        ('[derived]\npulse = "mean"\n[limits.pulse]\nmin = 3', "limits.pulse: the feature is computed from others"),
        ('[derived]\npulse = "mean"\n[limits.pulse]\ndirection = "up"', "limits.pulse: the feature is computed from"),
    ],
)
def test_a_job_says_what_is_wrong_and_in_which_line(table: str, words: str, tmp_path: Path) -> None:
    """Before torch is loaded or the cohort is read."""
    start, end = JOB.index("[derived]"), JOB.index("[must_hold]")
    is_key = not table.startswith("[")
    text = JOB[:start] + ("" if is_key else f"{table}\n") + JOB[end:]
    job = write_files(tmp_path, text.replace("format = 1\n", f"format = 1\n{table}\n") if is_key else text)
    result = invoke("solve", job, "--out", tmp_path / "plan")
    assert (result.exit_code, words in " ".join(result.output.split())) == (2, True), result.output
    assert "line " in result.output


def test_a_job_whose_cohort_is_not_its_expression_names_the_rows(tmp_path: Path) -> None:
    job = write_files(tmp_path, JOB.replace("'systolic BP' - diastolic", "'systolic BP' - diastolic - 1"))
    result = invoke("solve", job, "--out", tmp_path / "plan")
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "derived.pulse: the cohort's pulse is not 'systolic BP' - diastolic - 1 in 40 rows: row 1 (id P-0): " in said


# --- sequences


def write_stays(root: Path) -> Path:
    """systolic and diastolic with holes; pulse pressure where both were measured, and not always then."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for j in range(24):
        for hour in range(int(rng.integers(1, 6))):
            systolic, diastolic = np.round(rng.normal(138, 15)), np.round(rng.normal(82, 9))
            there = rng.random(3) < (0.8, 0.8, 0.7)
            row = {"stay": f"S-{j:02d}", "hour": float(hour)}
            row |= {"systolic": systolic if there[0] else None, "diastolic": diastolic if there[1] else None}
            rows.append(row | {"pulse": systolic - diastolic if there.all() else None})
    pq.write_table(pa.Table.from_pylist(rows), root / "stays.parquet")
    features = ["systolic", "diastolic", "pulse"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = GRUD(
            inputs=features, hidden=6, classes=["worse", "stable"], shift=[138.0, 82.0, 56.0], scale=[15.0, 9.0, 17.0]
        )
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.copy_(0.6 * torch.randn(parameter.shape))
    save_network(net.double().eval(), root / "model.safetensors")
    (root / "job.toml").write_text(
        """\
format = 1
[cohort]
kind = "sequences"
file = "stays.parquet"
id = "stay"
time = "hour"
features = ["systolic", "diastolic", "pulse"]
steps = "all"
[model]
file = "model.safetensors"
[goal]
target = "stable"
margin = 0.1
[budgets.systolic]
amount = 900.0
[budgets.diastolic]
amount = 300.0
[derived]
pulse = "systolic - diastolic"
[must_hold]
uptake = 0.8
[report]
frontier = false
[solver]
name = "nearest"
"""
    )
    return root / "job.toml"


def test_sequences_follow_step_by_step_and_are_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = run_job(write_stays(tmp_path), tmp_path / "plan", overwrite=False, watch=silent).plan
    assert plan.count > 3
    rows = plan.implied_table().to_pylist()
    assert len(rows) > 4
    changed = {(row["id"], row["step"], row["feature"]): row for row in plan.table().to_pylist()}
    for row in rows:
        parts = [changed.get((row["id"], row["step"], name)) for name in ("systolic", "diastolic")]
        moved = [0.0 if part is None else part["change"] for part in parts]
        assert row["after"] - row["before"] == pytest.approx(moved[0] - moved[1], abs=1e-9)
    forgeries: list[tuple[Forge, str]] = [
        (lambda b: b.implied[4].update(after=up(b.implied[4]["after"])), "implied.parquet: after: id 'S-"),
        (lambda b: b.implied.pop(), "implied.parquet: rows: id 'S-"),
        (lambda b: b.implied[0].update(step=b.implied[0]["step"] + 1), "implied.parquet: "),
    ]
    for number, (forge, finding) in enumerate(forgeries):
        broken = Broken(tmp_path, tmp_path / f"forged {number}")
        forge(broken)
        code, text = run(broken.write(), capsys)
        assert (code, finding in text) == (5, True), text


def test_the_auditor_reads_no_expression_from_elsewhere() -> None:
    from maxflip_verify.derived import read_rules

    job = {"cohort": {"features": ["x", "y"]}, "budgets": {"x": {"amount": 1.0}}, "derived": {"y": "x" * 5000}}
    with pytest.raises(Unreadable, match="5000 characters"):
        read_rules(job)
