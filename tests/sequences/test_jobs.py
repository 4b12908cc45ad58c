"""Jobs about sequences, from the file to the audited folder and back."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import maxflip_verify
from maxflip import (
    Budget,
    Cohort,
    Grouped,
    InputError,
    Insight,
    Nearest,
    Plan,
    Problem,
    TorchClassifier,
    VerifyError,
    resolve,
    solve,
)
from maxflip._util.events import silent
from maxflip.cli.run_job import Released, run_job
from maxflip.data.places import SequencePlaces
from maxflip.io.job.read import read_job
from maxflip.models.files import load_sequence_classifier
from maxflip.networks import GRUD, SequenceTransformer, SparseTimeLSTM, save_network
from tests.jobs import export
from tests.sequences.examples import Recurrent
from tests.sequences.stays import (
    JOB,
    edited,
    long_table,
    network,
    network_bytes,
    static_table,
    write_csv,
    write_stays,
)
from tests.test_cli import invoke


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    folder = tmp_path_factory.mktemp("stays")
    return run_job(write_stays(folder), folder / "plan", overwrite=False, watch=silent)


def problem_of(path: Path) -> Problem:
    job = read_job(path)
    classifier = job.load_classifier(silent)
    job = job.with_classes_of(classifier)
    return job.problem(job.read_cohort(), classifier)


def told(folder: Path, *changes: tuple[str, str]) -> list[str]:
    """What is said of a job before any file is opened."""
    path = write_stays(folder, edited(*changes))
    with pytest.raises(InputError) as caught:
        read_job(path)
    assert all(p.startswith(f"{path}: ") for p in caught.value.problems)
    return [re.sub(r"^line \d+: ", "", p.removeprefix(f"{path}: ")) for p in caught.value.problems]


# From a job to a problem


def test_a_job_of_files_is_the_problem_of_arrays(tmp_path: Path) -> None:
    """The same plan, to the last bit, as from Python with the same numbers."""
    path = write_stays(tmp_path)
    read = problem_of(path)
    long, beside = long_table(), static_table()
    age = dict(zip(beside["stay"], beside["age"], strict=True))
    ids = list(dict.fromkeys(long["stay"]))
    rows = [[k for k, stay in enumerate(long["stay"]) if stay == j] for j in ids]
    cohort = Cohort.sequences(
        [[[np.nan if long[f][k] is None else long[f][k] for f in ("bp", "glucose")] for k in r] for r in rows],
        times=[[long["hour"][k] for k in r] for r in rows],
        static=[[age[j]] for j in ids],
        static_features=["age"],
        features=["bp", "glucose"],
        ids=ids,
        units={"bp": "mmHg", "age": "years"},
    )
    made = Problem(
        classifier=TorchClassifier(network(), output="logits", classes=["worse", "stable"]),
        cohort=cohort,
        target="stable",
        margin=0.1,
        steps="last 3",
        budgets={"bp": 900.0, "hours": Budget(60.0, {"bp": 0.1, "glucose": 0.5}, "absolute")},
        limits={"bp": (70, 190)},
    )
    np.testing.assert_array_equal(read.cohort.values, made.cohort.values)
    ours, theirs = solve(made, Nearest()), solve(read, Nearest())
    assert ours.count > 3
    assert ours.table().equals(theirs.table())
    assert ours.question == theirs.question


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_csv_and_parquet_give_the_same_problem(kind: str, tmp_path: Path) -> None:
    path = write_stays(tmp_path, JOB.replace(".parquet", f".{kind}"))
    problem, other = problem_of(path), problem_of(write_stays(tmp_path / "other"))
    np.testing.assert_array_equal(problem.cohort.values, other.cohort.values)
    assert problem.cohort.ragged is not None
    assert other.cohort.ragged is not None
    np.testing.assert_array_equal(problem.cohort.ragged.times, other.cohort.ragged.times)
    np.testing.assert_array_equal(problem.cohort.ragged.static, other.cohort.ragged.static)


def test_steps_may_come_from_a_column(tmp_path: Path) -> None:
    long = long_table()
    long["open"] = [k % 2 == 0 for k in range(len(long["stay"]))]
    path = write_stays(tmp_path, edited(('steps = "last 3"', 'steps_column = "open"')), long)
    problem = problem_of(path)
    ragged = problem.cohort.ragged
    assert ragged is not None
    for j in range(len(problem)):
        steps = problem.slots.steps(np.array([j]), np.arange(problem.width))[0]
        assert all((ragged.begin[j] + s) % 2 == 0 for s in steps[steps >= 0])
    assert problem.width > 0


def test_without_steps_all_may_change_and_a_notice_says_so(tmp_path: Path) -> None:
    problem = problem_of(write_stays(tmp_path, edited(('steps = "last 3"\n', ""))))
    assert any(notice.startswith("Values of all steps may change") for notice in problem.notices)


def test_columns_per_sample_come_from_the_static_file(tmp_path: Path) -> None:
    path = write_stays(
        tmp_path,
        edited(
            ('target = "stable"', 'target_column = "wish"\nworth_column = "value"'),
            ("min = 70", 'min_column = "low"'),
        ),
    )
    problem, beside = problem_of(path), static_table()
    place = [beside["stay"].index(text) for text in problem.cohort.ids]
    assert problem.worth.tolist() == [beside["value"][k] for k in place]
    assert problem.goal.wanted[:, 1].tolist() == [beside["wish"][k] == "stable" for k in place]
    slot = int(np.flatnonzero(problem.slots.feature == 0)[0])
    assert problem.limits.lower[:, slot].tolist() == [
        -math.inf if beside["low"][k] is None else beside["low"][k] for k in place
    ]


# What is wrong with a job


FAULTS: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "no time": ((('time = "hour"\n', ""),), "cohort.time is missing; wanted the name of the column with the time of"),
    "a kind of its own": (
        (('kind = "sequences"', 'kind = "series"'),),
        "cohort.kind = 'series': must be 'table' or 'sequences'.",
    ),
    "a table with time": (
        (('kind = "sequences"\n', ""),),
        'cohort.time: only sequences have it. Write kind = "sequences", or leave it out.',
    ),
    "steps of another form": (
        (('steps = "last 3"', 'steps = "first 3"'),),
        "cohort.steps = 'first 3': must be 'all', or 'last 3' (any number).",
    ),
    "no steps at all": ((('"last 3"', '"last 0"'),), "cohort.steps = 'last 0': must be 'all', or 'last 3'"),
    "steps twice": (
        (('steps = "last 3"', 'steps = "all"\nsteps_column = "open"'),),
        "cohort.steps, cohort.steps_column: give one of the two.",
    ),
    "static features without a file": (
        (('static = "static.parquet"\n', ""),),
        "cohort.static_features: there is no static file. Name it in cohort.static.",
    ),
    "a worth without a static file": (
        (
            ('static = "static.parquet"\nstatic_features = ["age"]\n', ""),
            (', age = "years"', ""),
            ("margin = 0.1", 'margin = 0.1\nworth_column = "value"'),
        ),
        "goal.worth_column: for sequences, a column with one value per id must be in the static file. "
        "Name it in cohort.static.",
    ),
    "a limit without a static file": (
        (
            ('static = "static.parquet"\nstatic_features = ["age"]\n', ""),
            (', age = "years"', ""),
            ("min = 70", 'min_column = "low"'),
        ),
        "limits.bp.min_column: for sequences,",
    ),
    "a static file that is not there": (
        (('"static.parquet"', '"statik.parquet"'),),
        "cohort.static = 'statik.parquet': no such file in",
    ),
    "time among the features": (
        (('features = ["bp", "glucose"]', 'features = ["bp", "glucose", "hour"]'),),
        "cohort.features, cohort.time: 'hour' is in both. A column has one role.",
    ),
    "one feature in both files": (
        (('static_features = ["age"]', 'static_features = ["age", "bp"]'),),
        "cohort.features, cohort.static_features: 'bp' is in both. A column has one role.",
    ),
    "a unit of nothing": ((('age = "years"', 'weight = "kg"'),), "cohort.units.weight: no feature is called 'weight'."),
    "a budget of a static feature": ((("[budgets.bp]", "[budgets.age]"),), "budgets.age: no feature is called 'age'."),
    "groups without allocation": (
        (("[solver]", "[solver]\ngroups = 3"),),
        'solver.groups: only a proportional allocation has groups. Write allocation = "proportional".',
    ),
    "allocation without groups": (
        (("[solver]", '[solver]\nallocation = "proportional"'),),
        "solver.groups is missing; a proportional allocation needs it: how many groups, of similar lengths.",
    ),
    "an allocation of its own": (
        (("[solver]", '[solver]\nallocation = "fair"'),),
        "solver.allocation = 'fair': must be 'joint' or 'proportional'.",
    ),
    "no groups": (
        (("[solver]", '[solver]\nallocation = "proportional"\ngroups = 0'),),
        "solver.groups = 0: must be at least 1.",
    ),
    "an unknown key": ((('time = "hour"', 'time = "hour"\nstep = 3'),), "cohort.step: there is no such key."),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_a_job_is_named(name: str, tmp_path: Path) -> None:
    changes, sentence = FAULTS[name]
    found = told(tmp_path, *changes)
    assert any(p.startswith(sentence) for p in found), found


def test_groups_of_a_table_are_refused(tmp_path: Path) -> None:
    changes = (
        ('kind = "sequences"\n', ""),
        ('time = "hour"\n', ""),
        ('static = "static.parquet"\nstatic_features = ["age"]\nsteps = "last 3"\n', ""),
        (', age = "years"', ""),
        ("[solver]", '[solver]\nallocation = "proportional"\ngroups = 2'),
    )
    assert told(tmp_path, *changes) == [
        "solver.allocation: groups are formed by length, and a table has no lengths. Leave it out."
    ]


def test_more_groups_than_sequences(tmp_path: Path) -> None:
    path = write_stays(tmp_path, edited(("[solver]", '[solver]\nallocation = "proportional"\ngroups = 99')))
    result = invoke("solve", path, "--out", tmp_path / "plan")
    assert result.exit_code == 2
    assert "solver.groups = 99: there are only 24 sequences to divide." in result.output


# What is wrong with a model


def refused(folder: Path, code: int) -> str:
    result = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert result.exit_code == code, result.output
    assert not (folder / "plan").exists()
    return str(result.output)


def test_an_exported_program_is_refused_with_the_reason(tmp_path: Path) -> None:
    write_stays(tmp_path)
    export(torch.nn.Linear(2, 2), tmp_path / "model.safetensors", features=2)
    text = refused(tmp_path, 2)
    assert "model.safetensors: a .pt2 has one length of sequences built in" in text
    assert "save_network(net, 'model.safetensors')" in text


def test_a_pickle_is_refused_as_unsafe(tmp_path: Path) -> None:
    write_stays(tmp_path)
    torch.save(network(), tmp_path / "model.safetensors")
    assert "model.safetensors" in refused(tmp_path, 7)
    (tmp_path / "model.safetensors").write_bytes(b"\x80\x04no network.")
    assert "model.safetensors" in refused(tmp_path, 7)


def test_a_network_in_a_job_about_a_table_is_refused(tmp_path: Path) -> None:
    write_csv({"who": [1, 2], "bp": [1.0, 2.0]}, tmp_path / "cohort.csv")
    (tmp_path / "model.safetensors").write_bytes(network_bytes())
    (tmp_path / "job.toml").write_text(
        'format = 1\n[cohort]\nfile = "cohort.csv"\nid = "who"\nfeatures = ["bp"]\n'
        '[model]\nfile = "model.safetensors"\n'
        "[goal]\ntarget = 1\nmargin = 0.1\n[budgets.bp]\namount = 1\n"
    )
    assert 'Write kind = "sequences" in [cohort]' in refused(tmp_path, 2)


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "another order": ({"inputs": ["glucose", "bp"]}, "the network has its features in another order: 'glucose', 'bp'."),
    "another name": (
        {"inputs": ["bp", "sugar"]},
        "the network was trained on other features than the job names. The job lacks 'sugar'. The network does not "
        "know 'glucose'.",
    ),
    "another number": (
        {"inputs": 3, "shift": None, "scale": None},
        "the network takes 3 features; the job names 2: 'bp', 'glucose'.",
    ),
    "another static feature": (
        {"static": ["weight"]},
        "the network was trained on other static features than the job names. The job lacks 'weight'.",
    ),
    "no static feature": (
        {"static": 0, "static_shift": None, "static_scale": None},
        "the network takes 0 static features; the job names 1: 'age'.",
    ),
    "more static features": (
        {"static": 2, "static_shift": None, "static_scale": None},
        "the network takes 2 static features; the job names 1: 'age'.",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_network_of_other_features_is_refused(name: str, tmp_path: Path) -> None:
    options, sentence = MISFITS[name]
    write_stays(tmp_path)
    save_network(network(**options), tmp_path / "model.safetensors")
    assert sentence in refused(tmp_path, 3)


def test_classes_and_output_may_be_given_but_must_agree(tmp_path: Path) -> None:
    own = 'file = "model.safetensors"'
    path = write_stays(tmp_path, edited((own, own + '\noutput = "logits"\nclasses = ["bad", "stable"]')))
    assert read_job(path).load_classifier(silent).classes == ("bad", "stable")
    path = write_stays(tmp_path, edited((own, own + '\noutput = "probabilities"\nclasses = ["stable", "worse"]')))
    text = refused(tmp_path, 2)
    assert "model.output = 'probabilities': model.safetensors gives logits. Leave it out." in text
    assert "the classes of model.safetensors are 'worse', 'stable'. Leave it out" in text


@pytest.mark.parametrize("target", ["target = 1", 'target = "1"'])
def test_the_classes_of_a_network_without_names_are_told_by_numbers(tmp_path: Path, target: str) -> None:
    path = write_stays(tmp_path, edited(('target = "stable"', target)))
    save_network(network(inputs=2, classes=2, static=1), tmp_path / "model.safetensors")
    released = run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count > 3
    assert released.plan.question is not None
    assert released.plan.question.wanted == (1,)  # a number, and no name that nobody gave
    assert "“1”" not in (tmp_path / "plan" / "report.html").read_text()
    path.write_text(path.read_text().replace("[model]", '[model]\nclasses = ["0", "1"]'))
    named = run_job(path, tmp_path / "named", overwrite=False, watch=silent).plan
    assert named.question is not None
    assert named.question.wanted == ("1",)


# The folder


def test_a_job_is_solved_audited_and_reported(released: Released) -> None:
    folder, plan = released.folder, released.plan
    assert plan.count > 3
    assert invoke("verify", folder).exit_code == 0
    rows = pq.read_table(folder / "plan.parquet").to_pylist()
    long = long_table()
    steps: dict[str, list[int]] = {}
    for k, stay in enumerate(long["stay"]):
        steps.setdefault(stay, []).append(k)
    for row in rows:
        k = steps[row["id"]][row["step"]]
        assert row["before"] == long[row["feature"]][k]
        assert row["time"] == long["hour"][k]
        assert row["step"] >= len(steps[row["id"]]) - 3
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["kind"] == "sequences"
    assert summary["lengths"] == [len(steps[i]) for i in plan.ids]
    assert summary["inputs"]["static"]["path"] == "../static.parquet"
    assert sorted(summary["inputs"]) == ["cohort", "job", "model", "static"]


def test_a_plan_is_loaded_as_it_was(released: Released, tmp_path: Path) -> None:
    again, plan = Plan.load(released.folder), released.plan
    assert again.table().equals(plan.table())
    assert [c.tolist() for c in again.changes] == [c.tolist() for c in plan.changes]
    assert again.spend == plan.spend
    assert again.ledger.spent(again.moves).tolist() == list(plan.spend.values())
    plan.to_csv(tmp_path / "a.csv")
    again.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "id,step,time,feature,unit,before,change,after,cost"


def test_a_loaded_plan_can_be_gone_on_from(released: Released) -> None:
    problem = problem_of(released.folder.parent / "job.toml")
    again = Plan.load(released.folder)
    for plan in (again, released.plan):
        rows, changes = plan.moves_in(problem)
        np.testing.assert_array_equal(rows, plan.selected)
        np.testing.assert_array_equal(changes, solved_changes(released, problem))
    assert resolve(problem, again).worth >= again.worth


def solved_changes(released: Released, problem: Problem) -> Any:
    """Of the plan as it was solved: its slots are the problem's."""
    assert released.plan.moves.shape[1] == problem.width
    return released.plan.moves


def test_the_report_is_the_same_after_loading_and_names_steps_and_times(released: Released, tmp_path: Path) -> None:
    page = (released.folder / "report.html").read_text()
    Plan.load(released.folder).report(tmp_path / "page.html", insight=Insight.load(released.folder))
    assert (tmp_path / "page.html").read_text() == page
    row = released.plan.table().to_pylist()[0]
    assert f", step {row['step']}, time " in page


def test_the_same_bytes_in_give_the_same_bytes_out(released: Released, tmp_path: Path) -> None:
    path = released.folder.parent / "job.toml"
    other = run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    for name in ("plan.parquet", "fates.parquet", "job.toml"):
        assert (other.folder / name).read_bytes() == (released.folder / name).read_bytes()
    first, second = (json.loads((f / "summary.json").read_text()) for f in (other.folder, released.folder))
    for said in (first, second):
        del said["seconds"], said["made"], said["inputs"]
    assert first == second


def test_a_plan_of_nobody_is_loaded_too(tmp_path: Path) -> None:
    path = write_stays(tmp_path, edited(("amount = 900.0", "amount = 0.0"), ("amount = 60.0", "amount = 0.0")))
    released = run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count == 0
    again = Plan.load(tmp_path / "plan")
    assert again.count == 0
    assert isinstance(again.places, SequencePlaces)
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_groups_by_length_in_a_job(tmp_path: Path) -> None:
    path = write_stays(tmp_path, edited(("[solver]", '[solver]\nallocation = "proportional"\ngroups = 3')))
    released = run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    problem = problem_of(path)
    wanted = solve(problem, Nearest(), allocation="proportional", groups=3)
    assert released.plan.table().equals(wanted.table())
    assert any("divided among 3 groups" in notice for notice in released.plan.notices)


@pytest.mark.parametrize("kind", [GRUD, SparseTimeLSTM, SequenceTransformer])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_network_passes_its_audit(kind: Any, dtype: torch.dtype, tmp_path: Path) -> None:
    """The library's code and the auditor's own agree far enough, in float32 too."""
    path = write_stays(tmp_path, edited(('target = "stable"', 'target_column = "wish"')))
    torch.manual_seed(3)
    scales: dict[str, Any] = {"shift": [125, 7], "scale": [18, 2], "static_shift": [65], "static_scale": [15]}
    net = kind(["bp", "glucose"], 8, ["worse", "stable"], ["age"], **scales)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(2)
    save_network(net.to(dtype), tmp_path / "model.safetensors")
    released = run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    assert released.audit.passed
    assert released.plan.count > 0


def test_a_moved_static_file_can_be_named(released: Released, tmp_path: Path) -> None:
    shutil.copytree(released.folder, tmp_path / "plan")
    result = invoke("verify", tmp_path / "plan")
    assert result.exit_code == 2
    assert "static.parquet: there is no such file; the plan names it as its static." in result.output
    where = released.folder.parent
    named: list[str | Path] = ["--cohort", where / "stays.parquet", "--model", where / "model.safetensors"]
    assert invoke("verify", tmp_path / "plan", *named).exit_code == 2
    assert invoke("verify", tmp_path / "plan", *named, "--static", where / "static.parquet").exit_code == 0


# From Python


def stays_cohort(ids: bool = True) -> Cohort:
    rng = np.random.default_rng(7)
    values = [rng.normal([125, 7], [18, 2], (int(rng.integers(1, 6)), 2)) for _ in range(20)]
    for sequence in values:
        sequence[rng.random(sequence.shape) < 0.3] = np.nan
    return Cohort.sequences(
        values,
        features=["bp", "glucose"],
        static=rng.normal(65, 15, (20, 1)),
        static_features=["id"],
        ids=[f"S-{j:02d}" for j in range(20)] if ids else None,
        units={"bp": "mmHg"},
    )


def masks(cohort: Cohort) -> list[Any]:
    assert cohort.ragged is not None
    return [np.arange(length) % 2 == 0 for length in cohort.ragged.lengths.tolist()]


CASES: dict[str, dict[str, Any]] = {
    "all": {"steps": "all"},
    "last 2": {"steps": "last 2"},
    "a mask": {"steps": masks(stays_cohort())},
    "limits": {
        "limits": {"bp": (np.linspace(90, 120, 20), 180.0), "glucose": "observed"},
        "directions": {"bp": "down"},
    },
    "one for each": {"target": [j % 2 for j in range(20)], "worth": np.arange(20) / 7},
    "include": {"exclude": ["S-03"], "budgets": {"bp": math.inf, "people": Budget(3, cost="count")}},
    "numbers for ids": {"cohort": stays_cohort(ids=False)},
    "a threshold": {"margin": None, "threshold": 0.6, "target": {0}},
}


def posed(**options: Any) -> Problem:
    settings: dict[str, Any] = {
        "classifier": TorchClassifier(network(static=["id"]), output="logits"),
        "cohort": stays_cohort(),
        "target": 1,
        "margin": 0.1,
        "steps": "all",
        "budgets": {"bp": 900.0, "glucose": 30.0},
    }
    return Problem(**(settings | options))


@pytest.mark.parametrize("case", CASES)
def test_a_plan_from_python_is_saved_with_what_was_asked(case: str, tmp_path: Path) -> None:
    save_network(network(static=["id"]), tmp_path / "net.safetensors")
    problem = posed(**CASES[case])
    plan = solve(problem, Nearest(), seed=3)
    assert plan.count > 0
    for name in ("plan", "again"):
        plan.save(tmp_path / name, problem=problem, model=tmp_path / "net.safetensors")
    for path in (tmp_path / "plan").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    assert maxflip_verify.audit(tmp_path / "plan").passed
    assert invoke("verify", tmp_path / "plan").exit_code == 0
    read = problem_of(tmp_path / "plan" / "job.toml")
    assert read.budgets == problem.budgets
    assert read.cohort.features == problem.cohort.features
    assert read.cohort.units == problem.cohort.units
    assert read.cohort.ids.tolist() == problem.cohort.ids.tolist()
    np.testing.assert_array_equal(read.cohort.values, problem.cohort.values)
    assert read.cohort.ragged is not None
    assert problem.cohort.ragged is not None
    np.testing.assert_array_equal(read.cohort.ragged.times, problem.cohort.ragged.times)
    np.testing.assert_array_equal(read.cohort.ragged.static, problem.cohort.ragged.static)
    rows = np.arange(20)
    for ours, theirs in zip(problem.box(rows), read.box(rows), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for field in ("worth", "include", "exclude"):
        np.testing.assert_array_equal(getattr(read, field), getattr(problem, field))
    np.testing.assert_array_equal(read.goal.wanted, problem.goal.wanted)


def test_a_saved_job_asks_for_the_same_allocation_and_options(tmp_path: Path) -> None:
    save_network(network(static=["id"]), tmp_path / "net.safetensors")
    problem = posed()
    plan = solve(problem, Grouped(Nearest(prices="unit"), 2))
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")
    job = read_job(tmp_path / "plan" / "job.toml")
    assert (job.allocation, job.groups, job.solver) == ("proportional", 2, Nearest(prices="unit"))
    assert maxflip_verify.audit(tmp_path / "plan").passed
    text = (tmp_path / "plan" / "job.toml").read_text()
    (tmp_path / "plan" / "job.toml").write_text(text.replace("groups = 2", "groups = 3"))
    assert not maxflip_verify.audit(tmp_path / "plan").passed


def test_columns_that_the_job_adds_are_not_taken_for_features(tmp_path: Path) -> None:
    names = ["Time", "may_change", "id_"]
    net = network(inputs=["ID", "x"], static=names, static_shift=None, static_scale=None)
    save_network(net, tmp_path / "net.safetensors")
    rng = np.random.default_rng(0)
    cohort = Cohort.sequences(
        [rng.normal([125, 7], [18, 2], (3, 2)) for _ in range(20)],
        features=["ID", "x"],
        static=rng.normal(size=(20, 3)),
        static_features=names,
    )
    problem = posed(
        classifier=TorchClassifier(net, output="logits"), cohort=cohort, budgets={"ID": 900.0}, steps="last 2"
    )
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")
    assert invoke("verify", tmp_path / "plan").exit_code == 0
    job = tmp_path / "plan" / "job.toml"
    job.write_text(f"{job.read_text()}\n[report]\nfrontier = false\n")
    again = invoke("solve", job, "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output


def test_without_anything_per_sample_there_is_no_static_file(tmp_path: Path) -> None:
    net = network(static=0, static_shift=None, static_scale=None)
    save_network(net, tmp_path / "net.safetensors")
    whole = stays_cohort()
    assert whole.ragged is not None
    values = np.split(whole.values, whole.ragged.begin[1:-1])
    problem = posed(
        classifier=TorchClassifier(net, output="logits"), cohort=Cohort.sequences(values, features=["bp", "glucose"])
    )
    solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")
    assert not (tmp_path / "plan" / "static.parquet").exists()
    assert invoke("verify", tmp_path / "plan").exit_code == 0


def test_values_that_differ_within_a_step_are_no_job(tmp_path: Path) -> None:
    cohort = stays_cohort()
    assert cohort.ragged is not None
    some = [np.ones((length, 2), dtype=bool) * [True, False] for length in cohort.ragged.lengths.tolist()]
    problem = posed(steps=[mask.astype(bool) for mask in some])
    save_network(network(static=["id"]), tmp_path / "net.safetensors")
    with pytest.raises(InputError, match="some values of a step may change and others not"):
        solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")


def test_another_network_does_not_pass(tmp_path: Path) -> None:
    save_network(network(seed=9, static=["id"]), tmp_path / "net.safetensors")
    problem = posed()
    with pytest.raises(VerifyError, match="does not pass its audit"):
        solve(problem).save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")


@pytest.mark.parametrize("seed", range(4))
def test_steep_networks_of_float32_pass_their_audit(seed: int, tmp_path: Path) -> None:
    """In float32 the library's code and the auditor's differ by up to 1e-4 where such transformers are flipped."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    net = SequenceTransformer(2, 8, scale=[20.0, 20.0], time_scale=100.0).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3.5)
    save_network(net, tmp_path / "net.safetensors")
    values = [rng.normal(0, 50, (int(rng.integers(1, 30)), 2)) for _ in range(25)]
    problem = Problem(
        classifier=load_sequence_classifier(tmp_path / "net.safetensors", features=["x0", "x1"]),
        cohort=Cohort.sequences(values, times=[np.cumsum(500 * rng.random(len(v))) for v in values]),
        target=1,
        margin=0.1,
        steps="all",
        budgets={"x0": 9000.0, "x1": 9000.0},
    )
    plan = solve(problem, Nearest())
    assert plan.count > 0
    plan.save(tmp_path / "plan", problem=problem, model=tmp_path / "net.safetensors")


def test_a_module_of_ones_own_is_saved_without_a_model(tmp_path: Path) -> None:
    problem = posed(classifier=TorchClassifier(Recurrent(2), output="logits"))
    plan = solve(problem)
    plan.save(tmp_path / "plan")
    again = Plan.load(tmp_path / "plan")
    assert again.table().equals(plan.table())
    assert ", time " not in (tmp_path / "plan" / "report.html").read_text()  # times 0, 1, 2 are the steps


def test_a_step_beyond_its_sequence_is_no_readable_plan(released: Released, tmp_path: Path) -> None:
    shutil.copytree(released.folder, tmp_path / "plan")
    summary = json.loads((tmp_path / "plan/summary.json").read_text())
    summary["lengths"] = [0] * len(summary["lengths"])
    (tmp_path / "plan/summary.json").write_text(json.dumps(summary))
    with pytest.raises(InputError, match="lies outside its sequence"):
        Plan.load(tmp_path / "plan")
