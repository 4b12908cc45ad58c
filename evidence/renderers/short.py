"""The first lines of docs/results.md: what a reader takes along who reads nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evidence.claims import all_claims
from evidence.claims.claim import Claim
from evidence.claims.places import means
from evidence.gains import BEST, cells_by_size, compared, full_cells, gained, standing
from evidence.intervals import averaged, with_interval
from evidence.registry import text
from evidence.renderers.readme import PEOPLE
from evidence.renderers.results import gain, said_of
from evidence.results import Results, Row
from evidence.rivals import OURS, best_of_others
from experiments.hold.kinds import in_brief
from experiments.hold.points import read

OVER = {
    BEST: "the best of the paper's four, taken anew in every cell",
    "BCMS": "BCMS",
    "KL": "KL",
    "Nearest": "everyone's own cheapest flip (`Nearest`)",
}
VERDICTS = ("confirmed", "in part", "mixed", "not confirmed", "not measured yet")


@text("results.short")
def short(results: Results) -> str:
    """A line for each result file that is there."""
    return "\n".join(f"- {line}" for line in _lines(results))


def _lines(results: Results) -> Iterator[str]:
    if results.has("budget"):
        rows = [row for of in full_cells(results.rows("budget")).values() for row in of.values()]
        if rows:
            yield from _of_the_study(rows)
    if results.has("scalability"):
        grown = cells_by_size(results.rows("scalability"))
        if grown:
            most = max(n for *_, n in grown)
            stands = said_of(standing(grown)).rstrip(":.")
            yield f"**With up to {most:,} samples**, MS left out as in the paper. {stands}."
    if results.has("prices_linear"):
        yield _proved(results.rows("prices_linear"))
    if results.has("peers_budgets"):
        yield from _of_the_peers(results.rows("peers_budgets"))
    claims = all_claims(results)
    with_its_own = [own for claim in claims if (own := claim.with_budgets("paper")).places]
    alone = f" With the paper's own kind of budgets alone: of {_verdicts(with_its_own)}." if with_its_own else ""
    yield f"**The paper's claims**, tried anew on other data: of {_verdicts(claims)}.{alone}"
    held = [line for result in read(results.folder) for line in in_brief(result)]
    if held:
        yield (
            "**Do the flips hold** in models that were learned anew? Beside unchanged people who stand as close to the "
            f"line: {' '.join(held)}"
        )


def _of_the_study(rows: list[Row]) -> Iterator[str]:
    over = ", ".join(f"{_more(rows, other)} than {said}" for other, said in OVER.items())
    kinds = {source: [row for row in rows if row["budget_source"] == source] for source in ("binding", "paper")}
    apart = ", ".join(f"{_more(of, BEST)} with {source} budgets" for source, of in kinds.items() if of)
    yield (
        f"**Within the same budgets** `Prices` flips, on average over draws of {_all_of(rows)}, {over}. Beside the "
        f"best of the four: {apart}."
    )
    yield f"**Where it stands.** {said_of(standing(full_cells(rows))).rstrip(':.')}."
    estimated = [row for row in rows if row["solver"] == "Prices" and row["estimate"]]
    if estimated:
        near = with_interval(averaged(_of_the_estimate(estimated)), ".1f")
        within = sum(row["estimate"] - row["count"] < 1.0 for row in estimated)
        yield (
            f"**How near to the most.** `Prices` reaches {near} % of its own estimate of the most that any plan flips, "
            f"which proves nothing; in {within} of {len(estimated)} cells it is less than one sample away."
        )


def _verdicts(claims: Sequence[Claim]) -> str:
    each = Counter(claim.verdict for claim in claims)
    said = ", ".join(f"{each[verdict]} {verdict}" for verdict in VERDICTS if each[verdict])
    return f"{each.total()}, {said}"


def _all_of(rows: list[Row]) -> str:
    """Whose mean it is, in words; with several, each counts alike."""
    *others, last = (PEOPLE[dataset] for dataset in dict.fromkeys(row["dataset"] for row in rows))
    return f"{', '.join(others)} and {last}, each alike" if others else last


def _more(rows: list[Row], other: str) -> str:
    """In words that fit the sign."""
    said = gain(gained(compared(rows), "Prices", other))
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
    return f"**Linear models, where a bound is proved.** `Prices` meets it in {met} of {len(rows)} problems{rest}."


def _of_the_peers(rows: list[Row]) -> Iterator[str]:
    """With each shape of budgets beside the one that is best there; in each cohort those who were asked about all."""
    more: list[float] = []
    alone: list[float] = []  # how many `Prices` flips where the others flip nobody
    cohorts: list[str] = []
    tools: set[str] = set()
    for cohort in dict.fromkeys(row["cohort"] for row in rows):
        most = max(row["n"] for row in rows if row["cohort"] == cohort)
        here = [row for row in rows if (row["cohort"], row["n"]) == (cohort, most)]
        by = means(here, ("shape", "tool", "method"), "count")
        before = len(more) + len(alone)
        for shape in dict.fromkeys(key[0] for key in by):
            best = best_of_others({(tool, method): count for (of, tool, method), count in by.items() if of == shape})
            ours = by.get((shape, OURS, "Prices"))
            if best is not None and ours is not None:
                if best[0]:
                    more.append(100.0 * (ours / best[0] - 1.0))
                else:
                    alone.append(ours)
        if len(more) + len(alone) > before:
            cohorts.append(f"{most:,} {PEOPLE[cohort]}")
            tools |= {tool for _, tool, _ in by} - {OURS}
    said = []
    if more:
        said.append(f"`Prices` flips {_between(min(more), max(more))} the best of them, by shape of budgets.")
    if alone:
        ours_there = ", ".join(f"{count:.3g}" for count in alone)
        of = f"{len(alone)} of {len(more) + len(alone)} shapes"
        said.append(f"In {of} of budgets the others flip nobody (`Prices`: {ours_there}).")
    if said:
        whom = f"{len(tools)}, for {' and '.join(cohorts)}, the same choice made among their changes"
        yield f"**Other tools** ({whom}). {' '.join(said)}"


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
