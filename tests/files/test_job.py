"""Job files: what is right becomes a Problem and a Solver, what is wrong is said with its key or line, all at once."""

from __future__ import annotations

import math
import os
import random
import re
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maxflip import InputError, Nearest, OutputError, Prices, ProblemError, TorchClassifier, solve
from maxflip.io.job.places import lines_of
from maxflip.io.job.read import Job, read_job
from maxflip.io.job.schema import SOLVER_NAMES
from maxflip.solvers import SOLVERS

PEOPLE = "pid,age,bmi,bp,wanted,value,low\n007,61,27.5,120,stable,1,20\nP-2,48,31,111,0,2.5,\nP-3,70,22,140,1,3,18.5\n"
JOB = """\
format = 1

[cohort]
file = "people.csv"
id = "pid"
features = ["age", "bmi", "bp"]
units = { bp = "mmHg" }

[model]
file = "model.pt2"
output = "logits"
classes = ["worse", "stable"]

[goal]
target = "stable"
margin = 0.1

[budgets.bp]
amount = 4000

[budgets.nurse_hours]
amount = 300.0
cost = "absolute"
uses = { bmi = 0.2, bp = 0.5 }

[budgets.people]
amount = inf
cost = "count"

[limits.bmi]
min = 18.0
max = 45.0
direction = "down"

[solver]
name = "nearest"
seed = 7
options = { prices = "unit" }
"""


def job_file(folder: Path, text: str | bytes = JOB) -> Path:
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "model.pt2").touch()
    path = folder / "job.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def line_of(found: Job, text: str) -> int:
    """The first line of the job with this text."""
    return next(n for n, line in enumerate(found.path.read_text().splitlines(), 1) if text in line)


def edited(*changes: tuple[str, str]) -> str:
    text = JOB
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def job(folder: Path, *changes: tuple[str, str]) -> Job:
    return read_job(job_file(folder, edited(*changes)))


def told(folder: Path, text: str | bytes) -> list[str]:
    """The sentences of the error, without the path that all of them begin with."""
    path = job_file(folder, text)
    with pytest.raises(InputError) as caught:
        read_job(path)
    assert all(p.startswith(f"{path}: ") for p in caught.value.problems)
    return [re.sub(r"^line \d+: ", "", p.removeprefix(f"{path}: ")) for p in caught.value.problems]


def faults(folder: Path, *changes: tuple[str, str]) -> list[str]:
    return told(folder, edited(*changes))


def test_every_solver_has_its_name_in_a_job() -> None:
    assert tuple(SOLVERS) == SOLVER_NAMES


def test_a_misspelt_column_is_named_and_not_those_who_spell_it_right(tmp_path: Path) -> None:
    """uses, limits and units name bmi and bp, which the cohort has."""
    assert faults(tmp_path, ('"bmi"', '"bmii"')) == [
        "cohort.features: people.csv has no column 'bmii'. Did you mean 'bmi'?"
    ]
    assert faults(tmp_path, ('["age", "bmi", "bp"]', '["age", "bim", "pb"]'), ("[limits.bmi]", "[limits.bmj]")) == [
        "cohort.features: people.csv has no column 'bim'. Did you mean 'bmi'?",
        "cohort.features: people.csv has no column 'pb'.",
        "limits.bmj: no feature is called 'bmj'. Did you mean 'bmi'?",
    ]


@pytest.fixture
def classifier() -> TorchClassifier:
    net = torch.nn.Linear(3, 2, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.0, 0.0, 0.0], [0.0, -0.3, -0.05]]))
        net.bias.copy_(torch.tensor([0.0, 12.0]))
    return TorchClassifier(net, output="logits", classes=["worse", "stable"])


# What is right


def test_a_job_says_everything(tmp_path: Path) -> None:
    found = job(tmp_path)
    assert found.path == tmp_path / "job.toml"
    names = {"cohort": "people.csv", "model": "model.pt2", "job": "job.toml"}
    assert found.files == {key: tmp_path / name for key, name in names.items()}
    assert (found.output, found.classes) == ("logits", ("worse", "stable"))
    assert (found.solver, found.seed) == (Nearest(prices="unit"), 7)


def test_a_job_becomes_a_problem(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(tmp_path)
    problem = found.problem(found.read_cohort(), classifier)
    assert problem.cohort.ids.tolist() == ["007", "P-2", "P-3"]
    assert problem.cohort.units == {"bp": "mmHg"}
    assert problem.goal.wanted.tolist() == [[False, True]]
    assert (problem.goal.required, problem.goal.is_threshold) == (0.1, False)
    assert problem.ledger.names == ("bp", "nurse_hours", "people")
    assert problem.ledger.amounts.tolist() == [4000.0, 300.0, math.inf]
    assert problem.ledger.squared.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert problem.ledger.absolute.tolist() == [[0, 0, 0], [0, 0.2, 0.5], [0, 0, 0]]
    assert problem.limits.lower.tolist() == [[-math.inf, 18.0, -math.inf]]
    assert problem.limits.upper.tolist() == [[math.inf, 45.0, math.inf]]
    assert problem.limits.direction.tolist() == [0, -1, 0]
    assert problem.notices[0] == "people.csv: columns that are no features are ignored: wanted, value, low."
    plan = solve(problem, found.solver, seed=found.seed)
    assert plan.count > 0


def test_columns_of_the_cohort_say_targets_worths_and_limits(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(
        tmp_path,
        ('target = "stable"', 'target_column = "wanted"\nworth_column = "value"'),
        ("min = 18.0", 'min_column = "low"'),
        ("max = 45.0", 'max_column = "bmi"'),
    )
    problem = found.problem(found.read_cohort(), classifier)
    assert problem.goal.wanted.tolist() == [[False, True], [True, False], [False, True]]
    assert problem.worth.tolist() == [1.0, 2.5, 3.0]
    assert problem.limits.lower[:, 1].tolist() == [20.0, -math.inf, 18.5]
    assert problem.limits.upper[:, 1].tolist() == [27.5, 31.0, 22.0]
    assert problem.cohort.ignored == ()


def test_limits_may_be_what_was_observed(tmp_path: Path, classifier: TorchClassifier) -> None:
    one = job(tmp_path, ("min = 18.0\nmax = 45.0", "observed = true"))
    bmi = one.problem(one.read_cohort(), classifier).limits
    assert (bmi.lower[0].tolist(), bmi.upper[0].tolist()) == ([-math.inf, 22, -math.inf], [math.inf, 31, math.inf])
    table = '[limits.bmi]\nmin = 18.0\nmax = 45.0\ndirection = "down"\n'
    everywhere = job(tmp_path, (table, ""), ("format = 1\n", 'format = 1\nlimits = "observed"\n'))
    all_ = everywhere.problem(everywhere.read_cohort(), classifier).limits
    assert (all_.lower[0].tolist(), all_.upper[0].tolist()) == ([-math.inf, 22, 111], [math.inf, 31, 140])


def test_the_solver_is_prices_with_seed_0_unless_said(tmp_path: Path) -> None:
    found = job(tmp_path, ('[solver]\nname = "nearest"\nseed = 7\noptions = { prices = "unit" }\n', ""))
    assert (found.solver, found.seed) == (Prices(), 0)


@pytest.mark.parametrize(("target", "wanted"), [("1", [False, True]), ('["worse"]', [True, False])])
def test_targets_by_column_and_as_a_list(
    tmp_path: Path, classifier: TorchClassifier, target: str, wanted: list[bool]
) -> None:
    found = job(tmp_path, ('target = "stable"', f"target = {target}"), ("margin = 0.1", "threshold = 0.9"))
    problem = found.problem(found.read_cohort(), classifier)
    assert problem.goal.wanted.tolist() == [wanted]
    assert problem.goal.is_threshold


def test_included_and_excluded_ids(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(tmp_path, ("margin = 0.1", 'margin = 0.1\ninclude = ["007"]\nexclude = ["P-2"]'))
    problem = found.problem(found.read_cohort(), classifier)
    assert (problem.include.tolist(), problem.exclude.tolist()) == ([0], [1])


def test_the_cohort_is_found_beside_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    job_file(tmp_path)
    text = edited(("people.csv", "../people.csv"), ("model.pt2", str(tmp_path / "model.pt2")))
    (tmp_path / "jobs" / "job.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    found = read_job("jobs/job.toml")
    assert found.read_cohort().cohort.source == "../people.csv"
    assert found.model_file == tmp_path / "model.pt2"


# What is wrong in a table


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("amount = 4000", "amount = -3.0", "budgets.bp.amount = -3.0: must be >= 0."),
        ("amount = 4000", "amount = nan", "budgets.bp.amount = nan: must be a number; nan is not one."),
        ("amount = 4000", 'amount = "1e3"', "budgets.bp.amount = '1e3': must be a number."),
        ("amount = 4000", 'amount = "10%"', "budgets.bp.amount = '10%': must be a number."),
        ("amount = 4000", "amount = true", "budgets.bp.amount = True: must be a number."),
        (
            "amount = 4000",
            "amount = 9007199254740993",
            "budgets.bp.amount = 9007199254740993: is not exactly representable in float64",
        ),
        ("amount = 4000", "amount = 1" + "0" * 400, "is not exactly representable in float64. Write a number that is."),
        ("amount = 4000", "", "budgets.bp.amount is missing; wanted a number >= 0, or inf."),
        ("amount = 4000", "amount = 1\namout = 2", "budgets.bp.amout: there is no such key. Did you mean 'amount'?"),
        ("amount = 4000", "amount = 1\nuses = {}", "budgets.bp.uses = {}: must name at least one feature."),
        ('"count"', '"count"\nuses = { bp = 1 }', "budgets.people.cost, budgets.people.uses: a count budget counts"),
        ('"absolute"', '"cubed"', "budgets.nurse_hours.cost = 'cubed': must be 'squared', 'absolute' or 'count'."),
        ("bmi = 0.2", "bmi = -0.2", "budgets.nurse_hours.uses.bmi = -0.2: must be a finite number >= 0."),
        ("bmi = 0.2", "bmi = inf", "budgets.nurse_hours.uses.bmi = inf: must be a finite number >= 0."),
        ("bmi = 0.2", "bmj = 0.2", "budgets.nurse_hours.uses.bmj: no feature is called 'bmj'. Did you mean 'bmi'?"),
        ("[budgets.bp]", "[budgets.bpp]", "budgets.bpp: no feature is called 'bpp'. Did you mean 'bp'?"),
        ("[budgets.bp]", '[budgets."b p"]', "budgets.\"b p\": no feature is called 'b p'. Did you mean 'bp'?"),
        ("[limits.bmi]", "[limits.bmj]", "limits.bmj: no feature is called 'bmj'. Did you mean 'bmi'?"),
        ("[limits.bmi]", "[limits.age]", "limits.age: the feature draws on no budget, so it is frozen. Give it a"),
        ("min = 18.0", "min = 46", "limits.bmi.min, limits.bmi.max: min 46.0 is above max 45.0. Swap them."),
        ("min = 18.0", "min = nan", "limits.bmi.min = nan: must be a number; nan is not one."),
        ("min = 18.0", 'min = 1\nmin_column = "low"', "limits.bmi.min, limits.bmi.min_column: give one of the two."),
        ("max = 45.0", 'max = 1e3\nmax_column = "x"', "limits.bmi.max, limits.bmi.max_column: give one of the two."),
        ("min = 18.0", "observed = true", "limits.bmi.observed, limits.bmi.max: give `observed` or the others."),
        ("min = 18.0", "observed = 1", "limits.bmi.observed = 1: must be true or false."),
        ('"down"', '"sideways"', "limits.bmi.direction = 'sideways': must be 'up' or 'down'."),
        ("format = 1\n", 'format = 1\nlimit = "observed"\n', "limit: there is no such key. Did you mean 'limits'?"),
        ("margin = 0.1", "margin = 1.0", "goal.margin = 1.0: must lie in [0, 1)"),
        ("margin = 0.1", "margin = -0.1", "goal.margin = -0.1: must lie in [0, 1)"),
        ("margin = 0.1", "margin = nan", "goal.margin = nan: must be a number; nan is not one."),
        ("margin = 0.1", "threshold = 0", "goal.threshold = 0.0: must lie in (0, 1)"),
        ("margin = 0.1", "", "goal.margin, goal.threshold: give one of the two; got neither."),
        ("margin = 0.1", "margin = 0\nthreshold = 0.5", "goal.margin, goal.threshold: give one of the two; got both."),
        ("margin = 0.1", "marign = 0.1", "goal.marign: there is no such key. Did you mean 'margin'?"),
        ('target = "stable"', "", "goal.target, goal.target_column: give one of the two; got neither."),
        ("margin = 0.1", 'margin = 0\ntarget_column = "x"', "goal.target, goal.target_column: give one of the two"),
        ('target = "stable"', 'target = "stabel"', "goal.target: no class is called 'stabel'"),
        ('target = "stable"', "target = 2", "goal.target: 2 is no output column; the model has columns 0 to 1."),
        ('target = "stable"', "target = true", "goal.target = True: must be a class name, an output column"),
        ('target = "stable"', "target = 1.0", "goal.target = 1.0: must be a class name, an output column"),
        ('target = "stable"', "target = []", "goal.target: 0 of 2 classes wanted; want at least one"),
        ('target = "stable"', "target = [0, 1]", "goal.target: 2 of 2 classes wanted; want at least one and leave"),
        ('target = "stable"', "target = [[0]]", "goal.target = [[0]]: must be a class name, an output column"),
        ("margin = 0.1", 'margin = 0.1\ninclude = "P-2"', "goal.include = 'P-2': must be a list."),
        ("margin = 0.1", "margin = 0.1\nexclude = [7]", "goal.exclude, entry 1 = 7: must be a text."),
        (
            "margin = 0.1",
            'margin = 0\ninclude = ["A", "B"]\nexclude = ["B"]',
            "goal.include, goal.exclude: id 'B' is in both. Keep it in one.",
        ),
        ('["age", "bmi", "bp"]', "[]", "cohort.features = []: must name at least one column."),
        ('["age", "bmi", "bp"]', '"age"', "cohort.features = 'age': must be a list."),
        ('["age", "bmi", "bp"]', '["bmi", 3, "bp"]', "cohort.features, entry 2 = 3: must be a text."),
        ('["age", "bmi", "bp"]', '["bmi", "bp", "bmi"]', "cohort.features: 'bmi' is named 2 times. Name it once."),
        ('["age", "bmi", "bp"]', '["pid", "bmi", "bp"]', "cohort.id, cohort.features: 'pid' is the id column"),
        ('bp = "mmHg"', 'pb = "mmHg"', "cohort.units.pb: no feature is called 'pb'. There are 'age', 'bmi', 'bp'."),
        ('bp = "mmHg"', "bp = 3", "cohort.units.bp = 3: must be a text."),
        ('id = "pid"', 'id = ""', "cohort.id = '': must not be empty."),
        ('id = "pid"', "", "cohort.id is missing; wanted the name of the id column."),
        ('"logits"', '"logit"', "model.output = 'logit': must be 'logits', 'probabilities' or 'decision'."),
        ('["worse", "stable"]', '["stable", "stable"]', "model.classes = ['stable', 'stable']: must be two or more"),
        ("seed = 7", "seed = 7.5", "solver.seed = 7.5: must be a whole number."),
        ("seed = 7", "seed = true", "solver.seed = True: must be a whole number."),
        ('"nearest"', '"neares"', "solver.name = 'neares': must be one of 'prices', 'nearest'"),
        ("prices =", "pricse =", "solver.options.pricse: there is no such key. Did you mean 'prices'?"),
        ('"unit"', '"units"', "solver.options.prices = 'units': must be 'budgets', 'unit' or {budget: price}."),
        ('"unit"', "3", "solver.options.prices = 3: must be 'budgets', 'unit' or {budget: price}."),
        ('prices = "unit"', "chunk = 0", "solver.options.chunk = 0: must be a whole number >= 1."),
        ("{ prices", "3 #", "solver.options = 3: must be a table."),
    ],
)
def test_a_wrong_value_is_named_by_its_key(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert sum(fault in sentence for sentence in faults(tmp_path, (old, new))) == 1


def test_a_fault_names_its_line(tmp_path: Path) -> None:
    """Of a key; of the table where the key is missing; of a key in brackets the line on which they open."""
    text = edited(("margin = 0.1", "margin = 2"), ("min = 18.0", "min = 50.0"), ('prices = "unit"', "prices = 3"))
    path = job_file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_job(path)
    lines = path.read_text().splitlines()
    told = [re.fullmatch(r".*job\.toml: line (\d+): (.*)", problem) for problem in caught.value.problems]
    at = {found[2].split(" ")[0].rstrip(":,"): lines[int(found[1]) - 1] for found in told if found}
    assert at == {
        "goal.margin": "margin = 2",
        "limits.bmi.min": "min = 50.0",
        "solver.options.prices": "options = { prices = 3 }",
    }


def test_lines_are_those_of_an_editor() -> None:
    """Brackets in quoted names, texts of several lines, and line ends that only Unicode knows."""
    long = 'b = """\n[goal]\nmargin = 3\n"""\n'
    text = 'a = 1 # \u2028 \u0085\n[limits."bp [mmHg]"]\n"x = # y" = 2\n' + long + "[goal]\nmargin = 4\n"
    assert lines_of(text, tomllib.loads(text) | {"goal": {"margin": 4}}) == {
        ("a",): 1,
        ("limits", "bp [mmHg]"): 2,
        ("limits", "bp [mmHg]", "x = # y"): 3,
        ("limits", "bp [mmHg]", "b"): 4,
        ("goal",): 8,
        ("goal", "margin"): 9,
    }


def test_all_faults_are_listed(tmp_path: Path) -> None:
    sentences = faults(
        tmp_path,
        ("format = 1", "formt = 1"),
        ('file = "people.csv"', 'file = "peple.csv"'),
        ('file = "model.pt2"', 'file = "s3://bucket/model.pt2"'),
        ('output = "logits"', "output = 3"),
        ("margin = 0.1", "margin = 2"),
        ("amount = 4000", "amount = -1"),
        ("direction =", "directoin ="),
        ('name = "nearest"', 'name = "nearset"'),
        ("seed = 7", "seed = 0.5"),
    )
    for part in (
        "format is missing. Begin the file with format = 1.",
        "formt: there is no such key. Did you mean 'format'?",
        f"cohort.file = 'peple.csv': no such file in {tmp_path}. Did you mean 'people.csv'?",
        "model.file = 's3://bucket/model.pt2': is a URL, and nothing is fetched. Download the file",
        "model.output = 3: must be 'logits', 'probabilities' or 'decision'.",
        "goal.margin = 2.0: must lie in [0, 1); it is a probability.",
        "budgets.bp.amount = -1: must be >= 0. Use 0 to freeze its features, inf for no limit.",
        "limits.bmi.directoin: there is no such key. Did you mean 'direction'?",
        "solver.name = 'nearset': must be one of",
        "solver.seed = 0.5: must be a whole number.",
    ):
        assert sum(part in s for s in sentences) == 1, part
    assert len(sentences) == 10


def test_an_empty_job_says_what_it_needs(tmp_path: Path) -> None:
    assert told(tmp_path, "") == [
        "format is missing. Begin the file with format = 1.",
        "[cohort] is missing; it says who is there.",
        "[model] is missing; it says which classifier is meant.",
        "[goal] is missing; it says what is wanted.",
        "budgets: there is none. Add at least one table [budgets.x], where x is a feature or has `uses`.",
    ]


def test_tables_must_be_tables(tmp_path: Path) -> None:
    text = 'format = 1\ncohort = 1\nmodel = []\ngoal = "x"\nbudgets = 3\nlimits = "obs"\nsolver = false\n'
    assert told(tmp_path, text) == [
        "cohort = 1: must be a table.",
        "model = []: must be a table.",
        "goal = 'x': must be a table.",
        "budgets = 3: must be tables [budgets.x].",
        "limits = 'obs': must be tables [limits.x], or the text 'observed'.",
        "solver = False: must be a table.",
    ]


@pytest.mark.parametrize("value", ["2", "1.0", "true", '"1"'])
def test_only_format_1_is_read(tmp_path: Path, value: str) -> None:
    (sentence,) = faults(tmp_path, ("format = 1", f"format = {value}"), ("amount = 4000", "amount = -1"))
    assert sentence.startswith("format = ")
    assert sentence.endswith("this version of maxflip reads format = 1.")


@pytest.mark.parametrize("path", ["~/people.csv", "$HOME/people.csv", "${DATA}.csv"])
def test_paths_are_not_expanded(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(PEOPLE)  # it is there, but another program would look elsewhere
    (sentence,) = faults(tmp_path, ("people.csv", path))
    assert sentence == f"cohort.file = '{path}': `~` and `$` are not expanded in paths; write them out."


def test_a_tilde_inside_a_name_and_another_folder_are_plain_paths(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    job_file(tmp_path)
    (tmp_path / "a~b.csv").write_text(PEOPLE)
    (tmp_path / "jobs" / "job.toml").write_text(edited(("people.csv", "../a~b.csv"), ("model.pt2", "../model.pt2")))
    assert read_job(tmp_path / "jobs" / "job.toml").read_cohort().cohort.ids.tolist() == ["007", "P-2", "P-3"]


def test_a_path_with_a_nul_is_none(tmp_path: Path) -> None:
    (sentence,) = faults(tmp_path, ("people.csv", "people\\u0000.csv"))
    assert sentence.startswith("cohort.file = 'people\\x00.csv': is not a path")


# What is wrong between the job, the cohort and the model


def test_faults_of_the_cohort_name_its_file(tmp_path: Path) -> None:
    found = job(tmp_path, ('target = "stable"', 'target_column = "wnated"\nworth_column = "value"'))
    with pytest.raises(InputError) as caught:
        found.read_cohort()
    assert caught.value.problems[0] == "people.csv: has no column 'wnated'. Did you mean 'wanted'?"
    (tmp_path / "people.csv").write_text(PEOPLE.replace("111,0", "111,best").replace("140,1,3", "140,1,-3"))
    found = read_job(job_file_kept(tmp_path, ('target = "stable"', 'target_column = "wanted"\nworth_column = "value"')))
    with pytest.raises(InputError) as caught:
        found.read_cohort()
    assert caught.value.problems == (
        "people.csv: column 'wanted', row 2 (id P-2): 'best'; wanted one of 'worse', 'stable', or an output column "
        "from 0 to 1.",
        "people.csv: column 'value', row 3 (id P-3): -3.0; wanted a finite number >= 0.",
    )


def job_file_kept(folder: Path, *changes: tuple[str, str]) -> Path:
    """The job alone, beside a cohort that stays as it is."""
    path = folder / "job.toml"
    path.write_text(edited(*changes))
    return path


def test_faults_of_the_problem_name_the_job_or_the_cohort(tmp_path: Path, classifier: TorchClassifier) -> None:
    found = job(
        tmp_path,
        ("margin = 0.1", 'margin = 0.1\ninclude = ["P-9"]'),
        ('direction = "down"', ""),
        ("min = 18.0\nmax = 45.0", 'min = 20.0\nmax_column = "low"'),
        ("[limits.bmi]", '[limits.bp]\nmin = 140\ndirection = "down"\n\n[limits.bmi]'),
    )
    with pytest.raises(ProblemError) as caught:
        found.problem(found.read_cohort(), classifier)
    said = {
        "[limits.bmi]": "limits.bmi: row 3 (id P-3): min is above max.",
        "min = 140": "limits.bp.min, limits.bp.direction: 'down', but every sample starts at or below min.",
        "include": "goal.include: no sample has the id 'P-9'. Did you mean 'P-3'?",
    }
    assert caught.value.problems == tuple(
        f"{found.path}: line {line_of(found, at)}: {words}" for at, words in said.items()
    )


def test_a_value_beyond_the_models_dtype_is_a_fault_of_the_cohort(tmp_path: Path) -> None:
    found = job(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE.replace("120", "1e300"))
    narrow = TorchClassifier(torch.nn.Linear(3, 2), output="logits", classes=["worse", "stable"])
    with pytest.raises(ProblemError, match=r"(?m)^people\.csv: column 'bp', row 1 \(id 007\): 1e\+300 is beyond the"):
        found.problem(found.read_cohort(), narrow)


def test_a_job_without_any_feature_to_change_is_refused(tmp_path: Path, classifier: TorchClassifier) -> None:
    text = JOB[: JOB.index("[budgets.bp]")] + '[budgets.people]\namount = 3\ncost = "count"\n'
    found = read_job(job_file(tmp_path, text))
    with pytest.raises(ProblemError, match=r"job\.toml: budgets: no feature draws on a budget"):
        found.problem(found.read_cohort(), classifier)


# What is wrong with the file


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "format = 1\nformat = 1\n",
            "line 2, column 11: Cannot overwrite a value. Correct the TOML there; each key and table may occur only",
        ),
        (
            "[goal]\n[goal]\n",
            "line 2, column 6: Cannot declare ('goal',) twice. Correct the TOML there; each key and table may",
        ),
        ("format = 1\nx = { a = 1, a = 2 }", "line 2, column"),
        ("format = 1\n\n[cohort\nfile = 1", "line 3, column 8: Expected ']' at the end of a table declaration."),
        ("format = ", "line 1, column 10: Invalid value. Correct the TOML there; each"),
        ("format = 1\nx = [1,\n", "line 3, column 1: "),
        ("format = 1\nx = 1e999\n", "line 2, column 5: 1e999 is beyond float64. Write inf where no limit is meant."),
        (b"format = 1 # caf\xe9", "line 1, column 17: byte 0xe9 is not UTF-8. Save the file as UTF-8."),
        ("\ufeffformat = 1", "line 1, column 1: a byte order mark, which TOML does not allow. Save the file without"),
        (JOB.encode("utf-16"), "line 1, column 1: byte 0xff is not UTF-8."),
        ("x = " + "[" * 100_000, "line 1, column 37: values are nested more than 32 deep. No table of a job is."),
        ("x = 1\ny = '[[' # [[\nz = [" + "[" * 99 + "]" * 100, "line 3, column 37: values are nested more than 32"),
        ("[" + "a." * 20 + "a]\n" + "b." * 20 + "b = 1", "[a]: values are nested more than 32 deep. No table of"),
        ("x = { " + ".".join("a" * 100_000) + " = 1 }", "line 1, column 7: the key has more than 32 parts."),
        ("x = " + "{ a = " * 100 + "1" + "}" * 100, "line 1, column 197: values are nested more than 32 deep."),
        ("x = " + "a" * 900_000, "line 1, column 5: Invalid value."),
        ("a = 1\n" + ".".join("a" * 100_000) + " = 1", "line 2, column 1: the key has more than 32 parts."),
        ("[" + ".".join("a" * 100_000) + "]", "line 1, column 2: the key has more than 32 parts."),
        ("x = " + "1" * 5000, "is no valid TOML: Exceeds the limit"),
        (JOB + "#" * 1_000_000, "is larger than 1000000 bytes."),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_broken_toml_is_told_with_its_place(tmp_path: Path, text: str | bytes, fault: str) -> None:
    began = time.monotonic()
    (sentence,) = told(tmp_path, text)
    assert fault in sentence
    assert time.monotonic() - began < 5


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = job_file(tmp_path)
    with pytest.raises(
        InputError, match=rf"^{tmp_path}/jbo\.toml: no such file in {tmp_path}\. Did you mean 'job.toml'"
    ):
        read_job(tmp_path / "jbo.toml")
    with pytest.raises(InputError, match="is a folder; wanted a file"):
        read_job(tmp_path)
    with pytest.raises(InputError, match="is a URL, and nothing is fetched"):
        read_job("https://example.org/job.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="is a pipe, socket or device"):
        read_job(tmp_path / "pipe.toml")

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(OutputError, match=r"job\.toml: cannot be read: Permission denied"):
        read_job(path)


# Whatever comes


@given(st.integers(0, 2**32))
def test_any_bytes_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        text = bytearray(JOB.encode())
        for _ in range(chance.choice([1, 1, 2, 5, 20])):
            place = chance.randrange(len(text))
            if chance.random() < 0.5:
                text[place] = chance.choice(b"\"'[]{}=.,#\n\\ 0179-e_ax\x00\xff")
            else:
                text[place:place] = text[chance.randrange(len(text)) :][: chance.randrange(40)]
        assert is_read_or_refused(job_file(tmp_path, bytes(text)))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_is_read_or_refused(tmp_path: Path, value: object) -> None:
    literal = toml(value)
    for line in JOB.splitlines():
        if " = " in line:
            text = JOB.replace(line, f"{line.split(' = ')[0]} = {literal}", 1)
            assert is_read_or_refused(job_file(tmp_path, text.encode("utf-8", "replace")))


def toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" for c in value) + '"'
    return "{ a = 1 }" if value is None else str(value).lower()


def is_read_or_refused(path: Path) -> bool:
    """Any error but an InputError comes through."""
    try:
        found = read_job(path)
    except InputError:
        return True
    return bool(np.all([b.amount >= 0 for b in found.budgets.values()]))
