"""The linear forms of a classifier's members, compared with what the members say."""

from __future__ import annotations

from dataclasses import replace

import torch

from maxflip._util.types import Floats
from maxflip.models.base import Classifier, LinearForm


def linear_forms(classifier: Classifier, rows: Floats | None) -> tuple[LinearForm, ...] | None:
    """Of each member, where the structure of all shows one and their answers agree with it at `rows` (b, F).

    rows: None where the samples are no rows, so that there is no linear form over them
    """
    if rows is None:
        return None
    forms = []
    x = torch.tensor(rows)
    x = torch.cat([x, x.flip(0) * 1.5 - x * 0.5])  # also between and beyond the samples
    for member in classifier.members:
        form = member.linear(rows.shape[1])
        if form is None:
            return None
        with member.borrowed(), torch.no_grad():
            said = member.scores(x).cpu()
        values = x @ form.weight.T + form.bias
        shown = values if member.is_decision else torch.softmax(values, dim=1)
        size = said.abs().max() if member.is_decision else 1.0
        if not bool(((said - shown).abs() <= size * torch.finfo(member.dtype).eps ** 0.5).all()):
            return None
        # A model in another dtype rounds its input, by any amount for large values.
        forms.append(form if member.dtype == torch.float64 else replace(form, noise=None))
    return tuple(forms)
