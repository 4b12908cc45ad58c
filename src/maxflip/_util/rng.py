"""Named random streams from one seed. No global seeding; no stream depends on draws from another."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Streams:
    """Each use of randomness has its own stream, given by name and index.

    >>> streams = Streams(seed=0)
    >>> a = torch.rand(2, generator=streams.torch("noise", 3))
    >>> b = torch.rand(2, generator=streams.torch("noise", 3))
    >>> bool((a == b).all()), streams.key("noise", 3) != streams.key("noise", 4)
    (True, True)
    """

    seed: int

    def key(self, name: str, *index: int) -> int:
        """A 63-bit number from (seed, name, index)."""
        text = "/".join([str(self.seed), name, *map(str, index)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def torch(self, name: str, *index: int, device: torch.device | str = "cpu") -> torch.Generator:
        generator = torch.Generator(device=device)
        generator.manual_seed(self.key(name, *index))
        return generator
