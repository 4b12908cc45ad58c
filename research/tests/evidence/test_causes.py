"""Why a claim is not confirmed: what rules say of made-up places whose answers are plain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maxflip import BCMS, CCMS, KL, MS
from research.evidence.causes import Causes, in_common
from research.evidence.claims.claim import Claim
from research.evidence.claims.runtime import ITERATIONS
from research.evidence.files import Made, write
from research.evidence.results import Results

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
PLACE = "icu paper small"


def run(solver: str, count: float = 10.0, where: str = PLACE, **other: Any) -> dict[str, Any]:
    dataset, source, budget = where.split()
    row = {"dataset": dataset, "budget_source": source, "budget": budget, "seed": 0, "n": 100, "allocation": "joint"}
    row |= {"solver": solver, "protocol": "own" if solver == "Prices" else "tuned", "count": count, "chosen": True}
    row |= {"unspent": 0.1, "consumption_per_picked": 1.0, "prediction_gap": 0.2, "iterations_made": 600, "options": ""}
    return row | other


def claim_of(key: str, **fails: dict[str, float]) -> Claim:
    """It fails in one place for each of these."""
    claim = Claim(key, "x", "y")
    for whom, numbers in fails.items():
        claim.tried(PLACE, False, numbers, whom=whom.replace("_", " beside "))
    return claim


def said(folder: Path, claim: Claim, rows: list[dict[str, Any]], tried: list[dict[str, Any]] | None = None) -> str:
    write("budget", rows, MADE, folder)
    if tried:
        write("tuning", tried, MADE, folder)
    return Causes(Results(folder)).of(claim)


@pytest.mark.parametrize(
    ("key", "rows", "cause"),
    [
        ("count", [run("Prices", unspent=0.51)], "the budgets hardly bind (`Prices` leaves more than half of them)"),
        ("count", [run("Prices", unspent=0.49)], ""),
        ("count", [run(s, 9.0 + (s == "MS")) for s in ("MS", "BCMS", "CCMS", "KL")], "the four flip about as many"),
        ("count", [run(s, 8.0 + 2 * (s == "MS")) for s in ("MS", "BCMS", "CCMS", "KL")], ""),
        ("consumption", [run("BCMS", 11.0), run("MS")], "it flips more than the other, so also those who are dearer"),
        ("consumption", [run("BCMS", prediction_gap=0.3), run("MS")], "it goes further beyond the line than the other"),
        ("consumption", [run("BCMS"), run("MS")], ""),
        ("unspent", [run("BCMS", consumption_per_picked=2.0), run("MS")], "it flips no more than the other"),
        ("unspent", [run("BCMS", 11.0), run("MS")], "it pays no more for a flip"),
    ],
)
def test_a_cause_is_told_where_the_data_have_it(
    tmp_path: Path, key: str, rows: list[dict[str, Any]], cause: str
) -> None:
    told = said(tmp_path, claim_of(key, BCMS_MS={"BCMS": 1.0, "MS": 2.0}), rows)
    assert told.startswith(f"The one failure: {cause}") if cause else told == "No rule finds a reason."


@pytest.mark.parametrize(
    ("key", "numbers", "cause"),
    [
        (
            "larger",
            {"small": 5.0, "middle": 5.0, "large": 5.0},
            "the smallest budget already buys as much as the largest",
        ),
        ("larger", {"small": 5.0, "middle": 6.0, "large": 5.5}, ""),
        ("erratic", {"MS": 0.1, "BCMS": 0.0, "CCMS": 0.3, "KL": 0.2}, "CCMS goes back and forth the most"),
        ("kl_spends", {"MS": 0.9, "BCMS": 0.0, "CCMS": 0.3, "KL": 0.2}, "MS uses the most"),
        ("faster", {"BCMS": 2.0, "CCMS": 2.0}, "both arrive in the same iteration"),
        ("faster", {"BCMS": 3.0, "CCMS": 2.0}, ""),
        ("warm", {"random": 100.0, "warm": 110.0}, "the warm start flips more"),
        ("warm", {"random": 100.0, "warm": 90.0}, "the warm start flips fewer"),
        ("grows", {"n = 300": 20.0, "n = 600": 30.0, "n = 900": 10.0}, "the gain is smaller with most samples"),
        ("grows", {"n = 300": 20.0, "n = 600": 10.0, "n = 900": 30.0}, ""),
        ("shrinks", {"first": 2.0, "last": 1.0}, "it does shrink, but by less"),
        ("falls", {"first": 1.0, "last": 1.1}, "it hardly moves"),
        ("falls", {"first": 1.0, "last": 1.5}, ""),
    ],
)
def test_a_cause_is_read_from_the_numbers_of_the_place(
    tmp_path: Path, key: str, numbers: dict[str, float], cause: str
) -> None:
    told = Causes(Results(tmp_path)).of(claim_of(key, MS=numbers))
    assert told.startswith(f"The one failure: {cause}") if cause else told == "No rule finds a reason."


def test_the_papers_iterations_are_those_of_its_settings() -> None:
    assert {kind.__name__: kind.paper().outer * kind.paper().inner for kind in (MS, BCMS, CCMS, KL)} == ITERATIONS


def test_a_run_is_short_beside_the_papers(tmp_path: Path) -> None:
    """600 of the paper's 100,000 iterations of MS, and of its 1,000 of BCMS"""
    claim = claim_of("rises", MS={"first": 1.0, "last": 0.5}, BCMS={"first": 1.0, "last": 0.5})
    told = said(tmp_path, claim, [run("MS"), run("BCMS")])
    assert told == "Of 2 failures: in 1 the run has less than half of the paper's iterations."


def test_settings_that_did_not_carry_over_are_told(tmp_path: Path) -> None:
    """BCMS flips 10 of 100 where it flipped 40 of 100 on the draw for tuning; CCMS 10 where it flipped 13."""
    rows = [run(s, where="icu paper middle") for s in ("BCMS", "CCMS")]
    tried = [run("BCMS", 40.0, chosen=False), run("BCMS", 40.0), run("CCMS", 13.0)]
    claim = Claim("count", "x", "y")
    claim.tried("icu paper large", False, {}, whom="BCMS beside KL")
    claim.tried("icu paper large", False, {}, whom="CCMS beside KL")
    assert said(tmp_path, claim, rows, tried).startswith("Of 2 failures: in 1 tuned settings did not carry over")


def test_what_is_so_as_often_where_the_claim_holds_is_told_last_and_said(tmp_path: Path) -> None:
    claim = claim_of("falls", MS={"first": 1.0, "last": 1.1})
    claim.tried(PLACE, True, {"first": 1.0, "last": 0.9}, whom="KL")
    assert Causes(Results(tmp_path)).of(claim) == (
        "The one failure: it hardly moves (by less than a fifth) (as often where it holds). It fails only for MS."
    )


def test_what_one_algorithm_has_everywhere_does_not_tell_why_it_fails_more_often(tmp_path: Path) -> None:
    """Runs of MS are short, those of BCMS are not; it fails for MS in two of three places, for BCMS in one of four."""
    claim = Claim("rises", "x", "y")
    for n in range(3):
        claim.tried(f"icu paper {n}", n > 1, {"first": 1.0, "last": 0.5}, whom="MS")
    for n in range(4):
        claim.tried(f"icu paper {n}", n > 0, {"first": 1.0, "last": 0.5}, whom="BCMS")
    rows = [run(s, where=f"icu paper {n}") for s in ("MS", "BCMS") for n in range(4)]
    assert said(tmp_path, claim, rows) == (
        "Of 3 failures: in 2 the run has less than half of the paper's iterations (as often where it holds)."
    )


def test_where_lambda_starts_is_read_from_the_settings(tmp_path: Path) -> None:
    claim = claim_of("falls", MS={"first": 1.0, "last": 2.5}, BCMS={"first": 10.0, "last": 12.5})
    tried = [run("MS", options="MS(start_lambda=1.0, eta=1)"), run("BCMS", options="BCMS(start_lambda=10.0)")]
    told = said(tmp_path, claim, [run("MS")], tried)
    assert "in 1 the settings start lambda below 10" in told


def test_who_flips_fewer_of_more_samples_is_told(tmp_path: Path) -> None:
    claim = Claim("grows", "x", "y")
    claim.tried("icu paper joint fixed", False, {"n = 300": 2.0, "n = 600": 1.0}, whom="BCMS")
    rows = [run("BCMS", count, n=n, scaling="fixed", start="random") for n, count in ((300, 40.0), (600, 31.0))]
    write("scalability", rows, MADE, tmp_path)
    assert "it flips fewer of the most samples than of the fewest" in Causes(Results(tmp_path)).of(claim)


def test_the_three_most_frequent_are_told(tmp_path: Path) -> None:
    claim = Claim("best", "x", "y")
    for n, ahead in enumerate(["MS", "MS", "MS", "KL", "KL", "CCMS", "CCMS", "BCMS"]):
        claim.tried(f"icu paper {n}", False, {"MS": 1.0, "BCMS": 1.0, "CCMS": 1.0, "KL": 1.0, ahead: 2.0})
    assert Causes(Results(tmp_path)).of(claim) == (
        "Of 8 failures: in 3 MS flips the most, in 2 CCMS flips the most, in 2 KL flips the most."
    )


def test_what_is_confirmed_needs_no_cause(tmp_path: Path) -> None:
    causes, claim = Causes(Results(tmp_path)), Claim("count", "x", "y")
    assert causes.of(claim) == ""
    claim.tried(PLACE, True, {})
    assert causes.of(claim) == ""
    claim.tried("icu paper large", True, {}, decides=[1.0, -1.0])
    assert causes.of(claim) == "In more than half of the places it may be chance."
    claim.tried("icu paper middle", False, {}, decides=[1.0, -2.0])
    claim.tried("oulad binding large", False, {}, decides=[-2.0, -2.0])
    assert causes.of(claim) == "In 1 of 2 failures it may be chance."


def test_where_it_fails_is_told_where_failures_have_it_in_common() -> None:
    claim = Claim("x", "x", "y")
    for dataset in ("icu", "oulad"):
        for source in ("paper", "binding"):
            for whom in ("BCMS", "CCMS"):
                claim.tried(f"{dataset} {source} small", source == "paper", {}, whom=whom)
    assert in_common(claim) == "It fails only with binding budgets."
    claim.tried("icu paper small", False, {}, whom="BCMS")
    assert in_common(claim) == "It fails mostly with binding budgets."
    claim.tried("icu paper small", False, {}, whom="CCMS")
    claim.tried("oulad paper small", False, {}, whom="CCMS")
    assert in_common(claim) == ""
