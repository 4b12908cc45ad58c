"""The auditor counts anew what each person draws: fees, weights of their own, parts of the cohort, both ways.

The good plan moves P-1 (a +0.125), P-2 (a +0.2, b +0.15), P-3 (b +0.45, c -0.2) and P-9 (a -0.25, b +1.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import maxflip_verify
from maxflip import Budget, Cohort, Plan, Problem, TorchClassifier, VerifyError, Ways, solve
from maxflip._util.events import silent
from maxflip.io.job.read import read_job
from tests.examples import linear_net
from tests.jobs import export
from tests.verify.good_plan import SAMPLES, GoodPlan, good_plan, smallest_float_at_least
from tests.verify.test_verify_audit import csv_with, run

N = len(SAMPLES)
SITE = ["Oslo", "Oslo", "Bergen", "Oslo", "Oslo", "Bergen", "Bergen", "Oslo", "Oslo", "Oslo"]
UP = [0.1 * (j + 1) for j in range(N)]  # of a, each one's own
FEE = [0.3, 0.7, 1.1, 0.2, 0.5, 0.1, 0.4, 0.9, 0.6, 0.8]
INSIDE = [float(site == "Oslo") for site in SITE]
BUDGETS = """
[budgets.visits]
amount = {visits!r}
cost = "absolute"
uses = {{ a = {{ up = "up_a", down = 0.5 }}, b = 2.0 }}
fee = 0.35
only = {{ column = "site", value = "Oslo" }}

[budgets.fees]
amount = {fees!r}
cost = "count"
fee = "fee"

[budgets.three]
amount = {three!r}
cost = "count"
only = {{ ids = ["P-3", "P-1", "P-2"] }}

[limits.a]"""
Exact = dict[str, Fraction]


def drawn(*, fee: bool = True, up: list[float] = UP, down: float = 0.5, inside: list[float] = INSIDE) -> Fraction:
    """From visits, exactly."""
    total = Fraction(0)
    for j, (_, *_, fate, moved) in enumerate(SAMPLES):
        if fate == "flipped" and inside[j]:
            total += Fraction(0.35) if fee else 0
            d = Fraction(moved.get("a", 0.0))
            total += Fraction(up[j] if d > 0 else down) * abs(d) + 2 * abs(Fraction(moved.get("b", 0.0)))
    return total


def fees_of(*names: str) -> Fraction:
    return sum((Fraction(FEE[int(name[-1])]) for name in names), Fraction(0))


VISITS, FEES = drawn(), fees_of("P-1", "P-2", "P-3", "P-9")


def asking(visits: Fraction | float = VISITS, fees: Fraction | float = FEES, three: float = 3.0) -> GoodPlan:
    """The good plan with three budgets more, of these amounts, or of the next float64 above."""
    good = good_plan()
    amounts = {"visits": smallest_float_at_least(Fraction(visits)), "fees": smallest_float_at_least(Fraction(fees))}
    amounts["three"] = three
    good.job = good.job.replace("\n[limits.a]", BUDGETS.format(**amounts), 1)
    good.cohort |= {"site": SITE, "up_a": UP, "fee": FEE}
    good.own = {
        "budget 4: up a": UP,
        "budget 4: only": INSIDE,
        "budget 5: fee": FEE,
        "budget 6: only": [float(name in ("P-1", "P-2", "P-3")) for name, *_ in SAMPLES],
    }
    rest = {"price": 0.0}
    good.summary["budgets"] |= {
        "visits": {
            "amount": amounts["visits"],
            "cost": "absolute",
            "spent": float(VISITS),
            "uses": {"a": {"up": "up_a", "down": 0.5}, "b": 2.0},
            "fee": 0.35,
            "only": {"column": "site", "value": "Oslo"},
            **rest,
        },
        "fees": {"amount": amounts["fees"], "cost": "count", "spent": float(FEES), "uses": {}, "fee": "fee", **rest},
        "three": {
            "amount": three,
            "cost": "count",
            "spent": 3.0,
            "uses": {},
            "only": {"ids": ["P-1", "P-2", "P-3"]},
            **rest,
        },
    }
    return good


def test_what_differs_between_people_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spent to the last bit: the amounts are the smallest float64 that suffice. From Parquet and from CSV."""
    for number, good in enumerate((asking(), asking())):
        if number:
            good.write_cohort = csv_with(b"", "\n")
        code, text = run(good.write(tmp_path / str(number)), capsys)
        assert code == 0, text
        assert "ok\tfates.parquet: budget 4: only" in text
        assert "ok\tplan.parquet: budget 'visits'" in text


def below(total: Fraction) -> float:
    """The largest float64 below"""
    near = float(total)
    return near if Fraction(near) < total else math.nextafter(near, 0.0)


def spoiled(good: GoodPlan, edit: Callable[[GoodPlan], object]) -> GoodPlan:
    edit(good)
    return good


def says(name: str, **other: Any) -> Callable[[GoodPlan], object]:
    return lambda good: good.summary["budgets"][name].update(other)


def swapped(column: str, one: int, other: int) -> Callable[[GoodPlan], object]:
    def swap(good: GoodPlan) -> None:
        values = list(good.own[column])
        values[one], values[other] = values[other], values[one]
        good.own[column] = values

    return swap


def with_value(column: str, j: int, value: float) -> Callable[[GoodPlan], object]:
    def put(good: GoodPlan) -> None:
        good.own[column] = [*good.own[column][:j], value, *good.own[column][j + 1 :]]

    return put


def replaced(old: str, new: str) -> Callable[[GoodPlan], object]:
    def put(good: GoodPlan) -> None:
        assert old in good.job
        good.job = good.job.replace(old, new)

    return put


def only_bergen_has_a(good: GoodPlan) -> None:
    """a draws on a budget of Bergen, and on one of P-0: it is frozen for P-1 and P-9, who are neither."""
    replaced("[budgets.a]\n", '[budgets.a]\nonly = { column = "site", value = "Bergen" }\n')(good)
    replaced('only = { column = "site", value = "Oslo" }', 'only = { ids = ["P-0"] }')(good)
    good.own["budget 4: only"] = [1.0] + [0.0] * (N - 1)
    good.own = {"budget 0: only": [1.0 - inside for inside in INSIDE], **good.own}


NOTHING = lambda good: good  # noqa: E731
FORGERIES: dict[str, tuple[GoodPlan, Callable[[GoodPlan], object], str]] = {
    "a fee not paid": (asking(visits=drawn(fee=False)), NOTHING, "plan.parquet: budget 'visits': got 'exactly about"),
    "exceeded by exactly one fee": (asking(visits=VISITS - Fraction(0.35)), NOTHING, "plan.parquet: budget 'visits'"),
    "exceeded by the last bit": (asking(visits=below(VISITS)), NOTHING, "plan.parquet: budget 'visits'"),
    "a fee of one's own not paid": (asking(fees=FEES - fees_of("P-3")), NOTHING, "plan.parquet: budget 'fees'"),
    "one more than places of a part": (asking(three=2.0), NOTHING, "plan.parquet: budget 'three'"),
    "spent without fees": (asking(), says("visits", spent=float(drawn(fee=False))), "summary.json: budget 'visits'"),
    "somebody inside not charged": (
        asking(),
        with_value("budget 4: only", 1, 0.0),
        "budget 4: only: id 'P-1': got 0.0",
    ),
    "somebody outside charged": (asking(), with_value("budget 4: only", 2, 1.0), "budget 4: only: id 'P-2': got 1.0"),
    "spent as if somebody were outside": (
        asking(visits=drawn(inside=[0.0 if j == 1 else i for j, i in enumerate(INSIDE)])),
        NOTHING,
        "plan.parquet: budget 'visits'",
    ),
    "a weight swapped with another's": (asking(), swapped("budget 4: up a", 0, 1), "budget 4: up a: id 'P-0': got 0.2"),
    "spent by another's weight": (
        asking(),
        says("visits", spent=float(drawn(up=[UP[0], UP[0], *UP[2:]]))),
        "summary.json: budget 'visits'",
    ),
    "a weight one bit less": (
        asking(),
        with_value("budget 4: up a", 9, math.nextafter(UP[9], 0.0)),
        "fates.parquet: budget 4: up a: id 'P-9'",
    ),
    "up priced as down": (asking(), says("visits", spent=float(drawn(up=[0.5] * N))), "summary.json: budget 'visits'"),
    "down priced as up": (
        asking(visits=VISITS - Fraction(0.5) * Fraction(0.25) + Fraction(0.1) * Fraction(0.25)),
        NOTHING,
        "plan.parquet: budget 'visits'",
    ),
    "a fee swapped with another's": (
        asking(),
        swapped("budget 5: fee", 3, 9),
        "fates.parquet: budget 5: fee: id 'P-3'",
    ),
    "a fee that the job does not have": (asking(), says("three", fee=1.0), "summary.json: budget 'three'"),
    "another fee stated": (asking(), says("visits", fee=0.3), "summary.json: budget 'visits'"),
    "another part stated": (
        asking(),
        says("visits", only={"column": "site", "value": "Bergen"}),
        "summary.json: budget 'visits'",
    ),
    "a part left out": (
        asking(),
        lambda good: good.summary["budgets"]["three"].pop("only"),
        "summary.json: budget 'three'",
    ),
    "another column stated": (
        asking(),
        says("visits", uses={"a": {"up": "fee", "down": 0.5}, "b": 2.0}),
        "summary.json: budget 'visits'",
    ),
    "frozen for those outside": (asking(), only_bergen_has_a, "plan.parquet: frozen: id 'P-1', feature 'a'"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, edit, says_so = FORGERIES[name]
    code, text = run(spoiled(good, edit).write(tmp_path), capsys)
    assert code == 5, text
    assert says_so in text


UNREADABLE = {
    "nobody there": ('value = "Oslo"', 'value = "Olso"'),
    "an id of nobody": ('"P-3", "P-1"', '"P-3", "P-77"'),
    "a column that is no number": ('fee = "fee"', 'fee = "site"'),
    "no such column": ('fee = "fee"', 'fee = "fees"'),
    "a column below 0": ('fee = "fee"', 'fee = "below"'),
    "one way alone": ('{ up = "up_a", down = 0.5 }', '{ up = "up_a" }'),
    "a third way": ("down = 0.5 }", "down = 0.5, left = 1.0 }"),
    "a way below 0": ("down = 0.5 }", "down = -0.5 }"),
    "column and ids": ('column = "site", value = "Oslo"', 'column = "site", ids = ["P-1"]'),
    "a count of features": ('cost = "count"\nfee', 'cost = "count"\nuses = { a = 1.0 }\nfee'),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_meant_is_unreadable(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = asking()
    good.cohort["below"] = [-0.5, *FEE[1:]]
    code, text = run(spoiled(good, replaced(*UNREADABLE[name])).write(tmp_path), capsys)
    assert code == 2, text


# --- from Python and from a job


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pt2"
    export(linear_net([1.0, -0.8, 0.5]), path, features=3, dtype=torch.float64)
    return path


def frame_of(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(n, 3)) - [0.5, -0.3, 0.2], columns=["x0", "x1", "x2"])
    frame["who"], frame["site"] = [f"P{j}" for j in range(n)], rng.choice(["Oslo", "Bergen"], n)
    return frame.assign(tier=rng.integers(1, 4, n), km=rng.uniform(0, 3, n), id=rng.normal(size=n))


def asked() -> Problem:
    """Columns by name, arrays, ids; one column is called as the file's own id column would be."""
    frame = frame_of()
    budgets = {
        "a": Budget(4.0, {"x0": "km", "x1": Ways("tier", 0.5)}, fee=0.05, only=("site", "Oslo")),
        "b": Budget(6.0, {"x2": np.linspace(0.5, 2, 40), "x1": 1.0}, "absolute", fee="km", only=("tier", 2)),
        "c": Budget(9.0, cost="count", fee="km", only=[f"P{j}" for j in range(30)]),
        "d": Budget(30.0, {"x0": 1.0, "x2": Ways(0.0, 2.0)}, only=("site", "Bergen")),
        "x1": Budget(math.inf, {"x1": 1.0, "x0": 1.0, "x2": 1.0}),
    }
    cohort = Cohort.table(frame, features=["x0", "x1", "x2"], id="who")
    classifier = TorchClassifier(linear_net([1.0, -0.8, 0.5]), output="logits")
    return Problem(classifier=classifier, cohort=cohort, target=1, margin=0.1, budgets=budgets)


def test_a_saved_plan_is_audited_loaded_and_asked_again(model: Path, tmp_path: Path) -> None:
    problem = asked()
    plan = solve(problem)
    assert plan.count > 3
    plan.save(tmp_path / "plan", problem=problem, model=model, pool=True)
    assert maxflip_verify.audit(tmp_path / "plan").passed
    loaded = Plan.load(tmp_path / "plan")
    assert loaded.budgets == plan.budgets
    for more in ({"a": 3.0}, {"b": -2.0, "c": 2.5}, {"c": -6.0}):
        assert loaded.what_if(more) == plan.what_if(more)
    assert loaded.ledger.spent(loaded.moves, rows=loaded.selected).tolist() == list(plan.spend.values())
    job = read_job(tmp_path / "plan/job.toml")
    classifier = job.load_classifier(silent)
    again = job.with_classes_of(classifier).problem(job.read_cohort(), classifier)
    assert again.budgets == problem.budgets
    assert solve(again).moves.tobytes() == plan.moves.tobytes()
    loaded.save(tmp_path / "twice")
    assert Plan.load(tmp_path / "twice").budgets == plan.budgets


def test_a_plan_of_other_numbers_cannot_be_saved(model: Path, tmp_path: Path) -> None:
    """The same plan under a question whose fees are others: the audit of `save` refuses it."""
    problem = asked()
    plan = solve(problem)
    budget = problem.budgets["c"]
    dearer = problem.changed(budgets={"c": Budget(9.0, cost="count", fee=budget.fee.values + 1.0, only=budget.only)})
    object.__setattr__(plan, "budgets", dict(dearer.budgets))
    with pytest.raises(VerifyError, match="budget 'c'"):
        plan.save(tmp_path / "plan", problem=dearer, model=model)
