"""A plan in memory, on disk and in CSV is the same plan, and never over budget in any of them."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import math
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxflip import Budget, Cohort, InputError, Nearest, OutputError, Plan, Prices, Problem, TorchClassifier, solve
from maxflip.io import plan_folder
from maxflip.io.changes import changes_table, slotted
from maxflip.solvers import Solver
from tests.conftest import LONG
from tests.examples import linear_net, linear_problem, net_problem


@pytest.fixture(scope="module")
def plan() -> Plan:
    hours = Budget(6.0, {"x0": 1.0, "x1": 0.5}, "absolute")
    return solve(
        net_problem(
            60,
            features=4,
            budgets={"hours": hours, "x2": 3.0, "x3": math.inf, "people": Budget(20, cost="count")},
            cohort=Cohort.table(
                np.random.default_rng(0).normal(size=(60, 4)),
                ids=[f"P-{j:03d}" for j in range(60)],
                units={"x0": "mmHg", "x2": "kg/m²"},
            ),
        )
    )


def as_dict(plan: Plan) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(plan).items()
        if name in Plan.__dataclass_fields__ and name not in ("before", "pool", "places")
    } | {"places": [plan.places.feature.tolist(), *(part.tolist() for part in plan.places.named)]}


def test_saved_and_loaded_is_the_same(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan")
    again = Plan.load(tmp_path / "plan")
    mine, loaded = as_dict(plan), as_dict(again)
    mine["trace"] = {k: list(v) for k, v in mine["trace"].items()}
    assert mine == loaded
    np.testing.assert_array_equal(plan.before, again.before)
    assert again.table().equals(plan.table())
    assert repr(again) == repr(plan)


def test_the_folder_is_what_the_format_says(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    plan.save(folder)
    assert {p.name for p in folder.iterdir()} == {
        "summary.json",
        "plan.parquet",
        "fates.parquet",
        "trace.parquet",
        "report.html",
    }
    changes = pq.read_table(folder / "plan.parquet")
    assert changes.schema.names == ["id", "step", "feature", "before", "change"]
    assert [str(t) for t in changes.schema.types] == ["string", "int32", "string", "double", "double"]
    assert (changes["change"].to_numpy() != 0).all()
    fates = pq.read_table(folder / "fates.parquet")
    assert fates.schema.names == ["id", "fate", "worth", "confidence_before", "confidence_after"]
    assert fates["confidence_after"].null_count == 60 - plan.count
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["count"] == plan.count
    assert summary["budgets"]["x3"]["amount"] == "inf"
    assert summary["inputs"] is None
    assert (
        summary["count"] + sum(summary[k] for k in ("already", "left_out", "not_found", "unreachable", "unusable"))
        == 60
    )
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in folder.iterdir())


def test_the_same_plan_is_written_as_the_same_bytes(plan: Plan, tmp_path: Path) -> None:
    for name in ("a", "b"):
        plan.save(tmp_path / name)
    for file in ("plan.parquet", "fates.parquet", "summary.json", "report.html"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_the_table_has_a_row_per_change(plan: Plan) -> None:
    rows = plan.table().to_pylist()
    assert list(rows[0]) == ["id", "feature", "unit", "before", "change", "after", "cost"]
    assert len(rows) == np.count_nonzero(plan.changes)
    for row in rows:
        assert row["after"] == row["before"] + row["change"]
        weight = {"x0": 1.0 * abs(row["change"]), "x1": 0.5 * abs(row["change"])}
        assert row["cost"] == pytest.approx(weight.get(row["feature"], row["change"] ** 2))
    assert {row["unit"] for row in rows if row["feature"] == "x0"} <= {"mmHg"}


def test_costs_of_several_budgets_are_not_added_up(tmp_path: Path) -> None:
    """x0 draws squared units of one budget and hours of another: their sum would be neither."""
    hours = Budget(9.0, {"x0": 2.0}, "absolute")
    plan = solve(linear_problem([1.0, 1.0], [[-1.0, -1.0]], {"x0": 9.0, "x1": 9.0, "hours": hours}))
    costs = {row["feature"]: (row["change"], row["cost"]) for row in plan.table().to_pylist()}
    assert costs["x0"][1] is None
    assert costs["x1"][1] == costs["x1"][0] ** 2
    plan.to_csv(tmp_path / "plan.csv")
    with (tmp_path / "plan.csv").open(newline="") as file:
        assert {row["feature"]: row["cost"] for row in csv.DictReader(file)}["x0"] == ""


def test_csv_keeps_numbers_and_starts_no_formulas(tmp_path: Path) -> None:
    ids = ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\tx", "ok", 'quo"te', "new\nline", "＝1", "'quoted", "''=1"]
    x = np.full((len(ids), 1), -1.0) - np.arange(len(ids))[:, None] / 7
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0]), output="logits"),
        cohort=Cohort.table(x, ids=ids, features=["=bmi"]),
        target=1,
        margin=0.1,
        budgets={"=bmi": 1e3},
    )
    plan = solve(problem)
    assert plan.count == len(ids)
    plan.to_csv(tmp_path / "plan.csv")
    with (tmp_path / "plan.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["id"].removeprefix("'") for r in rows] == ids  # one ' less is the text again, whatever it was
    assert [r["id"].startswith("'") for r in rows] == [True] * 5 + [False] * 3 + [True] * 3
    assert all(r["feature"] == "'=bmi" for r in rows)
    assert [float(r["change"]) for r in rows] == plan.changes[:, 0].tolist()
    assert [float(r["before"]) for r in rows] == x[:, 0].tolist()


@pytest.mark.parametrize("block", range(8))
def test_ulp_tight_budgets_hold_in_memory_on_disk_and_in_csv(block: int, tmp_path: Path) -> None:
    """Budgets at, one bit above and one bit below what the plan needs, for 8 people; 2,000 of them in the long run."""
    trials = 250 if LONG else 8
    assert tight_plans(Nearest(), np.random.default_rng(block), trials, tmp_path) == trials


def test_ulp_tight_budgets_hold_at_prices_that_clear(tmp_path: Path) -> None:
    """Fewer, as prices take longer to find."""
    trials = 250 if LONG else 8
    assert tight_plans(Prices(), np.random.default_rng(8), trials, tmp_path) == trials


def tight_plans(solver: Solver, rng: np.random.Generator, trials: int, folder: Path) -> int:
    """How many plans were made and held to their budgets everywhere."""
    held = 0
    for trial in range(trials):
        x = -rng.uniform(0.5, 3, size=(8, 2))
        free = solve(linear_problem([1.0, 1.0], x, [1e6, 1e6]), solver)
        need = free.ledger.spent(free.changes)
        amounts = [math.nextafter(v, math.inf if trial % 3 else 0.0) if trial % 2 else v for v in need]
        plan = solve(linear_problem([1.0, 1.0], x, amounts), solver)
        assert plan.ledger.fits(plan.changes)
        assert plan.count >= 7
        assert all(plan.spend[name] <= plan.budgets[name].amount for name in plan.spend)
        for read in (through_parquet(plan), through_csv(plan, folder / "plan.csv")):
            assert np.array_equal(read, plan.changes)
            assert plan.ledger.fits(read)
        if trial % 25 == 0:
            plan.save(folder / str(trial))
            loaded = Plan.load(folder / str(trial))
            assert loaded.ledger.fits(loaded.changes)
            assert loaded.spend == plan.spend
        held += 1
    return held


def through_parquet(plan: Plan) -> Any:
    """The changes as plan.parquet holds them."""
    table = pq.read_table(io.BytesIO(plan_folder._parquet(changes_table(plan))))
    return slotted(table, plan.ids, plan.features, {}).moves


def through_csv(plan: Plan, path: Path) -> Any:
    plan.to_csv(path)
    read = np.zeros_like(plan.changes)
    place = {text: j for j, text in enumerate(plan.ids)}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            read[place[row["id"]], int(row["feature"][1])] = float(row["change"])
    return read


@given(st.data())
def test_any_texts_survive_files(data: st.DataObject) -> None:
    import tempfile

    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
    ids = data.draw(st.lists(text, min_size=2, max_size=4, unique=True))
    name = data.draw(text)
    cohort = Cohort.table(np.full((len(ids), 1), -1.0), ids=ids, features=[name], units={name: data.draw(text)})
    problem = Problem(
        classifier=TorchClassifier(linear_net([1.0]), output="logits"),
        cohort=cohort,
        target=1,
        margin=0.1,
        budgets={name: 5.0},
    )
    plan = solve(problem, Nearest())
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "p")
        again = Plan.load(Path(folder) / "p")
    assert again.table().equals(plan.table())
    assert again.all_ids.tolist() == ids


# --- where it cannot be written, nothing is ---


def test_an_existing_folder_is_kept_unless_told_otherwise(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    folder.mkdir()
    plan.save(folder)  # an empty one may be used
    with pytest.raises(OutputError, match="already contains a plan"):
        plan.save(folder)
    plan.save(folder, overwrite=True)
    (folder / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):  # what is not ours is never replaced
        with pytest.raises(OutputError, match="thesis"):
            plan.save(folder, overwrite=overwrite)
    assert (folder / "thesis.txt").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan"]


def test_places_that_cannot_be_written(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for place, reason in [
        (tmp_path / "no" / "parent", "does not exist"),
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "plan", ""),
        (tmp_path / "link", "symbolic link"),
        (tmp_path / ("n" * 256), ""),
        (Path("/proc/plan"), ""),
    ]:
        with pytest.raises(OutputError) as caught:
            plan.save(place, overwrite=True)
        assert reason in str(caught.value)
        assert str(place)[:50] in str(caught.value)
        assert caught.value.exit_code == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link", "real"]


def test_a_failure_while_writing_leaves_the_old_plan_whole(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the n-th write, for every n until it no longer happens."""
    folder = tmp_path / "plan"
    plan.save(folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    for calls in ("fsync", "replace"):
        for n in range(1, 100):
            count = 0
            real = getattr(os, calls)

            def failing(*args: Any, n: int = n, real: Any = real) -> Any:
                nonlocal count
                count += 1
                if count == n:
                    raise OSError(28, "No space left on device")
                return real(*args)

            with monkeypatch.context() as patch:
                patch.setattr(os, calls, failing)
                try:
                    plan.save(folder, overwrite=True)
                except OutputError as error:
                    said = str(error)
                else:
                    break
            assert said.startswith(f"{folder}: No space left on device.")
            assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
            leftovers = [p.name for p in tmp_path.iterdir() if p.name != "plan"]
            assert leftovers == [], (calls, n)
        assert 3 < n < 99


@pytest.mark.parametrize("damage", ["missing", "empty", "json", "parquet", "format", "folder"])
def test_what_is_no_plan_folder_is_said_so(plan: Plan, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "plan"
    if damage != "folder":
        plan.save(folder)
    if damage == "missing":
        (folder / "fates.parquet").unlink()
    if damage == "empty":
        (folder / "plan.parquet").write_bytes(b"")
    if damage == "json":
        (folder / "summary.json").write_text("{")
    if damage == "parquet":
        (folder / "plan.parquet").write_bytes((folder / "plan.parquet").read_bytes()[:100])
    if damage == "format":
        (folder / "summary.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="plan"):
        Plan.load(folder)


def test_the_summary_alone_says_what_was_asked_of_budgets(plan: Plan, tmp_path: Path) -> None:
    """Metadata that somebody wrote into plan.parquet changes nothing."""
    plan.save(tmp_path / "plan")
    path = tmp_path / "plan" / "plan.parquet"
    table = pq.read_table(path)
    assert table.schema.metadata is None
    forged = {"features": ["x0"], "units": {}, "budgets": {"x2": {"amount": 99.0, "uses": None, "cost": "count"}}}
    pq.write_table(table.replace_schema_metadata({"maxflip": json.dumps(forged)}), path)
    assert Plan.load(tmp_path / "plan").budgets == plan.budgets


def test_a_price_without_limit_is_0_and_without_prices_null(plan: Plan, tmp_path: Path) -> None:
    without = dataclasses.replace(plan, prices=None)
    priced = dataclasses.replace(plan, prices={"hours": 0.5, "x2": 0.25, "people": 0.0})
    for made, expected in [(without, [None] * 4), (priced, [0.5, 0.25, 0.0, 0.0])]:
        made.save(tmp_path / "plan", overwrite=True)
        summary = json.loads((tmp_path / "plan" / "summary.json").read_text())
        assert [summary["budgets"][name]["price"] for name in ("hours", "x2", "x3", "people")] == expected
        assert Plan.load(tmp_path / "plan").prices == made.prices


def test_a_plan_cannot_be_written_to(plan: Plan) -> None:
    arrays = ["changes", *(name for name, value in vars(plan).items() if isinstance(value, np.ndarray))]
    assert {"changes", "moves", "selected", "fates", "worths", "confidence_after"} <= set(arrays)
    for name in arrays:
        with pytest.raises(ValueError, match="read-only"):
            getattr(plan, name)[:] = getattr(plan, name)[:1]
    for name in ("spend", "budgets", "units", "versions"):
        with pytest.raises(TypeError, match="does not support item assignment"):
            getattr(plan, name)["x2"] = 0.0


@pytest.mark.parametrize("again", [copy.deepcopy, lambda plan: pickle.loads(pickle.dumps(plan))])
def test_a_plan_can_be_copied_and_pickled(plan: Plan, again: Callable[[Plan], Plan]) -> None:
    assert as_dict(again(plan)) == as_dict(plan)


def test_a_link_is_written_through(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("deep/real.csv")
    plan.to_csv(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "deep" / "real.csv").read_text().startswith("id,feature,unit,before,change,after,cost\n")


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_a_signal_while_the_folder_is_replaced_leaves_the_old_plan(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signal: type[BaseException]
) -> None:
    """It comes just after a rename, for every rename there is."""
    folder = tmp_path / "plan"
    plan.save(folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    real = os.replace
    for n in range(1, 20):
        count = 0

        def interrupted(*args: Any, n: int = n) -> None:
            nonlocal count
            count += 1
            real(*args)
            if count == n:
                raise signal

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", interrupted)
            try:
                plan.save(folder, overwrite=True)
            except signal:
                pass
            else:
                break
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        assert [p.name for p in tmp_path.iterdir()] == ["plan"], n
    assert n == 8  # five files and two folders


def test_inputs_are_all_or_none(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="all three"):
        plan.save(tmp_path / "p", inputs={"cohort": tmp_path / "x.csv"})


@pytest.mark.parametrize("name", ["cohort", "model", "job"])
def test_a_file_that_is_gone_is_named_as_it_was_given(plan: Plan, tmp_path: Path, name: str) -> None:
    inputs = {key: tmp_path / f"my_{key}" for key in ("cohort", "model", "job")}
    for key in inputs.keys() - {name}:
        inputs[key].write_text("here")
    with pytest.raises(InputError) as caught:
        plan.save(tmp_path / "p", inputs=inputs)
    assert str(caught.value).startswith(f"{inputs[name]}: no such file in {tmp_path}.")
    assert not (tmp_path / "p").exists()
