"""Verdicts on the paper's claims, on made-up rows whose answers are plain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.evidence.claims.budgets import of_budgets
from research.evidence.claims.claim import Claim
from research.evidence.claims.iterations import arrives, erratic, mean_curve, of_iterations, runs
from research.evidence.claims.margins import of_margins
from research.evidence.claims.runtime import of_runtime
from research.evidence.claims.sizes import of_sizes
from research.evidence.files import Made, write
from research.evidence.gains import gained
from research.evidence.renderers.results import gain
from research.evidence.rendering import rendered
from research.evidence.results import Results
from research.experiments.hold.cases import AS_CLOSE

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
COUNTS = {"MS": 10.0, "BCMS": 30.0, "CCMS": 20.0, "KL": 10.0}
SIZES = {"small": 0, "middle": 5, "large": 9}


def cell(solver: str, count: float, **other: Any) -> dict[str, Any]:
    row = {"dataset": "icu", "seed": 0, "n": 75, "budget": "small", "budget_source": "paper", "allocation": "joint"}
    row |= {"solver": solver, "protocol": "tuned", "count": count, "estimate": None}
    row |= {"consumption_per_picked": 1.0, "unspent": 0.5, "spent": 0.5, "prediction_gap": 0.2}
    return row | other


def where_not(claim: Claim) -> str:
    return "; ".join(f"{' '.join(filter(None, spot))}: {tried.said}" for spot, tried in claim.failing.items())


def test_a_verdict_is_of_all_places() -> None:
    claim = Claim("x", "y")
    assert claim.verdict == "not measured yet"
    claim.tried("a", True, {"MS": 1.0})
    assert (claim.verdict, where_not(claim)) == ("confirmed", "")
    claim.tried("b", False, {"MS": 2.0, "KL": 3.5})
    assert (claim.verdict, where_not(claim)) == ("in part", "b: MS 2, KL 3.5")
    claim.tried("c", False, {"MS": 4.0})
    assert (claim.verdict, claim.held) == ("not confirmed", 1)


def test_places_that_clearly_say_otherwise_make_a_verdict_mixed() -> None:
    claim = Claim("x", "y")
    for n in range(4):
        claim.tried(f"icu paper {n}", True, {}, decides=[1.0, 1.1])
    for n in range(2):
        claim.tried(f"icu binding {n}", False, {}, decides=[-1.0, -1.1])
    assert (claim.clear, claim.clearly_not, claim.verdict) == (4, 2, "in part")
    claim.tried("icu binding 2", False, {}, decides=[-1.0, -1.1])
    assert claim.verdict == "mixed"
    assert claim.with_budgets("paper").verdict == "confirmed"
    assert claim.with_budgets("binding").verdict == "not confirmed"
    assert not claim.with_budgets("other").places


def test_algorithms_and_kinds_of_budgets_are_told_apart() -> None:
    claim = Claim("x", "y")
    claim.tried("icu paper small", True, {}, whom="BCMS")
    assert claim.shares == ""
    claim.tried("icu binding small", False, {"BCMS": 3.0}, whom="BCMS")
    claim.tried("icu binding small", True, {}, whom="CCMS")
    assert claim.shares == "BCMS 1 of 2, CCMS 1 of 1; paper budgets 1 of 1, binding budgets 1 of 2"
    assert where_not(claim) == "icu binding small BCMS: BCMS 3"


def test_what_the_paper_says_of_budgets_is_confirmed_where_it_is_so() -> None:
    low, high = {"BCMS": 1.0, "CCMS": 1.5}, {"KL": 3.0, "MS": 2.0}
    of = {**low, **high}
    rows = [
        cell(
            solver,
            count + more,
            budget=budget,
            consumption_per_picked=of[solver],
            unspent=of[solver] / 10,
            spent=of[solver] / 10,
            prediction_gap=of[solver] / 5,
            seed=seed,
        )
        for budget, more in SIZES.items()
        for solver, count in COUNTS.items()
        for seed in (0, 1)
    ]
    assert {claim.verdict for claim in of_budgets(rows)} == {"confirmed"}
    assert [len(claim.places) for claim in of_budgets(rows)] == [12, 12, 4, 12, 6, 3, 3]


@pytest.mark.parametrize(
    ("at", "changed"),
    [
        (0, {"MS": {"count": 25.0}}),
        (1, {"BCMS": {"consumption_per_picked": 9.0}}),
        (3, {"CCMS": {"unspent": 0.9}}),
        (4, {"BCMS": {"prediction_gap": 0.05}}),
        (4, {"CCMS": {"prediction_gap": 0.9}}),
        (5, {"MS": {"spent": 0.9}}),
        (6, {"CCMS": {"count": 31.0}}),
    ],
)
def test_what_is_not_so_is_not_confirmed(at: int, changed: dict[str, dict[str, float]]) -> None:
    """Everything else holds: only the claim that was made wrong falls, or those that say the same of counts."""
    fine = {"BCMS": (1.0, 0.2, 0.2), "CCMS": (1.0, 0.2, 0.2), "KL": (3.0, 0.6, 0.6), "MS": (2.0, 0.4, 0.4)}
    rows = [
        cell(s, n, consumption_per_picked=fine[s][0], unspent=fine[s][1], spent=fine[s][1], prediction_gap=fine[s][2])
        | changed.get(s, {})
        | {"budget": budget, "seed": seed, "count": changed.get(s, {}).get("count", n) + more}
        for s, n in COUNTS.items()
        for budget, more in SIZES.items()
        for seed in (0, 1)
    ]
    claims = of_budgets(rows)
    assert claims[at].verdict in ("in part", "mixed", "not confirmed")
    others = [claim.verdict for k, claim in enumerate(claims) if k not in (at, 0, 6)]
    assert set(others) == {"confirmed"}


def test_seeds_are_averaged_and_runs_with_the_papers_settings_left_out() -> None:
    rows = [cell(s, n, seed=seed) for s, n in COUNTS.items() for seed in (0, 1)]
    rows += [cell("KL", 999.0, protocol="paper"), cell("KL", 999.0, allocation="proportional")]
    rows[-4:-2] = [cell("KL", 0.0, seed=0), cell("KL", 38.0, seed=1)]  # mean 19, below CCMS's 20
    assert of_budgets(rows)[0].verdict == "confirmed"
    rows[-3] = cell("KL", 44.0, seed=1)
    assert where_not(of_budgets(rows)[0]) == "icu paper small CCMS beside KL: CCMS 20.0, KL 22.0"


def test_what_may_be_chance_is_not_confirmed() -> None:
    """30 and 32 beside 10 and 12 is clear; 20 and 60 beside 19 and 12 is not: Student's interval holds 0."""
    calm = [cell(s, n + 2 * seed, seed=seed) for s, n in COUNTS.items() for seed in (0, 1)]
    assert of_budgets(calm)[0].verdict == "confirmed"
    assert (of_budgets(calm)[0].clear, of_budgets(calm)[0].clearly_not) == (4, 0)
    wild = {"MS": (19, 12), "KL": (19, 12), "BCMS": (20, 60), "CCMS": (20, 60)}
    rows = [cell(s, n, seed=seed) for s, each in wild.items() for seed, n in enumerate(each)]
    claim = of_budgets(rows)[0]
    assert (claim.held, len(claim.places), claim.clear, claim.verdict) == (4, 4, 0, "in part")


def test_an_interval_on_the_other_side_makes_nothing_clear() -> None:
    """Flips fewer with the middle budget than with the small one, but clearly more with the largest; and holds by the
    means, though what decides is below 0 with every seed."""
    flips = {"small": (10, 11), "middle": (9, 8), "large": (20, 21)}
    rows = [cell("MS", n, budget=b, seed=seed) for b, each in flips.items() for seed, n in enumerate(each)]
    larger = of_budgets(rows)[2]
    assert (larger.held, larger.clear, larger.clearly_not) == (0, 0, 0)
    claim = Claim("x", "y")
    claim.tried("a", True, {}, decides=[-1.0, -1.1])
    claim.tried("b", False, {}, decides=[-1.0, -1.1])
    assert (claim.clear, claim.clearly_not) == (0, 1)


def test_one_draw_makes_nothing_clear() -> None:
    claim = of_budgets([cell(s, n) for s, n in COUNTS.items()])[0]
    assert (claim.held, claim.clear, claim.verdict) == (4, 0, "in part")


def test_only_seeds_that_all_were_run_with_are_compared() -> None:
    rows = [cell(s, n) for s, n in COUNTS.items()] + [cell("KL", 500.0, seed=1)]
    assert of_budgets(rows)[0].held == 4


def test_a_budget_that_was_not_run_is_no_smaller_one() -> None:
    rows = [cell("MS", 10.0, budget=budget) for budget in ("middle", "large")] + [cell("KL", 10.0, budget="large")]
    assert of_budgets(rows)[2].verdict == "not measured yet"


def test_a_budget_that_buys_nothing_more_does_not_flip_more() -> None:
    rows = [cell(s, 10.0, budget=budget, seed=seed) for s in COUNTS for budget in SIZES for seed in (0, 1)]
    assert (of_budgets(rows)[2].held, of_budgets(rows)[2].verdict) == (0, "not confirmed")


def test_datasets_of_several_sizes_are_not_averaged() -> None:
    """Alone, the gain of each dataset falls; of their sums it would rise."""
    students = [size("KL", 300, 100.0), size("BCMS", 300, 130.0), size("KL", 600, 100.0), size("BCMS", 600, 120.0)]
    customers = [size("KL", 300, 10.0), size("BCMS", 300, 10.0), size("KL", 600, 1.0), size("BCMS", 600, 0.9)]
    grows, _ = of_sizes([*students, *(row | {"dataset": "insurance"} for row in customers)])
    assert where_not(grows) == "icu paper joint fixed BCMS: n = 300 +30.0, n = 600 +20.0; " + (
        "insurance paper joint fixed BCMS: n = 300 +0.0, n = 600 -10.0"
    )


def test_ups_and_downs_of_several_runs_do_not_cancel_out() -> None:
    rows = [row for s in ("BCMS", "CCMS", "KL") for row in steps(s, [10.0, 11.0], [1.0] * 2, [1.0] * 2, [1.0] * 2)]
    rows += [row | {"seed": 1} for row in rows]
    rows += steps("MS", [20.0, 10.0, 20.0], [1.0] * 3, [1.0] * 3, [1.0] * 3)
    rows += [row | {"seed": 1} for row in steps("MS", [10.0, 20.0, 10.0], [1.0] * 3, [1.0] * 3, [1.0] * 3)]
    assert of_iterations(rows)[-1].held == 1


def size(solver: str, n: int, count: float, start: str = "random") -> dict[str, Any]:
    return cell(solver, count, n=n, scaling="fixed", start=start)


def test_growth_and_warm_starts() -> None:
    rows = [size("KL", n, 100.0) for n in (300, 600, 900)]
    rows += [size("BCMS", 300, 110.0), size("BCMS", 600, 120.0), size("BCMS", 900, 130.0)]
    rows += [size("CCMS", 300, 110.0), size("CCMS", 600, 120.0), size("CCMS", 900, 115.0)]
    grows, _ = of_sizes(rows)
    assert (grows.verdict, grows.held, len(grows.places)) == ("in part", 1, 2)
    assert where_not(grows) == "icu paper joint fixed CCMS: n = 300 +10.0, n = 600 +20.0, n = 900 +15.0"
    rows += [size("BCMS", 300, 130.0, "warm"), size("BCMS", 600, 121.0, "warm"), size("BCMS", 900, 140.0, "warm")]
    rows += [size("KL", n, 100.0, "warm") for n in (300, 600, 900)]
    grows, warm = of_sizes(rows)  # by the mean of both starts
    assert grows.places["icu paper joint fixed", "BCMS"].said == "n = 300 +20.0, n = 600 +20.5, n = 900 +35.0"
    warm.places = {spot: tried for spot, tried in warm.places.items() if spot[1] == "BCMS"}
    assert (warm.held, len(warm.places)) == (1, 2)
    assert where_not(warm) == "icu paper joint fixed 900 BCMS: random 130.0, warm 140.0"
    assert (warm.clear, warm.clearly_not) == (0, 0)  # one draw
    again = [*rows, *(row | {"seed": 1, "count": row["count"] + row["n"] / 300} for row in rows)]
    assert (of_sizes(again)[1].clear, of_sizes(again)[1].clearly_not) == (3, 1)  # KL's are the same


def steps(
    solver: str, counts: list[float], mu: list[float], grad: list[float], lam: list[float]
) -> list[dict[str, Any]]:
    numbers = zip(counts, mu, grad, lam, strict=True)
    return [
        cell(solver, count, outer=k, mean_mu=m, grad_mu=g, mean_lambda=la)
        for k, (count, m, g, la) in enumerate(numbers, 1)
    ]


def test_iterations() -> None:
    rising, shrinking, falling = [1.0, 2.0, 3.0], [10.0, 2.0, 0.5], [3.0, 2.0, 1.0]
    rows = steps("MS", [50.0, 10.0, 50.0], rising, shrinking, falling)
    rows += steps("BCMS", [10.0, 30.0, 30.0], rising, shrinking, falling)
    rows += steps("CCMS", [10.0, 20.0, 30.0], rising, shrinking, falling)
    rows += steps("KL", [20.0, 20.0, 20.0], falling, shrinking, falling)
    assert {claim.clear for claim in of_iterations(rows)} == {0}  # one draw
    rows += [row | {"seed": 1} for row in rows]
    assert {claim.verdict for claim in of_iterations(rows)} == {"confirmed"}
    wrong = [row | {"mean_mu": row["outer"], "grad_mu": 1.0, "mean_lambda": row["outer"]} for row in rows]
    claims = of_iterations(wrong)
    assert [claim.verdict for claim in claims] == [
        "confirmed",
        "confirmed",
        "not confirmed",
        "in part",
        "not confirmed",
        "confirmed",
    ]


def test_a_run_that_ended_early_stays_as_it_ended() -> None:
    assert mean_curve([[4.0], [0.0, 8.0]]) == [2.0, 6.0]


def test_curves_are_of_the_draws_that_all_four_have() -> None:
    rows = [cell(s, 4.0, outer=k, seed=0) for s in COUNTS for k in (2, 1)] + [cell("MS", 9.0, outer=1, seed=1)]
    assert runs(rows, "count") == {("icu", "paper", "small"): {solver: {0: [4.0, 4.0]} for solver in COUNTS}}


def test_when_a_curve_arrives_and_how_it_moves() -> None:
    assert arrives([10.0, 94.0, 95.0, 100.0]) == 3
    assert erratic([0.0, 10.0, 5.0]) == pytest.approx(0.5)  # a way of 15 for 5, in two steps, of 10
    assert erratic([0.0, 50.0, 100.0]) == 0.0
    assert erratic([5.0]) == 0.0


def test_what_the_last_iteration_won_is_told(tmp_path: Path) -> None:
    """MS ends with 9 after 5 in one draw, with 7 after 7 in the other; a run of one iteration has no last step."""
    rows = [cell("MS", c, outer=k, budget="middle") for k, c in enumerate((1.0, 5.0, 9.0), 1)]
    rows += [cell("MS", 7.0, outer=k, budget="middle", seed=1) for k in (2, 1)]
    rows += [cell("KL", 3.0, outer=1, budget="middle"), cell("BCMS", 3.0, outer=1, budget="large")]
    write("iterations", rows, MADE, tmp_path)
    assert rendered("results.lengths", Results(tmp_path)).splitlines()[2:] == ["| icu | paper | 6.0, then 8.0 | | | |"]


def test_the_gap_is_not_tried_where_several_classes_are_wanted() -> None:
    rows = [cell(s, n, seed=seed) for s, n in COUNTS.items() for seed in (0, 1)]
    gaps = [of_budgets([row | {"dataset": dataset} for row in rows])[4] for dataset in ("icu", "oulad")]
    assert [len(claim.places) for claim in gaps] == [2, 0]


def test_runtime() -> None:
    rows = [{"solver": s, "seconds_total": t} for s, t in {"MS": 19.0, "BCMS": 5.0, "CCMS": 12.0, "KL": 10.0}.items()]
    assert (of_runtime(rows).verdict, where_not(of_runtime(rows))) == ("in part", "CCMS: CCMS 12, KL 10, MS 19")


def test_margins() -> None:
    """Of two cohorts: Prices' flips hold in 0.80 and 0.82, two points less than unchanged people; KL's clearly less.
    With no margin there is no claim, nor where nobody was flipped or nobody is as close."""

    def held(solver: str, margin: float, count: int, held: int, seed: int = 0) -> dict[str, Any]:
        return {"solver": solver, "margin": margin, "count": count, "held": held, "seed": seed}

    rows = [held(AS_CLOSE, 0.1, 50, 41), held(AS_CLOSE, 0.1, 50, 42, seed=1), held("unchanged", 0.1, 50, 50)]
    rows += [held("Prices", 0.1, 40, 34), held("Prices", 0.1, 10, 6), held("Prices", 0.1, 50, 41, seed=1)]
    rows += [held("KL", 0.1, 50, 20), held("KL", 0.1, 50, 21, seed=1), held("MS", 0.1, 0, 0)]
    rows += [held("Prices", 0.0, 50, 1), held("Prices", 0.3, 50, 1), held(AS_CLOSE, 0.3, 0, 0)]
    claim = of_margins({"credit": rows})
    assert {spot: (tried.holds, tried.said, tried.is_clear) for spot, tried in claim.places.items()} == {
        ("credit margin 0.1", "Prices"): (True, "flips 0.81, unchanged, as close 0.83", True),
        ("credit margin 0.1", "KL"): (False, "flips 0.41, unchanged, as close 0.83", True),
    }
    assert of_margins({}).verdict == "not measured yet"


def test_a_gain_is_paired_over_seeds() -> None:
    """+100 % and +50 %: mean 75, deviation 35.36, over sqrt 2 and times 12.706: 317.7."""
    rows = [cell("BCMS", 20.0, seed=0), cell("KL", 10.0, seed=0), cell("BCMS", 15.0, seed=1), cell("KL", 10.0, seed=1)]
    assert gain(gained(rows, "BCMS", "KL")) == "+75.0 ± 317.7 %"
    assert gain(gained(rows[:2], "BCMS", "KL")) == "+100.0 %"
    assert gain(gained(rows[:1], "BCMS", "KL")) == ""


def test_the_page_is_made_of_these(tmp_path: Path) -> None:
    cells = [cell(s, n) for s, n in COUNTS.items()]
    cells += [cell("Prices", 33.0, protocol="own", estimate=33.5), cell("Nearest", 22.0, protocol="own")]
    write("budget", cells, MADE, tmp_path)
    write("scalability", [size(s, n, c) for s, c in COUNTS.items() for n in (300, 600)], MADE, tmp_path)
    curve = [row for s in COUNTS for row in steps(s, [1.0, 2.0], [1.0, 2.0], [1.0, 0.0], [2.0, 1.0])]
    write("iterations", curve, MADE, tmp_path)
    timed = {"seconds_inner": 0.5, "seconds_outer": 2.0, "outer": 10, "inner": 5000, "gradients_total": 50_010.0}
    write(
        "runtime",
        [{"solver": s, "seconds_total": 25_020.0, "is_measured": False, **timed} for s in COUNTS],
        MADE,
        tmp_path,
    )
    peers = [("maxflip", "Prices", 20), ("maxflip", "Nearest, 1/B", 15), ("maxflip", "Nearest, unit prices", 12)]
    peers += [("foolbox", "FMN", 8), ("foolbox", "DDN", 10), ("ART", "C&W", 10), ("DiCE", "random", 10)]
    shape = {"cohort": "bank", "n": 300, "shape": "40 %", "draw": 0}
    of_peers = [shape | {"tool": t, "method": m, "count": c} for t, m, c in peers]
    write("peers_budgets", of_peers, MADE, tmp_path)
    results = Results(tmp_path)
    assert (
        "| BCMS and CCMS flip more samples than KL and MS. | in 4 of 4 places, clearly in 0; clearly against in 0 "
        "| **in part** | in part |\n" in rendered("results.claims", results)
    )
    assert (
        "## BCMS and CCMS flip more samples than KL and MS\n\nHolds in a place where it flips more than the "
        "other.\n\n**In part**: in 4 of 4 places, clearly in 0; clearly against in 0 (BCMS beside KL 1 of 1, BCMS "
        "beside MS 1 of 1, CCMS beside KL 1 of 1, CCMS beside MS 1 of 1).\n\n## " in rendered("claims.detail", results)
    )
    assert (
        "| not where | of whom | means | clearly |\n| --- | --- | --- | --- |\n| icu paper joint fixed | BCMS | "
        in rendered("claims.detail", results)
    )
    over_kl = rendered("results.over_kl", results)
    assert (
        "| icu | paper | all | +0.0 % | +200.0 % | +100.0 % | +230.0 % | MS +5 %, BCMS +19 %, CCMS +19 % |" in over_kl
    )
    assert "| icu | paper | small | 10.0 | 30.0 | 20.0 | 10.0 | 22.0 | 33.0 | 33.5 | 1 |" in rendered(
        "results.counts", results
    )
    assert "| icu | joint | fixed | random | 600 | +200.0 % | +100.0 % | | |" in rendered("results.growth", results)
    assert "| KL | 0.50 | 2.00 | 10 x 5,000 | 25,020 (reckoned) | 50,010 |" in rendered("results.runtime", results)
    assert "| bank | 300 | 40 % | 20.0 | 15.0 | 10.0 | foolbox, DDN (and 2 more) | +100 % |" in rendered(
        "results.peers", results
    )
    assert "| `runtime` | `python -m x` | 2026-01-02 | abc1234 | 2 cores (x86_64) | torch 2.13.0 |" in rendered(
        "results.made", results
    )


def test_growth_from_each_start_beside_what_the_paper_states(tmp_path: Path) -> None:
    """One draw: from a random start BCMS flips 120 beside KL's 100, from a warm one, of the larger set alone, 130; in
    groups there is neither a warm start nor Prices."""
    counts = {"BCMS": 120.0, "CCMS": 90.0, "KL": 100.0, "Prices": 110.0, "Nearest": 99.0}
    about = {"dataset": "insurance", "scaling": "scaled"}
    rows = [size(s, n, c) | about for s, c in counts.items() for n in (300, 600)]
    rows += [
        size(s, n, c + 10 * (s == "BCMS"), "warm") | about
        for s, c in counts.items()
        if s != "Nearest"
        for n in (300, 600)
    ]
    rows += [size(s, 300, c) | about | {"allocation": "proportional"} for s, c in counts.items() if s in COUNTS]
    own = [row | {"protocol": "own"} if row["solver"] in ("Prices", "Nearest") else row for row in rows]
    write("scalability", own, MADE, tmp_path)
    assert rendered("results.growth", Results(tmp_path)).splitlines()[-4:] == [
        "| insurance | joint | scaled | random | 300 | +20.0 % | -10.0 % | +10.0 % | |",
        "| insurance | joint | scaled | random | 600 | +20.0 % | -10.0 % | +10.0 % | |",
        "| insurance | joint | scaled | warm | 600 | +30.0 % | -10.0 % | +10.0 % | |",
        "| insurance | proportional | scaled | random | 300 | +20.0 % | -10.0 % | | BCMS +20 %, CCMS +13 % |",
    ]
    *_, warm, groups, _, stands, _, _, _, _, loss = rendered("results.grown", Results(tmp_path)).splitlines()
    assert warm == "| insurance | joint | scaled | warm | 600 | 130.0 | 90.0 | 100.0 | | 110.0 | |"
    assert groups == "| insurance | proportional | scaled | random | 300 | 120.0 | 90.0 | 100.0 | | | |"
    assert stands.startswith(
        "Of 2 cells, `Prices` flips the most in 0, as many as the best other in 0, and is behind in 2"
    )
    assert loss == "| insurance | scaled | warm | 600 | 0 | 110.0 | | BCMS | 130.0 |"


def test_groups_and_the_papers_own_settings_stand_beside_what_was_tuned(tmp_path: Path) -> None:
    rows = [cell(s, n, budget="middle", seed=seed, iterations_made=600) for s, n in COUNTS.items() for seed in (0, 1)]
    rows += [row | {"allocation": "proportional", "count": row["count"] - row["seed"]} for row in rows]
    rows += [cell("KL", 3.0, budget="middle", protocol="paper", iterations_made=5000)]
    rows += [cell("KL", 99.0, budget="large", iterations_made=600)]
    write("budget", rows, MADE, tmp_path)
    assert rendered("results.variants", Results(tmp_path)).splitlines()[2:] == [
        "| icu | paper | tuned, in one pool | 10.0 | 30.0 | 20.0 | 10.0 |",
        "| icu | paper | tuned, in groups | 9.5 | 29.5 | 19.5 | 9.5 |",
        "| icu | paper | the paper's settings, first draw | | | | 3.0 (5,000 of 50,000 steps) |",
    ]


def test_what_is_run_to_its_end_has_no_iterations(tmp_path: Path) -> None:
    none = dict.fromkeys(("seconds_inner", "seconds_outer", "outer", "inner"))
    own = {"solver": "Prices", "seconds_total": 31.26, "is_measured": True, "gradients_total": 220.4, **none}
    timed = {"seconds_inner": 0.5, "seconds_outer": 2.0, "outer": 10, "inner": 5000}
    four = [
        {"solver": s, "seconds_total": 1e4 * k, "is_measured": False, "gradients_total": 50_010.0, **timed}
        for k, s in enumerate(COUNTS, 1)
    ]
    write("runtime", [*four, own], MADE, tmp_path)
    results = Results(tmp_path)
    assert rendered("results.runtime", results).splitlines()[-1] == "| Prices | | | | 31.3 | 220 |"
    (line,) = [line for line in rendered("results.claims", results).splitlines() if "take no longer" in line]
    assert line.endswith("| in 0 of 2 places | **not confirmed** | |")


def test_a_row_whose_file_is_missing_says_so_and_the_others_are_there(tmp_path: Path) -> None:
    write("budget", [cell(s, n, seed=seed) for s, n in COUNTS.items() for seed in (0, 1)], MADE, tmp_path)
    results = Results(tmp_path)
    said = rendered("results.claims", results)
    assert "| in 4 of 4 places, clearly in 4; clearly against in 0 | **confirmed** | confirmed |\n" in said
    rows = [line for line in said.splitlines() if line.startswith("| The gain over KL grows")]
    assert [line.endswith("| | **not measured yet** | |") for line in rows] == [True]
    assert rendered("results.growth", results) == "*Not measured yet: there is no `scalability.parquet`.*"
    assert rendered("results.carried", results) == "*Not measured yet: there is no `tuning.parquet`.*"
    empty = rendered("results.claims", Results(tmp_path / "empty"))
    assert empty.count("**not measured yet**") == len(empty.splitlines()) - 2


def test_where_prices_stands(tmp_path: Path) -> None:
    own = [cell("Prices", 33.0, protocol="own", estimate=29.5), cell("Nearest", 22.0, protocol="own")]
    four = [cell(s, n) for s, n in COUNTS.items()]
    write("budget", [*four, *own], MADE, tmp_path)
    write(
        "tuning", [{**cell("BCMS", 15.0, n=50), "chosen": True}, {**cell("MS", 9.0), "chosen": False}], MADE, tmp_path
    )
    results = Results(tmp_path)
    said = "Of 1 cells, `Prices` flips the most in 1, as many as the best other in 0, and is behind in none."
    assert rendered("results.losses", results) == said
    gains = "| icu | paper | +230.0 % | +10.0 % | +65.0 % | +230.0 % | +10.0 % | +50.0 % |"
    assert gains in rendered("results.gains", results)
    assert gains.replace("icu | paper", "all | both") in rendered("results.gains", results)
    write("budget", [*four, own[0] | {"count": 29.0}, own[1]], MADE, tmp_path)
    assert rendered("results.losses", Results(tmp_path)).endswith(
        "| icu | paper | small | 0 | 29.0 | 29.5 | BCMS | 30.0 |"
    )
    write("budget", [row | {"budget": "middle"} for row in four], MADE, tmp_path)
    carried = "| icu | paper | 50 | 75 | | 30 %, then 40 % | | |"
    assert carried in rendered("results.carried", Results(tmp_path))


def test_the_readme_has_a_line_for_what_was_measured(tmp_path: Path) -> None:
    peers = [
        ("maxflip", "Prices", 20),
        ("maxflip", "Nearest, unit prices", 12),
        ("maxflip", "Nearest, 1/B", 15),
        ("foolbox", "DDN", 10),
        ("DiCE", "x", 8),
    ]
    shape = {"cohort": "credit_default", "n": 200, "draw": 1}
    rows = [shape | {"shape": s, "tool": t, "method": m, "count": c} for s in "ab" for t, m, c in peers]
    write("peers_budgets", rows, MADE, tmp_path)
    (line,) = rendered("readme.bought", Results(tmp_path)).splitlines()[2:]
    assert line == "| 200 credit customers | two shapes | 20.0 | 15.0 | +33 % | foolbox, DDN: 10.0 | +100 % |"
    write("peers_budgets", rows + [row | {"cohort": "generated", "n": 100} for row in rows], MADE, tmp_path)
    line, other = rendered("readme.bought", Results(tmp_path)).splitlines()[2:]
    assert other == "| 100 rows of a generated table | two shapes | 20.0 | 15.0 | +33 % | foolbox, DDN: 10.0 | +100 % |"
    write("peers_budgets", rows, MADE, tmp_path)
    own = [cell("Prices", 33.0, protocol="own", estimate=33.5), cell("Nearest", 22.0, protocol="own")]
    waiting = cell("Prices", 99.0, protocol="own", seed=1)  # nothing stands beside it yet
    write("budget", [*(cell(s, n) for s, n in COUNTS.items()), *own, waiting], MADE, tmp_path)
    first, second = rendered("readme.bought", Results(tmp_path)).splitlines()[2:]
    assert first == (
        "| 75 patients in intensive care | as the paper sets them | 33.0 | 22.0 | +50 % | BCMS: 30.0 | +10 % |"
    )
    assert second == line
