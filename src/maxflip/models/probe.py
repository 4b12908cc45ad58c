"""Try a classifier on a few rows before the run: does it keep the contract on which every result depends?

All of it on at most 256 rows, in less time than one gradient over a cohort. What fails here is a ModelError that
says what was seen and what to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from maxflip._util.messages import counted, first_line
from maxflip.data.inputs import Given, Inputs
from maxflip.data.sample import Sample
from maxflip.errors import ModelError
from maxflip.models.base import Classifier, Member

ALONE = 16  # rows tried one at a time
FEW = 3  # rows: an odd number
PATIENCE = 60.0  # seconds for a first answer to many rows, to a few and to one
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
    """What the probe learned: the number of classes, and how each member rounds."""

    classes: int
    rounding: tuple[Rounding, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Rounding:
    """How a model rounds: by how much a flip must pass beyond what is asked.

    unit: guard that is usual for the model's dtype, for outputs of size 1
    size: the largest decision value met; None: outputs are probabilities, of size 1
    converted: guard against differences from the model that this one was converted from
    seen: guard against the differences between batches that the probe met
    """

    unit: float
    size: float | None
    converted: float
    seen: float

    def usual(self, required: float) -> float:
        # Decision values of samples that all lie on the line are rounding errors; those of their flips are as required.
        size = 1.0 if self.size is None else max(self.size, required) or 1.0
        return max(self.unit * size, self.converted)

    def guard(self, required: float) -> float:
        """For flips of which this confidence is asked."""
        return max(self.usual(required), self.seen)


def guard_of(rounding: Sequence[Rounding], required: float) -> tuple[float, list[str]]:
    """By how much a flip must pass beyond the required confidence in every member, and what to tell of it."""
    notable = [g for one in rounding if (g := one.guard(required)) > NOTABLE * one.usual(required)]
    return max(one.guard(required) for one in rounding), [
        f"The model rounds differently in other batches; a flip must pass by {guard:.2g} more than asked."
        for guard in dict.fromkeys(notable)
    ]


def probe(classifier: Classifier, sample: Sample, where: Callable[[int], str], required: float = 0.0) -> Probed:
    """where(row): names a row in messages   required: confidence that flips are asked for"""
    members = classifier.members
    seen: list[Probed] = []
    for number, member in enumerate(members, 1):
        try:
            seen.append(_probe_member(member, sample, required, where))
        except ModelError as error:
            if len(members) == 1:
                raise
            raise ModelError([f"member {number} of {len(members)}: {p}" for p in error.problems]) from error
    if len({probed.classes for probed in seen}) > 1:
        each = ", ".join(str(probed.classes) for probed in seen)
        raise ModelError(f"the members have different numbers of classes: {each}. They must have the same classes.")
    notices = [notice for probed in seen for notice in probed.notices]
    notices += [IN_OWN_UNITS] if classifier.is_decision else []
    rounding = tuple(one for probed in seen for one in probed.rounding)
    return Probed(seen[0].classes, rounding, tuple(dict.fromkeys(notices)))


def _probe_member(member: Member, sample: Sample, required: float, where: Callable[[int], str]) -> Probed:
    with member.borrowed():
        inputs = sample.inputs(member.device)
        found = member.snapshot()
        try:
            _check_answers(member, inputs)
            out, notices = _check_calls(member, inputs, lambda j: where(int(sample.rows[j])))
            rounding = _rounding_between_batches(member, inputs, sample, required)
            if member.has_gradients:
                _check_gradient(member, inputs, out, torch.tensor(sample.step, device=member.device))
        finally:
            altered = found.put_back()
    if altered:
        raise ModelError(
            "the model changes its own buffers or parameters when it is called, so its answers depend on earlier "
            "calls. They were put back. Give a module whose forward has no side effects."
        )
    return Probed(int(out.shape[1]), (rounding,), tuple(notices))


def _check_answers(member: Member, inputs: Inputs) -> None:
    """Whether it answers at all, to many rows, a few and one: in a thread of its own, which a hang can keep."""
    for many in (len(inputs), FEW, 1):
        rows = inputs.at(slice(0, many))
        failures: list[BaseException] = []

        def ask(rows: Given = rows, failures: list[BaseException] = failures) -> None:
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


def _check_calls(member: Member, inputs: Inputs, where: Callable[[int], str]) -> tuple[torch.Tensor, list[str]]:
    x = inputs.at(slice(None))
    given = x.to(member.device, member.dtype)  # already cast, so that the door passes this very tensor on
    kept = given.clone()
    out = _call(member, given)
    _check_shape(out, len(x), member.classes)
    if not _equal(given, kept):
        raise ModelError("the model changes its input in place. Have forward work on a copy: x = x.clone().")
    _check_finite(out, where)
    notices = _check_output_kind(member, out)
    if not torch.equal(_call(member, x.clone()), out):
        raise ModelError(
            "the model's output changes between two calls on the same rows. Something in it is random or remembers "
            "(dropout applied by hand, a generator, a cache): switch it off in eval mode."
        )
    return out, notices


def _equal(a: Given, b: Given) -> bool:
    return a.equal(b)  # type: ignore[arg-type]  # both are of the same kind


def _call(member: Member, x: Given) -> torch.Tensor:
    with torch.no_grad(), torch.inference_mode(False):  # these are the thread's own
        return member.raw(x)


def _check_shape(out: object, n: int, classes: tuple[str, ...] | None) -> None:
    wanted = f"wanted ({n}, {len(classes) if classes else 'classes'}): one row per sample, one column per class"
    if not isinstance(out, torch.Tensor):
        raise ModelError(
            f"the model returned {type(out).__name__}; {wanted}. Wrap it in a module that returns that tensor."
        )
    if out.ndim != 2 or out.shape[0] != n or out.shape[1] < 2:
        one_logit = {
            (n,): "torch.stack([torch.zeros_like(z), z], dim=1)",
            (1, n): "torch.cat([torch.zeros_like(z), z], dim=0).T",
            (n, 1): "torch.cat([torch.zeros_like(z), z], dim=1)",
        }.get(tuple(out.shape))
        hint = f" A model with one logit z returns {one_logit}." if one_logit else ""
        raise ModelError(f"the model returned shape {tuple(out.shape)}; {wanted}.{hint}")
    if classes is not None and out.shape[1] != len(classes):
        raise ModelError(
            f"the model returned {counted(out.shape[1], 'column')}, but {len(classes)} "
            f"{'class is' if len(classes) == 1 else 'classes are'} named: {list(classes)}."
        )
    if not out.is_floating_point():
        raise ModelError(f"the model returned {out.dtype}; wanted floating point numbers.")


def _check_finite(out: torch.Tensor, where: Callable[[int], str]) -> None:
    bad = torch.nonzero(~torch.isfinite(out).all(dim=1)).flatten().tolist()
    if bad:
        first = ", ".join(where(j) for j in bad[:10]) + (f" and {len(bad) - 10} more" if len(bad) > 10 else "")
        raise ModelError(
            f"the model's output is not finite for {len(bad)} of {counted(len(out), 'row')} tried: {first}."
        )


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


def _check_gradient(member: Member, inputs: Inputs, out: torch.Tensor, step: torch.Tensor) -> None:
    """step (K,)"""
    everyone = torch.arange(len(inputs), device=step.device)
    eps, size_of_output = torch.finfo(member.dtype).eps, out.detach().double().abs().amax(dim=1)
    still = torch.zeros(len(inputs), len(step), dtype=step.dtype, device=step.device)
    if _has_gradient(member, inputs, everyone, still, step, eps * float(size_of_output.max())):
        return
    rounding = CHANGED * eps * size_of_output

    def change(d: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
        there = _call(member, inputs.at(among, d)).detach().double()
        return (there - out[among].detach().double()).abs().amax(dim=1)

    ways = [(d, change(d, everyone)) for d in (still + step, still - step)]
    seen = torch.cat([size[size > rounding] for _, size in ways])
    visible = eps * float(seen.median()) if len(seen) else 0.0  # of most rows: a few may be huge, or flat
    if _has_gradient(member, inputs, everyone, still, step, visible):
        return
    # Next to nothing everywhere: saturated, which is fine, or piecewise constant, which is not. Go to where the output
    # changes: there a saturated model has a slope, and a step has none.
    for d, size in ways:
        at = everyone[size > rounding]
        if not len(at):
            continue
        near, far = still[at], d[at]
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            if _has_gradient(member, inputs, at, middle, step, visible):
                return
            beyond = (change(middle, at) > rounding[at])[:, None]
            near, far = torch.where(beyond, near, middle), torch.where(beyond, middle, far)
    if len(seen):
        raise ModelError(f"the model's gradient is as good as zero although its output changes. {NO_GRADIENT}")


def _has_gradient(
    member: Member, inputs: Inputs, at: torch.Tensor, d: torch.Tensor, step: torch.Tensor, visible: float
) -> bool:
    """Whether the gradient promises more than a `visible` change of the output for a step (K,) from some row at d."""
    leaf = d.clone().requires_grad_(True)
    with torch.enable_grad():
        out = member.raw(inputs.at(at, leaf))
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


def _rounding_between_batches(member: Member, inputs: Inputs, sample: Sample, required: float) -> Rounding:
    """What is safe for the dtype, and four times what was seen between batches."""
    seen, largest_score = _apart_in_batches(member.scores, inputs)
    eps = torch.finfo(member.dtype).eps
    size = max(largest_score, required) or 1.0 if member.is_decision else 1.0
    if seen > ROUNDING * eps * size:
        # Large logits round by large amounts, and so do sums of large inputs that cancel; that is no coupling of rows.
        in_output, output_size = _apart_in_batches(member.raw, inputs)
        if in_output > ROUNDING * eps * max(output_size, sample.size):
            kind = "decision values" if member.is_decision else "probabilities"
            raise ModelError(
                f"a row's output depends on the other rows of its batch ({kind} differ by {seen:.2g}). Batch "
                "statistics or a ranking over the batch cannot be used: a flip must hold for a person alone."
                + sample.hint
            )
    at_the_line = 0.0 if member.is_decision else min(_apart_at_the_line(member, inputs), AT_THE_LINE)
    return Rounding(
        unit=GUARDS.get(member.dtype, 8 * eps),
        size=largest_score if member.is_decision else None,
        converted=4 * member.apart,
        seen=4 * max(seen, at_the_line),
    )


def _apart_at_the_line(member: Member, inputs: Inputs) -> float:
    """By how much probabilities near the line may differ between batches.

    Where a steep model is sure of itself its probabilities hide their rounding, which it has all the same where it
    wavers. Logarithms show it: d log p = dp / p.
    """

    def visible(rows: Given) -> torch.Tensor:
        return member.log_scores(rows).clamp_min(VISIBLE)

    return _apart_in_batches(visible, inputs)[0]


def _apart_in_batches(ask: Callable[[Given], torch.Tensor], inputs: Inputs) -> tuple[float, float]:
    """How far the answers for the same rows in other batches are apart, and how large they are."""
    n = len(inputs)
    half = (n + 1) // 2
    backwards = torch.arange(n - 1, -1, -1)
    with torch.no_grad():
        whole = ask(inputs.at(slice(None)))
        others = [
            ask(inputs.at(backwards)).flip(0),
            torch.cat([ask(inputs.at(part)) for part in (slice(0, half), slice(half, n)) if part.start < n]),
            torch.cat([ask(inputs.at(slice(j, j + 1))) for j in range(min(ALONE, n))]),
        ]
    seen = max(float((other - whole[: len(other)]).abs().max()) for other in others)
    return seen, float(whole.abs().max())
