"""One protocol (scores and what to take gradients of), one adapter per kind of model, and what is made of several."""

from maxflip.classifiers.base import Classifier, LinearForm, Member, Noise, log_scores, scores
from maxflip.classifiers.ensemble import Ensemble
from maxflip.classifiers.probe import Probed, Sample, chosen_rows, probe
from maxflip.classifiers.sklearn_model import SklearnClassifier
from maxflip.classifiers.tempered import Tempered
from maxflip.classifiers.torch_module import TorchClassifier

__all__ = [
    "Classifier",
    "Ensemble",
    "LinearForm",
    "Member",
    "Noise",
    "Probed",
    "Sample",
    "SklearnClassifier",
    "Tempered",
    "TorchClassifier",
    "chosen_rows",
    "log_scores",
    "probe",
    "scores",
]
