"""The adversarial-robustness-toolbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from art.attacks.evasion import CarliniL2Method, DeepFool, FastGradientMethod, SaliencyMapMethod
from art.estimators.classification import PyTorchClassifier
from torch import nn

from research.benchmarks.peer_tools.question import TARGET, Question
from research.benchmarks.peer_tools.running import Answer, Method, main
from research.benchmarks.peer_tools.torch_model import Asked

BATCH = 1024


def attacked(attack: Callable[[Any], Any], *, targeted: bool = True, bounded: bool = True) -> Method:
    """attack: of the classifier   targeted: it is told the wanted class; else it leaves the one that it finds

    bounded: it is told the limits; DeepFool would multiply its steps by their distance
    """

    def prepared(question: Question) -> Callable[[], Answer]:
        classifier = PyTorchClassifier(
            Asked(question).eval(),
            loss=nn.CrossEntropyLoss(),
            input_shape=(question.x.shape[1],),
            nb_classes=2,
            clip_values=(question.low, question.high) if bounded else None,
            device_type="cpu",
        )
        x = question.x.astype(np.float32)
        wanted = np.eye(2, dtype=np.float32)[np.full(len(x), TARGET)]

        def answered() -> Answer:
            torch.manual_seed(0)
            points = attack(classifier).generate(x, wanted if targeted else None)
            return Answer(question.changes_to(points))

        return answered

    return prepared


METHODS: dict[str, Method] = {
    "JSMA, theta 0.1": attacked(lambda c: SaliencyMapMethod(c, theta=0.1, batch_size=BATCH, verbose=False)),
    "JSMA, theta -0.1": attacked(lambda c: SaliencyMapMethod(c, theta=-0.1, batch_size=BATCH, verbose=False)),
    "DeepFool": attacked(lambda c: DeepFool(c, batch_size=BATCH, verbose=False), targeted=False, bounded=False),
    "C&W": attacked(lambda c: CarliniL2Method(c, targeted=True, batch_size=BATCH, verbose=False)),
    "FGSM, least length": attacked(
        lambda c: FastGradientMethod(c, eps=10.0, eps_step=0.1, minimal=True, targeted=True, batch_size=BATCH)
    ),
}

if __name__ == "__main__":
    main("adversarial-robustness-toolbox", METHODS)
