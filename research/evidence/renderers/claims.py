"""The paper's claims: a table to be read in a minute (docs/results.md), and place by place (docs/results/claims.md)."""

from __future__ import annotations

from research.evidence.claims import all_claims
from research.evidence.claims.claim import KINDS, Claim, Tried
from research.evidence.markdown import made_line, table
from research.evidence.registry import text
from research.evidence.results import Results


@text("results.claims")
def claims(results: Results) -> str:
    """Row by row; a row whose result file is not there yet says so."""
    lines = [[c.says, measured(c), f"**{c.verdict}**", with_the_papers(c)] for c in all_claims(results)]
    how = "\n\n" + made_line(results.made("budget")) if results.has("budget") else ""
    return table(["the paper", "it holds", "verdict", "with its own budgets alone"], lines) + how


def measured(claim: Claim) -> str:
    if not claim.places:
        return ""
    held = f"in {claim.held} of {len(claim.places)} places"
    return held + (f", clearly in {claim.clear}; clearly against in {claim.clearly_not}" if claim.has_intervals else "")


def with_the_papers(claim: Claim) -> str:
    """The verdict of the places that have the paper's kind of budgets; nothing where budgets have no part in it."""
    apart = {kind: claim.with_budgets(kind) for kind in KINDS}
    if not any(each.places for each in apart.values()):
        return ""
    return apart["paper"].verdict if apart["paper"].places else "not tried"


@text("claims.detail")
def detail(results: Results) -> str:
    """Of each claim: when it holds, how often for whom, and every place where it does not."""
    return "\n\n".join(_of(claim) for claim in all_claims(results))


def _of(claim: Claim) -> str:
    parts = [f"## {claim.says.rstrip('.')}", f"Holds in a place where {claim.rule}."]
    if not claim.places:
        return "\n\n".join([*parts, "*Not measured yet.*"])
    shares = f" ({claim.shares})" if claim.shares else ""
    parts.append(f"**{claim.verdict[0].upper()}{claim.verdict[1:]}**: {measured(claim)}{shares}.")
    if claim.failing:
        lines = [[where, whom, tried.said, _clearly(tried)] for (where, whom), tried in claim.failing.items()]
        parts.append(table(["not where", "of whom", "means", "clearly"], lines))
    return "\n\n".join(parts)


def _clearly(tried: Tried) -> str:
    return {None: "", True: "yes", False: "no"}[tried.is_clear]
