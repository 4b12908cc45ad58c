"""alibi: counterfactuals by gradients that it takes by differences, since the model is a function to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf
from alibi.explainers import Counterfactual, CounterfactualProto

from research.benchmarks.peer_tools.question import TARGET, Floats, Question
from research.benchmarks.peer_tools.running import Answer, Method, main, one_by_one

tf.compat.v1.disable_v2_behavior()
TOLERANCE = 0.01  # of the probability that Counterfactual aims at


def chances(question: Question) -> Callable[[Floats], Floats]:
    """(B, 2): probabilities, the wanted one larger exactly where the margin is kept"""

    def asked(x: Floats) -> Floats:
        h = question.logits(x)
        gap = np.clip(h[:, TARGET] - h[:, 1 - TARGET] - question.head_start, -500, 500)
        p = np.empty((len(x), 2))
        p[:, TARGET] = 1.0 / (1.0 + np.exp(-gap))
        p[:, 1 - TARGET] = 1.0 - p[:, TARGET]
        return p

    return asked


def _ranges(question: Question, row: Floats) -> tuple[Floats, Floats]:
    """Frozen features have a range of one value, the sample's."""
    low = np.where(question.frozen, row, question.low)
    high = np.where(question.frozen, row, question.high)
    return low[None], high[None]


def prototypes(question: Question) -> Callable[[], Answer]:
    asked = chances(question)

    def one(row: Floats) -> Floats:
        tf.compat.v1.reset_default_graph()
        tf.keras.backend.clear_session()
        explainer = CounterfactualProto(
            asked,
            (1, len(row)),
            feature_range=_ranges(question, row),
            use_kdtree=True,
            max_iterations=500,
            theta=10.0,
        )
        explainer.fit(question.reference)
        found = explainer.explain(row[None], target_class=[TARGET]).cf
        return np.full(len(row), np.nan) if found is None else np.asarray(found["X"][0], dtype=np.float64)

    return lambda: one_by_one(question, one)


def wachter(question: Question) -> Callable[[], Answer]:
    asked = chances(question)

    def one(row: Floats) -> Floats:
        tf.compat.v1.reset_default_graph()
        tf.keras.backend.clear_session()
        explainer = Counterfactual(
            asked,
            (1, len(row)),
            target_proba=0.5 + 1.01 * TOLERANCE,
            tol=TOLERANCE,
            target_class=TARGET,
            feature_range=_ranges(question, row),
        )
        found = explainer.explain(row[None]).cf
        return np.full(len(row), np.nan) if found is None else np.asarray(found["X"][0], dtype=np.float64)

    return lambda: one_by_one(question, one)


METHODS: dict[str, Method] = {"CounterfactualProto": prototypes, "Counterfactual": wachter}

if __name__ == "__main__":
    main("alibi", METHODS)
