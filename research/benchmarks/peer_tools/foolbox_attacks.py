"""foolbox 3: attacks that look for the nearest flip, and one-step and many-step attacks of given lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eagerpy as ep
import foolbox as fb
import numpy as np
import torch

from research.benchmarks.peer_tools.question import Question
from research.benchmarks.peer_tools.running import Answer, Method, main
from research.benchmarks.peer_tools.torch_model import Asked, labels, start

LENGTHS = np.geomspace(0.01, 10.0, 20).tolist()  # standard deviations; of those that flip, the least counts


class ProjectedFMN(fb.attacks.L2FMNAttack):  # type: ignore[misc]
    """FMN of foolbox 3.3.4 multiplies by norms / norms where its paper projects onto the ball; this one projects."""

    def project(self, x: Any, x0: Any, epsilon: Any) -> Any:
        norms = ep.maximum((x - x0).norms.l2(axis=-1), 1e-12)
        return x0 + (x - x0) * ep.minimum(1.0, epsilon / norms).expand_dims(1)


def nearest(attack: Callable[[float], Any]) -> Method:
    """attack: of the largest value allowed"""

    def prepared(question: Question) -> Callable[[], Answer]:
        model, x, criterion = _asked(question)

        def answered() -> Answer:
            torch.manual_seed(0)
            _, points, _ = attack(question.high)(model, x, criterion, epsilons=None)
            return Answer(question.changes_to(points.detach().numpy()))

        return answered

    return prepared


def of_given_lengths(attack: Callable[[], Any]) -> Method:
    def prepared(question: Question) -> Callable[[], Answer]:
        model, x, criterion = _asked(question)

        def answered() -> Answer:
            torch.manual_seed(0)
            _, points, flipped = attack()(model, x, criterion, epsilons=LENGTHS)
            least = flipped.int().argmax(dim=0)
            chosen = torch.stack(list(points))[least, torch.arange(len(x))]
            return Answer(question.changes_to(chosen.detach().numpy()))

        return answered

    return prepared


def _asked(question: Question) -> tuple[Any, torch.Tensor, Any]:
    model = fb.PyTorchModel(Asked(question).eval(), bounds=(question.low, question.high))
    return model, start(question), fb.criteria.Misclassification(labels(question))


def carlini_wagner(high: float) -> Any:
    # It steps in the space of artanh(x / high); there this is a tenth of a standard deviation.
    return fb.attacks.L2CarliniWagnerAttack(binary_search_steps=9, steps=1000, stepsize=0.1 / high, initial_const=1.0)


METHODS: dict[str, Method] = {
    "DDN, 100 steps": nearest(lambda _: fb.attacks.DDNAttack(steps=100)),
    "DDN, 1,000 steps": nearest(lambda _: fb.attacks.DDNAttack(steps=1000, gamma=0.02)),
    "FMN, 100 steps": nearest(lambda _: fb.attacks.L2FMNAttack(steps=100)),
    "FMN, 1,000 steps, mended": nearest(lambda _: ProjectedFMN(steps=1000)),
    "DeepFool, 50 steps": nearest(lambda _: fb.attacks.L2DeepFoolAttack(steps=50)),
    "C&W, 9 x 1,000 steps": nearest(carlini_wagner),
    "FGSM, 20 lengths": of_given_lengths(fb.attacks.LinfFastGradientAttack),
    "I-FGSM, 20 lengths": of_given_lengths(fb.attacks.LinfBasicIterativeAttack),
    "I-FGM in L2, 20 lengths": of_given_lengths(fb.attacks.L2BasicIterativeAttack),
}

if __name__ == "__main__":
    main("foolbox", METHODS)
