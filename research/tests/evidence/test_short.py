"""What docs/results.md opens with, line by line, from made-up files with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.evidence.files import Made, write
from research.evidence.rendering import rendered
from research.evidence.results import Results

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
# Of two draws: beside the best of the four +50 % and +100 %, beside BCMS +50 % and +300 %.
COUNTS = {
    "MS": (10, 10),
    "BCMS": (20, 5),
    "CCMS": (10, 5),
    "KL": (15, 5),
    "Nearest": (30, 10),
    "Prices": (30, 20),
}


def cells(counts: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    row = {"dataset": "icu", "n": 75, "budget": "small", "budget_source": "paper", "allocation": "joint"}
    row |= {"consumption_per_picked": 1.0, "unspent": 0.5, "spent": 0.5, "prediction_gap": 0.2, "iterations_made": 60}
    return [
        row
        | {"solver": solver, "seed": seed, "count": count, "protocol": _protocol(solver)}
        | {"estimate": {0: 30.0, 1: 25.0}[seed] if solver == "Prices" else None}
        for solver, each in counts.items()
        for seed, count in enumerate(each)
    ]


def _protocol(solver: str) -> str:
    return "own" if solver in ("Nearest", "Prices") else "tuned"


def lines(folder: Path) -> list[str]:
    return rendered("results.short", Results(folder)).splitlines()


def test_gains_standing_and_what_is_missing(tmp_path: Path) -> None:
    """Half of the interval of two numbers is 6.353 times their distance. 100 % and 80 % of the estimate: 90 ± 127."""
    write("budget", cells(COUNTS), MADE, tmp_path)
    gains, near, claims, last = lines(tmp_path)
    assert gains == (
        "- **Within the same budgets** `Prices` flips 75.0 ± 317.7 % more than the best of the paper's four, taken "
        "anew in every cell, and 50.0 ± 635.3 % more than everyone's own cheapest flip (`Nearest`). Beside the best of "
        "the four: patients in intensive care +75.0 ± 317.7 %. By kind of budgets: 75.0 ± 317.7 % more with those "
        "named *paper*. Of 2 cells, `Prices` flips the most in 1, as many as the best other in 1, and is behind in "
        "none."
    )
    assert near == (
        "- **How near to the most.** The study: 90.0 ± 127.1 % of its own estimate of the most, which proves nothing; "
        "in 1 of 2 cells less than one sample away."
    )
    assert claims.startswith("- **The paper's claims**, on other data and with mostly shorter runs: of 17, ")
    assert last == "- **A plan moves predictions, not outcomes.**"


def test_datasets_stand_apart_and_where_runs_were_short_it_is_said(tmp_path: Path) -> None:
    both = cells(COUNTS) + [row | {"dataset": "insurance"} for row in cells(COUNTS | {"Prices": (20, 10)})]
    write("budget", both, MADE, tmp_path)
    assert (
        "patients in intensive care +75.0 ± 317.7 %, customers of an insurer (made up) +0.0 ± 0.0 %, where the four "
        "had short runs." in lines(tmp_path)[0]
    )


def test_larger_samples_have_a_line_of_their_own(tmp_path: Path) -> None:
    rows = [row | {"n": n, "scaling": "fixed", "start": "random"} for row in cells(COUNTS) for n in (300, 1200)]
    write("scalability", [row for row in rows if row["solver"] != "MS"], MADE, tmp_path)
    assert lines(tmp_path)[0] == (
        "- **With up to 1,200 samples**, MS left out as in the paper. Of 4 cells, `Prices` flips the most in 2, as "
        "many as the best other in 2, and is behind in none."
    )


def test_cells_in_which_it_is_behind_are_counted(tmp_path: Path) -> None:
    """15 beside 20, and 5 beside 10: 25 % and 50 % fewer than the best of the four"""
    write("budget", cells(COUNTS | {"Prices": (15, 5)}), MADE, tmp_path)
    assert "37.5 ± 158.8 % fewer than the best of the paper's four" in lines(tmp_path)[0]
    assert lines(tmp_path)[0].endswith("flips the most in 0, as many as the best other in 0, and is behind in 2.")


def test_verdicts_are_counted(tmp_path: Path) -> None:
    assert lines(tmp_path)[0] == (
        "- **The paper's claims**, on other data and with mostly shorter runs: of 17, none confirmed, 17 not measured "
        "yet."
    )


def test_bounds_that_are_proved(tmp_path: Path) -> None:
    write("prices_linear", [{"count": 8, "bound": 8.0}, {"count": 99, "bound": 100.0}], MADE, tmp_path)
    said = "- **How near to the most.** Linear models: `Prices` meets the proved bound in 1 of 2 problems"
    assert lines(tmp_path)[0] == f"{said}; elsewhere it is at most 1.00 % below it."


def test_networks_whose_optimum_is_known(tmp_path: Path) -> None:
    """2 of 3 and 4 of 4; other tools, the linear problem and a draw that nobody has solved take no part."""
    row: dict[str, Any] = {"problem": "ReLU network", "tool": "maxflip", "method": "Prices", "count": 4, "optimum": 4}
    others: list[dict[str, Any]] = [
        {"tool": "foolbox"},
        {"method": "Nearest, 1/B"},
        {"problem": "linear"},
        {"optimum": None},
    ]
    rows = [row, row | {"count": 2, "optimum": 3}, *(row | {"count": 1} | other for other in others)]
    write("peers_exact", rows, MADE, tmp_path)
    assert lines(tmp_path)[0].endswith("is known: 6 of 7 flips, all that there are in 1 of 2 draws.")


def test_the_best_peer_is_another_one_with_every_shape(tmp_path: Path) -> None:
    """20 beside 16, and 20 beside 10, or beside our own 15; the small cohort takes no part."""
    rows = [
        {"cohort": "credit_default", "n": n, "shape": shape, "draw": 0, "tool": tool, "method": method, "count": count}
        for n, shape, tool, method, count in [
            (200, "a", "maxflip", "Prices", 20),
            (200, "a", "foolbox", "DDN", 16),
            (200, "a", "DiCE", "x", 9),
            (200, "b", "maxflip", "Prices", 20),
            (200, "b", "foolbox", "DDN", 8),
            (200, "b", "DiCE", "x", 10),
            (200, "b", "maxflip", "Nearest, 1/B", 15),
            (10, "b", "maxflip", "Prices", 9),
            (10, "b", "alibi", "x", 1),
        ]
    ]
    write("peers_budgets", rows, MADE, tmp_path)
    assert lines(tmp_path)[0] == (
        "- **Other tools** (2, which know nothing of shared budgets; for 200 credit customers; the same choice made "
        "among their changes). `Prices` flips 25 to 100 % more than the best of them, by shape of budgets, and 25 to "
        "33 % more than the better of these and our `Nearest`."
    )
    other = [row | {"cohort": "generated", "count": 8 if row["tool"] == "DiCE" else row["count"]} for row in rows]
    write("peers_budgets", rows + other, MADE, tmp_path)
    assert lines(tmp_path)[0] == (
        "- **Other tools** (2, which know nothing of shared budgets; for 200 credit customers and 200 rows of a "
        "generated table; the same choice made among their changes). `Prices` flips 25 to 150 % more than the best of "
        "them, by shape of budgets, and 25 to 33 % more than the better of these and our `Nearest`."
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((80, 105), (100, 100), "`Prices` flips from 20 % fewer to 5 % more than the best of them, by shape"),
        ((80, 95), (100, 100), "`Prices` flips 5 to 20 % fewer than the best of them, by shape"),
        ((80, 100), (100, 100), "`Prices` flips 0 to 20 % fewer than the best of them, by shape"),
        ((100, 100), (100, 100), "`Prices` flips as many as the best of them, by shape"),
        ((999, 1001), (1000, 1000), "`Prices` flips as many as the best of them, by shape"),
        ((100, 130), (100, 100), "`Prices` flips 0 to 30 % more than the best of them, by shape"),
        (
            (3, 130),
            (0, 100),
            "`Prices` flips 30 % more than the best of them, by shape of budgets, and 30 % more than the better of "
            "these and our `Nearest`. In 1 of 2 shapes of budgets the others flip nobody (`Prices`: 3).",
        ),
        ((3, 0), (0, 0), "changes). In 2 of 2 shapes of budgets the others flip nobody (`Prices`: 3, 0)."),
    ],
)
def test_beside_peers_words_fit_the_sign_and_no_shape_is_dropped(
    ours: tuple[int, int], theirs: tuple[int, int], said: str, tmp_path: Path
) -> None:
    rows = [
        {"cohort": "generated", "n": 200, "shape": shape, "draw": 0, "tool": tool, "method": method, "count": count}
        for tool, method, counts in (("maxflip", "Prices", ours), ("foolbox", "DDN", theirs))
        for shape, count in zip("ab", counts, strict=True)
    ]
    write("peers_budgets", rows, MADE, tmp_path)
    line = lines(tmp_path)[0]
    assert "(1, which know nothing of shared budgets; for 200 rows of a generated table; " in line
    assert said in line


Kept = dict[str, dict[float, tuple[int, ...]]]


def held(kept: Kept, another: dict[str, dict[float, int]]) -> list[dict[str, Any]]:
    """Of ten flipped in each cohort, so many hold; in judges of another kind so many, of whom two were there anyway."""
    row = {"count": 10, "people": 20, "held_with_margin": 1, "cost": 1.0, "confidence": 0.1}
    return [
        row
        | {"solver": solver, "margin": margin, "seed": seed, "judge": kind, "kind": kind}
        | {"held": another[solver][margin] if kind == "architecture" else in_cohort, "anyway": 2}
        | {"won": another[solver][margin] - 2 if kind == "architecture" else 1}
        for solver, of in kept.items()
        for margin, each in of.items()
        for seed, in_cohort in enumerate(each)
        for kind in ("seed", "bootstrap", "architecture")
    ]


def test_flips_that_hold(tmp_path: Path) -> None:
    """With a margin of 0.5, shares of 16, 22 and 24 thirtieths beside 27: not clear; with the study's it is."""
    kept: Kept = {
        "Prices": {0.1: (3, 3, 3), 0.5: (6, 9, 10)},
        "unchanged, as close": {0.1: (6, 6, 6), 0.5: (9, 9, 9)},
    }
    another = {"Prices": {0.1: 3, 0.5: 4}, "unchanged, as close": {0.1: 6, 0.5: 9}}
    write("hold_icu", held(kept, another), MADE, tmp_path)
    assert lines(tmp_path)[0] == (
        "- **Do flips hold** in retrained models? Intensive care: 30 ± 0 % with a margin of 0.1 (10.0 of "
        "20 flipped), 69 ± 34 % with a margin of 0.5 (10.0 of 20 flipped); that is, beside unchanged people as close "
        "to the line, clearly less often (-30.0 ± 0.0 points) and about as often (-21.1 ± 34.5 points). In models of "
        "another kind, 12 % and 25 % not counting people who passed there before any change."
    )


def test_one_cohort_says_nothing_of_how_clear_it_is(tmp_path: Path) -> None:
    kept: Kept = {"Prices": {0.1: (5,), 0.5: (9,)}, "unchanged, as close": {0.1: (7,), 0.5: (9,)}}
    another = {"Prices": {0.1: 6, 0.5: 9}, "unchanged, as close": {0.1: 6, 0.5: 9}}
    write("hold_credit", held(kept, another), MADE, tmp_path)
    said = lines(tmp_path)[0]
    assert said.count("not known how often") == 2
    assert "clearly" not in said


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ((5, 5, 5), "ahead of CCMS, untuned there (+3.0 ± 0.0)"),
        ((7, 8, 9), "level with CCMS, untuned there (+0.0 ± 2.5)"),
        ((10, 10, 10), "behind CCMS, untuned there (-2.0 ± 0.0)"),
    ],
)
def test_the_readme_says_how_many_hold_and_beside_whom(tmp_path: Path, theirs: tuple[int, ...], words: str) -> None:
    """Of the paper's four the one of whose flips most hold is the one to be beside."""
    kept: Kept = {"Prices": {0.1: (8, 8, 8)}, "CCMS": {0.1: theirs}, "KL": {0.1: (4, 4, 4)}}
    another = {"Prices": {0.1: 8}, "CCMS": {0.1: round(sum(theirs) / 3)}, "KL": {0.1: 4}}
    rows = held(kept, another)
    same = [row | {"held": kept[row["solver"]][0.1][row["seed"]]} for row in rows]  # in all kinds alike
    write("hold_icu", same, MADE, tmp_path)
    assert rendered("readme.hold", Results(tmp_path)) == (
        "**Do flips hold in retrained models?** [Measured](docs/hold.md) on smaller cohorts, by the same "
        "margin of 0.1. Patients: 80 ± 0 % of the flips of `Prices`, and 75 % in models of another kind, not counting "
        f"people who passed there before any change; in number, `Prices` is {words}."
    )


def test_the_readme_says_when_nothing_was_measured(tmp_path: Path) -> None:
    assert rendered("readme.hold", Results(tmp_path)).startswith("*Not measured yet")
