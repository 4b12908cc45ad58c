"""Plans with actions and choices: the auditor passes what the library saves, and catches each way to forge it."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import maxflip_verify
from maxflip import Action, Budget, Cohort, Plan, Problem, TorchClassifier, Uptake, solve
from maxflip.io.job.read import read_job
from tests.verify.good_plan import export

FEATURES = ["age", "bp", "income", "plan_a", "plan_b", "plan_c", "tier"]
Edit = Callable[[list[dict[str, Any]]], None]


def asked() -> tuple[Problem, torch.nn.Module]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 3))
    codes, tier = np.eye(3)[rng.integers(0, 3, 40)], rng.integers(0, 3, 40)
    net = torch.nn.Linear(7, 2).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.0] * 7, [1.0, -1.0, 2.0, 0.0, 0.5, 2.5, 0.6]]))
        net.bias.copy_(torch.tensor([0.0, -3.5]))
    ids = [f"P-{j:02}" for j in range(40)]
    problem = Problem(
        classifier=TorchClassifier(net, output="logits"),
        cohort=Cohort.table(np.column_stack([x, codes, tier]), features=FEATURES, ids=ids),
        target=1, margin=0.1, limits={"bp": (-2.0, 2.0)}, must_hold=Uptake(0.9), one_hot={"plan": FEATURES[3:6]},
        choices={"plan": {"b": 1.0, "c": 2.0, "a -> c": 1.5}, "tier": {2: 1.0}},
        budgets={
            "hours": 12.0, "euro": Budget(45.0, uses={"plan": 2.0, "tier": 1.0}), "bp": Budget(5.0, cost="absolute"),
        },
        actions=[
            Action("coaching", {"age": 0.5, "bp": -0.3}, {"hours": 1.0}),
            Action("raise", {"income": "x 4"}, {"euro": "0.3 tier"}, who=ids[::2]),
            Action("refund", {"income": 0.7}, {"euro": 1.0, "hours": 0.5}, excludes=["raise"]),
        ],
        most_actions=2,
    )  # fmt: skip
    return problem, net


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    problem, net = asked()
    root = tmp_path_factory.mktemp("actions")
    (root / "model.pt2").write_bytes(export(net, torch.zeros(2, 7, dtype=torch.float64)))
    plan = solve(problem)
    assert {"coaching", "plan: a -> c", "tier = 2", "bp"} <= set(plan.table()["feature"].to_pylist())
    plan.save(root / "plan", problem=problem, model=root / "model.pt2")
    return root


def copied(saved: Path, to: Path) -> Path:
    for file in [saved / "model.pt2", *(saved / "plan").iterdir()]:
        other = to / file.relative_to(saved)
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(file.read_bytes())
    return to / "plan"


def test_a_saved_plan_passes_and_its_job_asks_the_same(saved: Path) -> None:
    assert maxflip_verify.audit(saved / "plan").passed
    job = read_job(saved / "plan" / "job.toml")
    problem = job.problem(job.read_cohort(), job.load_classifier(lambda _: None))
    plan, again = Plan.load(saved / "plan"), solve(problem)
    assert plan.answers(problem)
    assert again.ids.tolist() == plan.ids.tolist()
    assert np.array_equal(again.moves, plan.moves)


def rows_of(table: pa.Table, feature: str) -> list[int]:
    return [i for i, name in enumerate(table["feature"].to_pylist()) if name == feature]


def take(feature: str, /, **values: Any) -> Edit:
    """Change the first row of a feature or a lever."""

    def edit(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["feature"] == feature).update(values)

    return edit


def drop(feature: str) -> Edit:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows.remove(next(row for row in rows if row["feature"] == feature))

    return edit


def beside(feature: str, other: str) -> Edit:
    """Another lever for whoever has this one."""

    def edit(rows: list[dict[str, Any]]) -> None:
        place, row = next((i, row) for i, row in enumerate(rows) if row["feature"] == feature)
        rows.insert(place + 1, row | {"feature": other, "before": 0.0, "change": 1.0})

    return edit


FORGERIES: dict[str, tuple[Edit, str]] = {
    "half an action": (take("coaching", change=0.5), "plan.parquet: lever"),
    "an action twice": (take("coaching", change=2.0), "plan.parquet: lever"),
    "an action one ulp off": (take("coaching", change=float(np.nextafter(1.0, 2.0))), "plan.parquet: lever"),
    "an action taken away": (drop("coaching"), "fates.parquet: flipped"),
    "a switch taken away": (drop("plan: a -> c"), "fates.parquet: flipped"),
    "two values of one category": (beside("plan: a -> c", "plan = b"), "plan.parquet: actions"),
    "a switch from a value that is not there": (take("plan: a -> c", feature="plan = a"), "plan.parquet: id and"),
    "an action for another": (take("raise", feature="refund"), "implied.parquet: after"),
    "an unknown action": (take("coaching", feature="coach"), "plan.parquet: id and feature"),
    "a code changed by hand": (take("tier = 2", feature="tier", change=1.0), "plan.parquet: "),
    "a feature beyond its limit": (take("bp", change=-9.0), "plan.parquet: limits"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_plan_is_caught(name: str, saved: Path, tmp_path: Path) -> None:
    edit, finding = FORGERIES[name]
    folder = copied(saved, tmp_path)
    table = pq.read_table(folder / "plan.parquet")
    rows = table.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / "plan.parquet")
    found = maxflip_verify.audit(folder).findings
    assert any(one.startswith(finding) for one in found), found


def said_otherwise(old: str, new: str) -> Callable[[str], str]:
    def edit(job: str) -> str:
        assert old in job
        return job.replace(old, new, 1)

    return edit


JOBS: dict[str, tuple[Callable[[str], str], str]] = {
    "fewer actions": (said_otherwise("most_actions = 2", "most_actions = 1"), "plan.parquet: actions"),
    "a dearer action": (
        said_otherwise("draws = {hours = 1.0}", "draws = {hours = 1.5}"),
        "plan.parquet: budget 'hours'",
    ),
    "a dearer switch": (said_otherwise('"plan: a -> c" = 3.0', '"plan: a -> c" = 9.0'), "summary.json: budget 'euro'"),
    "for others": (said_otherwise("who = {ids = [", 'who = {ids = ["P-01"]} # ['), "plan.parquet: actions"),
    "for those of a value": (
        said_otherwise("who = {ids = [", 'who = {column = "tier", value = 7} # ['),
        "plan.parquet: actions",
    ),
    "dearer for some": (said_otherwise("0.3 tier", "0.9 tier"), "fates.parquet: budget 1: of raise"),
    "another formula": (said_otherwise("0.3 tier", "max(tier, 0) * 0.3 + 1"), "fates.parquet: budget 1: of raise"),
    "another effect": (said_otherwise("age = 0.5", "age = -0.5"), "fates.parquet: flipped"),
    "a limit that an action crosses": (
        said_otherwise("[limits.bp]\nmin = -2.0", "[limits.bp]\nmin = 1.5"),
        "plan.parquet: limits",
    ),
    "an empty budget": (
        said_otherwise("[budgets.hours]\namount = 12.0", "[budgets.hours]\namount = 0.0"),
        "plan.parquet: budget 'hours'",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_plan_of_another_job_is_caught(name: str, saved: Path, tmp_path: Path) -> None:
    edit, finding = JOBS[name]
    folder = copied(saved, tmp_path)
    job = edit((folder / "job.toml").read_text())
    (folder / "job.toml").write_text(job)
    summary = json.loads((folder / "summary.json").read_text())
    summary["inputs"]["job"]["sha256"] = sha256(job.encode()).hexdigest()
    (folder / "summary.json").write_text(json.dumps(summary))
    found = maxflip_verify.audit(folder).findings
    assert any(one.startswith(finding) for one in found), found
