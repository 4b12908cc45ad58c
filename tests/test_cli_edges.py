"""The program at its edges: files that two readers could read differently, signals, full disks, odd names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

import maxflip
from maxflip import Plan
from tests.conftest import LONG
from tests.jobs import export, job_text
from tests.test_cli import invoke

# Root may read everything, so root becomes somebody else; after the imports, as Python itself may be root's, and after
# torch has loaded a model for the first time, which imports more.
AS_NOBODY = """
import json, os, pathlib, sys, maxflip.cli.run_job, maxflip_wall
from maxflip.__main__ import main
maxflip_wall.load_model(pathlib.Path(sys.argv[1]).read_bytes(), "model.pt2")
for told, *command in json.loads(sys.argv[2]):
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
        if os.geteuid() == 0:
            os.setuid(65534)
        sys.argv[1:] = command
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
JOB = job_text(["a", "b"], {"a": 50.0})
COHORT = "who,a,b\nP-1,-1,0\nP-2,-0.5,0\nP-3,3,0\n"


class Shift(nn.Module):
    """Logits (0, a): `b` is looked at by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Buffer(torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    export(Shift(), path, features=2, dtype=torch.float64)
    return path


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    return filled(tmp_path, model)


def filled(folder: Path, model: Path) -> Path:
    (folder / "cohort.csv").write_text(COHORT)
    (folder / "job.toml").write_text(JOB)
    shutil.copy(model, folder / "model.pt2")
    return folder


# --- the library and the auditor read the same


def parquet(column: list[Any], kind: pa.DataType) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        table = {"who": ["P-1", "P-2", "P-3"], "a": [-1.0, -0.5, 3.0], "b": pa.array(column, kind)}
        pq.write_table(pa.table(table), folder / "cohort.parquet")
        (folder / "job.toml").write_text(JOB.replace("cohort.csv", "cohort.parquet"))

    return write


def csv(*cells: str) -> Callable[[Path], None]:
    rows = zip(["P-1,-1", "P-2,-0.5", "P-3,3"], cells, strict=True)
    text = "who,a,b\n" + "".join(f"{row},{cell}\n" for row, cell in rows)

    def write(folder: Path) -> None:
        (folder / "cohort.csv").write_text(text)

    return write


def whole_numbers_with_a_negative_zero(folder: Path) -> None:
    """In the column that changes, so that the plan states the value."""
    (folder / "cohort.csv").write_text("who,a,b\nP-1,-1,0\nP-2,-0,0\nP-3,3,0\n")


def whole_floats_as_targets(folder: Path) -> None:
    parquet([1.0, 1.0, 1.0], pa.float64())(folder)
    job_file = folder / "job.toml"
    job_file.write_text(job_file.read_text().replace('target = "stable"', 'target_column = "b"'))


def job(old: str, new: str) -> Callable[[Path], None]:
    assert old in JOB

    def write(folder: Path) -> None:
        (folder / "job.toml").write_text(JOB.replace(old, new))

    return write


@pytest.mark.parametrize(
    "edit",
    [
        parquet([2**53 + 2, -(2**62), 0], pa.int64()),
        parquet([2**63 + 2**11, 0, 1], pa.uint64()),
        parquet([True, False, True], pa.bool_()),
        parquet([1, 2, 3], pa.decimal128(5, 2)),
        csv(str(2**53 + 2), "0", str(-(2**70))),
        whole_numbers_with_a_negative_zero,
        csv("-0", "+1", "0" * 5000 + "9007199254740994"),
        whole_floats_as_targets,
        job("[budgets.a]", "[limits.a]\nmin = -inf\nmax = inf\n[budgets.a]"),
        job("margin = 0.1", "margin = 0.1 # " + "." * 3000),
        job("[model]", "units = { a = '" + "1.5, " * 2500 + "' }\n[model]"),
    ],
    ids=lambda _: "",
)
def test_what_is_legal_is_solved_and_audited(folder: Path, edit: Callable[[Path], None]) -> None:
    edit(folder)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 0, done.stderr
    assert Plan.load(folder / "plan").count == 2
    assert invoke("verify", folder / "plan").exit_code == 0


@pytest.mark.parametrize(
    "edit", [parquet([2**53 + 1, 0, 0], pa.int64()), csv("9007199254740993", "0", "0")], ids=["parquet", "csv"]
)
def test_what_float64_does_not_hold_is_refused(folder: Path, edit: Callable[[Path], None]) -> None:
    edit(folder)
    done = invoke("solve", folder / "job.toml", "--out", folder / "plan")
    assert done.exit_code == 2
    assert "column 'b', row 1 (id P-1): 9007199254740993 is not exactly representable in float64" in done.stderr


def test_a_folder_behind_a_link(folder: Path) -> None:
    """The way back from where the link leads is another than from where it stands."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "link").symlink_to("deep/deeper")
    done = invoke("solve", folder / "job.toml", "--out", folder / "link" / "plan")
    assert done.exit_code == 0, done.stderr
    summary = json.loads((folder / "deep" / "deeper" / "plan" / "summary.json").read_text())
    assert summary["inputs"]["cohort"]["path"] == "../../../cohort.csv"
    assert invoke("verify", folder / "deep" / "deeper" / "plan").exit_code == 0


# --- what may not be read, what is not there, what is called oddly


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


DENIED = [
    ("solve {0}/job.toml --out {0}/new", "cohort.csv"),
    ("solve {0}/job.toml --out {0}/new", "job.toml"),
    ("verify {0}/plan", "plan/summary.json"),
    ("verify {0}/plan", "cohort.csv"),
    ("report {0}/plan", "plan/fates.parquet"),
    ("report {0}/plan", "plan"),
]


def test_what_may_not_be_read_is_exit_4(open_folder: Path, model: Path) -> None:
    """Each in a process of its own, forked from one that has imported everything."""
    first = open_folder / "first"
    first.mkdir()
    filled(first, model)
    assert invoke("solve", first / "job.toml", "--out", first / "plan").exit_code == 0
    folders = [Path(shutil.copytree(first, open_folder / str(k))) for k in range(len(DENIED))]
    for path in open_folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    commands = []
    for folder, (command, denied) in zip(folders, DENIED, strict=True):
        (folder / denied).chmod(0)
        commands.append([f"{folder}.told", *command.format(folder).split()])
    program = [sys.executable, "-c", AS_NOBODY, str(first / "model.pt2"), json.dumps(commands)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    codes = done.stdout.split()
    assert (done.returncode, len(codes)) == (0, len(DENIED)), done.stderr
    for folder, code, (command, denied) in zip(folders, codes, DENIED, strict=True):
        (folder / denied).chmod(0o777)
        told = Path(f"{folder}.told").read_text()
        assert code == "4", (command, denied, told)
        (line,) = (line for line in told.splitlines() if line.startswith("error: "))
        assert denied.partition("/")[0] in line
        assert "ermission" in line


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    for command in ("verify", "report"):
        done = invoke(command, tmp_path / "absent")
        assert done.exit_code == 2
        assert done.stderr.startswith(f"error: {tmp_path / 'absent'}: ")
        assert "Error" not in done.stderr
    alone = [sys.executable, "-m", "maxflip_verify", str(tmp_path / "absent")]
    said = subprocess.run(alone, capture_output=True, text=True, check=False).stderr
    assert said == f"maxflip-verify: {tmp_path}/absent/summary.json: No such file or directory\n"


def test_a_name_with_a_newline_stays_on_its_line(tmp_path: Path) -> None:
    done = invoke("solve", tmp_path / "a\nb\u202e.toml", "--out", tmp_path / "plan")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "a\\nb\\u202e.toml" in done.stderr


# --- a full disk, signals, other people's files


@pytest.mark.parametrize("command", ["solve {0}/job.toml --out {0}/plan", "--help", "--version"])
def test_a_full_disk_behind_stdout_is_said(folder: Path, command: str) -> None:
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "maxflip", *command.format(folder).split()]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 4
    assert "error: standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_nobody_to_tell_is_no_bug(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        program = [sys.executable, "-m", "maxflip", "solve", str(folder / "job.toml"), "--out", str(folder / "plan")]
        assert subprocess.run(program, stderr=full, check=False, stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_torch_is_imported_ends_quietly(
    folder: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """A torch of our own that never comes to an end, and says when it has begun."""
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "torch.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    source = str(Path(maxflip.__file__).parent.parent)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "slow"), source])}
    command = [sys.executable, "-m", "maxflip", "solve", str(folder / "job.toml"), "--out", str(folder / "plan")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, "")


SLOW_MODEL = """
import sys, threading, time, torch, maxflip.__main__, maxflip.models.files
class Slow(torch.nn.Linear):
    def forward(self, x):
        if threading.current_thread() is threading.main_thread():
            print("asked", flush=True)
            time.sleep(600)
        return super().forward(x)
slow = maxflip.TorchClassifier(Slow(2, 2), output="logits", classes=["worse", "stable"])
maxflip.models.files.load_classifier = lambda *args, **options: slow
maxflip.__main__.main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), *([(signal.SIGTERM, 143)] if LONG else [])])
def test_a_signal_while_the_model_is_asked_is_no_fault_of_the_model(
    folder: Path, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-c", SLOW_MODEL, "solve", str(folder / "job.toml"), "--out", str(folder / "plan")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the model" not in said
    assert sorted(path.name for path in folder.iterdir()) == ["cohort.csv", "job.toml", "model.pt2"]


FAREWELL = "import atexit, os, maxflip.__main__; atexit.register(os._exit, 99); maxflip.__main__.main()"


@pytest.mark.parametrize(("given", "code"), [(["--version"], 0), (["verify", "nowhere"], 2)])
def test_what_the_interpreter_does_at_its_end_cannot_change_the_exit_code(given: list[str], code: int) -> None:
    """pyarrow's threads, still giving back a CSV file, aborted the process there (exit 134) now and then."""
    done = subprocess.run([sys.executable, "-c", FAREWELL, *given], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert (done.stdout if code == 0 else done.stderr).endswith("\n")


def test_a_report_replaces_reports_alone(folder: Path) -> None:
    assert invoke("solve", folder / "job.toml", "--out", folder / "plan").exit_code == 0
    thesis, page = folder / "thesis.html", folder / "page.html"
    thesis.write_text("years of work")
    refused = invoke("report", folder / "plan", "--out", thesis)
    assert refused.exit_code == 4
    assert "thesis.html: is not a report" in refused.stderr
    assert thesis.read_text() == "years of work"
    assert [invoke("report", folder / "plan", "--out", page).exit_code for _ in range(2)] == [0, 0]
    assert invoke("report", folder / "plan", "--out", thesis, "--overwrite").exit_code == 0
    assert thesis.read_bytes() == page.read_bytes()
