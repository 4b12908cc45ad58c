"""Facts: what is worked out once of a classifier and a cohort, and kept for all problems that ask about the two."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from maxflip._util.types import Floats, Mask
from maxflip.data.cohort import Cohort
from maxflip.data.derived import Derived
from maxflip.models import Classifier, LinearForm
from maxflip.models.linear_forms import folded, linear_forms
from maxflip.problem.relations import Relation, find_relations

AGREE_ON = 256  # samples on which a linear form is compared with the model


@dataclass(eq=False)
class Facts:
    """A problem shares them with those that `changed` and `restricted` make of it.

    at_start: {Goal.is_threshold: (confidence (n,), whether the likeliest class is wanted (n,))}, before any change.
        The judge fills it in; it depends on the wanted classes, which no change of a problem replaces.
    """

    classifier: Classifier
    cohort: Cohort
    derived: Derived = field(default_factory=Derived)
    at_start: dict[bool, tuple[Floats, Mask]] = field(default_factory=dict)
    known_relations: dict[frozenset[int], tuple[Relation, ...]] = field(default_factory=dict)

    def relations(self, moving: frozenset[int]) -> tuple[Relation, ...]:
        """What changes of the columns `moving` of a table would break; sequences are not looked at."""
        if moving not in self.known_relations:
            rows = self.cohort.layout.as_rows(slice(None))
            self.known_relations[moving] = () if rows is None else find_relations(rows, moving, self.derived)
        return self.known_relations[moving]

    @cached_property
    def linear(self) -> tuple[LinearForm, ...] | None:
        """The linear form of each member, where the structure of all shows one and their answers agree with it.

        Derived features are folded into those that they are computed from; where one is not linear, there is no form.
        """
        some = self.cohort.order[:: max(1, len(self.cohort) // AGREE_ON)]
        forms = linear_forms(self.classifier, self.cohort.layout.as_rows(some))
        if forms is None:
            return None
        if self.derived.rules:
            features = self.derived.linear_on(self.cohort.plain.values)
            forms = None if features is None else tuple(folded(form, features) for form in forms)
        width = len(self.cohort.features)  # levers have columns that the model does not see
        return None if forms is None else tuple(form.with_columns(width) for form in forms)
