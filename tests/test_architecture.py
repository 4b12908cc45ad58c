"""The house stays a house: imports go one way, one version, no machine's paths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import maxflip

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "maxflip"

# docs/architecture.md draws this list: a room imports from those before it. A room is an entry of src/maxflip.
ROOMS = (
    *("errors", "_util", "data", "networks", "models", "problem", "judge", "plan", "search", "select"),
    *("solvers", "solving", "study", "report", "io", "datasets", "cli", "__main__"),
)
LEVEL = {room: level for level, room in enumerate(ROOMS)}
# What plans and insights do with files and pages goes through one module, imported when it is called.
DOOR = "io.of_plans"
BEFORE_THE_DOOR = {"plan.plan", "study.insight"}
MOST_ENTRIES = 20


class Import(NamedTuple):
    """of: the module that imports   named: the module that is imported   is_late: inside a function
    is_typing: for annotations alone, so that nothing is imported when the program runs"""

    of: str
    named: str
    is_late: bool
    is_typing: bool


def modules() -> dict[str, Path]:
    """Names without the first "maxflip."; a package is named like its folder."""
    names = {path: ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items() if name != "__init__"}


def within(tree: ast.AST, *, is_late: bool = False, is_typing: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Each node, and whether it is in a function, and in a block for annotations alone."""
    for node in ast.iter_child_nodes(tree):
        late = is_late or isinstance(tree, ast.FunctionDef)
        typing = is_typing or (isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test))
        yield node, late, typing
        yield from within(node, is_late=late, is_typing=typing)


@cache
def imports() -> list[Import]:
    found, known = [], modules()
    for module, path in known.items():
        for node, late, typing in within(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "maxflip":
                package = (node.module or "").removeprefix("maxflip").removeprefix(".")
                whole = [f"{package}.{alias.name}".removeprefix(".") for alias in node.names]
                names = [name if name in known else package for name in whole]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
                names = [name.removeprefix("maxflip.") for name in named if name.startswith("maxflip.")]
            found += [Import(module, name, late, typing) for name in names if name]
    return found


def room_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def test_a_newcomer_finds_at_most_so_many_rooms() -> None:
    entries = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert len(entries) <= MOST_ENTRIES
    assert {name.removesuffix(".py") for name in entries} == {*ROOMS, "__init__", "py.typed"}


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_one_way(room: str) -> None:
    """Those inside functions too, and those of types but for the door's."""
    for found in imports():
        if room_of(found.of) == room and room_of(found.named) != room:
            if found.of in BEFORE_THE_DOOR and (found.named == DOOR or found.is_typing):
                assert found.is_late or found.is_typing
            else:
                assert LEVEL[room_of(found.named)] < LEVEL[room], f"{found.of} imports {found.named}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Of all modules, those of one room among them."""
    needs: dict[str, set[str]] = {module: set() for module in modules()}
    for found in imports():
        if not found.is_typing and found.named != DOOR and found.named != found.of:
            needs[found.of].add(found.named)
    while free := [module for module, others in needs.items() if not others]:
        for module in free:
            del needs[module]
        for others in needs.values():
            others.difference_update(free)
    assert not needs


@pytest.mark.parametrize(
    "module", ["maxflip", "maxflip.report", "maxflip.plan.plan", "maxflip.cli.main", "maxflip.solvers"]
)
def test_torch_is_not_loaded_where_it_is_not_needed(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('torch', 'highspy', 'scipy') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_arrays_have_one_name_each() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and path != SOURCE / "_util" / "types.py":
                assert ast.unparse(node.targets[0]) not in ("Floats", "Rows", "Mask"), path


# Names that tell a table from sequences: of cohorts, of plans, of what a model is called with, of a job.
OF_COHORTS = {"ragged", "Ragged", "TableLayout", "SequenceLayout", "SequenceSlots", "TableInputs", "SequenceInputs"}
OF_PLANS = {"TablePlaces", "StepPlaces", "SequencePlaces", "kind_of", "has_steps"}
OF_MODELS = {"Batch", "SequenceNetwork"}
OF_JOBS = {"is_sequences"}
# Who may use them outside data/, and why.
TELLING = {
    "models/torch_module.py": {"Batch", "SequenceNetwork"},  # a network for sequences is called with a Batch
    "models/fitted_on.py": {"SequenceNetwork"},  # ... and has its own shift and scale
    "models/files.py": {"ragged"},  # a model of sequences is in a .safetensors file
    "io/job/schema.py": {"is_sequences", "sequences"},  # [cohort] of a job has a kind, ...
    "io/job/rules.py": {"is_sequences"},  # ... on which it depends what else the job may say
    "io/job/read.py": {"is_sequences"},  # ... and which reader a file needs
    "io/job/write.py": {"ragged"},  # a .safetensors file says its output itself
    "io/cohort/write.py": {"ragged", "Ragged"},  # a table is one file, sequences are two
    "io/changes.py": {"kind_of"},  # summary.json says which kind of places it holds
    "report/people.py": {"has_steps"},  # the page shows step and time where there are any
    "report/follows.py": {"has_steps"},
    "report/features.py": {"has_steps"},
    "report/plots.py": {"has_steps"},  # a picture has an axis of time
}


def test_only_data_knows_whether_a_cohort_is_a_table_or_sequences() -> None:
    """What differs between the two is known to data/: Layout of a cohort, Slots of a problem, Places of a plan."""
    telling = OF_COHORTS | OF_PLANS | OF_MODELS | OF_JOBS
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        if room in ("data", "networks"):  # `networks` are models of sequences
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = {getattr(node, part, None) for part in ("id", "attr", "name", "arg")} & telling
            if isinstance(node, ast.Compare):  # by the word that files have for the kind
                names |= {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)} & {"sequences", "table"}
            if names:
                found.setdefault(path.relative_to(SOURCE).as_posix(), set()).update(map(str, names))
    assert found == TELLING


def test_nobody_asks_whether_a_solver_divides_the_budgets() -> None:
    """Each says what others need to know of it (`Solver` in solvers/base.py)."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                assert "Grouped" not in ast.unparse(node.args[1]), path


def test_solvers_do_not_import_each_other() -> None:
    for path in (SOURCE / "solvers").glob("*.py"):
        if path.stem in ("__init__", "base"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxflip.solvers"):
                assert node.module == "maxflip.solvers.base"


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
    for room in ROOMS[:-1]:
        assert re.search(rf"\b{room}\b", page), f"docs/architecture.md does not name {room}"


def test_the_auditor_imports_nothing_of_maxflip() -> None:
    for package in ("maxflip_verify", "maxflip_wall"):
        files = sorted((ROOT / "src" / package).glob("*.py"))
        assert files
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
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and path.parent.name != "cli":
                assert node.func.id != "print", path
