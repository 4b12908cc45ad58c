"""Ensemble: several models, for plans that hold in each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from maxflip.errors import InputError, ModelError
from maxflip.models.base import Classifier, Member


@dataclass(frozen=True, eq=False, init=False)
class Ensemble:
    """A sample passes when it passes in EVERY member; its confidence is the smallest of theirs.

    Members have the same classes in the same order and the same features; their kinds, dtypes and devices may differ.
    Either all give probabilities or all give decision values. Nested ensembles are flattened.

    Args:
        classifiers: at least one.
    """

    members: tuple[Member, ...]
    classes: tuple[str, ...] | None
    dtype: torch.dtype  # the narrowest dtype of the members, which determines overflow and rounding
    device: torch.device
    batch_size: int
    is_decision: bool

    def __init__(self, classifiers: Sequence[Classifier]) -> None:
        members = tuple(member for classifier in classifiers for member in classifier.members)
        if not members:
            raise InputError("Ensemble: got no classifiers; wanted at least one.")
        named = [(number, m.classes) for number, m in enumerate(members, 1) if m.classes is not None]
        faults = [
            f"Ensemble: member {number} has the classes {list(names)}, member {named[0][0]} has {list(named[0][1])}. "
            "All must have the same classes in the same order."
            for number, names in named[1:]
            if names != named[0][1]
        ]
        if len({member.is_decision for member in members}) > 1:
            faults.append(
                "Ensemble: some members give probabilities and some decision values; one margin cannot be in both "
                "units. Calibrate the latter (CalibratedClassifierCV), or keep to one kind."
            )
        if faults:
            raise ModelError(faults)
        assign = object.__setattr__
        assign(self, "members", members)
        assign(self, "classes", named[0][1] if named else None)
        assign(self, "dtype", min((m.dtype for m in members), key=lambda dtype: torch.finfo(dtype).max))
        assign(self, "device", members[0].device)
        assign(self, "batch_size", min(m.batch_size for m in members))
        assign(self, "is_decision", members[0].is_decision)

    @property
    def has_gradients(self) -> bool:
        return all(member.has_gradients for member in self.members)

    @contextmanager
    def borrowed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.borrowed())
            yield

    def check_features(self, features: Sequence[str]) -> None:
        for member in self.members:
            member.check_features(features)

    def frozen_faults(self, features: Sequence[str], changing: Collection[str]) -> list[str]:
        faults = [fault for member in self.members for fault in member.frozen_faults(features, changing)]
        return list(dict.fromkeys(faults))

    def sequence_faults(self, *, some_missing: bool, static_features: Sequence[str]) -> list[str]:
        per_member = [
            m.sequence_faults(some_missing=some_missing, static_features=static_features) for m in self.members
        ]
        faults = [fault for faults in per_member for fault in faults]
        return list(dict.fromkeys(faults))
