"""The house stays a house: imports go one way, one version, no machine's paths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import maxflip

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "maxflip"

# docs/architecture.md draws this list: a room imports from the lines above it.
ROOMS = [
    ["errors", "streams", "watch", "suggest", "parts", "frozen"],
    ["exact"],
    ["spread"],
    ["frames", "ragged"],
    ["cohort"],
    ["slots"],
    ["inputs", "networks"],
    ["classifiers", "budgets", "engine"],
    ["costs", "goal", "limits", "must_hold"],
    ["arguments", "sanity"],
    ["problem"],
    ["judge", "pool", "bracket"],
    ["holds"],
    ["plan", "flips", "program", "question"],
    ["relaxation"],
    ["swaps", "scarcity", "twins"],
    ["thrift"],
    ["choose"],
    ["solvers"],
    ["pipeline"],
    ["study", "sizing", "tuning"],
    ["insight", "margins"],
    ["report", "plots"],
    ["notebook", "files"],
    ["demo", "datasets"],
    ["jobs", "datasets_cli"],
    ["cli"],
    ["__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
# A plan can save, report and draw itself, an insight be loaded, a network saved and loaded; these imports happen when
# it is asked for (that of `study` names a type).
DEFERRED = {
    *{("plan", "files"), ("plan", "report"), ("plan", "plots"), ("plan", "notebook"), ("plan", "study")},
    *{("problem", "notebook"), ("plan", "insight"), ("insight", "files"), ("holds", "files"), ("networks", "files")},
}


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, bool]]:
    """(room, is it inside a function or under TYPE_CHECKING) for every import of maxflip."""
    found = []
    tree = ast.parse(path.read_text())
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.If)) for n in ast.walk(f)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "maxflip":
            names = [f"maxflip.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "maxflip" and len(parts) > 1 and parts[1] in LEVEL:
                found.append((parts[1], id(node) in inner))
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    if path == SOURCE / "__init__.py":
        return
    own = room_of(path)
    assert own in LEVEL, f"{own} has no place in ROOMS and docs/architecture.md"
    for room, is_inner in imports(path):
        if (own, room) in DEFERRED:
            assert is_inner
        else:
            assert room == own or LEVEL[room] < LEVEL[own], f"{own} imports {room}"


def test_solvers_do_not_import_each_other() -> None:
    for path in (SOURCE / "solvers").glob("*.py"):
        if path.stem in ("__init__", "proposal"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxflip.solvers"):
                assert node.module == "maxflip.solvers.proposal"


def test_solving_needs_torch_numpy_and_scipy_alone() -> None:
    """The solve path runs where nothing else is installed (highspy falls back to scipy)."""
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(name)
absent = {"pyarrow", "pandas", "polars", "pydantic", "typer", "rich", "jinja2", "sklearn", "highspy", "narwhals"}
sys.meta_path.insert(0, Absent())
import numpy as np, torch, maxflip
net = torch.nn.Linear(2, 2)
classifier = maxflip.TorchClassifier(net, output="logits")
x = np.random.randn(50, 2)
problem = maxflip.Problem(classifier=classifier, cohort=x, target=1, margin=0.1, budgets={"x0": 5.0, "x1": 5.0})
print(maxflip.solve(problem))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "flipped" in result.stdout


def test_the_version_stands_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    latest = re.search(r"^## \[?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    assert latest is not None
    assert latest.group(1) == maxflip.__version__


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    for room in LEVEL.keys() - {"__main__"}:
        assert re.search(rf"\b{room}\b", page), f"docs/architecture.md does not name {room}"


def test_the_auditor_is_small_and_imports_nothing_of_maxflip() -> None:
    # The auditor also has networks for sequences of its own, reads two kinds of cohorts, and asks what flips hold in.
    for package, most in (("maxflip_verify", 1000), ("maxflip_wall", 700)):
        files = sorted((ROOT / "src" / package).glob("*.py"))
        assert files
        assert sum(len(path.read_text().splitlines()) for path in files) < most
        for path in files:
            for node in ast.walk(ast.parse(path.read_text())):
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
                modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                assert not any(m and m.split(".")[0] == "maxflip" for m in modules), path


def test_public_names_exist() -> None:
    assert all(hasattr(maxflip, name) for name in maxflip.__all__)


def test_the_library_does_not_print_or_assert() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.Assert), path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and path.stem != "cli":
                assert node.func.id != "print", path
