"""What holds for every question. A law yields a sentence, with the solver and the numbers, wherever it is broken.

A new law is a function with `@law()` in front. A dear one is asked of every so manieth seed: `@law(every=10)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxflip import Budget, Fate, Plan, Status, frontier, resolve, solve
from tests.sweep.answers import NEAREST, NEARESTS, PRICES, UNIT, Answers, by_id
from tests.sweep.models import Floats
from tests.sweep.questions import LIGHT, Question
from tests.sweep.recount import after_of, changes_of, is_free, keeps, limits_of, outside_limits, spent, start_of

Broken = Iterator[str]
ALONE = 200  # flips of a plan that are asked of the plain model one at a time, those that pass most narrowly first
RARER = 6  # times: dear laws in the ordinary run
ESTIMATED = 5e-3  # of an estimate: what it may promise too much
HUGE = 1e12  # a budget beyond this is as good as unlimited
NEAR = 1e-5  # of confidences: so near to what is required, rounding decides who is there already


@dataclass(frozen=True)
class Law:
    check: Callable[[Answers], Broken]
    every: int

    @property
    def name(self) -> str:
        return self.check.__name__

    def is_asked(self, seed: int) -> bool:
        """Dear laws are asked of different seeds, and more rarely in the ordinary run."""
        every = self.every if self.every == 1 or seed >= LIGHT else RARER * self.every
        return (seed + sum(map(ord, self.name))) % every == 0


LAWS: list[Law] = []


def law(every: int = 1) -> Callable[[Callable[[Answers], Broken]], Callable[[Answers], Broken]]:
    def enter(check: Callable[[Answers], Broken]) -> Callable[[Answers], Broken]:
        LAWS.append(Law(check, every))
        return check

    return enter


# Of each plan alone.


@law()
def every_budget_holds_exactly(answers: Answers) -> Broken:
    question = answers.question
    for solver, plan in answers.plans():
        rows, changes = plan.selected.tolist(), changes_of(plan)
        for name, budget in question.budgets.items():
            drawn = spent(question, budget, rows, changes)
            if budget.amount < math.inf and drawn > budget.amount:
                yield f"{solver}: {name} draws {float(drawn)!r} of {budget.amount!r}"
            if not math.isclose(float(drawn), plan.spend[name], rel_tol=1e-12, abs_tol=1e-300):
                yield f"{solver}: {name} draws {float(drawn)!r}, the plan says {plan.spend[name]!r}"


@law()
def every_quota_holds_exactly(answers: Answers) -> Broken:
    for solver, plan in answers.plans():
        if not keeps(answers.question, plan.selected.tolist()):
            yield f"{solver}: {[kept.count for kept in plan.quotas]} of {plan.count}"
        for kept in plan.quotas:
            if kept.count != sum(str(name) in kept.quota.group for name in plan.ids):
                yield f"{solver}: counts {kept.count} of {kept.quota.in_words}"


@law()
def every_flip_passes_in_the_plain_model_alone(answers: Answers) -> Broken:
    question = answers.question
    for solver, plan in answers.plans():
        changes = changes_of(plan)
        for c in np.argsort(plan.confidence_after, kind="stable")[:ALONE].tolist():
            row = int(plan.selected[c])
            after = after_of(question, row, changes[c])
            said = question.confidence([after] if question.is_sequences else after, np.array([row]))[0]
            if not said >= question.required:
                yield f"{solver}: {plan.all_ids[row]} has confidence {said!r} of {question.required}"
            if not plan.confidence_after[c] >= question.required + plan.guard:
                yield f"{solver}: {plan.all_ids[row]} has {plan.confidence_after[c]!r} by the plan, below the guard"


@law()
def limits_directions_and_frozen_values_hold_exactly(answers: Answers) -> Broken:
    for solver, plan in answers.plans():
        for row, change in zip(plan.selected.tolist(), changes_of(plan), strict=True):
            wrong = outside_limits(answers.question, row, change)
            if wrong:
                yield f"{solver}: {plan.all_ids[row]} {wrong}"


@law()
def fates_are_consistent(answers: Answers) -> Broken:
    question = answers.question
    row_of = {name: j for j, name in enumerate(question.ids)}
    barred = np.isin(question.ids, question.exclude)
    clear = np.abs(question.standing - question.required) > NEAR
    there = question.standing >= question.required
    for solver, plan in answers.plans():
        fates = plan.fates.astype(str)
        if sum(plan.fate_counts().values()) != len(question):
            yield f"{solver}: fates of {sum(plan.fate_counts().values())} of {len(question)}"
        if not np.array_equal(np.flatnonzero(fates == Fate.FLIPPED), plan.selected):
            yield f"{solver}: flipped are not the selected"
        if ((fates == Fate.ALREADY) != there)[clear].any():
            yield f"{solver}: already there are {(fates == Fate.ALREADY).sum()}, by the model {there.sum()}"
        if (fates[barred] == Fate.FLIPPED).any():
            yield f"{solver}: somebody excluded is picked"
        for name in question.include:
            if fates[row_of[name]] not in (Fate.FLIPPED, Fate.ALREADY):
                yield f"{solver}: {name} must be picked and is {fates[row_of[name]]}"
        if plan.worth != math.fsum(question.worths[plan.selected]):
            yield f"{solver}: worth {plan.worth!r}"


@law()
def nobody_unreachable_is_flipped_by_anybody(answers: Answers) -> Broken:
    plans = list(answers.plans())
    for solver, plan in plans:
        lost = np.flatnonzero(plan.fates == Fate.UNREACHABLE)
        for other, found in plans:
            both = np.intersect1d(lost, found.selected)
            if len(both):
                yield f"{solver} calls {answers.question.ids[both[0]]} unreachable, {other} flips it"


@law()
def flips_of_linear_models_are_found_by_all_or_none(answers: Answers) -> Broken:
    """Their cheapest flips are computed, not searched for. What a budget cannot pay for is a flip all the same."""
    if not answers.question.is_linear or answers.question.kinds:  # flips by steps are searched for
        return
    plans = [(solver, plan) for solver, plan in answers.plans() if solver.startswith(("Prices", "Nearest"))]
    for solver, plan in plans:
        missed = np.flatnonzero(plan.fates == Fate.NOT_FOUND)
        for other, found in plans:
            both = np.intersect1d(missed, found.selected)
            if len(both):
                yield f"{solver} finds no flip of {answers.question.ids[both[0]]} ({len(both)} such), {other} does"


@law()
def prices_are_numbers_and_limits_that_are_none_are_free(answers: Answers) -> Broken:
    for solver, plan in answers.plans():
        for name, price in (plan.prices or {}).items():
            if not (price >= 0 and math.isfinite(price)):
                yield f"{solver}: the price of {name} is {price!r}"
            if answers.question.budgets[name].amount == math.inf and price != 0:
                yield f"{solver}: {name} has no limit and the price {price!r}"


@law()
def a_status_says_what_is_proved(answers: Answers) -> Broken:
    for solver, plan in answers.plans():
        proved = plan.bound is not None and plan.worth >= plan.bound
        if (plan.status is Status.OPTIMAL) != proved:
            yield f"{solver}: {plan.status} with a worth of {plan.worth!r} and a bound of {plan.bound!r}"


# Of the plans of all solvers together.


@law()
def never_below_any_nearest(answers: Answers) -> Broken:
    question = answers.question
    if question.has_function:
        return
    plan = answers.plan(PRICES)
    for solver in NEARESTS:
        nearest = answers.plan(solver)
        if nearest is not None and (plan is None or plan.worth < nearest.worth):
            found = answers.refused[repr(PRICES)] if plan is None else f"{plan.worth!r} ({plan.count})"
            yield f"Prices finds {found}, {solver} {nearest.worth!r} ({nearest.count})"


@law()
def no_bound_is_below_any_plan(answers: Answers) -> Broken:
    plans = list(answers.plans())
    for solver, plan in plans:
        for other, found in plans:
            if plan.bound is not None and found.worth > plan.bound:
                yield f"{solver} has the bound {plan.bound!r}, {other} finds {found.worth!r}"


def _has_no_end(question: Question) -> bool:
    """Whether a feature whose budgets are all unlimited, or as good as that, has an open limit for somebody."""
    for i, name in enumerate(question.features):
        if question.has_own:  # a weight of 0, or one way that costs nothing, has no end either
            return True
        uses = [budget for budget in question.budgets.values() if budget.cost != "count" and name in budget.weights]
        if not uses or any(budget.amount < HUGE for budget in uses) or not is_free(question, i):
            continue
        ends = [limits_of(question, name, row) for row in range(len(question))]
        if any(math.isinf(low) or math.isinf(high) for low, high in ends):
            return True
    return False


@law()
def a_plan_is_within_one_sample_per_budget_of_its_bound(answers: Answers) -> Broken:
    """A basic solution of the relaxation has at most one fractional sample per budget or quota. Of linear models the
    bound is proved; elsewhere it is an estimate, which may promise a little more. Three and more classes with a feature
    that is free and has no end are left out: how far a flip goes there is not known, so the proof takes it to cost
    nothing."""
    question = answers.question
    if question.has_function or question.groups is not None or question.include or question.kinds:
        return
    if question.is_linear and question.model.k > 2 and _has_no_end(question):
        return
    plan = answers.plan(PRICES)
    if plan is None:
        return
    largest = np.sort(question.worths)[::-1]
    ceiling, spare = plan.bound, len(question.quotas)
    if ceiling is None and plan.estimate is not None:
        ceiling, spare = plan.estimate * (1 - ESTIMATED), 1 + len(question.quotas)
    if ceiling is None:
        return
    if plan.bound is not None:  # it counts those for whom neither a flip nor a proof that there is none was found
        ceiling -= math.fsum(question.worths[plan.fates == Fate.NOT_FOUND])
    if plan.worth < ceiling - math.fsum(largest[: len(question.budgets) + spare]):
        yield f"Prices finds {plan.worth!r} of {ceiling!r}; the largest worths are {largest[:3].tolist()}"


@law()
def no_plan_beats_the_estimate_by_more_than_one_sample(answers: Answers) -> Broken:
    plans = list(answers.plans())
    for solver, plan in plans:
        for other, found in plans:
            if plan.estimate is not None and found.worth > plan.estimate + answers.question.worths.max():
                yield f"{solver} estimates {plan.estimate!r}, {other} finds {found.worth!r}"


@law()
def without_limits_everybody_who_can_be_reached_is_flipped(answers: Answers) -> Broken:
    question = answers.question
    if not question.is_unlimited or question.groups is not None or question.quotas or question.kinds:
        return
    reached: set[int] = set()
    for _, plan in answers.plans():
        reached |= set(plan.selected.tolist())
    for solver, plan in answers.plans():
        left = [j for j in np.flatnonzero(plan.fates == Fate.LEFT_OUT) if _is_wanted(question, int(j))]
        if left:
            yield f"{solver} leaves out {len(left)} of {len(question)} without any limit"
        if solver == "Prices":
            missed = [j for j in reached - set(plan.selected.tolist()) if _is_wanted(question, j)]
            if missed:
                yield f"Prices misses {len(missed)} of {len(reached)} whom others reach without any limit"


def _is_wanted(question: Question, row: int) -> bool:
    return question.ids[row] not in question.exclude and question.worths[row] > 0


# Of the same question asked again, in another form.


def _differ(found: Plan, wanted: Plan, factors: Floats | float = 1.0) -> str:
    """How two plans differ that should be one; nothing if they do not."""
    ours, theirs = by_id(found), by_id(wanted)
    actions = len(wanted.levers)  # they have no unit
    if isinstance(factors, np.ndarray):
        factors = np.append(factors, np.ones(actions))
    if ours.keys() != theirs.keys():
        more, less = sorted(ours.keys() - theirs.keys()), sorted(theirs.keys() - ours.keys())
        return f"picks {more[:3]} instead of {less[:3]}, worth {found.worth!r} instead of {wanted.worth!r}"
    for who, change in ours.items():
        if not np.array_equal(change, theirs[who] * factors):
            return f"changes {who} by {change.tolist()} instead of {(theirs[who] * factors).tolist()}"
    return ""


def _asked_anew(question: Question, solver: Any, **other: Any) -> Plan:
    return solve(question.problem(**other), solver, **question.allocation())


@law(every=5)
def the_order_of_rows_does_not_matter(answers: Answers) -> Broken:
    question = answers.question
    order = np.random.default_rng(question.seed).permutation(len(question))
    for solver in {answers.best_solver, NEAREST}:
        plan = answers.plan(solver)
        if plan is not None:
            wrong = _differ(_asked_anew(question.taken(order), solver), plan)
            if wrong:
                yield f"{solver} {wrong}"


@law(every=5)
def copies_of_a_sample_do_no_harm_and_come_after_it(answers: Answers) -> Broken:
    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None or (np.abs(question.standing - question.required) < NEAR).any():
        return
    rng = np.random.default_rng(question.seed)
    free = [j for j in range(len(question)) if question.ids[j] not in {*question.include, *question.exclude}]
    twice = rng.permutation(free)[:5].tolist()
    more = question.taken([*range(len(question)), *twice], [*question.ids, *(f"Z{question.ids[j]}" for j in twice)])
    again = solve(more.problem(), solver, start=plan, **more.allocation())
    if again.worth < plan.worth and question.groups is None:
        yield f"{solver}: {plan.worth!r} becomes {again.worth!r} with {len(twice)} copies"
    if again.bound is not None and again.bound < plan.worth:
        yield f"{solver}: {plan.worth!r} is above the bound {again.bound!r} with {len(twice)} copies"
    fresh = _asked_anew(more, solver)
    for j in twice:
        if f"Z{question.ids[j]}" in fresh.ids and question.ids[j] not in fresh.ids:
            yield f"{solver} picks a copy of {question.ids[j]} and not itself"


@law(every=5)
def the_units_of_features_do_not_matter(answers: Answers) -> Broken:
    question = answers.question
    if question.has_function or not _have_size(question):
        return
    drawn = np.random.default_rng(question.seed).integers(-6, 7, size=len(question.features))
    factors = np.ldexp(np.ones(len(drawn)), drawn)
    for solver in (PRICES, UNIT if question.seed % 2 else NEAREST):
        plan = answers.plan(solver)
        if plan is not None:
            wrong = _differ(_asked_anew(question.in_other_units(factors), solver), plan, factors)
            if wrong:
                yield f"{solver} in units {factors.tolist()} {wrong}"


def _have_size(question: Question) -> bool:
    """A column of zeros has none, so that nothing tells its units."""
    values = np.concatenate([start_of(question, j) for j in range(len(question))])
    return bool((np.nan_to_num(values) != 0).any(axis=0).all())


@law(every=8)
def a_frame_asks_what_an_array_asks(answers: Answers) -> Broken:
    import pandas as pd

    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None:
        return
    other: dict[str, Any] = {}
    if question.worth is not None:
        other["worth"] = dict(zip(question.ids, question.worth.tolist(), strict=True))
    if not question.is_sequences:
        from maxflip import Cohort

        frame = pd.DataFrame({"who": question.ids, **dict(zip(question.features, question.values.T, strict=True))})
        frame = frame[[*reversed(question.features), "who"]]
        other["cohort"] = Cohort.table(frame, features=list(question.features), id="who")
        if isinstance(question.target, np.ndarray):
            other["target"] = pd.Series(question.target)
    if question.exclude:
        other["exclude"] = set(question.exclude)
    wrong = _differ(_asked_anew(question, solver, **other), plan)
    if wrong:
        yield f"{solver} {wrong}"


# Of a question that allows more.


@law(every=5)
def more_budget_is_never_worth_less(answers: Answers) -> Broken:
    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None or question.groups is not None:
        return
    rng = np.random.default_rng(question.seed)
    more = {name: b.amount * float(rng.choice([1.0, 1.02, 1.3, 3.0])) for name, b in question.budgets.items()}
    for words, budgets in (("unchanged", None), ("more", more)):
        again = resolve(answers.problem, plan, solver, budgets=budgets)
        if again.worth < plan.worth:
            yield f"{solver}: {plan.worth!r} becomes {again.worth!r} by resolve with {words} budgets"
        if again.bound is not None and again.bound < plan.worth:
            yield f"{solver}: the bound {again.bound!r} of resolve with {words} budgets is below {plan.worth!r}"
    fresh = solve(answers.problem.changed(budgets=more), solver)
    if fresh.bound is not None and fresh.bound < plan.worth:
        yield f"{solver}: {plan.worth!r} is above the bound {fresh.bound!r} of more budget"
    if plan.bound is not None and all(more[n] == b.amount for n, b in question.budgets.items()):
        return
    less = {name: b.amount * float(rng.choice([1.0, 0.98, 0.5])) for name, b in question.budgets.items()}
    if plan.bound is not None and not question.may_be_refused:
        smaller = solve(answers.problem.changed(budgets=less), solver)
        if smaller.worth > plan.bound:
            yield f"{solver}: {smaller.worth!r} with less budget is above the bound {plan.bound!r}"


@law(every=6)
def what_if_brackets_what_resolve_finds(answers: Answers) -> Broken:
    """Its lower end is a plan that is known, and its upper end a bound, where one is proved. Both only rise."""
    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None or question.groups is not None:
        return
    limited = {name: b.amount for name, b in question.budgets.items() if b.amount < math.inf}
    scales = (0.3, 0.97, 1.0, 1.1, 2.5)
    brackets = [plan.what_if({name: amount * (scale - 1.0) for name, amount in limited.items()}) for scale in scales]
    if brackets[2].at_least < plan.worth:
        yield f"{solver}: at least {brackets[2].at_least!r} with the budgets as they are, of {plan.worth!r}"
    for words in ("at_least", "at_most"):
        ends = [getattr(bracket, words) for bracket in brackets]
        if ends != sorted(ends):
            yield f"{solver}: {words} at scales {scales}: {ends}"
    place = question.seed % len(scales)
    if question.may_be_refused and scales[place] < 1.0:
        return
    amounts = {name: amount + amount * (scales[place] - 1.0) for name, amount in limited.items()}
    again = resolve(answers.problem, plan, solver, budgets=amounts)
    if again.worth < brackets[place].at_least:
        yield f"{solver}: resolve finds {again.worth!r} at {scales[place]}, what_if {brackets[place]}"
    most = brackets[place].at_most
    if not any(ceiling.proved for ceiling in plan.ceilings):
        most += question.worths.max(initial=0.0)  # an estimate may be one sample too low
    if again.worth > most:
        yield f"{solver}: resolve finds {again.worth!r} at {scales[place]}, what_if {brackets[place]}"


@law(every=12)
def a_frontier_never_falls(answers: Answers) -> Broken:
    question, solver = answers.question, answers.best_solver
    if answers.plan(solver) is None or question.groups is not None or question.may_be_refused:
        return
    found = frontier(answers.problem, [0.5, 0.98, 1.0, 2.0], solver)
    worths = [plan.worth for plan in found.plans]
    if worths != sorted(worths):
        yield f"{solver}: {worths}"


@law(every=4)
def a_dropped_constraint_is_never_worth_less(answers: Answers) -> Broken:
    question, solver = answers.question, answers.best_solver
    plan = answers.plan(solver)
    if plan is None:
        return
    for words, freer in _freer(question):
        again = solve(freer.problem(), solver, start=plan, **freer.allocation())
        if again.worth < plan.worth:
            yield f"{solver}: {plan.worth!r} becomes {again.worth!r} without {words}"
        if again.bound is not None and again.bound < plan.worth:
            yield f"{solver}: the bound {again.bound!r} without {words} is below {plan.worth!r}"


def _freer(question: Question) -> Iterator[tuple[str, Question]]:
    """One constraint of the question dropped, any of those that it has."""
    found: list[tuple[str, Question]] = []
    if question.limits is not None:
        found.append(("limits", replace(question, limits=None)))
    if question.directions:
        found.append(("directions", replace(question, directions=None)))
    if question.exclude:
        found.append(("exclude", replace(question, exclude=())))
    if question.include:
        found.append(("include", replace(question, include=())))
    if question.quotas:
        found.append(("a quota", replace(question, quotas=question.quotas[1:])))
    for name, budget in question.budgets.items():
        if budget.amount < math.inf:
            budgets: dict[str, Budget] = question.budgets | {name: replace(budget, amount=math.inf)}
            found.append((f"a limit of {name}", replace(question, budgets=budgets)))
    if found:
        yield found[question.seed // 4 % len(found)]
