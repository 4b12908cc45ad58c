"""The tools of `peers`: an environment of its own for each, under .peers, and one process for each method."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import maxflip
from research.benchmarks.peer_tools.question import Floats, Question
from research.evidence.files import ROOT

PINS = ROOT / "research" / "benchmarks" / "peer_tools"
ENVIRONMENTS = ROOT / ".peers"
ALONE = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_USE_LEGACY_KERAS": "1",  # alibi asks for a session, which Keras 3 does not have
}
FRAME = ("question", "running", "torch_model", "problems")  # what the scripts of all tools share
WAITED = 10  # times its processor time that a method may take by the clock, on a busy machine


@dataclass(frozen=True)
class Tool:
    """script: in research/benchmarks/peer_tools   pins: its file of requirements there; none: this interpreter has it
    shares: sees the packages of this interpreter too, torch above all   bare: installed without what it asks for
    methods: asked everything   slow: methods asked the few samples alone
    exact: methods that solve small problems to the end
    said: how it was set up, beyond its defaults
    """

    name: str
    script: str
    said: str
    pins: str | None = None
    shares: bool = True
    bare: bool = False
    methods: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


DDN = "DDN, 100 steps"  # speeds are relative to it

TOOLS = (
    Tool(
        "maxflip",
        "maxflip_solvers",
        "the last two rows solve each shape of budgets; their speed is samples times shapes per second",
        methods=("Nearest, unit prices", "Nearest, 1/B", "Prices"),
    ),
    Tool(
        "foolbox",
        "foolbox_attacks",
        "FGSM and the two iterated ones at 20 lengths from 0.01 to 10, of which the least that flips counts; C&W steps "
        "by a tenth of a standard deviation; 3.3.4's FMN does not project, so it is also run with the projection of "
        "its paper (mended)",
        pins="foolbox.txt",
        methods=(
            DDN,
            "DDN, 1,000 steps",
            "FMN, 100 steps",
            "FMN, 1,000 steps, mended",
            "DeepFool, 50 steps",
            "C&W, 9 x 1,000 steps",
            "FGSM, 20 lengths",
            "I-FGSM, 20 lengths",
            "I-FGM in L2, 20 lengths",
        ),
    ),
    Tool(
        "adversarial-robustness-toolbox",
        "art_attacks",
        "JSMA only raises values (theta 0.1) or only lowers them (-0.1); FGSM tries lengths by tenths; DeepFool "
        "is not told the limits, whose distance it would multiply its steps by",
        pins="art.txt",
        methods=("JSMA, theta 0.1", "JSMA, theta -0.1", "DeepFool", "FGSM, least length", "C&W"),
    ),
    Tool(
        "torchattacks",
        "torchattacks_attacks",
        "values are shifted and scaled into 0 .. 1, all alike, and lengths with them; JSMA may change every feature "
        "(gamma 1), by half a standard deviation; C&W weighs the logits by "
        "ten squared standard deviations and steps by a tenth of one",
        pins="torchattacks.txt",
        bare=True,
        methods=("DeepFool", "C&W, 1,000 steps", "JSMA, theta 0.5", "JSMA, theta -0.5"),
    ),
    Tool(
        "advertorch",
        "advertorch_lbfgs",
        "one sample at a time; it imports a name that torch no longer has, and torchvision: it gets empty ones",
        pins="advertorch.txt",
        bare=True,
        methods=("L-BFGS",),
    ),
    Tool(
        "DiCE",
        "dice_counterfactuals",
        "one counterfactual each, features_to_vary, ranges as observed in the data; of its two results the one that it "
        "shows, made sparser. gradient looks for it by halves: by default in steps of the last decimal, up to 10,000 a "
        "feature, it took minutes a sample. It also moves features that may not change; they are put back",
        pins="dice.txt",
        methods=("genetic", "random"),
        slow=("gradient",),
    ),
    Tool(
        "alibi",
        "alibi_counterfactuals",
        "the model as a function, gradients by differences; CounterfactualProto with a k-d tree, theta 10 and 500 "
        "iterations; Counterfactual aims at the margin within 0.01",
        pins="alibi.txt",
        shares=False,
        slow=("CounterfactualProto", "Counterfactual"),
    ),
    Tool(
        "pyscipopt-ml",
        "scip_programs",
        "the whole question as one program, 60 s for each",
        pins="pyscipopt-ml.txt",
        exact=("SCIP",),
    ),
)


@dataclass(frozen=True, eq=False)
class Answered:
    """What one method answered to one question: Answer's changes, bounds and samples asked, and what they took."""

    changes: Floats
    bounds: Floats
    asked: int
    seconds: float
    peak_mib: float
    version: str

    def as_json(self) -> dict[str, Any]:
        return vars(self) | {"changes": self.changes.tolist(), "bounds": self.bounds.tolist()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Answered:
        arrays = {name: np.array(kept[name], dtype=np.float64) for name in ("changes", "bounds")}
        return cls(**{**kept, **arrays})


class Unavailable(Exception):
    """Why a tool gives no answer, in a few words."""


def install(tool: Tool, seconds: int) -> None:
    """Where it is not there as pinned. What went wrong stands in its environment, for those who ask."""
    if tool.pins is None:
        return
    home = ENVIRONMENTS / tool.pins.removesuffix(".txt")
    python, stamp, fault = home / "bin" / "python", home / "installed", home / "fault"
    pins = (PINS / tool.pins).read_text()
    if python.exists() and stamp.exists() and stamp.read_text() == pins:
        return
    print(f"installing {tool.name}", flush=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "-r", str(PINS / tool.pins)]
    command += ["--no-deps"] if tool.bare else ["-c", str(ROOT / "constraints.txt")]
    try:
        stamp.unlink(missing_ok=True)  # of other pins, or of an interpreter that is gone
        _make_environment(home, shares=tool.shares)
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds)
    except Unavailable as error:
        why = str(error)
    except subprocess.CalledProcessError as error:
        why = _last(str(error.stderr), "ERROR")
    except subprocess.TimeoutExpired:
        why = f"not done in {seconds} s"
    except OSError as error:
        why = _last(str(error), "")
    else:
        stamp.write_text(pins)
        return
    home.mkdir(parents=True, exist_ok=True)
    fault.write_text(f"does not install: {why}")


def _make_environment(home: Path, *, shares: bool) -> None:
    """Raises Unavailable where this Python cannot put pip into it: some systems have that in a package of its own."""
    try:
        venv.create(home, with_pip=True, clear=True)
    except subprocess.CalledProcessError as error:
        said = _last((error.output or b"").decode(errors="replace"), "")
        raise Unavailable(
            f"ensurepip, which venv needs, is missing or fails ({said}); install it (Debian, Ubuntu: apt install "
            "python3-venv), or use a Python that has it"
        ) from None
    if shares:
        packages = sysconfig.get_path("purelib", vars={"base": str(home)})
        (Path(packages) / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")


def interpreter(tool: Tool) -> Path:
    """That has the tool. Raises Unavailable."""
    if tool.pins is None:
        return Path(sys.executable)
    home = ENVIRONMENTS / tool.pins.removesuffix(".txt")
    if not (home / "installed").exists():
        fault = home / "fault"
        raise Unavailable(fault.read_text() if fault.exists() else "not installed")
    return home / "bin" / "python"


def not_installed(tools: Iterable[Tool]) -> dict[str, str]:
    """Those of them that `install` left without an environment, by name, and why."""
    found = {}
    for tool in tools:
        try:
            interpreter(tool)
        except Unavailable as reason:
            found[tool.name] = str(reason)
    return found


def code_of(tool: Tool) -> str:
    """A hash of the code that a tool's answers come from: its script and what all scripts share, its pins, and of
    maxflip all modules."""
    paths = [PINS / f"{name}.py" for name in (tool.script, *FRAME)]
    paths += sorted(Path(maxflip.__file__).parent.rglob("*.py")) if tool.pins is None else [PINS / tool.pins]
    found = hashlib.sha256()
    for path in filter(Path.exists, paths):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def ask(tool: Tool, method: str, questions: Mapping[str, Question], limit: int) -> dict[str, Answered]:
    """limit: seconds of processor time for all of them. Raises Unavailable."""
    with tempfile.TemporaryDirectory() as folder:
        return _ask(tool, method, questions, Path(folder), limit)


def _ask(tool: Tool, method: str, questions: Mapping[str, Question], folder: Path, limit: int) -> dict[str, Answered]:
    for name, question in questions.items():
        question.save(folder / f"{name}.question.npz")
    command = [str(interpreter(tool)), "-m", f"research.benchmarks.peer_tools.{tool.script}", method, str(folder)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | ALONE,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAITED * limit,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10)),
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"stopped after {WAITED * limit} s by the clock") from None
    except OSError as error:
        raise Unavailable(f"does not run: {_last(str(error), '')}") from None
    if done.returncode == -signal.SIGXCPU:
        raise Unavailable(f"stopped after {limit} s of processor time")
    if done.returncode == -signal.SIGKILL:
        raise Unavailable("killed from outside, for want of memory perhaps")
    if done.returncode:
        raise Unavailable(f"does not run: {_last(done.stderr, '')}")
    return {name: _read(folder / f"{name}.answer.npz") for name in questions}


def _read(path: Path) -> Answered:
    with np.load(path) as held:
        return Answered(
            changes=held["changes"],
            bounds=held["bounds"],
            asked=int(held["asked"]),
            seconds=float(held["seconds"]),
            peak_mib=float(held["peak_mib"]),
            version=str(held["version"]),
        )


def _last(text: str, kind: str) -> str:
    """The last line of this kind, without paths of this machine."""
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(kind) and line.strip()]
    return (lines or ["no reason given"])[-1].replace(str(ROOT), ".")[:200]
