"""L-BFGS with a search for the weight of the distance (Szegedy and others, 2014), from advertorch 0.2.3.

For attacks and defences that are not used here the library imports a name that torch no longer has, and torchvision,
which is not installed; it is given empty ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from unittest.mock import MagicMock

import torch

from benchmarks.peer_tools.question import TARGET, Question
from benchmarks.peer_tools.running import Answer, main
from benchmarks.peer_tools.torch_model import Asked, start

sys.modules["torch.autograd.gradcheck"].zero_gradients = None  # type: ignore[attr-defined]
sys.modules["torchvision"] = MagicMock()

from advertorch.attacks import LBFGSAttack  # noqa: E402


def lbfgs(question: Question) -> Callable[[], Answer]:
    """One sample at a time: of several, the library follows the sum of their losses."""
    attack = LBFGSAttack(
        Asked(question).eval(), num_classes=2, clip_min=question.low, clip_max=question.high, targeted=True
    )

    def answered() -> Answer:
        wanted = torch.tensor([TARGET])
        points = [attack.perturb(row[None], wanted) for row in start(question)]
        return Answer(question.changes_to(torch.cat(points).numpy()))

    return answered


if __name__ == "__main__":
    main("advertorch", {"L-BFGS": lbfgs})
