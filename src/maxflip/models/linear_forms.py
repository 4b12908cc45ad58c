"""The linear forms of a classifier's members, checked against their scores; and as they are where some features follow
from others."""

from __future__ import annotations

from dataclasses import replace

import torch

from maxflip._util.types import Floats
from maxflip.data.derived import EPS, LinearMap
from maxflip.models.base import Classifier, LinearForm, Noise


def linear_forms(classifier: Classifier, rows: Floats | None) -> tuple[LinearForm, ...] | None:
    """The linear form of each member; None unless all have one that agrees with their scores at `rows` (b, F).

    rows: None for sequences, which have no linear form
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
        # A model in another dtype rounds its input; for large values the error has no bound.
        forms.append(form if member.dtype == torch.float64 else replace(form, noise=None))
    return tuple(forms)


def folded(form: LinearForm, features: LinearMap) -> LinearForm:
    """weight (E x + c) + bias: the form over the features that are no derived ones, whose weights take on those of the
    features that follow from them.

    Its noise is that of the model at E x + c, the error of that times the weights, and the rounding of the products.
    """
    matrix, offset, size, level, share = (
        torch.tensor(getattr(features, name)) for name in ("matrix", "offset", "size", "level", "share")
    )
    weight, bias = form.weight @ matrix, form.bias + form.weight @ offset
    if form.noise is None:
        return LinearForm(weight, bias)
    rounding = (len(offset) + 2) * EPS
    error = form.noise.weight * (1.0 + share) + form.weight.abs() * (share + rounding)
    noise = Noise(error @ size, form.noise.bias + error @ level + rounding * form.bias.abs())
    return LinearForm(weight, bias, noise)
