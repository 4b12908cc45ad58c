"""One protocol (probabilities and what to take gradients of) and one adapter per kind of model."""

from maxflip.classifiers.base import Classifier, LinearForm
from maxflip.classifiers.probe import Probed, probe
from maxflip.classifiers.sklearn_model import SklearnClassifier
from maxflip.classifiers.torch_module import TorchClassifier

__all__ = ["Classifier", "LinearForm", "Probed", "SklearnClassifier", "TorchClassifier", "probe"]
