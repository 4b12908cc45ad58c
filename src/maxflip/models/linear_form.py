"""Recognises linear models by running them on a symbolic input.

The model is called once with an `Affine` value, x -> matrix x + offset, in place of a batch. Every torch function it
applies is looked up in a short list of operations that keep a value affine; any other operation ends the attempt. A
model that passes is linear for every x. This is a proof from structure, not a fit to sampled points. It works for
scalers inside the model, nested modules and exported programs.

Each value also carries a bound of its rounding errors: the same sums with absolute values of all terms, and the number
of roundings so far. They bound the difference between the model and its form at any x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from maxflip._util.types import Scores
from maxflip.models.base import LinearForm, Noise

LOG_SOFTMAX_STEPS = 8  # roundings counted for a softmax, relative to the logits


class NotAffine(Exception):
    """The model applies an operation that is not on the list."""


@dataclass(frozen=True, eq=False)
class Rounded:
    """Bound of the rounding error of a batch: steps * eps * (matrix |x| + offset).   (w, F), (w,), >= 0

    is_double: whether everything was computed in float64
    """

    matrix: torch.Tensor
    offset: torch.Tensor
    steps: int = 0
    is_double: bool = True

    def plus(self, other: Rounded) -> Rounded:
        steps = max(self.steps, other.steps) + 1
        both = self.is_double and other.is_double
        return Rounded(self.matrix + other.matrix, self.offset + other.offset, steps, both)

    def times(self, factor: torch.Tensor) -> Rounded:
        size = factor.abs()
        column = size[:, None] if size.ndim else size
        return replace(self, matrix=self.matrix * column, offset=self.offset * size, steps=self.steps + 1)

    def through(self, weight: torch.Tensor) -> Rounded:
        size, steps = weight.abs(), self.steps + weight.shape[1]
        return replace(self, matrix=size @ self.matrix, offset=size @ self.offset, steps=steps)

    def later(self, steps: int) -> Rounded:
        return replace(self, steps=self.steps + steps)


class Affine:
    """A batch whose rows are matrix x + offset.   matrix (w, F)   offset (w,)   float64"""

    def __init__(self, matrix: torch.Tensor, offset: torch.Tensor, rounded: Rounded, ended_by: str = "") -> None:
        self.matrix, self.offset, self.rounded = matrix, offset, rounded
        self.ended_by = ended_by  # name of a final softmax over the classes, after which nothing affine can follow

    @classmethod
    def identity(cls, width: int) -> Affine:
        x, nothing = torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
        return cls(x, nothing, Rounded(x, nothing))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "").split(".")[0]
        name = name[2:-2] if name.startswith("__") and name.endswith("__") else name
        # In-place operations ("add_") are not on the list: they would change a value used elsewhere.
        if not _is_torchs_own(func) or name not in _KEEPS_AFFINE:
            raise NotAffine(name)
        return _KEEPS_AFFINE[name](*args, **(kwargs or {}))

    def dim(self) -> int:
        return 2

    def __add__(self, other: Any) -> Affine:
        return _add(self, other)

    def __sub__(self, other: Any) -> Affine:
        return _sub(self, other)

    def __mul__(self, other: Any) -> Affine:
        return _mul(self, other)

    def __truediv__(self, other: Any) -> Affine:
        return _div(self, other)

    def __neg__(self) -> Affine:
        return _mul(self, -1.0)

    def __matmul__(self, other: Any) -> Affine:
        return _matmul(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __iadd__(self, _other: Any) -> Affine:
        """Refused: an in-place change of a tensor affects all its references, which this class does not model."""
        raise NotAffine("an operation in place")

    __isub__ = __imul__ = __itruediv__ = __iadd__

    def __rsub__(self, other: Any) -> Affine:
        return _sub(other, self)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in _KEEPS_AFFINE:
            return lambda *args, **kwargs: _KEEPS_AFFINE[name](self, *args, **kwargs)
        raise NotAffine(name)


def _is_torchs_own(func: Any) -> bool:
    """Whether the function is torch's own: a custom operator may have the same name."""
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(func).startswith("aten.")
    return str(getattr(func, "__module__", None) or "torch").split(".")[0] == "torch"


def _plain(value: Any) -> Affine:
    if not isinstance(value, Affine) or value.ended_by:
        raise NotAffine("softmax inside")
    return value


def _constant(value: Any) -> torch.Tensor:
    """A number or a tensor that is the same for every row of a batch: shape () or (w,) or (1, w)."""
    tensor = torch.as_tensor(value).detach().to("cpu", torch.float64)
    if tensor.ndim == 2 and tensor.shape[0] == 1:
        tensor = tensor[0]
    if tensor.ndim > 1:
        raise NotAffine("a constant with more than one row")
    return tensor


def _add(a: Any, b: Any, *, alpha: float = 1) -> Affine:
    factor = torch.tensor(float(alpha), dtype=torch.float64)
    if isinstance(a, Affine) and isinstance(b, Affine):
        rounded = _plain(a).rounded.plus(_plain(b).rounded.times(factor))
        return Affine(a.matrix + alpha * b.matrix, a.offset + alpha * b.offset, rounded)
    if isinstance(a, Affine):
        more = alpha * _constant(b)
        return Affine(_plain(a).matrix, a.offset + more, _moved(a.rounded, more))
    value = _plain(b)
    start = _constant(a)
    return Affine(alpha * value.matrix, start + alpha * value.offset, _moved(value.rounded.times(factor), start))


def _moved(rounded: Rounded, by: torch.Tensor) -> Rounded:
    return replace(rounded, offset=rounded.offset + by.abs(), steps=rounded.steps + 2)


def _sub(a: Any, b: Any, *, alpha: float = 1) -> Affine:
    return _add(a, b, alpha=-alpha)


def _mul(a: Any, b: Any) -> Affine:
    value, factor = (a, b) if isinstance(a, Affine) else (b, a)
    if isinstance(factor, Affine):
        raise NotAffine("a product of two inputs")
    scale = _constant(factor)
    column = scale[:, None] if scale.ndim else scale
    return Affine(_plain(value).matrix * column, value.offset * scale, value.rounded.times(scale))


def _div(a: Any, b: Any) -> Affine:
    if isinstance(b, Affine):
        raise NotAffine("a division by the input")
    divided = _mul(a, 1.0 / _constant(b))
    return Affine(divided.matrix, divided.offset, divided.rounded.later(1))


def _linear(input: Any, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Affine:  # noqa: A002
    value = _plain(input)
    w = weight.detach().to("cpu", torch.float64)
    moved = Affine(w @ value.matrix, w @ value.offset, value.rounded.through(w))
    return moved if bias is None else _add(moved, bias)


def _matmul(a: Any, b: Any) -> Affine:
    if not isinstance(b, torch.Tensor) or b.ndim != 2:
        raise NotAffine("a matrix product with the input on the right")
    return _linear(a, b.T)


def _addmm(bias: Any, a: Any, b: Any) -> Affine:
    return _add(_matmul(a, b), bias)


def _batch_norm(
    input: Any,  # noqa: A002
    mean: torch.Tensor | None,
    var: torch.Tensor | None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,  # noqa: ARG001
    eps: float = 1e-5,
) -> Affine:
    if training or mean is None or var is None:
        raise NotAffine("batch statistics")
    scaled = _div(_sub(input, mean), torch.sqrt(_constant(var) + eps))
    scaled = scaled if weight is None else _mul(scaled, weight)
    scaled = scaled if bias is None else _add(scaled, bias)
    # torch may combine scale and shift first, which rounds differently.
    return Affine(scaled.matrix, scaled.offset, scaled.rounded.later(8))


def _aten_batch_norm(
    input: Any,  # noqa: A002
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
    *_cudnn: bool,
) -> Affine:
    return _batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def _any_batch_norm(*args: Any, **kwargs: Any) -> Affine:
    """torch.nn.functional puts the statistics before weight and bias; torch.ops.aten (nine arguments) after."""
    return _aten_batch_norm(*args) if len(args) >= 9 else _batch_norm(*args, **kwargs)


def _dropout(input: Any, p: float = 0.5, training: bool = False, train: bool = False, inplace: bool = False) -> Affine:  # noqa: A002, ARG001
    if training or train:
        raise NotAffine("dropout in training mode")
    return _plain(input)


def _same(input: Any, *args: Any, **kwargs: Any) -> Affine:  # noqa: A002
    return _cast(_plain(input), [*args, *kwargs.values()])


def _cast(value: Affine, arguments: Sequence[Any]) -> Affine:
    """The value cast to the dtype that an argument is or has; unchanged if there is none."""
    for argument in arguments:
        dtype = argument.dtype if isinstance(argument, torch.Tensor) else argument
        if not isinstance(dtype, torch.dtype):
            continue
        if dtype not in (torch.float32, torch.float64):
            raise NotAffine(f"a cast to {dtype}")
        is_double = value.rounded.is_double and dtype == torch.float64
        value = Affine(value.matrix, value.offset, replace(value.rounded, is_double=is_double), value.ended_by)
    return value


def _flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Affine:  # noqa: A002, ARG001
    if start_dim != 1:
        raise NotAffine("a batch flattened into one row")
    return _plain(input)


def _zeros_like(input: Any, **_kwargs: Any) -> Affine:  # noqa: A002
    value = _plain(input)
    nothing = Rounded(torch.zeros_like(value.matrix), torch.zeros_like(value.offset))
    return Affine(nothing.matrix, nothing.offset, nothing)


def _cat(tensors: Sequence[Any], dim: int = 0) -> Affine:
    if dim not in (1, -1):
        raise NotAffine("batches put behind each other")
    values = [_plain(t) for t in tensors]
    rounded = [v.rounded for v in values]
    together = Rounded(
        torch.cat([r.matrix for r in rounded]),
        torch.cat([r.offset.expand(len(r.matrix)) for r in rounded]),
        max(r.steps for r in rounded),
        all(r.is_double for r in rounded),
    )
    offsets = torch.cat([v.offset.expand(len(v.matrix)) for v in values])
    return Affine(torch.cat([v.matrix for v in values]), offsets, together)


def _softmax(input: Any, dim: int | None = None, *args: Any, **kwargs: Any) -> Affine:  # noqa: A002
    if dim not in (1, -1):
        raise NotAffine("a softmax over the batch")
    value = _cast(_plain(input), [*args, *kwargs.values()])
    return Affine(value.matrix, value.offset, value.rounded.later(LOG_SOFTMAX_STEPS), ended_by="softmax")


def _log_softmax(input: Any, dim: int | None = None, *args: Any, **kwargs: Any) -> Affine:  # noqa: A002
    # Log-probabilities differ from the logits by one number per row, which does not change a softmax.
    value = _softmax(input, dim, *args, **kwargs)
    return Affine(value.matrix, value.offset, value.rounded, ended_by="log_softmax")


_KEEPS_AFFINE: dict[str, Callable[..., Affine]] = {
    **dict.fromkeys(("add", "radd", "iadd"), _add),
    "sub": _sub,
    "rsub": lambda a, b, *, alpha=1: _sub(b, a, alpha=alpha),
    **dict.fromkeys(("mul", "rmul", "multiply"), _mul),
    **dict.fromkeys(("div", "truediv", "true_divide", "divide"), _div),
    **dict.fromkeys(("neg", "negative"), lambda a: _mul(a, -1.0)),
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm"), _matmul),
    "addmm": _addmm,
    "batch_norm": _any_batch_norm,
    **dict.fromkeys(("dropout", "feature_dropout", "alpha_dropout"), _dropout),
    **dict.fromkeys(("to", "double", "contiguous", "clone", "alias"), _same),
    "float": lambda a: _same(a, torch.float32),
    "flatten": _flatten,
    "zeros_like": _zeros_like,
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
}


class _Unguarded(torch.fx.Interpreter):
    """Runs an exported program node by node, without its checks of the input shape, which a symbol lacks."""

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return None if target == "_guards_fn" else super().call_module(target, args, kwargs)

    def __call__(self, x: Any) -> Any:
        result = self.run(x, enable_io_processing=False)
        return result[0] if isinstance(result, (tuple, list)) and len(result) == 1 else result


def linear_form(module: Callable[[Any], Any], width: int, output: Scores) -> LinearForm | None:
    """The module's logits, or decision values, as weight x + bias over `width` features; None if that is not proved."""
    run = _Unguarded(module) if isinstance(module, torch.fx.GraphModule) else module
    try:
        result = run(Affine.identity(width))
    except Exception:
        # Code that expects a real tensor may raise anything; then nothing is proved.
        return None
    may_end_by = {"probabilities": ("softmax",), "logits": ("", "log_softmax"), "decision": ("",)}[output]
    if not isinstance(result, Affine) or result.ended_by not in may_end_by:
        return None
    k, rounded = len(result.matrix), result.rounded
    # Factor 2: the form itself was computed with as many roundings as the model.
    share = 2 * rounded.steps * torch.finfo(torch.float64).eps
    noise = Noise(share * rounded.matrix, share * rounded.offset.expand(k)) if rounded.is_double else None
    return LinearForm(result.matrix, result.offset.expand(k).clone(), noise)
