"""Jobs for tests of the program: a text, and a model file to go with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

NEAREST = '[solver]\nname = "nearest"\n'  # what a job by the default solver lacks


def job_text(features: list[str], budgets: Mapping[str, float]) -> str:
    """cohort.csv with the ids in `who`, model.pt2 with logits for worse and stable, stable wanted by 0.1.

    Without a frontier, and by Nearest, since other solves take their time.
    """
    head = f"""format = 1
[cohort]
file = "cohort.csv"
id = "who"
features = {features}
[model]
file = "model.pt2"
output = "logits"
classes = ["worse", "stable"]
[goal]
target = "stable"
margin = 0.1
[report]
frontier = false
{NEAREST}"""
    return head.replace("'", '"') + "".join(f"[budgets.{name}]\namount = {a}\n" for name, a in budgets.items())


def export(net: nn.Module, path: Path, features: int = 3, dtype: torch.dtype = torch.float32) -> None:
    example = (torch.zeros(2, features, dtype=dtype),)
    torch.export.save(torch.export.export(net.eval(), example, dynamic_shapes=({0: torch.export.Dim("rows")},)), path)
