"""How a plan keeps a quota."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from maxflip._util.frozen import Frozen, freeze
from maxflip._util.types import Rows
from maxflip.problem.quotas import Quota, Quotas


@dataclass(frozen=True, eq=False)
class KeptQuota(Frozen):
    """A quota, and how many of those picked belong to its group.

    Attributes:
        quota: as it was asked.
        members: row numbers of the samples in the group.
        count: how many of them the plan picks.
        price: worth that one person less who is asked for, or one more who is allowed, would bring; None: not known.
        cost: about how much more the best plan would be worth without the quota; None: not known.
    """

    quota: Quota
    members: Rows = field(repr=False)
    count: int
    price: float | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        freeze(self)


def quotas_of(kept: Sequence[KeptQuota], size: int) -> Quotas:
    """Those quotas over `size` samples."""
    inside = np.zeros((len(kept), size), dtype=bool)
    for number, one in enumerate(kept):
        inside[number, one.members] = True
    return Quotas(tuple(one.quota for one in kept), inside)
