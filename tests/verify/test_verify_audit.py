"""The auditor passes a good plan, in every form that the format allows, and catches each way to break it."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import maxflip_verify
from maxflip_verify.__main__ import main
from tests.verify.good_plan import FATES_SCHEMA, GoodPlan, confidence, consumed, good_plan, linear_model, used

Edit = Callable[[GoodPlan], object]
Spoil = Callable[[Path], object]


def up(value: float) -> float:
    return math.nextafter(value, math.inf)


def down(value: float) -> float:
    return math.nextafter(value, -math.inf)


def run(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    code = main([str(folder), *more])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return code, out + err


# --- what is right passes


def test_a_good_plan_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = good_plan().write(tmp_path)
    code, text = run(folder, capsys)
    assert code == 0, text
    assert "FAIL" not in text
    result = maxflip_verify.audit(folder)
    assert result.passed
    assert result.findings == ()
    assert len(result.checks) > 30


def test_the_result_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.summary["count"] = 5
    code, text = run(good.write(tmp_path), capsys, "--json")
    assert code == 5
    result = json.loads(text)
    assert result["passed"] is False
    assert [check["findings"] for check in result["checks"] if check["findings"]] == [
        ["summary.json: count: got 5, wanted 4"]
    ]


def test_moved_inputs_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = good_plan().write(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for name in ("cohort.parquet", "model.pt2"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    assert run(folder, capsys)[0] == 2
    moved = ("--cohort", str(tmp_path / "elsewhere/cohort.parquet"), "--model", str(tmp_path / "elsewhere/model.pt2"))
    assert run(folder, capsys, *moved)[0] == 0


def test_a_plan_without_files_needs_them_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.summary["inputs"] = None
    folder = good.write(tmp_path)
    code, text = run(folder, capsys)
    assert (code, "--cohort" in text) == (2, True)
    named = ("--cohort", str(tmp_path / "cohort.parquet"), "--model", str(tmp_path / "model.pt2"))
    assert run(folder, capsys, *named)[0] == 0


def csv_with(bom: bytes, newline: str) -> Callable[[dict[str, list[Any]], Path], None]:
    def write(cohort: dict[str, list[Any]], path: Path) -> None:
        rows = [list(cohort), *zip(*cohort.values(), strict=True)]
        text = newline.join(",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in row) for row in rows)
        path.write_bytes(bom + text.encode() + newline.encode())

    return write


def rename_ids(good: GoodPlan, new: Callable[[int], str]) -> None:
    names = {old: new(i) for i, old in enumerate(good.cohort["key"])}
    good.cohort["key"] = list(names.values())
    for row in [*good.plan, *good.fates]:
        row["id"] = names[row["id"]]
    for old, fresh in names.items():
        good.job = good.job.replace(f'"{old}"', f'"{fresh}"')


def as_csv(good: GoodPlan) -> None:
    rename_ids(good, lambda i: f"00{i}")
    good.write_cohort = csv_with(b"\xef\xbb\xbf", "\r\n")


def as_csv_with_whole_numbers_first(good: GoodPlan) -> None:
    good.cohort["age"] = [40, *[41.5] * 9]
    good.write_cohort = csv_with(b"", "\n")


def integer_ids(good: GoodPlan) -> None:
    rename_ids(good, lambda i: str(100 + i))

    def write(cohort: dict[str, list[Any]], path: Path) -> None:
        pq.write_table(pa.table(cohort | {"key": [int(key) for key in cohort["key"]]}), path)

    good.write_cohort = write


def exact_integers(good: GoodPlan) -> None:
    """Beyond 2**53, but held by float64; the model does not look at age."""
    good.cohort["age"] = [2**53 + 2, -(2**53) - 2, 2**62, *[0] * 7]


def exact_integers_in_csv(good: GoodPlan) -> None:
    exact_integers(good)
    good.cohort["age"][3] = 2**70
    good.write_cohort = csv_with(b"", "\n")


def signs_in_csv(good: GoodPlan) -> None:
    """-0 is the float64 -0.0, in a column of whole numbers too; a plus sign is one."""
    good.cohort["c"] = ["-0", *["0"] * 3, *good.cohort["c"][4:]]
    good.cohort["age"] = ["-0", "+41", *["0" * 5000 + "7"] * 8]
    good.cohort["c"][1:4] = [0.0, 0.0, 0.2]
    good.write_cohort = csv_with(b"", "\n")


def threshold(good: GoodPlan) -> None:
    good.job = good.job.replace("margin = 0.1", "threshold = 0.55")
    for row in good.fates:
        for key in ("confidence_before", "confidence_after"):
            if row[key] is not None:
                row[key] = (row[key] + 1) / 2  # two classes that matter


def observed(good: GoodPlan) -> None:
    limits = good.job[good.job.index("[limits.a]") : good.job.index("[solver]")]
    good.job = good.job.replace(limits, "").replace("format = 1", 'format = 1\nlimits = "observed"')


def lower_columns(good: GoodPlan) -> None:
    good.job = good.job.replace("min = 0.0\n", 'min_column = "low_a"\n')
    good.cohort["low_a"] = [value if i % 2 and i < 9 else -math.inf for i, value in enumerate(good.cohort["a"])]


def target_columns(good: GoodPlan) -> None:
    good.job = good.job.replace('target = "stable"', 'target_column = "wish"')
    good.cohort["wish"] = ["stable", "1"] * 5


def large_strings(good: GoodPlan) -> None:
    good.cohort = (
        pa.table(good.cohort).set_column(0, "key", pa.array(good.cohort["key"], pa.large_string())).to_pydict()
    )


def replace(old: str, new: str) -> Edit:
    def edit(good: GoodPlan) -> None:
        assert old in good.job
        good.job = good.job.replace(old, new)

    return edit


def use_model(dtype: torch.dtype, *, softmax: bool) -> Edit:
    def edit(good: GoodPlan) -> None:
        good.model = linear_model(dtype, softmax=softmax)
        good.job = good.job.replace('"logits"', '"probabilities"' if softmax else '"logits"')
        if dtype == torch.float32:
            good.summary["guard"] = 1e-5
            good.cohort["a"][7] = good.plan and 1e38 * 3
            good.cohort["b"][7] = 1e38 * 3

    return edit


def flipped_first(good: GoodPlan) -> None:
    good.fates.insert(0, good.fates.pop(1))
    for values in good.cohort.values():
        values.insert(0, values.pop(1))


def exactly_at_a_limit(good: GoodPlan) -> None:
    good.cohort["most_b"][3] = 0.3 + 0.45
    good.job = good.job.replace("min = -0.5", "min = 0.0")  # 0.2 - 0.2


def larger_than_a_batch(good: GoodPlan) -> None:
    """300 copies: three batches at the start, and more flips than are run alone."""
    copies = range(300)

    def named(name: str, k: int) -> str:
        return f"{name}#{k}" if k else name

    good.cohort = {key: [v for _ in copies for v in values] for key, values in good.cohort.items()}
    good.cohort["key"] = [named(name, i // 10) for i, name in enumerate(good.cohort["key"])]
    good.plan = [row | {"id": named(row["id"], k)} for k in copies for row in good.plan]
    good.fates = [row | {"id": named(row["id"], k)} for k in copies for row in good.fates]
    for budget, spent in (
        ("a", consumed({"a": 1.0}, square=True)),
        ("hours", consumed({"b": 0.1, "c": 0.3}, square=False)),
    ):
        good.summary["budgets"][budget] |= {"amount": "inf", "spent": float(300 * spent), "price": 0}
    good.summary["budgets"]["c"]["spent"] = float(300 * consumed({"c": 1.0}, square=False))
    good.summary["budgets"]["people"] |= {"amount": "inf", "spent": 1200, "price": 0}
    good.job = re.sub(r"amount = \S+", "amount = inf", good.job)
    for key in ("count", "cohort", "already", "left_out", "not_found", "unreachable", "unusable", "below_margin"):
        good.summary[key] *= 300
    good.summary["worth"] = math.fsum(row["worth"] for row in good.fates if row["fate"] == "flipped")
    good.summary |= {"bound": None, "status": "feasible"}


def nothing_flipped(good: GoodPlan) -> None:
    good.job = good.job.replace('include = ["P-1"]\n', "")
    good.plan.clear()
    for row in good.fates:
        if row["fate"] == "flipped":
            row.update(fate="left_out", confidence_after=None)
    for budget in good.summary["budgets"].values():
        budget["spent"] = 0
    good.summary |= {"count": 0, "worth": 0, "left_out": 5}


def nothing_affordable(good: GoodPlan) -> None:
    """Nobody is picked, and the summary says what the cheapest flip takes."""
    nothing_flipped(good)
    good.summary["needs"] = {"a": 12.5}


def optimal(good: GoodPlan) -> None:
    good.summary |= {"bound": good.summary["worth"], "status": "optimal"}


def plan_row(i: int, **values: Any) -> Edit:
    return lambda good: good.plan[i].update(values)


def fate_row(i: int, **values: Any) -> Edit:
    return lambda good: good.fates[i].update(values)


def say(**values: Any) -> Edit:
    return lambda good: good.summary.update(values)


def say_of(budget: str, **values: Any) -> Edit:
    return lambda good: good.summary["budgets"][budget].update(values)


def both(*edits: Edit) -> Edit:
    return lambda good: [edit(good) for edit in edits]


GOOD: list[Edit] = [
    as_csv,
    as_csv_with_whole_numbers_first,
    integer_ids,
    threshold,
    observed,
    lower_columns,
    target_columns,
    large_strings,
    flipped_first,
    exactly_at_a_limit,
    larger_than_a_batch,
    nothing_flipped,
    nothing_affordable,
    optimal,
    replace('target = "stable"', "target = 1"),
    replace('target = "stable"', 'target = ["stable"]'),
    replace('target = "stable"', 'target = ["other", 1]'),
    replace("amount = 4\n", "amount = 4.0\n"),
    both(replace('[solver]\nname = "nearest"\nseed = 7\n', ""), say(seed=0, solver=used("Prices", rounds=12))),
    both(replace("seed = 7", "seed = 7\noptions = { chunk = 4 }"), say(solver=used("Nearest", chunk=4))),
    replace("min = -0.5\n", "min = -inf\nmax = inf\n"),
    replace("format = 1\n", "format = 1 # " + "." * 3000 + "\n"),
    replace('exclude = ["P-4"]', 'exclude = ["P-4"' + ', "1.5"' * 3000 + "]"),
    lambda good: [budget.update(price=None) for budget in good.summary["budgets"].values()],
    exact_integers,
    exact_integers_in_csv,
    signs_in_csv,
    use_model(torch.float64, softmax=True),
    use_model(torch.float32, softmax=False),
    lambda good: good.summary.update(bound=None, status="feasible"),
    lambda good: good.summary.update(bound=None, estimate=3.0),
    lambda good: good.fates[7].update(confidence_before=math.nan),
]


@pytest.mark.parametrize("edit", GOOD)
def test_what_the_format_allows_passes(edit: Edit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    edit(good)
    code, text = run(good.write(tmp_path), capsys)
    assert code == 0, text


def test_a_sample_within_the_guard_of_the_line_may_count_on_either_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = good_plan()
    line = math.log(1.1 / 0.9)
    for fate in ("already", "not_found"):
        good = good_plan()
        good.cohort["a"][5], good.cohort["c"][5] = 1 + line, 0.0
        good.fates[5] |= {"fate": fate, "confidence_before": confidence(1 + line, 0.0, 0.0)}
        good.summary |= {"already": 3, "not_found": 0} if fate == "already" else {"below_margin": 2}
        code, text = run(good.write(tmp_path / fate), capsys)
        assert code == 0, text


# --- what is wrong is caught: an edit before writing (hashes are right), and the words of the finding


def ulp(table: str, i: int, key: str, step: Callable[[float], float]) -> Edit:
    def edit(good: GoodPlan) -> None:
        row = getattr(good, table)[i]
        row[key] = step(row[key])

    return edit


def swap_ids(good: GoodPlan) -> None:
    good.plan[0]["id"], good.plan[1]["id"] = good.plan[1]["id"], good.plan[0]["id"]


def flip_an_already(good: GoodPlan) -> None:
    good.plan.insert(0, {"id": "P-0", "step": 0, "feature": "c", "before": 0.0, "change": -1e-6})
    good.fates[0] |= {"fate": "flipped", "confidence_after": confidence(2.0, 0.0, -1e-6)}


def flip_an_excluded(good: GoodPlan) -> None:
    good.plan.insert(5, {"id": "P-4", "step": 0, "feature": "c", "before": 0.0, "change": -0.5})
    good.fates[4] |= {"fate": "flipped", "confidence_after": confidence(0.5, 0.0, -0.5)}


def drop_the_included(good: GoodPlan) -> None:
    good.plan.pop(0)
    good.fates[1] |= {"fate": "left_out", "confidence_after": None}


def shrink_a_flip(good: GoodPlan) -> None:
    good.plan[0]["change"] = 0.0625  # z = 0.1625, below 0.2007
    good.fates[1]["confidence_after"] = 0.1001


def change_a_frozen_feature(good: GoodPlan) -> None:
    good.plan.insert(1, {"id": "P-1", "step": 0, "feature": "age", "before": 41.0, "change": -1.0})


def spend_a_zero_budget(good: GoodPlan) -> None:
    good.job = good.job.replace("amount = 0.11812500000000001", "amount = 0.0")
    good.summary["budgets"]["a"]["amount"] = 0.0


def beyond_the_limit(good: GoodPlan) -> None:
    good.cohort["most_b"][3] = down(0.3 + 0.45)


def lower_amount(budget: str, old: str, new: Any) -> Edit:
    def edit(good: GoodPlan) -> None:
        good.job = good.job.replace(f"amount = {old}\n", f"amount = {new}\n")
        good.summary["budgets"][budget]["amount"] = new

    return edit


BROKEN: dict[str, tuple[Edit, str]] = {
    "one ulp over a squared budget": (
        lower_amount("a", "0.11812500000000001", down(0.11812500000000001)),
        r"budget 'a': got .*, wanted at most 0.118125",
    ),
    "over an absolute budget by less than a rounding": (
        lower_amount("hours", "0.22000000000000003", 0.22),
        r"budget 'hours': got 'exactly about 0.22', wanted at most 0.22",
    ),
    "over the count": (lower_amount("people", "4", 3), "budget 'people'"),
    "a budget of zero is spent": (spend_a_zero_budget, "budget 'a'"),
    "a table that is called sequences": (
        say(kind="sequences", lengths=[1] * 4),
        r"summary.json: of sequences: got \['kind', 'lengths'\], wanted nothing of the kind",
    ),
    "swapped ids": (swap_ids, "plan.parquet: .*P-2"),
    "a frozen feature changes": (change_a_frozen_feature, "plan.parquet: frozen: id 'P-1', feature 'age': got -1.0"),
    "a dropped row": (lambda good: good.plan.pop(1), "fates.parquet: flipped: id 'P-2'"),
    "all rows of a sample dropped": (lambda good: good.plan.pop(0), "fates.parquet: plan: id 'P-1': got 'flipped'"),
    "an added row": (
        lambda good: good.plan.append({"id": "P-9", "step": 0, "feature": "c", "before": 0.0, "change": -0.1}),
        "summary.json: budget 'c'",
    ),
    "a row of a sample that is not flipped": (
        lambda good: good.plan.insert(5, {"id": "P-5", "step": 0, "feature": "c", "before": 4.0, "change": -1e-9}),
        "fates.parquet: plan: id 'P-5': got 'not_found'",
    ),
    "a row twice": (lambda good: good.plan.insert(0, dict(good.plan[0])), "plan.parquet: order: id 'P-1', feature 'a'"),
    "a row among those of another sample": (
        lambda good: good.plan.insert(3, {"id": "P-1", "step": 0, "feature": "age", "before": 41.0, "change": 1.0}),
        "plan.parquet: order: id 'P-1', feature 'age'",
    ),
    "rows out of order": (lambda good: good.plan.reverse(), "plan.parquet: order: id 'P-2'"),
    "an unknown id": (plan_row(0, id="P-77"), "plan.parquet: id and feature: id 'P-77'"),
    "an unknown feature": (plan_row(0, feature="z"), "plan.parquet: id and feature: id 'P-1', feature 'z'"),
    "step 1": (plan_row(2, step=1), "plan.parquet: step: id 'P-2', feature 'b': got 1, wanted 0"),
    "before off by one ulp": (ulp("plan", 0, "before", up), "plan.parquet: before: id 'P-1', feature 'a': got 1.0000"),
    "before is -0.0": (plan_row(2, before=-0.0), "plan.parquet: before: id 'P-2', feature 'b': got -0.0, wanted 0.0"),
    "before is null": (plan_row(0, before=None), "plan.parquet: before: id 'P-1', feature 'a': got nan"),
    "a change of NaN": (plan_row(0, change=math.nan), "plan.parquet: change: id 'P-1', feature 'a': got nan"),
    "a change of inf": (plan_row(0, change=math.inf), "plan.parquet: change: id 'P-1', feature 'a': got inf"),
    "a change of zero": (plan_row(0, change=0.0), "plan.parquet: change: id 'P-1', feature 'a': got 0.0"),
    "a change that is null": (plan_row(0, change=None), "plan.parquet: change: id 'P-1', feature 'a': got nan"),
    "beyond a limit by one ulp": (beyond_the_limit, r"plan.parquet: limits: id 'P-3', feature 'b': got 0.75, wanted"),
    "below the least value": (
        plan_row(4, change=-1.0),
        r"plan.parquet: limits: id 'P-3', feature 'c': got -0.8, wanted \[-0.5",
    ),
    "beyond a widened limit": (
        plan_row(5, change=0.01),
        r"plan.parquet: limits: id 'P-9', feature 'a': got 3.01, wanted \[0.0, 3.0\]",
    ),
    "a limit that is not a number": (
        both(lower_columns, lambda good: good.cohort["low_a"].__setitem__(1, math.nan)),
        "plan.parquet: limits: id 'P-1', feature 'a'",
    ),
    "against its direction": (plan_row(2, change=-0.15), "plan.parquet: direction: id 'P-2', feature 'b': got -0.15"),
    "an excluded sample is picked": (flip_an_excluded, "fates.parquet: exclude: id 'P-4': got 'flipped'"),
    "an excluded sample was not found": (fate_row(4, fate="not_found"), "fates.parquet: exclude: id 'P-4'"),
    "an included sample is not picked": (drop_the_included, "fates.parquet: include: id 'P-1': got 'left_out'"),
    "an included id is unknown": (replace('include = ["P-1"]', 'include = ["P-x"]'), "job.toml: include: got .'P-x'"),
    "a flipped sample is called left_out": (
        fate_row(2, fate="left_out"),
        "fates.parquet: plan: id 'P-2': got 'left_out'",
    ),
    "an unknown fate": (fate_row(5, fate="lost"), "fates.parquet: fate: id 'P-5': got 'lost'"),
    "one that passes is not called already": (fate_row(8, fate="not_found"), "fates.parquet: start: id 'P-8'"),
    "one that fails is called already": (fate_row(5, fate="already"), "fates.parquet: already: id 'P-5'"),
    "an already is counted as a flip": (flip_an_already, "fates.parquet: start: id 'P-0'"),
    "a claimed flip is none": (
        shrink_a_flip,
        r"fates.parquet: flipped: id 'P-1': got 0\.08.*, wanted confidence of at least 0.1",
    ),
    "a sample without an output is not unusable": (
        fate_row(7, fate="not_found"),
        "fates.parquet: start: id 'P-7': got nan",
    ),
    "a worth off by one ulp": (ulp("fates", 2, "worth", up), "fates.parquet: worth: id 'P-2'"),
    "confidence_before is wrong": (
        fate_row(5, confidence_before=-0.5),
        "fates.parquet: confidence_before: id 'P-5': got -0.5",
    ),
    "confidence_before is missing": (fate_row(5, confidence_before=None), "fates.parquet: confidence_before: id 'P-5'"),
    "confidence_after is wrong": (
        fate_row(3, confidence_after=0.5),
        "fates.parquet: confidence_after: id 'P-3': got 0.5",
    ),
    "confidence_after is missing": (fate_row(3, confidence_after=None), "fates.parquet: confidence_after: id 'P-3'"),
    "confidence_after without a flip": (
        fate_row(5, confidence_after=0.2),
        "fates.parquet: not flipped: id 'P-5': got 0.2",
    ),
    "a missing row of fates": (lambda good: good.fates.pop(6), "fates.parquet: ids: got .*'P-7'"),
    "one row of fates more": (lambda good: good.fates.append(dict(good.fates[6])), "fates.parquet: ids: got .'P-6'"),
    "fates in another order": (lambda good: good.fates.reverse(), "fates.parquet: ids: got .'P-9'"),
    "no fates at all": (lambda good: good.fates.clear(), "fates.parquet: ids"),
    "a wrong count": (say(count=5), "summary.json: count: got 5, wanted 4"),
    "a wrong worth by one ulp": (
        lambda good: good.summary.update(worth=up(good.summary["worth"])),
        "summary.json: worth: got 1.9",
    ),
    "a wrong size of the cohort": (say(cohort=11), "summary.json: cohort: got 11, wanted 10"),
    **{
        f"a wrong number of {fate}": (say(**{fate: 7}), f"summary.json: {fate}: got 7")
        for fate in ("already", "left_out", "not_found", "unreachable", "unusable", "below_margin")
    },
    "a wrong amount": (say_of("a", amount=1.0), "summary.json: budget 'a': got .*'amount': 1.0"),
    "a finite amount for inf": (say_of("c", amount=9), "summary.json: budget 'c'"),
    "a wrong cost": (say_of("a", cost="absolute"), "summary.json: budget 'a': got .*'cost': 'absolute'"),
    "spent off by one ulp": (
        lambda good: good.summary["budgets"]["hours"].update(spent=up(good.summary["budgets"]["hours"]["spent"])),
        "summary.json: budget 'hours'",
    ),
    "a wrong count spent": (say_of("people", spent=3), "summary.json: budget 'people'"),
    "a budget left out": (
        lambda good: good.summary["budgets"].pop("hours"),
        "summary.json: budgets: got .'a', 'c', 'people'",
    ),
    "a budget made up": (
        lambda good: good.summary["budgets"].update(extra=good.summary["budgets"]["a"]),
        "summary.json: budgets: got .*'extra'",
    ),
    "a negative price": (say_of("a", price=-0.1), "summary.json: budgets: a: price: got -0.1"),
    "a price of NaN": (say_of("a", price=math.nan), "summary.json: budgets: a: price: got nan"),
    "a bound below the worth": (say(bound=1.0), "summary.json: bound: got 1.0"),
    "optimal without reaching the bound": (say(status="optimal"), "summary.json: status: got 'optimal', wanted 'open'"),
    "optimal without a bound": (
        say(bound=None, status="optimal"),
        "summary.json: status: got 'optimal', wanted 'feasible'",
    ),
    "feasible in spite of a bound": (say(status="feasible"), "summary.json: status: got 'feasible', wanted 'open'"),
    "feasible in spite of an estimate": (say(bound=None, estimate=9.0, status="feasible"), "summary.json: status"),
    "open with nothing known": (say(bound=None), "summary.json: status: got 'open', wanted 'feasible'"),
    "open at the bound": (lambda good: good.summary.update(bound=good.summary["worth"]), "summary.json: status"),
    "an unknown status": (say(status="done"), "summary.json: status: got 'done'"),
    "a negative guard": (say(guard=-1e-9), "summary.json: guard: got -1e-09"),
    "a guard that excuses anything": (say(guard=0.5), "summary.json: guard: got 0.5"),
    "a guard below what is promised for float64": (
        say(guard=0.9e-9),
        "summary.json: guard: got 9e-10, wanted 1e-09 to",
    ),
    "a guard below what is promised for float32": (
        both(use_model(torch.float32, softmax=False), say(guard=1e-7)),
        "summary.json: guard: got 1e-07, wanted 1e-06 to",
    ),
    "a flip that passes by less than the guard": (
        lambda good: good.summary.update(guard=good.fates[2]["confidence_after"] - 0.1 + 1e-6),
        "fates.parquet: guard: id 'P-2'",
    ),
    "an excluded sample called unusable": (
        both(fate_row(4, fate="unusable"), say(left_out=0, unusable=2)),
        "fates.parquet: unusable: id 'P-4': got -0.2",
    ),
    "an already called unusable": (
        both(fate_row(0, fate="unusable"), say(already=1, unusable=2)),
        "fates.parquet: unusable: id 'P-0': got 0.4",
    ),
    "an unusable that has a confidence": (fate_row(7, confidence_before=0.3), "fates.parquet: confidence_before: id"),
    "an unusable without its confidence": (
        both(fate_row(5, fate="unusable", confidence_before=None), say(not_found=0, unusable=2)),
        "fates.parquet: confidence_before: id 'P-5'",
    ),
    "another seed": (say(seed=8), "summary.json: seed: got 8, wanted 7"),
    "groups that the job does not ask for": (say(solver=used("Nearest", groups=3)), "summary.json: solver: got"),
    "a seed where the job names none": (replace("seed = 7\n", ""), "summary.json: seed: got 7, wanted 0"),
    "another solver": (say(solver=used("Prices")), "summary.json: solver: got ..name.: .Prices., .*wanted the job's"),
    "another solver where the job names none": (
        replace('name = "nearest"\n', ""),
        "summary.json: solver: got ..name.: .Nearest., .*wanted the job's",
    ),
    "another option of the solver": (
        both(replace("seed = 7", "seed = 7\noptions = { chunk = 4 }"), say(solver=used("Nearest", chunk=40))),
        "summary.json: solver: got ..name.: .Nearest., .options.: ..chunk.: 40",
    ),
    "other features": (say(features=["a", "b", "age", "c"]), "summary.json: features: got"),
    "other units": (say(units={"a": "kPa"}), "summary.json: units: got"),
    "other uses of a budget": (say_of("hours", uses={"b": 0.1, "c": 0.2}), "summary.json: budget 'hours'"),
    "a price of a budget without limit": (say_of("c", price=0.1), "summary.json: price: got .0.1., wanted 0 or null"),
    "an unknown key": (say(extra=1), "summary.json: the key 'extra' is not in the format"),
    "a missing key": (lambda good: good.summary.pop("seed"), "summary.json: the key 'seed' is missing"),
    "an unknown key of a budget": (
        say_of("a", unit="kg"),
        "summary.json: budgets: a: the key 'unit' is not in the format",
    ),
    "another format": (say(format=1), "summary.json: format: got 1"),
    "text for a list": (say(notices="none"), "summary.json: notices: got 'none'"),
    "true for a number": (say(count=True), "summary.json: count: got True"),
    "text for a number": (say(worth="1.9"), "summary.json: worth: got '1.9'"),
    "an infinite number": (say(seconds=math.inf), "summary.json: seconds: got inf"),
    "a list for the summary": (lambda good: setattr(good, "summary", {"inputs": 3}), "summary.json: inputs: got 3"),
    "the wrong target": (replace('target = "stable"', 'target = "worse"'), "fates.parquet: already: id 'P-0'"),
    "another margin": (replace("margin = 0.1", "margin = 0.2"), "fates.parquet: flipped: id 'P-1'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit, words = BROKEN[name]
    good = good_plan()
    edit(good)
    code, text = run(good.write(tmp_path), capsys)
    assert code == 5
    assert re.search(words, text), text


# --- files that were touched after the plan was made


def rewrite(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    def spoil(root: Path) -> None:
        path = root / name
        path.write_bytes(change(path.read_bytes()))

    return spoil


def link(root: Path) -> None:
    (root / "plan/fates.parquet").rename(root / "fates.parquet")
    (root / "plan/fates.parquet").symlink_to(root / "fates.parquet")


def job_link(root: Path) -> None:
    (root / "plan/job.toml").unlink()
    (root / "plan/job.toml").symlink_to(root / "job.toml")


def fifo(root: Path) -> None:
    (root / "plan/plan.parquet").unlink()
    os.mkfifo(root / "plan/plan.parquet")


def folder_for_file(root: Path) -> None:
    (root / "cohort.parquet").unlink()
    (root / "cohort.parquet").mkdir()


def other_columns(root: Path) -> None:
    pq.write_table(pa.table({"id": ["P-0"]}), root / "plan/plan.parquet")


def other_types(root: Path) -> None:
    path = root / "plan/fates.parquet"
    schema = FATES_SCHEMA.set(2, pa.field("worth", pa.float32()))
    pq.write_table(pq.read_table(path).cast(schema), path)


def other_order(root: Path) -> None:
    path = root / "plan/plan.parquet"
    pq.write_table(pq.read_table(path).select(["step", "id", "feature", "before", "change"]), path)


def with_gaps(root: Path) -> None:
    path = root / "plan/plan.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "id", pa.array([None] * len(table), pa.string())), path)


def cohort_with(column: str, values: list[Any]) -> Spoil:
    def spoil(root: Path) -> None:
        table = pq.read_table(root / "cohort.parquet").to_pydict()
        pq.write_table(pa.table(table | {column: values}), root / "cohort.parquet")

    return spoil


def without_column(root: Path) -> None:
    pq.write_table(pq.read_table(root / "cohort.parquet").drop_columns(["b"]), root / "cohort.parquet")


TOUCHED: dict[str, tuple[Spoil, int, str]] = {
    "another cohort": (rewrite("cohort.parquet", lambda data: data.replace(b"P-8", b"P-X")), 5, "inputs: cohort"),
    "another model": (lambda root: (root / "model.pt2").write_bytes(linear_model(softmax=True)), 5, "inputs: model"),
    "an altered job": (rewrite("plan/job.toml", lambda data: data + b"# one more line\n"), 5, "inputs: job"),
    "another path of the job": (
        rewrite("plan/summary.json", lambda data: data.replace(b'"job.toml"', b'"../job.toml"')),
        5,
        "summary.json: inputs: job: path: got '../job.toml', wanted 'job.toml'",
    ),
    "no job": (lambda root: (root / "plan/job.toml").unlink(), 2, "job.toml"),
    "no plan": (lambda root: (root / "plan/plan.parquet").unlink(), 2, "plan.parquet"),
    "no fates": (lambda root: (root / "plan/fates.parquet").unlink(), 2, "fates.parquet"),
    "no summary": (lambda root: (root / "plan/summary.json").unlink(), 2, "summary.json"),
    "no cohort": (lambda root: (root / "cohort.parquet").unlink(), 2, "cohort.parquet"),
    "no model": (lambda root: (root / "model.pt2").unlink(), 2, "model.pt2"),
    "a truncated plan": (rewrite("plan/plan.parquet", lambda data: data[:-9]), 2, "plan.parquet"),
    "a damaged plan": (
        rewrite("plan/plan.parquet", lambda data: data[:60] + b"\xff" * 40 + data[100:]),
        2,
        "plan.parquet",
    ),
    "a plan of garbage": (rewrite("plan/plan.parquet", lambda _: b"PAR1" + bytes(range(256))), 2, "plan.parquet"),
    "an empty fates": (rewrite("plan/fates.parquet", lambda _: b""), 2, "fates.parquet"),
    "an empty cohort": (rewrite("cohort.parquet", lambda _: b""), 2, "cohort.parquet"),
    "a truncated model": (rewrite("model.pt2", lambda data: data[:-100]), 2, "model.pt2"),
    "a summary that is no JSON": (rewrite("plan/summary.json", lambda data: data[:-1]), 2, "summary.json"),
    "a summary nested without end": (rewrite("plan/summary.json", lambda _: b"[" * 200_000), 2, "summary.json"),
    "a summary in UTF-16": (rewrite("plan/summary.json", lambda _: b"\xff\xfe\x00\xd8"), 2, "summary.json"),
    "a job that is no TOML": (rewrite("plan/job.toml", lambda data: data + b"\n[["), 2, "job.toml"),
    "a job that takes minutes": (
        rewrite("plan/job.toml", lambda _: b"a." * 50_000 + b"a = 1"),
        2,
        "job.toml: too long",
    ),
    "a job that is not text": (rewrite("plan/job.toml", lambda _: b"\xff\xfe"), 2, "job.toml"),
    "a plan that is a link": (link, 2, "fates.parquet"),
    "a job that is a link": (job_link, 2, "job.toml"),
    "a plan that is a pipe": (fifo, 2, "plan.parquet"),
    "a cohort that is a folder": (folder_for_file, 2, "cohort.parquet"),
    "other columns": (other_columns, 2, "plan.parquet.*'change' is missing"),
    "other types": (other_types, 2, "fates.parquet: .*columns: worth: got 'float'"),
    "columns in another order": (other_order, 2, "plan.parquet: has columns out of order"),
    "ids with gaps": (with_gaps, 2, "plan.parquet: .*gaps"),
    "an id twice": (cohort_with("key", ["P-0"] * 10), 2, "cohort.parquet: .*an id twice"),
    "a feature that is not finite": (cohort_with("a", [math.nan] * 10), 2, "cohort.parquet: .*not finite"),
    "a feature that is text": (cohort_with("a", ["x"] * 10), 2, "cohort.parquet: column 'a'"),
    "a feature with gaps": (
        cohort_with("a", [None] * 10),
        2,
        "cohort.parquet: column 'a': wanted once and without gaps",
    ),
    "a whole number that float64 lacks, in text": (
        rewrite("cohort.parquet", lambda _: b"key,age,a,b,c,most_b,value\nP-0,9007199254740993,0,0,0,0,0\n"),
        2,
        "cohort.parquet: column 'age': 9007199254740993 is not exactly representable in float64",
    ),
    "a whole number that float64 lacks": (cohort_with("a", [2**53 + 1] * 10), 2, "cohort.parquet: column 'a'"),
    "a missing column": (without_column, 2, "cohort.parquet: column 'b': wanted once"),
}


@pytest.mark.parametrize("name", TOUCHED)
def test_what_was_touched_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, expected, words = TOUCHED[name]
    folder = good_plan().write(tmp_path)
    spoil(tmp_path)
    code, text = run(folder, capsys)
    assert code == expected, text
    assert re.search(words, text), text


JOBS: dict[str, tuple[Edit, str]] = {
    "sequences without time": (replace('id = "key"', 'id = "key"\nkind = "sequences"'), "sequences need time"),
    "sequences and a .pt2": (
        replace('id = "key"', 'id = "key"\nkind = "sequences"\ntime = "age"'),
        "sequences need a network in a .safetensors file",
    ),
    "a table with steps": (replace('id = "key"', 'id = "key"\nsteps = "all"'), "steps.*only sequences have these"),
    "an unknown key": (
        replace("margin = 0.1", "margin = 0.1\nmargim = 2"),
        "goal: the key 'margim' is not in the format",
    ),
    "another format": (replace("format = 1", "format = 2"), "job.toml: format: got 2"),
    "two targets": (replace("margin = 0.1", 'margin = 0.1\ntarget_column = "a"'), "one of target and target_column"),
    "margin and threshold": (replace("margin = 0.1", "margin = 0.1\nthreshold = 0.9"), "one of margin and threshold"),
    "an unknown class": (replace('target = "stable"', 'target = "better"'), "'better'"),
    "a class out of range": (replace('target = "stable"', "target = 3"), "goal: target: KeyError.3"),
    "no target": (replace('target = "stable"', "target = []"), "at least one class must be wanted"),
    "every class a target": (replace('target = "stable"', "target = [0, 1, 2]"), "one must not"),
    "text for a list": (replace('include = ["P-1"]', 'include = "P-1"'), "goal: include: got 'P-1'"),
    "no features": (replace('features = ["a", "b", "c", "age"]', "features = []"), "features and classes"),
    "a feature twice": (replace('"c", "age"', '"c", "c"'), "none of them twice"),
    "a target in a target": (replace('target = "stable"', "target = [[1]]"), "job.toml"),
    "an unknown feature in a budget": (replace("b = 0.1,", "z = 0.1,"), "budgets: hours: got .'c', 'z'"),
    "a budget of no feature": (replace("[budgets.a]", "[budgets.z]"), "budgets: z: got"),
    "a negative weight": (replace("b = 0.1,", "b = -0.1,"), "uses: b: got -0.1"),
    "a negative amount": (replace("amount = 4\n", "amount = -4\n"), "budgets: people: amount: got -4"),
    "an amount of nan": (replace("amount = 4\n", "amount = nan\n"), "budgets: people: amount: got nan"),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_that_cannot_be_understood(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit, words = JOBS[name]
    good = good_plan()
    edit(good)
    code, text = run(good.write(tmp_path), capsys)
    assert code == 2, text
    assert re.search(words, text), text


@pytest.mark.parametrize("text", ["limits = 3", "cohort = 3", "model = []", "budgets = 1", 'limits = "observed"', ""])
def test_a_job_of_another_shape(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.job = text
    assert run(good.write(tmp_path), capsys)[0] == 2


def test_a_model_with_another_number_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    good.job = good.job.replace('"stable", "other"', '"stable"')
    code, text = run(good.write(tmp_path), capsys)
    assert (code, "(10, 3)" in text) == (3, True)


def test_a_hundred_findings_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    good = good_plan()
    for i in range(300):
        good.plan.append({"id": f"X-{i}", "step": 0, "feature": "a", "before": 0.0, "change": 1.0})
    found = [text for text in maxflip_verify.audit(good.write(tmp_path)).findings if "id and feature" in text]
    assert len(found) == 101
    assert found[-1] == "plan.parquet: id and feature: and 200 more"


def test_random_damage_never_ends_in_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, rng = good_plan().write(tmp_path), random.Random(0)
    files = [*folder.iterdir(), tmp_path / "cohort.parquet", tmp_path / "model.pt2"]
    for i in range(120):
        path = files[i % len(files)]
        whole = path.read_bytes()
        at, kind = rng.randrange(len(whole)), rng.randrange(3)
        cut = (whole[:at], bytes([rng.randrange(256)]) if kind else b"", whole[at + (kind != 1) :])
        path.write_bytes(b"".join(cut))
        assert run(folder, capsys)[0] in (0, 2, 5, 7)
        path.write_bytes(whole)


def test_inputs_may_be_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = good_plan().write(tmp_path)
    for name in ("cohort.parquet", "model.pt2"):
        (tmp_path / name).rename(tmp_path / f"real-{name}")
        (tmp_path / name).symlink_to(tmp_path / f"real-{name}")
    assert run(folder, capsys)[0] == 0


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "nowhere", capsys)[0] == 2


# --- independence


def test_the_command_itself_loads_nothing_of_maxflip(tmp_path: Path) -> None:
    folder = good_plan().write(tmp_path)
    script = (
        f"import sys; from maxflip_verify.__main__ import main; code = main([{str(folder)!r}]); "
        "print([m for m in sys.modules if m.split('.')[0] == 'maxflip']); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_auditor_imports_only_what_it_may() -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "pyarrow", "torch", "maxflip_verify", "maxflip_wall"}
    for path in Path(str(maxflip_verify.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= allowed, path
            assert not (isinstance(node, ast.ImportFrom) and node.level), path
