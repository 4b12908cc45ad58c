"""Each file is read once, and the plan states the hash of what was solved, whatever lies on disk afterwards."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxflip_verify
from maxflip import InputError, VerifyError
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from maxflip.solving import solve
from tests.examples import small_net
from tests.jobs import export, job_text
from tests.sequences.stays import write_stays

_opened: list[Counter[str]] = []


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(given[0], (str, bytes)):
        for counter in _opened:
            counter[Path(str(given[0])).name] += 1


sys.addaudithook(_hook)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How many times a file of each name is opened in here."""
    counter: Counter[str] = Counter()
    _opened.append(counter)
    try:
        yield counter
    finally:
        _opened.remove(counter)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    values = np.random.default_rng(0).normal(size=(30, 3)).tolist()
    lines = ["who,age,bmi,bp", *(f"{j}," + ",".join(map(repr, row)) for j, row in enumerate(values))]
    (tmp_path / "cohort.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "my_job.toml").write_text(job_text(["age", "bmi", "bp"], {"bmi": 20.0}))
    export(small_net(3, seed=1), tmp_path / "model.pt2")
    return tmp_path / "my_job.toml"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stated(folder: Path) -> dict[str, str]:
    inputs = json.loads((folder / "summary.json").read_text())["inputs"]
    return {name: entry["sha256"] for name, entry in inputs.items()}


def meddle(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Somebody changes a file while the plan is sought."""

    def meddled(*args: Any, **options: Any) -> Any:
        change()
        return solve(*args, **options)

    monkeypatch.setattr("maxflip.cli.run_job.solve", meddled)


def test_library_and_auditor_open_each_file_once(job: Path) -> None:
    with counted() as opened:
        run_job(job, job.parent / "plan", overwrite=False, watch=silent)
    # job.toml is the copy, which the auditor reads; it is written under another name.
    wanted = {"my_job.toml": 1, "job.toml": 1, "cohort.csv": 2, "model.pt2": 2}
    assert {name: opened[name] for name in wanted} == wanted
    with counted() as audited:
        assert maxflip_verify.audit(job.parent / "plan").passed
    wanted = {"my_job.toml": 0, "job.toml": 1, "cohort.csv": 1, "model.pt2": 1}
    assert {name: audited[name] for name in wanted} == wanted


def test_files_of_sequences_are_opened_once_each(tmp_path: Path) -> None:
    path = write_stays(tmp_path)
    with counted() as opened:
        run_job(path, tmp_path / "plan", overwrite=False, watch=silent)
    names = ("stays.parquet", "static.parquet", "model.safetensors")
    assert {name: opened[name] for name in names} == dict.fromkeys(names, 2)


@pytest.mark.parametrize("name", ["cohort.csv", "model.pt2"])
def test_a_plan_does_not_claim_a_file_that_came_later(job: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, key = job.parent / name, name.partition(".")[0]
    solved = digest(file)
    meddle(monkeypatch, lambda: file.write_bytes(other))
    if key == "model":
        export(small_net(3, seed=2), job.parent / "other.pt2")
        other = (job.parent / "other.pt2").read_bytes()
    else:
        other = file.read_bytes() + b"x,0.5,0.5,0.5\n"
    with pytest.raises(VerifyError) as caught:
        run_job(job, job.parent / "plan", overwrite=False, watch=silent)
    assert f"{file}: was changed while the job was solved." in str(caught.value)
    assert f"summary.json: inputs: {key}: got {solved!r}, wanted {digest(file)}" in str(caught.value)
    assert not (job.parent / "plan").exists()
    (rejected,) = job.parent.glob("rejected-*")
    assert stated(rejected)[key] == solved


@pytest.mark.parametrize("name", ["cohort.csv", "model.pt2"])
@pytest.mark.parametrize("later", [None, pickle.dumps(list(range(300)))], ids=["nothing", "a program"])
def test_a_plan_whose_files_are_gone_or_worse_is_withheld(
    job: Path, name: str, later: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = job.parent / name
    meddle(monkeypatch, file.unlink if later is None else lambda: file.write_bytes(later))
    with pytest.raises(VerifyError, match="withheld") as caught:
        run_job(job, job.parent / "plan", overwrite=False, watch=silent)
    assert ".partial-" not in str(caught.value)
    first, remedy = caught.value.problems
    assert f"withheld: {file}: " in first
    done, way = (
        ("deleted or moved", "Put it back, and run it again.")
        if later is None
        else (*("changed", "Run it again when nobody writes to it."),)
    )
    assert remedy == f"{file}: was {done} while the job was solved. {way}"
    assert not (job.parent / "plan").exists()


def test_a_plan_keeps_the_job_that_was_solved(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved, text = digest(job), job.read_bytes()
    meddle(monkeypatch, lambda: job.write_bytes(text.replace(b"amount = 20.0", b"amount = 1e9")))
    plan = run_job(job, job.parent / "plan", overwrite=False, watch=silent).plan
    assert (job.parent / "plan/job.toml").read_bytes() == text
    assert stated(job.parent / "plan")["job"] == plan_input(plan, job.parent / "plan") == solved != digest(job)
    assert maxflip_verify.audit(job.parent / "plan").passed


def plan_input(plan: Any, folder: Path) -> str:
    return str(type(plan).load(folder).inputs["job"])


def test_a_plan_survives_the_loss_of_its_job(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meddle(monkeypatch, job.unlink)
    assert run_job(job, job.parent / "plan", overwrite=False, watch=silent).audit.passed


def test_a_job_does_not_take_two_states_of_a_file(job: Path) -> None:
    asked = read_job(job)
    asked.load_classifier(silent)
    one = asked.read_cohort()
    assert asked.read_cohort().cohort.values.tolist() == one.cohort.values.tolist()
    cohort = job.parent / "cohort.csv"
    assert asked.origins["cohort"] == (cohort, digest(cohort))
    assert asked.origins["model"].sha256 == digest(job.parent / "model.pt2")
    cohort.write_text(cohort.read_text() + "x,0.5,0.5,0.5\n")
    with pytest.raises(InputError, match=r"cohort\.csv: changed while it was read\. Try again"):
        asked.read_cohort()
