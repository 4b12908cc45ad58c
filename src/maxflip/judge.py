"""The judge: decides who passes and what is spent, recomputed from raw values.

Solvers do not decide this themselves. Flips are decided by the model on x + change; budgets, limits and directions are
decided exactly on the stored float64 changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from maxflip._util.engine import Engine
from maxflip._util.events import Notice, Watch
from maxflip._util.frozen import read_only
from maxflip._util.messages import listed
from maxflip._util.parallel import each, filled, lowest
from maxflip._util.types import Floats, Mask, Rows
from maxflip.data.inputs import as_tensor
from maxflip.models import scores
from maxflip.problem.problem import Problem

ALONE = 1000  # at most this many of the narrowest flips are also checked one at a time
AT_A_TIME = 100  # they are checked in groups of this size
HARMLESS = 0.5  # share of the guard: checks stop after a group whose scores differ from the batch by no more


@dataclass(frozen=True, eq=False)
class Standing:
    """The state of every sample before any change, (n,) each."""

    confidence: Floats
    already: Mask  # the sample passes
    unusable: Mask  # the model's output is not finite
    below_margin: Mask  # the most likely class is a wanted one, but the sample does not pass

    @property
    def open(self) -> Mask:
        """Samples that a plan can still win."""
        return np.asarray(~self.already & ~self.unusable)


def standing(problem: Problem, engine: Engine, watch: Watch) -> Standing:
    confidence, likeliest_wanted = _at_start(problem, engine, watch)
    unusable = ~np.isfinite(confidence)
    already = ~unusable & (confidence >= problem.goal.required)
    there = problem.cohort.ids[problem.include[already[problem.include]]]
    if len(there):
        watch(Notice(f"include: already in the wanted class, so there is nothing to change: {listed(there)}."))
    return Standing(confidence, already, unusable, ~unusable & ~already & likeliest_wanted)


def _at_start(problem: Problem, engine: Engine, watch: Watch) -> tuple[Floats, Mask]:
    """Results of `_evaluate` for all samples before any change; computed once and stored in the problem's `facts`.

    The first and the last batch are evaluated each time, to detect a model that was trained in between.
    """
    rows, chunks = problem.cohort.order, problem.chunks(problem.cohort.order, problem.classifier.batch_size)
    known = problem.facts.at_start.get(problem.goal.is_threshold)
    if known is not None and all(_still_holds(problem, chunk, known) for chunk in chunks[:: max(1, len(chunks) - 1)]):
        return known
    parts = engine.map(lambda chunk: _evaluate(problem, chunk, None), chunks, stage="Reading the cohort", watch=watch)
    confidence = np.empty(len(problem))
    likeliest_wanted = np.empty(len(problem), dtype=bool)
    confidence[rows] = np.concatenate([c for c, _ in parts])
    likeliest_wanted[rows] = np.concatenate([w for _, w in parts])
    problem.facts.at_start[problem.goal.is_threshold] = read_only(confidence), read_only(likeliest_wanted)
    return confidence, likeliest_wanted


def _still_holds(problem: Problem, rows: Rows, known: tuple[Floats, Mask]) -> bool:
    now = _evaluate(problem, rows, None)
    return all(np.array_equal(a, b[rows], equal_nan=True) for a, b in zip(now, known, strict=True))


def _scores(problem: Problem, rows: Rows, changes: Floats | None) -> torch.Tensor:
    """(B, M, k) at x + change, in one batch"""
    device = problem.classifier.device
    moved = None if changes is None else as_tensor(changes, device)
    x = problem.inputs(rows, device, np.arange(problem.width)).at(slice(None), moved)
    with torch.no_grad():
        return scores(problem.classifier, x)


def scores_after(problem: Problem, rows: Rows, changes: Floats) -> torch.Tensor:
    """(c, M, k) at x + change, in the order of Problem.batches, which may differ from that of the rows"""
    return torch.cat([_scores(problem, rows[part], changes[part]) for part in problem.batches(rows)])


def _evaluate(problem: Problem, rows: Rows, changes: Floats | None) -> tuple[Floats, Mask]:
    """Confidence (B,), NaN where the output is not finite, and whether the most likely class is wanted (B,).

    For an ensemble: the smallest confidence, and whether this holds in every member.
    """
    p = _scores(problem, rows, changes)
    wanted = problem.goal.wanted_for(rows, p.device)
    confidence = problem.goal.confidence(p, wanted)
    likeliest = wanted.gather(1, p.nan_to_num().argmax(dim=2)).all(dim=1)
    return confidence.cpu().numpy(), likeliest.cpu().numpy()


def confidence_after(problem: Problem, rows: Rows, changes: Floats) -> Floats:
    """(B,) confidence at x + change, in batches."""
    confidence = np.empty(len(rows))

    def ask(batch: Rows | slice) -> None:
        confidence[batch] = _evaluate(problem, rows[batch], changes[batch])[0]

    each(ask, problem.batches(rows))
    return confidence


def least_confidence(problem: Problem, rows: Rows, changes: Floats, full: Floats) -> Floats:
    """(B,): the smallest confidence of each sample over the scenarios of `must_hold`; NaN if one is not finite.

    full (B,): the confidence after the full change, which is one of the scenarios.
    """
    least = full
    for carried_out in problem.scenarios.carried_out(problem.slots.base(rows, changes), changes):
        least = np.minimum(least, confidence_after(problem, rows, carried_out))
    return least


def least_confidence_after(problem: Problem, rows: Rows, changes: Floats) -> Floats:
    """(B,): the smallest confidence over the full change and the scenarios of `must_hold`; NaN if one is not finite"""
    return least_confidence(problem, rows, changes, confidence_after(problem, rows, changes))


def _passes(problem: Problem, confidence: Floats) -> Mask:
    """Whether a flip passes by at least the guard, so that it also passes in another batch, or alone."""
    return np.asarray(confidence >= problem.goal.required + problem.guard)


def is_flip(problem: Problem, rows: Rows, changes: Floats) -> Mask:
    """(B,): whether the sample passes by the guard in every scenario. The full change is checked first."""
    full = confidence_after(problem, rows, changes)
    found = _passes(problem, full)
    if problem.scenarios.requirements and found.any():
        least = least_confidence(problem, rows[found], changes[found], full[found])
        found[found] = _passes(problem, least)
    return found


def lawful(problem: Problem, rows: Rows, changes: Floats) -> Mask:
    """(c,): finite, what follows too; inside the limits, in the allowed directions, by whole steps, none too small, not
    of too many features, frozen and missing values exactly unchanged."""
    return filled(lambda part: _lawful(problem, rows[part], changes[part]), (len(rows),), bool)


def _lawful(problem: Problem, rows: Rows, changes: Floats) -> Mask:
    kept = np.isfinite(changes).all(axis=1)
    kept &= (changes[:, ~problem.may_move] == 0).all(axis=1)
    if problem.ledger.closes:
        up, down = problem.closed(rows)
        kept &= ~((up & (changes > 0)) | (down & (changes < 0))).any(axis=1)
    kept &= problem.slots.has_all(rows, changes)
    if problem.is_lever.any():
        kept &= problem.slots.switches_are_lawful(rows, changes)
    if not problem.limits.none:
        start, base = problem.start[rows], problem.slots.base(rows, changes)
        kept &= ~problem.limits.crossed(start, base, rows).any(axis=1)
        kept &= ~problem.limits.broken(base, changes, rows).any(axis=1)
    if problem.grid.has_rules:
        kept &= ~problem.grid.broken(problem.slots.base(rows, changes), changes).any(axis=1)
    if problem.few.most is not None:
        kept &= problem.few.counts(changes) <= problem.few.most
    kept[kept] = problem.follows(rows[kept], changes[kept])
    return np.asarray(kept)


def admissible(problem: Problem, rows: Rows, changes: Floats) -> Mask:
    """(c,): candidates that are lawful and are flips. The paper's filter before its final program."""
    ok = lawful(problem, rows, changes)
    if ok.all():
        return is_flip(problem, rows, changes)
    ok[ok] = is_flip(problem, rows[ok], changes[ok])
    return ok


@dataclass(frozen=True, eq=False)
class Verdict:
    """The judged selection: kept (c,), and the confidence of each sample after its full change."""

    kept: Mask
    confidence: Floats


def verdict(problem: Problem, rows: Rows, changes: Floats) -> Verdict:
    """Judge a selection that should keep the budgets and quotas. Flips that fail are dropped. That only lowers
    consumption, but whoever is left may break a quota: the caller chooses again.

    Raises RuntimeError if the selection breaks a budget or quota, which would be a bug of `choose`.
    """
    if not problem.quotas.hold(rows):
        raise RuntimeError("the selection breaks a quota")
    confidence = confidence_after(problem, rows, changes)
    least = least_confidence(problem, rows, changes, confidence)
    kept = lawful(problem, rows, changes) & _passes(problem, least)
    narrow = lowest(least, ALONE)
    narrow = narrow[kept[narrow]]
    for begin in range(0, len(narrow), AT_A_TIME):
        apart = 0.0
        for c in narrow[begin : begin + AT_A_TIME]:
            one = rows[c : c + 1], changes[c : c + 1]
            alone = float(least_confidence(problem, *one, confidence_after(problem, *one))[0])
            kept[c] = alone >= problem.goal.required
            apart = max(apart, abs(alone - least[c]))
        if apart <= HARMLESS * problem.guard:
            break  # the 100 narrowest flips barely move: the rest need no individual check
    over = problem.bill(rows, changes).of(kept).overspent()
    if over:
        names = ", ".join(problem.ledger.names[r] for r in over)
        raise RuntimeError(f"the selection overspends {names}")
    return Verdict(kept, confidence)
