"""The auditor reads sequences by its own code, passes what is right and catches each way to break a plan of them."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.networks import save_network
from maxflip_verify.__main__ import main
from tests.conftest import LONG
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


def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main([str(folder)])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out + err


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all inputs and the plan, made once; tests break copies."""
    root = tmp_path_factory.mktemp("good")
    assert run_job(write_stays(root), root / "plan", overwrite=False, watch=silent).plan.count > 3
    return root


class Broken:
    """A copy of the good plan whose parts can be changed; `write` states the hashes of what is there then."""

    def __init__(self, good: Path, root: Path) -> None:
        shutil.copytree(good, root, dirs_exist_ok=True)
        self.root = root
        self.plan: list[dict[str, Any]] = pq.read_table(root / "plan/plan.parquet").to_pylist()
        self.fates: list[dict[str, Any]] = pq.read_table(root / "plan/fates.parquet").to_pylist()
        self.summary = json.loads((root / "plan/summary.json").read_text())
        self.long, self.static = long_table(), static_table()
        self.job = (root / "plan/job.toml").read_text()

    def write(self) -> Path:
        folder = self.root / "plan"
        for name, rows in (("plan", self.plan), ("fates", self.fates)):
            schema = pq.read_schema(folder / f"{name}.parquet")
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{name}.parquet")
        pq.write_table(pa.table(self.long), self.root / "stays.parquet")
        pq.write_table(pa.table(self.static), self.root / "static.parquet")
        (folder / "job.toml").write_text(self.job)
        for key, entry in self.summary["inputs"].items():
            entry["sha256"] = hashlib.sha256((folder / self.summary["inputs"][key]["path"]).read_bytes()).hexdigest()
        (folder / "summary.json").write_text(json.dumps(self.summary))
        return folder

    def cell(self, i: int) -> int:
        """The long table's row that row i of the plan changes."""
        return self.long["stay"].index(self.plan[i]["id"]) + int(self.plan[i]["step"])

    def length(self, i: int) -> int:
        return self.long["stay"].count(self.plan[i]["id"])


Edit = Callable[[Broken], object]


MORE = [('steps = "last 2"', "parquet"), ('steps = "all"', "csv"), ('steps_column = "open"', "parquet")]


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ('steps = "all"', "parquet"),
        ('steps = "last 2"', "csv"),
        ('steps_column = "open"', "csv"),
        *(MORE if LONG else []),
    ],
)
def test_a_good_plan_passes(kind: str, steps: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = long_table()
    long["open"] = [k % 3 > 0 for k in range(len(long["stay"]))]
    job = edited(('steps = "last 3"', steps)).replace(".parquet", f".{kind}")
    released = run_job(write_stays(tmp_path, job, long), tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count > 1
    code, text = run(tmp_path / "plan", capsys)
    assert code == 0, text


def test_untouched_copies_pass(good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(Broken(good, tmp_path).write(), capsys)
    assert code == 0, text


def test_spending_is_summed_over_time_exactly(good: Path, tmp_path: Path) -> None:
    rows = Broken(good, tmp_path).plan
    assert max(sum(r["id"] == row["id"] and r["feature"] == row["feature"] for r in rows) for row in rows) > 1
    said = json.loads((good / "plan/summary.json").read_text())["budgets"]
    squares = sum((Fraction(r["change"]) ** 2 for r in rows if r["feature"] == "bp"), Fraction(0))
    weight = {"bp": Fraction(0.1), "glucose": Fraction(0.5)}
    hours = sum((weight[r["feature"]] * abs(Fraction(r["change"])) for r in rows), Fraction(0))
    assert said["bp"]["spent"] == float(squares)
    assert said["hours"]["spent"] == float(hours)


def at_a_missing_value(broken: Broken) -> None:
    broken.long[broken.plan[0]["feature"]][broken.cell(0)] = None


def moved_to_a_missing_value(broken: Broken) -> None:
    """A row more, at a value that was never measured, of one who is picked anyway."""
    for i, row in enumerate(broken.plan):
        first = broken.long["stay"].index(row["id"])
        for step in range(max(0, broken.length(i) - 3), broken.length(i)):
            for feature in ("bp", "glucose"):
                if broken.long[feature][first + step] is None:
                    time = broken.long["hour"][first + step]
                    values = {"step": step, "time": time, "feature": feature, "before": None, "change": 1e-9}
                    broken.plan.append(row | values)
                    broken.plan.sort(key=lambda r: (r["id"], r["step"], r["feature"]))
                    return
    raise AssertionError("nobody picked lacks a measurement")


def at_a_forbidden_step(broken: Broken) -> None:
    broken.job = broken.job.replace('steps = "last 3"', 'steps = "last 1"')


def at_a_step_that_a_column_forbids(broken: Broken) -> None:
    broken.job = broken.job.replace('steps = "last 3"', 'steps_column = "open"')
    broken.long["open"] = [True] * len(broken.long["stay"])
    broken.long["open"][broken.cell(0)] = False


def beyond_the_end(broken: Broken) -> None:
    broken.plan[0]["step"] = broken.length(0)


def swapped_steps(broken: Broken) -> None:
    """Two changes of one feature of one sample take each other's step."""
    for i, one in enumerate(broken.plan):
        for other in broken.plan[i + 1 :]:
            if one["id"] == other["id"] and one["feature"] == other["feature"]:
                one["change"], other["change"] = other["change"], one["change"]
                for key in ("step", "time", "before"):
                    one[key], other[key] = other[key], one[key]
                return
    raise AssertionError("nobody changes one feature twice")


def step(number: int) -> Edit:
    return lambda broken: broken.plan[0].update(step=number)


def one_ulp_less(budget: str) -> Edit:
    """Of the budget than the plan spends, by exact numbers."""

    def edit(broken: Broken) -> None:
        spent = broken.summary["budgets"][budget]["spent"]
        old = {"bp": "amount = 900.0", "hours": "amount = 60.0"}[budget]
        amount = math.nextafter(spent, 0.0)
        broken.job = broken.job.replace(old, f"amount = {amount!r}")
        broken.summary["budgets"][budget]["amount"] = amount

    return edit


def ages_exchanged(broken: Broken) -> None:
    broken.static["age"] = [130 - age for age in broken.static["age"]]


def times_stretched(broken: Broken) -> None:
    broken.long["hour"] = [10 * hour for hour in broken.long["hour"]]
    for row in broken.plan:
        row["time"] *= 10


def others_measured(broken: Broken) -> None:
    """What was missing of someone is there now: the network sees another sequence."""
    broken.long["bp"] = [150.0 if cell is None else cell for cell in broken.long["bp"]]


BROKEN: dict[str, tuple[Edit, str]] = {
    "a change where nothing was measured": (
        at_a_missing_value,
        r"plan.parquet: measured: id 'S-\d\d', step \d, feature",
    ),
    "a change at a missing value beside others": (moved_to_a_missing_value, "plan.parquet: measured: id .* got 1e-09"),
    "a change at a forbidden step": (
        at_a_forbidden_step,
        "plan.parquet: steps: id .* wanted no change, as the job leaves",
    ),
    "a change at a step that a column forbids": (at_a_step_that_a_column_forbids, "plan.parquet: steps: id"),
    "a step beyond the end": (
        beyond_the_end,
        r"plan.parquet: step: id 'S-\d\d', step (\d), .*: got \1, wanted 0 to \d",
    ),
    "a negative step": (step(-1), "plan.parquet: step: id .*: got -1, wanted 0 to"),
    "a step far away": (step(2**31 - 1), "plan.parquet: step: id .*: got 2147483647"),
    "swapped steps": (swapped_steps, "plan.parquet: order: id .* got 'out of order or twice'"),
    "another time": (lambda b: b.plan[0].update(time=b.plan[0]["time"] + 1), "plan.parquet: time: id"),
    "before off by one ulp": (
        lambda b: b.plan[0].update(before=math.nextafter(b.plan[0]["before"], 0)),
        "plan.parquet: before: id",
    ),
    "a row twice": (lambda b: b.plan.insert(1, dict(b.plan[0])), "plan.parquet: order: id"),
    "rows out of order": (lambda b: b.plan.reverse(), "plan.parquet: order: id"),
    "a dropped row": (lambda b: b.plan.pop(0), "summary.json: budget 'hours'"),
    "an unknown feature": (lambda b: b.plan[0].update(feature="age"), "plan.parquet: id and feature: id"),
    "one ulp over a squared budget": (one_ulp_less("bp"), "plan.parquet: budget 'bp': got"),
    "one ulp over an absolute budget": (one_ulp_less("hours"), "plan.parquet: budget 'hours': got"),
    "beyond its limits": (
        lambda b: setattr(b, "job", b.job.replace("min = 70", "min = 124").replace("max = 190", "max = 125")),
        "plan.parquet: limits: id",
    ),
    "against its direction": (
        lambda b: setattr(b, "job", b.job.replace("max = 190", 'direction = "down"')),
        "plan.parquet: direction: id",
    ),
    "other ages": (ages_exchanged, "fates.parquet: confidence_before: id"),
    "other times": (times_stretched, "fates.parquet: confidence_before: id"),
    "other measurements": (others_measured, "fates.parquet: confidence_before: id"),
    "a worth that is another's": (
        lambda b: setattr(b, "job", b.job.replace("margin = 0.1", 'margin = 0.1\nworth_column = "value"')),
        "fates.parquet: worth: id",
    ),
    "a fate that is not so": (
        lambda b: next(f for f in b.fates if f["fate"] == "not_found").update(fate="already"),
        "fates.parquet: already: id",
    ),
    "a missing sample": (lambda b: b.fates.pop(), "fates.parquet: ids: got"),
    "other lengths": (lambda b: b.summary["lengths"].reverse(), "summary.json: lengths: got"),
    "no lengths": (lambda b: b.summary.pop("lengths"), "summary.json: lengths: got None"),
    "no kind": (lambda b: b.summary.pop("kind"), "summary.json: kind: got None, wanted sequences"),
    "another count": (lambda b: b.summary.update(count=b.summary["count"] + 1), "summary.json: count"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plan_fails(name: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit, words = BROKEN[name]
    broken = Broken(good, tmp_path)
    edit(broken)
    code, text = run(broken.write(), capsys)
    assert code == 5, text
    assert re.search(words, text), text


TOUCHED: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "another static file": (
        lambda root: pq.write_table(pa.table({**static_table(), "age": [50] * 24}), root / "static.parquet"),
        5,
        "summary.json: inputs: static: got",
    ),
    "no static file": (lambda root: (root / "static.parquet").unlink(), 2, "static.parquet"),
    "another model": (
        lambda root: (root / "model.safetensors").write_bytes(network_bytes(seed=1)),
        5,
        "summary.json: inputs: model: got",
    ),
    "a model in another type": (
        lambda root: (root / "model.safetensors").write_bytes(network_bytes(torch.float32)),
        5,
        "summary.json: inputs: model: got",
    ),
    "a pickle for a model": (lambda root: torch.save([1], root / "model.safetensors"), 7, "model.safetensors"),
}


@pytest.mark.parametrize("name", TOUCHED)
def test_what_was_touched_is_caught(name: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, expected, words = TOUCHED[name]
    shutil.copytree(good, tmp_path / "all")
    spoil(tmp_path / "all")
    code, text = run(tmp_path / "all/plan", capsys)
    assert code == expected, text
    assert re.search(words, text), text


def an_id_twice(broken: Broken) -> None:
    for column in broken.static.values():
        column.append(column[0])


def first(column: str, value: Any) -> Edit:
    return lambda broken: broken.long[column].__setitem__(0, value)


def asks(old: str, new: str) -> Edit:
    def edit(broken: Broken) -> None:
        assert old in broken.job
        broken.job = broken.job.replace(old, new)

    return edit


UNREADABLE: dict[str, tuple[Edit, int, str]] = {
    "an id that comes again": (
        lambda b: b.long["stay"].__setitem__(-1, "S-00"),
        2,
        "stays.parquet: the rows of an id are not contiguous",
    ),
    "time that goes backwards": (first("hour", 1e9), 2, "stays.parquet: time is not finite, or goes backwards"),
    "time that is missing": (first("hour", None), 2, "stays.parquet: column 'hour': wanted once and without gaps"),
    "a value that is infinite": (first("bp", math.inf), 2, "stays.parquet: .*not finite"),
    "an age that is not finite": (
        lambda b: b.static.update(age=[math.inf] * 24),
        2,
        "static.parquet: has a value that is not finite",
    ),
    "an id that the static file lacks": (
        lambda b: b.static["stay"].__setitem__(0, "S-99"),
        2,
        "static.parquet: its ids must be those of .*stays.parquet, each once; got .*S-99",
    ),
    "an id twice in the static file": (
        an_id_twice,
        2,
        "static.parquet: its ids must be .*some of them twice",
    ),
    "a flag that is none": (
        lambda b: (
            asks('steps = "last 3"', 'steps_column = "open"')(b),
            b.long.update(open=["maybe"] * len(b.long["stay"])),
        ),
        2,
        "stays.parquet: column 'open'",
    ),
    "features in another order": (asks('["bp", "glucose"]', '["glucose", "bp"]'), 3, "was trained on the columns"),
    "another static feature": (asks('static_features = ["age"]', 'static_features = ["value"]'), 3, "static features"),
    "steps of another form": (asks('"last 3"', '"last 0"'), 2, "cohort: steps: got 'last 0'"),
    "an unknown key": (asks('time = "hour"', 'time = "hour"\nevery = 3'), 2, "'every' is not in the format"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_judged_is_said(
    name: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, expected, words = UNREADABLE[name]
    broken = Broken(good, tmp_path)
    edit(broken)
    code, text = run(broken.write(), capsys)
    assert code == expected, text
    assert re.search(words, text), text


def test_a_static_file_that_the_summary_does_not_name(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Broken(good, tmp_path)
    broken.summary["inputs"].pop("static")
    code, text = run(broken.write(), capsys)
    assert (code, "give --static" in text) == (2, True)


def test_a_static_file_that_the_job_does_not_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = edited(('static = "static.parquet"\nstatic_features = ["age"]\n', ""), (', age = "years"', ""))
    path = write_stays(tmp_path, job)
    save_network(network(static=0, static_shift=None, static_scale=None), tmp_path / "model.safetensors")
    run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    assert run(tmp_path / "plan", capsys)[0] == 0
    summary = json.loads((tmp_path / "plan/summary.json").read_text())
    digest = hashlib.sha256((tmp_path / "static.parquet").read_bytes()).hexdigest()
    summary["inputs"]["static"] = {"path": "../static.parquet", "sha256": digest}
    (tmp_path / "plan/summary.json").write_text(json.dumps(summary))
    code, text = run(tmp_path / "plan", capsys)
    assert code == 5, text
    assert "summary.json: inputs: got ['cohort', 'job', 'model', 'static'], wanted ['cohort', 'job', 'model']" in text


def test_a_csv_reads_as_the_library_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Signs, exponents, NaN and whole numbers beside decimals."""
    long = long_table()
    k = next(i for i, cell in enumerate(long["bp"]) if cell is None)
    long["bp"][k] = "NaN"
    long["hour"] = [f"+{hour}" if hour >= 0 else hour for hour in long["hour"]]
    root = tmp_path / "all"
    write_stays(root, JOB.replace(".parquet", ".csv"))
    write_csv(long, root / "stays.csv")
    run_job(root / "job.toml", root / "plan", overwrite=False, watch=silent)
    code, text = run(root / "plan", capsys)
    assert code == 0, text


def test_random_damage_never_ends_in_a_traceback(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, rng = tmp_path / "all", random.Random(0)
    shutil.copytree(good, root)
    write_csv(long_table(), root / "stays.parquet")  # texts break in other ways
    files = [root / "plan/plan.parquet", root / "plan/summary.json", root / "plan/job.toml"]
    files += [root / "stays.parquet", root / "static.parquet", root / "model.safetensors"]
    for i in range(90):
        path = files[i % len(files)]
        whole = path.read_bytes()
        at, kind = rng.randrange(len(whole)), rng.randrange(3)
        cut = (whole[:at], bytes([rng.randrange(256)]) if kind else b"", whole[at + (kind != 1) :])
        path.write_bytes(b"".join(cut))
        assert run(root / "plan", capsys)[0] in (0, 2, 3, 5, 7)
        path.write_bytes(whole)
