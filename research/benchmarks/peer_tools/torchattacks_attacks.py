"""torchattacks: wants values between 0 and 1, so all are shifted and scaled alike, and distances stay in proportion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchattacks

from research.benchmarks.peer_tools.question import TARGET, Question
from research.benchmarks.peer_tools.running import Answer, Method, main
from research.benchmarks.peer_tools.torch_model import Asked, labels, start


def attacked(attack: Callable[[Any, float], Any], *, targeted: bool = True) -> Method:
    """attack: of the model, and of what a standard deviation is to it"""

    def prepared(question: Question) -> Callable[[], Answer]:
        shift, scale = question.low, question.high - question.low
        x = (start(question) - shift) / scale
        wanted = torch.full((len(x),), TARGET)

        def answered() -> Answer:
            torch.manual_seed(0)
            one = attack(Asked(question, shift, scale).eval(), 1.0 / scale)
            if targeted:
                one.set_mode_targeted_by_label(quiet=True)
            points = one(x, wanted if targeted else labels(question)).detach()
            moved = torch.where(points == x, 0.0, (points.double() - x.double()) * scale)
            return Answer(question.changes_to(question.x + moved.numpy()))

        return answered

    return prepared


METHODS: dict[str, Method] = {
    "JSMA, theta 0.5": attacked(lambda net, unit: torchattacks.JSMA(net, theta=0.5 * unit, gamma=1.0)),
    "JSMA, theta -0.5": attacked(lambda net, unit: torchattacks.JSMA(net, theta=-0.5 * unit, gamma=1.0)),
    "DeepFool": attacked(lambda net, _: torchattacks.DeepFool(net), targeted=False),
    "C&W, 1,000 steps": attacked(lambda net, unit: torchattacks.CW(net, c=10 * unit**2, steps=1000, lr=0.2 * unit)),
}

if __name__ == "__main__":
    main("torchattacks", METHODS)
