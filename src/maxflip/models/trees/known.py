"""What other rooms ask of a classifier: is it made of trees alone?"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from maxflip.models.base import Classifier
from maxflip.models.trees.forest import Forest
from maxflip.models.trees.model import TreeClassifier

NEEDS_NUMBA = "changes by any amount through trees need numba: pip install 'maxflip[trees]'."


def forests_of(classifier: Classifier) -> tuple[Forest, ...]:
    """The forest of each member; none unless all have one."""
    members = classifier.members
    forests = tuple(member.forest for member in members if isinstance(member, TreeClassifier))
    return forests if len(forests) == len(members) else ()


def can_be_searched(classifier: Classifier) -> bool:
    """Whether changes by any amount can be searched without gradients."""
    return bool(forests_of(classifier)) and find_spec("numba") is not None


def tested(forests: tuple[Forest, ...]) -> np.ndarray:
    """The columns at which the trees split, ascending."""
    return np.unique(np.concatenate([forest.feature[forest.feature >= 0] for forest in forests]))
