"""The auditor counts who is picked in whole people, from the cohort's file and the job alone."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verify.good_plan import GoodPlan, good_plan
from tests.verify.test_verify_audit import run

# P-1, P-2, P-3 and P-9 are flipped.
SEX = ["F", "F", "M", "F", "M", "M", "F", "M", "F", "M"]
VISITS = [3.0, 1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 3.0, None, 2.0]
WOMEN, ONCE = [0, 1, 3, 6, 8], [1, 2, 4, 6]


def told(good: GoodPlan, table: str, members: list[int], count: int, **said: Any) -> None:
    """The good plan is asked this too, and says so."""
    good.job += f"\n[[quotas]]\n{table}\n"
    given = {**said, "members": members, "count": count, "price": None, "cost": None}
    good.summary.setdefault("quotas", []).append(given)


def with_quotas() -> GoodPlan:
    good = good_plan()
    good.cohort |= {"sex": [*SEX], "visits": [*VISITS]}
    women = {"column": "sex", "value": "F"}
    told(good, 'column = "sex"\nvalue = "F"\nat_least = 0.5\nat_most = 2', WOMEN, 2, **women, at_least=0.5, at_most=2)
    told(good, 'column = "visits"\nvalue = 1\nat_most = 0.5', ONCE, 2, column="visits", value=1.0, at_most=0.5)
    told(good, 'column = "a"\nvalue = 0.5\nat_least = 1', [3, 4], 1, column="a", value=0.5, at_least=1)
    told(good, 'ids = ["P-9", "P-0", "P-9"]\nat_least = 1', [0, 9], 1, ids=["P-0", "P-9"], at_least=1)
    return good


def test_quotas_that_are_kept_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(with_quotas().write(tmp_path), capsys)
    assert code == 0, text
    assert "ok\tfates.parquet: quota 1: at_least\n" in text
    assert text.count("fates.parquet: quota ") == 5


def test_a_csv_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(cohort: dict[str, list[Any]], path: Path) -> None:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([list(cohort), *zip(*cohort.values(), strict=True)])

    good = with_quotas()
    good.cohort["sex"] = ["07" if sex == "F" else "1" for sex in SEX]  # texts stay texts
    good.job = good.job.replace('value = "F"', 'value = "07"')
    good.summary["quotas"][0]["value"] = "07"
    good.write_cohort = write
    code, text = run(good.write(tmp_path), capsys)
    assert code == 0, text


@pytest.mark.parametrize(("share", "is_kept"), [(0.5, True), (0.75, False), (0.5000000001, False), (0.25, True)])
def test_a_share_is_decided_exactly(
    share: float, is_kept: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = with_quotas()
    good.job = good.job.replace("at_least = 0.5\n", f"at_least = {share}\n")
    good.summary["quotas"][0]["at_least"] = share
    code, text = run(good.write(tmp_path), capsys)
    assert (code == 0) is is_kept
    missed = f"fates.parquet: quota 1: at_least: got '2 of the 4 flipped', wanted at least {share!r}"
    assert (missed in text) is not is_kept


def forgeries() -> dict[str, tuple[Callable[[GoodPlan], object], str]]:
    """What is changed, and a finding that must come."""

    def of(number: int, **said: Any) -> Callable[[GoodPlan], object]:
        return lambda good: good.summary["quotas"][number - 1].update(said)

    def one_less(good: GoodPlan) -> None:
        good.cohort["sex"][3] = "M"  # the cohort has one woman less among those picked than the quota asks for

    def one_more(good: GoodPlan) -> None:
        good.job = good.job.replace("at_most = 2", "at_most = 1")
        good.summary["quotas"][0]["at_most"] = 1

    def unsaid(good: GoodPlan) -> None:
        del good.summary["quotas"]

    def unasked(good: GoodPlan) -> None:
        good.job = good.job.partition("[[quotas]]")[0]

    def dropped(good: GoodPlan) -> None:
        good.summary["quotas"].pop()

    def weaker(good: GoodPlan) -> None:
        good.job = good.job.replace("at_least = 0.5", "at_least = 0.75")

    def everybody(good: GoodPlan) -> None:
        good.job = good.job.replace("value = 0.5\nat_least = 1", "value = 0.5\nat_least = 1.0")

    return {
        "missed by one": (one_less, "fates.parquet: quota 1: at_least: got '1 of the 4 flipped', wanted at least 0.5"),
        "exceeded by one": (one_more, "fates.parquet: quota 1: at_most: got '2 of the 4 flipped', wanted at most 1"),
        "another value": (of(1, value="M"), "summary.json: quota 1: got"),
        "another column": (of(2, column="a"), "summary.json: quota 2: got"),
        "a bound that is not the job's": (of(1, at_least=0.4), "summary.json: quota 1: got"),
        "the number 1 for the share 1.0": (everybody, "fates.parquet: quota 3: at_least: got '1 of the 4 flipped'"),
        "another count": (of(1, count=3), "summary.json: quota 1: got"),
        "a member more": (of(1, members=[*WOMEN, 9]), "summary.json: quota 1: got"),
        "other ids": (of(4, ids=["P-1", "P-9"]), "summary.json: quota 4: got"),
        "a bound more": (of(3, at_most=5), "summary.json: quota 3: got"),
        "not said": (unsaid, "summary.json: quotas: got 0, wanted 4"),
        "not asked": (unasked, "summary.json: quotas: got 4, wanted 0"),
        "one left out": (dropped, "summary.json: quotas: got 3, wanted 4"),
        "a job that asks for more": (weaker, "fates.parquet: quota 1: at_least"),
        "a key of another name": (of(1, price2=1.0), "summary.json: form"),
        "a negative cost": (of(1, cost=-1.0), "summary.json: form"),
    }


@pytest.mark.parametrize("forgery", forgeries())
def test_a_forgery_is_caught(forgery: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, finding = forgeries()[forgery]
    good = with_quotas()
    spoil(good)
    code, text = run(good.write(tmp_path), capsys)
    assert code == 5, text
    assert finding in text


def test_1_in_the_summary_is_not_the_1_0_of_the_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = good_plan()
    everybody = ["P-1", "P-2", "P-3", "P-9"]
    told(good, f"ids = {everybody}\nat_least = 1.0".replace("'", '"'), [1, 2, 3, 9], 4, ids=everybody, at_least=1)
    code, text = run(good.write(tmp_path), capsys)
    assert code == 5
    assert "summary.json: quota 1: got" in text


@pytest.mark.parametrize(
    "table",
    [
        'column = "sex"\nat_least = 1',
        'column = "sex"\nvalue = "F"\nids = ["P-1"]\nat_least = 1',
        'ids = ["P-1"]',
        'ids = ["P-1"]\nat_least = 1.5',
        'ids = ["P-1"]\nat_least = 0',
        'ids = ["P-1"]\nat_most = -1',
        'ids = ["P-1"]\nat_most = 0.0',
        'ids = ["P-77"]\nat_most = 1',
        'ids = ["P-1"]\nat_most = "1"',
        'column = "height"\nvalue = 1\nat_least = 1',
        'column = "ignored"\nvalue = 1\nat_least = 1',
        'column = ["sex"]\nvalue = 1\nat_least = 1',
    ],
)
def test_a_quota_that_makes_no_sense_is_not_audited(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = good_plan()
    good.job += f"\n[[quotas]]\n{table}\n"
    code, text = run(good.write(tmp_path), capsys)
    assert code == 2, text
