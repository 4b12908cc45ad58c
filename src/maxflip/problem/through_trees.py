"""What cannot be asked of models without gradients, as faults."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from maxflip._util.faults import Fault, about
from maxflip.models import Classifier
from maxflip.models.trees.known import NEEDS_NUMBA, can_be_searched, forests_of, tested
from maxflip.problem.must_hold import Requirement, Uptake


def faults_of_amounts(classifier: Classifier, features: Collection[str]) -> list[Fault]:
    """features: those that are to change by amounts"""
    if classifier.has_gradients or not features or can_be_searched(classifier):
        return []
    if forests_of(classifier):
        return [about("budgets", NEEDS_NUMBA)]
    says = (
        f"the model has no gradients, so {min(features)!r} cannot change by any amount. Use actions or choices alone."
    )
    return [about("budgets", says)]


def faults_of_trees(
    classifier: Classifier,
    features: Sequence[str],
    by_amounts: Collection[str],
    derived: Collection[str],
    requirements: Sequence[Requirement],
) -> list[Fault]:
    """What the search through trees does not do yet, where features change by amounts."""
    forests = forests_of(classifier)
    if not forests or not by_amounts:
        return []
    faults = []
    splits = {features[i] for i in tested(forests).tolist() if i < len(features)}
    for name in sorted(splits & set(derived)):
        says = f"the trees split at {name!r}, which follows from others; the search through trees cannot change it yet."
        faults.append(about("derived", says))
    if any(isinstance(one, Uptake) for one in requirements):
        says = "Uptake: the search through trees finds flips by full changes alone. Rounded is possible."
        faults.append(about("must_hold", says))
    return faults
