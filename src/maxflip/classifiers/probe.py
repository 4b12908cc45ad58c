"""Try a classifier on a few rows before the run: does it keep the contract on which every result stands?

All of it on at most 256 rows, in less time than one gradient over a cohort. What fails here is a ModelError that
says what was seen and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from maxflip.classifiers.base import Classifier
from maxflip.errors import ModelError
from maxflip.exact import Floats

ROWS = 256
ALONE = 16  # rows tried one at a time
# Rounding in a first layer grows with its width; a real coupling of rows is far above this many units of it.
ROUNDING = 1000.0
BISECTIONS = 40
NO_GRADIENT = "Gradients must reach the input: remove detach(), no_grad() and rounding from the model."
GUARDS = {torch.float64: 1e-9, torch.float32: 1e-6}


@dataclass(frozen=True)
class Probed:
    """What the probe learned: the number of classes, and by how much a flip must pass beyond what is asked."""

    classes: int
    guard: float
    notices: tuple[str, ...]


def probe(classifier: Classifier, values: Floats, where: Callable[[int], str]) -> Probed:
    """values (n, F); `where(row)` names a row in messages."""
    rows = np.unique(np.linspace(0, len(values) - 1, min(ROWS, len(values))).astype(int))
    x = torch.tensor(values[rows], device=classifier.device)
    state_before = [t.clone() for t in classifier.state()]
    try:
        with classifier.borrowed():
            out, notices = _check_calls(classifier, x, lambda j: where(int(rows[j])))
            guard, rounding_notices = _rounding_between_batches(classifier, x)
            _check_gradient(classifier, x, out)
    finally:
        altered = any(not _same(a, b) for a, b in zip(state_before, classifier.state(), strict=True))
        if altered:
            with torch.no_grad():
                for kept, now in zip(state_before, classifier.state(), strict=True):
                    now.copy_(kept)
    if altered:
        raise ModelError(
            "the model changes its own buffers or parameters when it is called, so its answers depend on earlier "
            "calls. They were put back. Give a module whose forward has no side effects."
        )
    return Probed(int(out.shape[1]), guard, (*notices, *rounding_notices))


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal, where NaN equals NaN."""
    return bool(torch.all((a == b) | ((a != a) & (b != b))))  # noqa: PLR0124


def _check_calls(
    classifier: Classifier, x: torch.Tensor, where: Callable[[int], str]
) -> tuple[torch.Tensor, list[str]]:
    given = x.to(classifier.dtype)  # already cast, so that the door passes this very tensor on
    kept = given.clone()
    out = _call(classifier, given)
    _check_shape(out, x, classifier.classes)
    if not torch.equal(given, kept):
        raise ModelError("the model changes its input in place. Have forward work on a copy: x = x.clone().")
    _check_finite(out, where)
    notices = _check_output_kind(classifier, out)
    if not torch.equal(_call(classifier, x.clone()), out):
        raise ModelError(
            "the model's output changes between two calls on the same rows. Something in it is random or remembers "
            "(dropout applied by hand, a generator, a cache): switch it off in eval mode."
        )
    return out, notices


def _call(classifier: Classifier, x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            return classifier.raw(x)
    except Exception as error:
        hint = ""
        if isinstance(getattr(classifier, "module", None), torch.fx.GraphModule):
            hint = (
                " An exported model must take any number of rows: "
                "torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim('rows')},))."
            )
        shape = tuple(x.shape)
        raise ModelError(
            f"the model raised {type(error).__name__} on a batch of shape {shape}, {classifier.dtype}: "
            f"{_first_line(error)}.{hint}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:300].rstrip(".")


def _check_shape(out: object, x: torch.Tensor, classes: tuple[str, ...] | None) -> None:
    wanted = f"wanted ({len(x)}, {len(classes) if classes else 'classes'}): one row per sample, one column per class"
    if not isinstance(out, torch.Tensor):
        raise ModelError(
            f"the model returned {type(out).__name__}; {wanted}. Wrap it in a module that returns that tensor."
        )
    if out.ndim != 2 or out.shape[0] != len(x) or out.shape[1] < 2:
        one_logit = {
            (len(x),): "torch.stack([torch.zeros_like(z), z], dim=1)",
            (1, len(x)): "torch.cat([torch.zeros_like(z), z], dim=0).T",
            (len(x), 1): "torch.cat([torch.zeros_like(z), z], dim=1)",
        }.get(tuple(out.shape))
        hint = f" A model with one logit z returns {one_logit}." if one_logit else ""
        raise ModelError(f"the model returned shape {tuple(out.shape)}; {wanted}.{hint}")
    if classes is not None and out.shape[1] != len(classes):
        raise ModelError(
            f"the model returned {out.shape[1]} columns, but {len(classes)} classes are named: {list(classes)}."
        )
    if not out.is_floating_point():
        raise ModelError(f"the model returned {out.dtype}; wanted floating point logits or probabilities.")


def _check_finite(out: torch.Tensor, where: Callable[[int], str]) -> None:
    bad = torch.nonzero(~torch.isfinite(out).all(dim=1)).flatten().tolist()
    if bad:
        first = ", ".join(where(j) for j in bad[:10]) + (f" and {len(bad) - 10} more" if len(bad) > 10 else "")
        raise ModelError(f"the model's output is not finite for {len(bad)} of {len(out)} rows tried: {first}.")


def _check_output_kind(classifier: Classifier, out: torch.Tensor) -> list[str]:
    z = out.double()
    sums = z.sum(dim=1)
    tolerance = max(1e-5, 8 * torch.finfo(classifier.dtype).eps)
    in_range = bool(((z >= 0) & (z <= 1 + tolerance)).all())
    sum_to_one = bool(((sums - 1).abs() <= tolerance).all())
    if getattr(classifier, "output", None) == "probabilities":
        worst = int((sums - 1).abs().argmax())
        if not in_range:
            raise ModelError(
                f"output='probabilities', but the model returns values from {z.min():.4g} to {z.max():.4g}. "
                "Set output='logits'."
            )
        if not sum_to_one:
            raise ModelError(
                f"output='probabilities', but rows sum to {sums[worst]:.6g}. Set output='logits', or end the model "
                "in a softmax."
            )
        return []
    if in_range and sum_to_one:
        return [
            "The model's rows lie in [0, 1] and sum to 1, as probabilities do, but output='logits' was given. If they "
            "are probabilities, set output='probabilities'."
        ]
    return []


def _check_gradient(classifier: Classifier, x: torch.Tensor, out: torch.Tensor) -> None:
    if _has_gradient(classifier, x):
        return
    # Zero everywhere: saturated, which is fine, or piecewise constant, which is not. Go to where the output changes:
    # there a saturated model has a slope, and a step has none.
    spread = x.std(dim=0, unbiased=False)
    step = torch.where(spread > 0, spread, torch.ones_like(spread))
    for there in (x + step, x - step):
        changed = (_call(classifier, there) != out).any(dim=1)
        if not changed.any():
            continue
        near, far, start = x[changed], there[changed], out[changed]
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            if _has_gradient(classifier, middle):
                return
            same = (_call(classifier, middle) == start).all(dim=1, keepdim=True)
            near, far = torch.where(same, middle, near), torch.where(same, far, middle)
        raise ModelError(f"the model's gradient is zero although its output changes with the input. {NO_GRADIENT}")


def _has_gradient(classifier: Classifier, x: torch.Tensor) -> bool:
    leaf = x.clone().requires_grad_(True)
    try:
        with torch.enable_grad():
            out = classifier.raw(leaf)
            weights = torch.arange(1, out.shape[1] + 1, device=out.device)  # unlike: probabilities sum to a constant
            score = (out.double() * weights).sum()
    except Exception as error:
        raise ModelError(
            f"the model raised {type(error).__name__} when gradients are on: {_first_line(error)}."
        ) from error
    if not out.requires_grad:
        raise ModelError(f"the model gives no gradient. {NO_GRADIENT}")
    (gradient,) = torch.autograd.grad(score, leaf, allow_unused=True)
    return gradient is not None and bool(gradient.abs().sum() > 0)


def _rounding_between_batches(classifier: Classifier, x: torch.Tensor) -> tuple[float, list[str]]:
    """The guard: what is safe for the dtype, or four times what was seen between batches, if that is more."""
    with torch.no_grad():
        whole = classifier.probabilities(x)
        backwards = classifier.probabilities(x.flip(0)).flip(0)
        half = (len(x) + 1) // 2
        halves = torch.cat([classifier.probabilities(part) for part in (x[:half], x[half:]) if len(part)])
        alone = torch.cat([_alone(classifier, x[j : j + 1]) for j in range(min(ALONE, len(x)))])
    seen = max(
        float((backwards - whole).abs().max()),
        float((halves - whole).abs().max()),
        float((alone - whole[: len(alone)]).abs().max()),
    )
    eps = torch.finfo(classifier.dtype).eps
    if seen > ROUNDING * eps:
        raise ModelError(
            f"a row's output depends on the other rows of its batch (probabilities differ by {seen:.2g}). Batch "
            "statistics or a ranking over the batch cannot be used: a flip must hold for a person alone."
        )
    guard = max(GUARDS.get(classifier.dtype, 8 * eps), 4 * classifier.apart)
    if 4 * seen > guard:
        return 4 * seen, [
            f"The model rounds differently in other batches (by {seen:.2g}); a flip must pass by {4 * seen:.2g}."
        ]
    return guard, []


def _alone(classifier: Classifier, row: torch.Tensor) -> torch.Tensor:
    _call(classifier, row)  # for its error message, where a single row is refused
    return classifier.probabilities(row)
