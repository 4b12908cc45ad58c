"""Fitted classifiers of scikit-learn, one function each: (part, raw columns, seen) -> Head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import nn

from maxflip.models.sklearn.layers import (
    Average,
    Dense,
    LogSigmoid,
    OneAgainstRest,
    Probability,
    SideBySide,
    Stretched,
    TwoColumns,
)
from maxflip.models.sklearn.parts import Part, Raw, Seen
from maxflip.models.sklearn.steps import chain, pipeline_steps


@dataclass(frozen=True, eq=False)
class Head:
    """A classifier over its input columns.

    logits    (B, w) -> (B, k): their softmax is predict_proba; None if the model has none
    decision  (B, w) -> (B, k), or (B, 1) for two classes: decision_function; None if the model has none
    """

    logits: nn.Module | None
    decision: nn.Module | None

    def after(self, steps: nn.Module) -> Head:
        def behind(layer: nn.Module | None) -> nn.Module | None:
            return None if layer is None else nn.Sequential(steps, layer)

        return Head(behind(self.logits), behind(self.decision))

    def scores(self, classes: int) -> tuple[nn.Module, Literal["logits", "decision"]]:
        """The layer (B, w) -> (B, k), and what it gives: logits if the model has probabilities, else decision values.

        For two classes the decision values are [0, decision_function]. So class 1 leads by decision_function, and
        class 0 by its negative.
        """
        if self.logits is not None:
            return self.logits, "logits"
        if self.decision is None:
            raise ValueError("neither probabilities nor decision values are known")
        return nn.Sequential(self.decision, TwoColumns()) if classes == 2 else self.decision, "decision"


def convert_classifier(part: Part, raw: Raw, seen: Seen) -> Head:
    check_known(part)
    return _HEADS[part.kind](part, raw, seen)


def check_known(part: Part) -> None:
    if part.kind not in _HEADS:
        raise part.refused(
            "cannot be converted: no exact differentiable form of it is known here. Classifiers that can: "
            f"{', '.join(_HEADS)}. Train one of these, or a torch module on this model's probabilities "
            "(TorchClassifier), and check its plan against this model. For actions and choices alone, "
            "BlackBoxClassifier(model.predict_proba) serves as it is."
        )


def _linear(part: Part, raw: Raw, seen: Seen) -> Dense:
    """coef_ x + intercept_   coef_ (k, w); for two classes (1, w), or (w,)"""
    coefficients = np.atleast_2d(part.fitted("coef_"))
    layer = Dense(coefficients, np.broadcast_to(part.estimator.intercept_, coefficients.shape[0]))
    _note_scale(raw, layer.weight.abs().amax(dim=0).numpy(), seen)
    return layer


def _note_scale(raw: Raw, steepest: Any, seen: Seen) -> None:
    """Estimate the scale of each column from the weights, for models that store no statistics."""
    with np.errstate(divide="ignore"):
        seen.note(raw, np.full(len(raw), np.nan), 1.0 / steepest)


def _logistic(part: Part, raw: Raw, seen: Seen) -> Head:
    """Two classes: [0, z]; more: the logits. scikit-learn up to 1.7 also has one-vs-rest, and two-class [-z, z]."""
    decision = _linear(part, raw, seen)
    form, classes = _old_form(part), len(part.estimator.classes_)
    if classes == 2:
        ends = nn.Sequential(Stretched(2.0, 0.0), TwoColumns()) if form == "multinomial" else TwoColumns()
        return Head(nn.Sequential(decision, ends), decision)
    return Head(nn.Sequential(decision, LogSigmoid()) if form == "ovr" else decision, decision)


def _old_form(part: Part) -> str:
    """ "ovr" or "multinomial" if the model's multi_class gives another form than current scikit-learn; else ""."""
    model = part.estimator
    if not hasattr(model, "multi_class"):
        return ""
    form = "ovr" if model.multi_class in ("auto", "deprecated", "warn") and model.solver == "liblinear" else ""
    form = model.multi_class if model.multi_class in ("ovr", "multinomial") else form
    several = len(model.classes_) > 2
    differs = form == ("ovr" if several else "multinomial")
    if differs and "multi_class" not in model.get_params(deep=False):
        raise part.refused(
            f"was trained with multi_class={model.multi_class!r}, which the installed scikit-learn no longer "
            "honours: its probabilities are others now. Refit it."
        )
    return form if differs else ""


def _discriminant(part: Part, raw: Raw, seen: Seen) -> Head:
    """Linear in x as logistic regression is: [0, z], or the logits."""
    decision = _linear(part, raw, seen)
    means = part.estimator.means_
    seen.note(raw, means.mean(axis=0))
    two = len(part.estimator.classes_) == 2
    return Head(nn.Sequential(decision, TwoColumns()) if two else decision, decision)


def _network(part: Part, raw: Raw, seen: Seen) -> Head:
    """Layers of coefs_[l]^T x + intercepts_[l] with `activation` between; one logit [0, z], or the logits."""
    weights, model = part.fitted("coefs_"), part.estimator
    if model.out_activation_ == "logistic" and model.n_outputs_ > 1:
        raise part.refused("has several labels at once. Train it on one label with one class per sample.")
    _note_scale(raw, np.abs(weights[0]).max(axis=1), seen)
    layers: list[nn.Module] = []
    for weight, bias in zip(weights, model.intercepts_, strict=True):
        layers += [Dense(weight.T, bias), _ACTIVATIONS[model.activation]()]
    layers[-1] = TwoColumns() if model.n_outputs_ == 1 else nn.Identity()
    return Head(nn.Sequential(*layers), None)


def _one_vs_rest(part: Part, raw: Raw, seen: Seen) -> Head:
    """p_c = P_c(x) / sum P(x), of one classifier per class; two classes have a single one."""
    estimators = part.fitted("estimators_")
    if part.estimator.multilabel_:
        raise part.refused("has several labels at once. Train it on one label with one class per sample.")
    members = [
        convert_classifier(part.inside(f"class {label}", estimator), raw, seen)
        for label, estimator in zip(part.estimator.classes_[-len(estimators) :], estimators, strict=True)
    ]
    if len(members) == 1:
        return members[0]
    logits = [m.logits for m in members if m.logits is not None]
    decisions = [m.decision for m in members if m.decision is not None]
    return Head(
        OneAgainstRest(logits) if len(logits) == len(members) else None,
        SideBySide(decisions) if len(decisions) == len(members) else None,
    )


def _calibrated(part: Part, raw: Raw, seen: Seen) -> Head:
    """The mean of the members' probabilities, each a classifier and a sigmoid per class."""
    if part.estimator.method != "sigmoid":
        why = "a step function without a gradient" if part.estimator.method == "isotonic" else "not converted"
        raise part.refused(f"has method={part.estimator.method!r}: {why}. Use method='sigmoid'.")
    members = [
        _calibrated_member(part.inside(f"member {m}", member), raw, seen)
        for m, member in enumerate(part.fitted("calibrated_classifiers_"))
    ]
    return Head(members[0] if len(members) == 1 else Average(members), None)


def _calibrated_member(part: Part, raw: Raw, seen: Seen) -> nn.Module:
    """s_c = -(a_c f_c(x) + b_c), f the decision function or else the probabilities.   two classes: [0, s]

    more: p_c = sigmoid(s_c) / sum sigmoid(s)
    """
    member = part.estimator
    head = convert_classifier(part.inside("estimator", member.estimator), raw, seen)
    if not np.array_equal(member.estimator.classes_, member.classes):
        raise part.refused("has not seen every class in its part of the training data. Use fewer folds.")
    slopes = np.array([c.a_ for c in member.calibrators])
    offsets = np.array([c.b_ for c in member.calibrators])
    ends = TwoColumns() if len(member.classes) == 2 else LogSigmoid()
    if head.decision is not None:
        return nn.Sequential(head.decision, Stretched(-slopes, -offsets), ends)
    logits, _ = head.scores(len(member.classes))
    return nn.Sequential(logits, Probability(), Stretched(-slopes, -offsets), ends)


def _margins(part: Part, raw: Raw, seen: Seen) -> Head:
    """Models with only a decision function: the margin is in its units. CalibratedClassifierCV adds probabilities."""
    return Head(None, _linear(part, raw, seen))


def _by_descent(part: Part, raw: Raw, seen: Seen) -> Head:
    """log_loss: one logistic regression, or one against rest; other losses: a decision function."""
    loss = part.estimator.loss
    if loss == "modified_huber":
        raise part.refused(f"has loss={loss!r}: its probabilities are cut off at 0 and 1. Use 'log_loss' or 'hinge'.")
    decision = _linear(part, raw, seen)
    ends = TwoColumns() if len(part.estimator.classes_) == 2 else LogSigmoid()
    return Head(nn.Sequential(decision, ends) if loss == "log_loss" else None, decision)


def _pipeline(part: Part, raw: Raw, seen: Seen) -> Head:
    *steps, last = pipeline_steps(part)
    layers, raw = chain(steps, raw, seen)
    return convert_classifier(last, raw, seen).after(layers)


def _search(part: Part, raw: Raw, seen: Seen) -> Head:
    return convert_classifier(part.inside("best_estimator_", part.fitted("best_estimator_")), raw, seen)


def _frozen(part: Part, raw: Raw, seen: Seen) -> Head:
    return convert_classifier(part.inside("estimator", part.estimator.estimator), raw, seen)


_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
}

_HEADS: dict[str, Callable[[Part, Raw, Seen], Head]] = {
    "LogisticRegression": _logistic,
    "LogisticRegressionCV": _logistic,
    "LinearDiscriminantAnalysis": _discriminant,
    "MLPClassifier": _network,
    "SGDClassifier": _by_descent,
    **dict.fromkeys(("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "Perceptron"), _margins),
    "OneVsRestClassifier": _one_vs_rest,
    "CalibratedClassifierCV": _calibrated,
    "Pipeline": _pipeline,
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"), _search),
    "FrozenEstimator": _frozen,
}
