"""The model as torch sees it, and as tools see it that know neither margins nor frozen features."""

from __future__ import annotations

import torch
from torch import nn

from research.benchmarks.peer_tools.question import TARGET, Question

torch.set_num_threads(1)
ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}


def network(question: Question) -> nn.Sequential:
    """Logits, in float32."""
    parts: list[nn.Module] = []
    for weights, biases in question.layers:
        layer = nn.Linear(weights.shape[1], weights.shape[0])
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weights))
            layer.bias.copy_(torch.tensor(biases))
        parts += [layer, ACTIVATIONS[question.activation]()]
    return nn.Sequential(*parts[:-1]).eval()


class Asked(nn.Module):
    """Logits whose largest is the wanted class's exactly where the margin is kept; frozen features have no gradient, so
    that whoever goes by gradients leaves them.

    Inputs are z = (x - shift) / scale, for tools that want values between 0 and 1.
    """

    def __init__(self, question: Question, shift: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.net, self.shift, self.scale = network(question), shift, scale
        self.frozen = torch.tensor(question.frozen)
        self.less = torch.zeros(2)
        self.less[TARGET] = question.head_start

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        x = self.shift + self.scale * torch.where(self.frozen, z.detach(), z)
        logits: torch.Tensor = self.net(x) - self.less
        return logits


def start(question: Question) -> torch.Tensor:
    return torch.tensor(question.x, dtype=torch.float32)


def labels(question: Question) -> torch.Tensor:
    """Of everybody: the class that they are to leave."""
    return torch.full((len(question.x),), 1 - TARGET)
