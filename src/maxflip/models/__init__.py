"""One protocol (scores, and log scores with gradients), one adapter per kind of model, and wrappers around them."""

from maxflip.models.base import Classifier, LinearForm, Member, Noise, log_scores, scores
from maxflip.models.black_box import BlackBoxClassifier
from maxflip.models.ensemble import Ensemble
from maxflip.models.probe import Probed, Rounding, guard_of, probe
from maxflip.models.sklearn.model import SklearnClassifier
from maxflip.models.temperature import Tempered
from maxflip.models.torch_module import TorchClassifier
from maxflip.models.trees.model import TreeClassifier

__all__ = [
    "BlackBoxClassifier",
    "Classifier",
    "Ensemble",
    "LinearForm",
    "Member",
    "Noise",
    "Probed",
    "Rounding",
    "SklearnClassifier",
    "Tempered",
    "TorchClassifier",
    "TreeClassifier",
    "guard_of",
    "log_scores",
    "probe",
    "scores",
]
