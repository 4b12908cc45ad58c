"""The first lines of docs/results.md: what a reader takes along who reads nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from research.evidence.claims import all_claims
from research.evidence.claims.claim import Claim
from research.evidence.claims.places import means
from research.evidence.gains import BEST, cells_by_size, compared, full_cells, gained, standing
from research.evidence.intervals import averaged, with_interval
from research.evidence.registry import text, waits_for
from research.evidence.renderers.readme import PEOPLE
from research.evidence.renderers.results import gain, said_of
from research.evidence.results import Results, Row
from research.evidence.rivals import OURS, best_of_others
from research.experiments.hold.kinds import in_brief
from research.experiments.hold.points import read

VERDICTS = ("confirmed", "in part", "mixed", "not confirmed", "not measured yet")
SHORT_RUNS = {"insurance": ", where the four had short runs"}  # research.experiments.protocol: a gradient is dear there


@text("results.short")
def short(results: Results) -> str:
    """A line for each result file that is there."""
    return "\n".join(f"- {line}" for line in _lines(results))


def _lines(results: Results) -> Iterator[str]:
    study = full_cells(results.rows("budget")) if results.has("budget") else {}
    rows = [row for of in study.values() for row in of.values()]
    if rows:
        yield from _of_the_study(rows)
    near = list(_near(results, [row for row in rows if row["solver"] == "Prices" and row["estimate"]]))
    if near:
        yield f"**How near to the most.** {' '.join(near)}"
    if results.has("scalability"):
        grown = cells_by_size(results.rows("scalability"))
        if grown:
            most = max(n for *_, n in grown)
            stands = said_of(standing(grown)).rstrip(":.")
            yield f"**With up to {most:,} samples**, MS left out as in the paper. {stands}."
    if results.has("peers_budgets"):
        yield from _of_the_peers(results.rows("peers_budgets"))
    held = [line for result in read(results.folder) for line in in_brief(result)]
    if held:
        yield f"**Do flips hold** in retrained models? {' '.join(held)}"
    yield claims_short(results)
    yield "**A plan moves predictions, not outcomes.**"


@text("claims.short")
def claims_short(results: Results) -> str:
    """How many claims have which verdict."""
    claims = all_claims(results)
    with_its_own = [own for claim in claims if (own := claim.with_budgets("paper")).places]
    alone = f" With its own kind of budgets alone: of {_verdicts(with_its_own)}." if with_its_own else ""
    return f"**The paper's claims**, on other data and with mostly shorter runs: of {_verdicts(claims)}.{alone}"


@text("peers.short")
@waits_for("peers_budgets")
def peers_short(results: Results) -> str:
    """Prices beside other tools."""
    return "\n".join(_of_the_peers(results.rows("peers_budgets")))


def _of_the_study(rows: list[Row]) -> Iterator[str]:
    datasets = dict.fromkeys(row["dataset"] for row in rows)
    apart = ", ".join(
        f"{PEOPLE[name]} {_gain([row for row in rows if row['dataset'] == name], BEST)}{SHORT_RUNS.get(name, '')}"
        for name in datasets
    )
    kinds = {source: [row for row in rows if row["budget_source"] == source] for source in ("paper", "binding")}
    by_kind = " and ".join(f"{_more(of, BEST)} with those named *{source}*" for source, of in kinds.items() if of)
    yield (
        f"**Within the same budgets** `Prices` flips {_more(rows, BEST)} than the best of the paper's four, taken anew "
        f"in every cell, and {_more(rows, 'Nearest')} than everyone's own cheapest flip (`Nearest`). Beside the best "
        f"of the four: {apart}. By kind of budgets: {by_kind}. {said_of(standing(full_cells(rows))).rstrip(':.')}."
    )


def _near(results: Results, estimated: list[Row]) -> Iterator[str]:
    """What is proved, what is known, and what is estimated."""
    if results.has("prices_linear"):
        yield _proved(results.rows("prices_linear"))
    if results.has("peers_exact"):
        own = [
            row
            for row in results.rows("peers_exact")
            if (row["tool"], row["method"]) == (OURS, "Prices")
            and row["optimum"] is not None
            and "linear" not in row["problem"]
        ]
        if own:
            met = sum(row["count"] >= row["optimum"] for row in own)
            yield (
                f"Small networks whose optimum is known: {sum(row['count'] for row in own)} of "
                f"{sum(row['optimum'] for row in own)} flips, all that there are in {met} of {len(own)} draws."
            )
    if estimated:
        share = with_interval(averaged(_of_the_estimate(estimated)), ".1f")
        within = sum(row["estimate"] - row["count"] < 1.0 for row in estimated)
        yield (
            f"The study: {share} % of its own estimate of the most, which proves nothing; in {within} of "
            f"{len(estimated)} cells less than one sample away."
        )


def _verdicts(claims: Sequence[Claim]) -> str:
    each = Counter(claim.verdict for claim in claims)
    said = ", ".join(f"{each[v] or 'none'} {v}" for v in VERDICTS if each[v] or v == "confirmed")
    return f"{each.total()}, {said}"


def _gain(rows: list[Row], other: str) -> str:
    return gain(gained(compared(rows), "Prices", other))


def _more(rows: list[Row], other: str) -> str:
    """In words that fit the sign."""
    said = _gain(rows, other)
    return f"{said[1:]} {'fewer' if said.startswith('-') else 'more'}"


def _of_the_estimate(rows: list[Row]) -> list[list[float]]:
    """In %, of each dataset one for each seed."""
    count, most = (means(rows, ("dataset", "seed"), of) for of in ("count", "estimate"))
    datasets = dict.fromkeys(dataset for dataset, _ in count)
    return [[100.0 * count[place] / most[place] for place in count if place[0] == name] for name in datasets]


def _proved(rows: list[Row]) -> str:
    """Of models whose bound is a proof."""
    met = sum(row["count"] == row["bound"] for row in rows)
    most = max(100.0 * (1.0 - row["count"] / row["bound"]) for row in rows if row["bound"])
    rest = f"; elsewhere it is at most {most:.2f} % below it" if met < len(rows) else ""
    return f"Linear models: `Prices` meets the proved bound in {met} of {len(rows)} problems{rest}."


def _of_the_peers(rows: list[Row]) -> Iterator[str]:
    """With each shape of budgets beside the one that is best there; in each cohort those who were asked about all."""
    more: list[float] = []
    with_nearest: list[float] = []
    alone: list[float] = []
    cohorts: list[str] = []
    tools: set[str] = set()
    for cohort in dict.fromkeys(row["cohort"] for row in rows):
        most = max(row["n"] for row in rows if row["cohort"] == cohort)
        by = means(
            [row for row in rows if (row["cohort"], row["n"]) == (cohort, most)], ("shape", "tool", "method"), "count"
        )
        for shape in dict.fromkeys(key[0] for key in by):
            here = {(tool, method): count for (of, tool, method), count in by.items() if of == shape}
            best, ours = best_of_others(here), here.get((OURS, "Prices"))
            if best is None or ours is None:
                continue
            if best[0]:
                nearest = max(
                    (c for (tool, method), c in here.items() if tool == OURS and method != "Prices"), default=0.0
                )
                more.append(100.0 * (ours / best[0] - 1.0))
                with_nearest.append(100.0 * (ours / max(best[0], nearest) - 1.0))
            else:
                alone.append(ours)
            tools |= {tool for tool, _ in here} - {OURS}
            cohorts.append(f"{most:,} {PEOPLE[cohort]}")
    said = []
    if more:
        said.append(
            f"`Prices` flips {_between(min(more), max(more))} the best of them, by shape of budgets, and "
            f"{_between(min(with_nearest), max(with_nearest))} the better of these and our `Nearest`."
        )
    if alone:
        ours_there = ", ".join(f"{count:.3g}" for count in alone)
        of = f"{len(alone)} of {len(more) + len(alone)} shapes"
        said.append(f"In {of} of budgets the others flip nobody (`Prices`: {ours_there}).")
    if said:
        whom = f"{len(tools)}, which know nothing of shared budgets; for {' and '.join(dict.fromkeys(cohorts))}"
        yield f"**Other tools** ({whom}; the same choice made among their changes). {' '.join(said)}"


def _between(least: float, most: float) -> str:
    """From so many % more to so many, in words that fit the signs."""
    low, high = round(least), round(most)
    if low < 0 < high:
        return f"from {-low} % fewer to {high} % more than"
    if low == high == 0:
        return "as many as"
    word = "fewer" if low < 0 else "more"
    ends = sorted({abs(low), abs(high)})
    return f"{' to '.join(map(str, ends))} % {word} than"
