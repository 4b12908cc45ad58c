"""Try a classifier on a few rows before the run: does it keep the contract on which every result stands?

All of it on at most 256 rows, in less time than one gradient over a cohort. What fails here is a ModelError that
says what was seen and what to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from maxflip.classifiers.base import Classifier, Member
from maxflip.errors import ModelError
from maxflip.exact import Floats
from maxflip.suggest import first_line

ROWS = 256
ALONE = 16  # rows tried one at a time
FEW = 3  # rows: an odd number
PATIENCE = 60.0  # seconds for a first answer to ROWS rows, to a few and to one
# Rounding in a first layer grows with its width; a real coupling of rows is far above this many units of it.
ROUNDING = 1000.0
AT_THE_LINE = 2.5e-4  # more than this is not concluded from rounding far from the line
VISIBLE = -69.0  # the logarithm of 1e-30, below which float32 loses digits
NOTABLE = 10.0  # times the usual guard: worth a word
BISECTIONS = 40
CHANGED = 8.0  # units of rounding by which an output must move to have changed: a saturated softmax moves by less
NO_GRADIENT = "Gradients must reach the input: remove detach(), no_grad() and rounding from the model."
GUARDS = {torch.float64: 1e-9, torch.float32: 1e-6}  # of probabilities; of decision values, relative to their size
IN_OWN_UNITS = (
    "The model gives decision values, not probabilities: the margin and every confidence are in the model's own units. "
    "They say by how much the wanted class leads every unwanted one; of two classes, decision_function or its negative."
)


@dataclass(frozen=True)
class Probed:
    """What the probe learned: the number of classes, and by how much a flip must pass beyond what is asked."""

    classes: int
    guard: float
    notices: tuple[str, ...]


def probe(classifier: Classifier, values: Floats, where: Callable[[int], str]) -> Probed:
    """values (n, F); `where(row)` names a row in messages."""
    members = classifier.members
    seen: list[Probed] = []
    for number, member in enumerate(members, 1):
        try:
            seen.append(_probe_member(member, values, where))
        except ModelError as error:
            if len(members) == 1:
                raise
            raise ModelError([f"member {number} of {len(members)}: {p}" for p in error.problems]) from error
    if len({probed.classes for probed in seen}) > 1:
        each = ", ".join(str(probed.classes) for probed in seen)
        raise ModelError(f"the members have different numbers of classes: {each}. They must have the same classes.")
    notices = [notice for probed in seen for notice in probed.notices]
    notices += [IN_OWN_UNITS] if classifier.is_decision else []
    return Probed(seen[0].classes, max(probed.guard for probed in seen), tuple(dict.fromkeys(notices)))


def _probe_member(member: Member, values: Floats, where: Callable[[int], str]) -> Probed:
    rows = np.unique(np.linspace(0, len(values) - 1, min(ROWS, len(values))).astype(int))
    with member.borrowed():
        x = torch.tensor(values[rows], device=member.device)
        found = member.snapshot()
        try:
            _check_answers(member, x)
            out, notices = _check_calls(member, x, lambda j: where(int(rows[j])))
            guard, rounding_notices = _rounding_between_batches(member, x)
            _check_gradient(member, x, out)
        finally:
            altered = found.put_back()
    if altered:
        raise ModelError(
            "the model changes its own buffers or parameters when it is called, so its answers depend on earlier "
            "calls. They were put back. Give a module whose forward has no side effects."
        )
    return Probed(int(out.shape[1]), guard, (*notices, *rounding_notices))


def _check_answers(member: Member, x: torch.Tensor) -> None:
    """Whether it answers at all, to many rows, a few and one: in a thread of its own, which a hang can keep."""
    for rows in (x, x[:FEW], x[:1]):
        failures: list[BaseException] = []

        def ask(rows: torch.Tensor = rows, failures: list[BaseException] = failures) -> None:
            try:
                _call(member, rows.clone())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if thread.is_alive():
            raise ModelError(f"the model did not answer within {PATIENCE:g} s to a batch of shape {tuple(rows.shape)}.")
        if failures:
            _call(member, rows.clone())  # what it raises in the caller's own thread counts


def _check_calls(member: Member, x: torch.Tensor, where: Callable[[int], str]) -> tuple[torch.Tensor, list[str]]:
    given = x.to(member.dtype)  # already cast, so that the door passes this very tensor on
    kept = given.clone()
    out = _call(member, given)
    _check_shape(out, x, member.classes)
    if not torch.equal(given, kept):
        raise ModelError("the model changes its input in place. Have forward work on a copy: x = x.clone().")
    _check_finite(out, where)
    notices = _check_output_kind(member, out)
    if not torch.equal(_call(member, x.clone()), out):
        raise ModelError(
            "the model's output changes between two calls on the same rows. Something in it is random or remembers "
            "(dropout applied by hand, a generator, a cache): switch it off in eval mode."
        )
    return out, notices


def _call(member: Member, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), torch.inference_mode(False):  # these are the thread's own
        return member.raw(x)


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
        raise ModelError(f"the model returned {out.dtype}; wanted floating point numbers.")


def _check_finite(out: torch.Tensor, where: Callable[[int], str]) -> None:
    bad = torch.nonzero(~torch.isfinite(out).all(dim=1)).flatten().tolist()
    if bad:
        first = ", ".join(where(j) for j in bad[:10]) + (f" and {len(bad) - 10} more" if len(bad) > 10 else "")
        raise ModelError(f"the model's output is not finite for {len(bad)} of {len(out)} rows tried: {first}.")


def _check_output_kind(member: Member, out: torch.Tensor) -> list[str]:
    z = out.double()
    sums = z.sum(dim=1)
    tolerance = max(1e-5, 8 * torch.finfo(member.dtype).eps)
    in_range = bool(((z >= 0) & (z <= 1 + tolerance)).all())
    sum_to_one = bool(((sums - 1).abs() <= tolerance).all())
    if member.output == "probabilities":
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
            f"The model's rows lie in [0, 1] and sum to 1, as probabilities do, but output={member.output!r} was "
            "given. If they are probabilities, set output='probabilities'."
        ]
    return []


def _check_gradient(member: Member, x: torch.Tensor, out: torch.Tensor) -> None:
    spread = x.std(dim=0, unbiased=False)
    step = torch.where(spread > 0, spread, torch.ones_like(spread))
    eps, size_of_output = torch.finfo(member.dtype).eps, out.detach().double().abs().amax(dim=1)
    if _has_gradient(member, x, step, eps * float(size_of_output.max())):
        return
    rounding = CHANGED * eps * size_of_output

    def change(to: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
        return (_call(member, to).detach().double() - out[among].detach().double()).abs().amax(dim=1)

    everyone = torch.arange(len(x), device=x.device)
    ways = [(there, change(there, everyone)) for there in (x + step, x - step)]
    seen = torch.cat([size[size > rounding] for _, size in ways])
    visible = eps * float(seen.median()) if len(seen) else 0.0  # of most rows: a few may be huge, or flat
    if _has_gradient(member, x, step, visible):
        return
    # Next to nothing everywhere: saturated, which is fine, or piecewise constant, which is not. Go to where the output
    # changes: there a saturated model has a slope, and a step has none.
    for there, size in ways:
        at = everyone[size > rounding]
        if not len(at):
            continue
        near, far = x[at], there[at]
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            if _has_gradient(member, middle, step, visible):
                return
            beyond = (change(middle, at) > rounding[at])[:, None]
            near, far = torch.where(beyond, near, middle), torch.where(beyond, middle, far)
    if len(seen):
        raise ModelError(f"the model's gradient is as good as zero although its output changes. {NO_GRADIENT}")


def _has_gradient(member: Member, x: torch.Tensor, step: torch.Tensor, visible: float) -> bool:
    """Whether the gradient promises more than a `visible` change of the output for a step (F,) from some row."""
    leaf = x.clone().requires_grad_(True)
    with torch.enable_grad():
        out = member.raw(leaf)
        weights = torch.arange(1, out.shape[1] + 1, device=out.device)  # unlike: probabilities sum to a constant
        score = (out.double() * weights).sum()
    if not out.requires_grad:
        raise ModelError(f"the model gives no gradient. {NO_GRADIENT}")
    try:
        (gradient,) = torch.autograd.grad(score, leaf, allow_unused=True)
    except Exception as error:
        raise ModelError(
            f"the model raised {type(error).__name__} when its gradient was taken: {first_line(error)}."
        ) from error
    return gradient is not None and bool(((gradient.abs() * step).sum(dim=1) > visible).any())


def _rounding_between_batches(member: Member, x: torch.Tensor) -> tuple[float, list[str]]:
    """The guard: what is safe for the dtype, or four times what was seen between batches, if that is more."""
    seen, size = _apart_in_batches(member.scores, x)
    eps = torch.finfo(member.dtype).eps
    size = size if member.is_decision else 1.0
    if seen > ROUNDING * eps * size:
        # Large logits round by large amounts, and so do sums of large inputs that cancel; that is no coupling of rows.
        in_output, output_size = _apart_in_batches(member.raw, x)
        if in_output > ROUNDING * eps * max(output_size, float(x.abs().max())):
            kind = "decision values" if member.is_decision else "probabilities"
            raise ModelError(
                f"a row's output depends on the other rows of its batch ({kind} differ by {seen:.2g}). Batch "
                "statistics or a ranking over the batch cannot be used: a flip must hold for a person alone."
            )
    usual = max(GUARDS.get(member.dtype, 8 * eps) * size, 4 * member.apart)
    guard = max(usual, 4 * seen, 0.0 if member.is_decision else 4 * min(_apart_at_the_line(member, x), AT_THE_LINE))
    if guard <= NOTABLE * usual:
        return guard, []
    return guard, [f"The model rounds differently in other batches; a flip must pass by {guard:.2g} more than asked."]


def _apart_at_the_line(member: Member, x: torch.Tensor) -> float:
    """By how much probabilities near the line may differ between batches.

    Where a steep model is sure of itself its probabilities hide their rounding, which it has all the same where it
    wavers. Logarithms show it: d log p = dp / p.
    """

    def visible(rows: torch.Tensor) -> torch.Tensor:
        return member.log_scores(rows).clamp_min(VISIBLE)

    return _apart_in_batches(visible, x)[0]


def _apart_in_batches(ask: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> tuple[float, float]:
    """How far the answers for the same rows in other batches are apart, and how large they are."""
    half = (len(x) + 1) // 2
    with torch.no_grad():
        whole = ask(x)
        others = [
            ask(x.flip(0)).flip(0),
            torch.cat([ask(part) for part in (x[:half], x[half:]) if len(part)]),
            torch.cat([ask(x[j : j + 1]) for j in range(min(ALONE, len(x)))]),
        ]
    seen = max(float((other - whole[: len(other)]).abs().max()) for other in others)
    return seen, float(whole.abs().max()) or 1.0
