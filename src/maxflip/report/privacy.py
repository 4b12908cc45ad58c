"""What a page shows of individual people: everything, pseudonyms, or nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from maxflip._util.messages import listed
from maxflip.plan.plan import Plan
from maxflip.problem.describe import in_words
from maxflip.study.insight import People

FEWEST = 5  # numbers about fewer people are hidden, because they could identify individuals

HIDDEN = "people named in the job; not shown here"


def pseudonyms(count: int) -> tuple[NDArray[np.int64], list[str]]:
    """A random order of people, and made-up names; both differ for every page.

    >>> order, names = pseudonyms(3)
    >>> sorted(order.tolist()), names
    ([0, 1, 2], ['Person 1', 'Person 2', 'Person 3'])
    """
    order = list(range(count))
    secrets.SystemRandom().shuffle(order)
    return np.array(order, dtype=np.int64), [f"Person {number}" for number in range(1, count + 1)]


def question(plan: Plan, people: People) -> Mapping[str, str]:
    """What was asked, in words; ids named in the job are shown for "full" only."""
    if plan.question is None:
        return {}
    named = [
        (listed(plan.all_ids[rows]) if people == "full" else HIDDEN) if len(rows) else ""
        for rows in (plan.include, plan.exclude)
    ]
    return in_words(plan.question, plan.must_hold, *named)


def notices(plan: Plan, people: People) -> Sequence[str]:
    """Notices may name ids, so only a page with ids shows them."""
    return plan.notices if people == "full" else ()
