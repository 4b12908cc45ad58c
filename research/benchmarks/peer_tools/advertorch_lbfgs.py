"""L-BFGS with a search for the weight of the distance (Szegedy and others, 2014), from advertorch 0.2.3.

For attacks and defences that are not used here the library imports a name that torch no longer has, and torchvision,
which is not installed; it is given empty ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from unittest.mock import MagicMock

import numpy as np
import torch
from numpy.typing import NDArray

from research.benchmarks.peer_tools.question import TARGET, Floats, Question
from research.benchmarks.peer_tools.running import Answer, main, one_by_one
from research.benchmarks.peer_tools.torch_model import Asked

sys.modules["torch.autograd.gradcheck"].zero_gradients = None  # type: ignore[attr-defined]
sys.modules["torchvision"] = MagicMock()

from advertorch.attacks import LBFGSAttack  # noqa: E402


def lbfgs(question: Question) -> Callable[[], Answer]:
    """One sample at a time: of several, the library follows the sum of their losses."""
    attack = LBFGSAttack(
        Asked(question).eval(), num_classes=2, clip_min=question.low, clip_max=question.high, targeted=True
    )

    wanted = torch.tensor([TARGET])

    def one(row: Floats) -> NDArray[np.float32]:
        point: NDArray[np.float32] = attack.perturb(torch.tensor(row[None], dtype=torch.float32), wanted)[0].numpy()
        return point

    return lambda: one_by_one(question, one)


if __name__ == "__main__":
    main("advertorch", {"L-BFGS": lbfgs})
