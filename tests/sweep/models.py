"""Random models of every kind, and what each says of one sample, asked without the library."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from maxflip import Ensemble, SklearnClassifier, Tempered, TorchClassifier
from maxflip.networks import GRUD

Floats = NDArray[np.float64]
Random = np.random.Generator

TABLES = ("linear", "linear", "network", "network", "logistic", "mlp", "ensemble", "decision", "ridge", "tempered")
LIGHT_TABLES = (
    *TABLES,
    *("linear",) * 6,
    *("logistic", "decision") * 3,
    *("ridge",) * 2,
)  # more of those that are quick
SEQUENCES = ("total", "recurrent", "grud")
LINEAR = ("linear", "logistic", "decision", "ridge", "tempered", "total")
DECISION = ("decision", "ridge")


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples as a model is asked about them: x (B, F), or of sequences (B, T, F) with what goes with it."""

    x: Floats
    observed: NDArray[np.bool_] | None = None
    time: Floats | None = None
    length: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, values: Any) -> Batch:
        """A table (B, F), or a list of (T_j, F) with NaN where nothing was measured."""
        if isinstance(values, np.ndarray):
            return cls(values)
        length = np.array([len(v) for v in values])
        shape = (len(values), int(length.max()), values[0].shape[1])
        x, observed, time = np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape[:2])
        for j, v in enumerate(values):
            observed[j, : len(v)] = ~np.isnan(v)
            x[j, : len(v)] = np.nan_to_num(v)
            time[j] = np.minimum(np.arange(shape[1]), len(v) - 1)
        return cls(x, observed, time, length)


@dataclass(frozen=True, eq=False)
class Member:
    """One model: a torch module with its kind of output, or a fitted estimator of scikit-learn."""

    module: nn.Module | None
    output: str
    estimator: Any = None
    temperature: float = 1.0

    def scores(self, batch: Batch) -> Floats:
        """(B, k): probabilities, or decision values"""
        if self.estimator is not None:
            return self._scores_of_estimator(batch.x)
        assert self.module is not None
        kind = next(self.module.parameters()).dtype
        with torch.no_grad():
            if batch.observed is None:
                out = self.module(torch.tensor(batch.x).to(kind))
            else:
                given = {
                    "x": torch.tensor(batch.x).to(kind),
                    "observed": torch.tensor(batch.observed),
                    "time": torch.tensor(batch.time).to(kind),
                    "length": torch.tensor(batch.length),
                }
                takes: Sequence[str] = self.module.takes  # type: ignore[assignment]
                out = self.module(*(given[name] for name in takes))
        out = out.double()
        if self.output == "logits":
            out = torch.softmax(out / self.temperature, dim=1)
        return np.asarray(out.numpy())

    def _scores_of_estimator(self, x: Floats) -> Floats:
        if self.output == "logits":
            return np.asarray(self.estimator.predict_proba(x))
        said = np.asarray(self.estimator.decision_function(x))
        return said if said.ndim == 2 else np.column_stack([np.zeros(len(x)), said])

    def classifier(self, classes: Sequence[str] | None) -> Any:
        if self.estimator is not None:
            return SklearnClassifier(self.estimator, classes=classes)
        assert self.module is not None
        plain = TorchClassifier(self.module, output=self.output, classes=classes)  # type: ignore[arg-type]
        return plain if self.temperature == 1.0 else Tempered(plain, self.temperature)

    def in_other_units(self, factors: Floats) -> Member:
        """The same model for someone who counts feature i in units 1 / factors_i as large."""
        if self.estimator is not None:
            return replace(self, estimator=_estimator_in_other_units(self.estimator, factors))
        assert self.module is not None
        return replace(self, module=Divided(self.module, factors))


@dataclass(frozen=True, eq=False)
class Model:
    kind: str
    members: tuple[Member, ...]
    classes: tuple[str, ...] | None
    k: int

    @property
    def is_decision(self) -> bool:
        return self.kind in DECISION

    @property
    def is_linear(self) -> bool:
        return self.kind in LINEAR

    def classifier(self) -> Any:
        found = [member.classifier(self.classes) for member in self.members]
        return found[0] if len(found) == 1 else Ensemble(found)

    def scores(self, values: Any) -> Floats:
        """(B, M, k)"""
        batch = Batch.of(values)
        return np.stack([member.scores(batch) for member in self.members], axis=1)

    def in_other_units(self, factors: Floats) -> Model:
        return replace(self, members=tuple(m.in_other_units(factors) for m in self.members))


class Standardised(nn.Module):
    """A network that is fed (x - shift) / scale."""

    shift: torch.Tensor
    scale: torch.Tensor

    def __init__(self, net: nn.Module, shift: Floats, scale: Floats) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("shift", torch.tensor(shift))
        self.register_buffer("scale", torch.tensor(scale))
        self.takes = getattr(net, "takes", ())

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return self.net((x - self.shift) / self.scale, *others)  # type: ignore[no-any-return]


class Divided(nn.Module):
    """The same model in units of 1 / factors."""

    by: torch.Tensor

    def __init__(self, net: nn.Module, factors: Floats) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("by", torch.tensor(1.0 / factors).to(next(net.parameters()).dtype))
        self.takes = getattr(net, "takes", ())

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return self.net(x * self.by, *others)  # type: ignore[no-any-return]


class Total(nn.Module):
    """A linear layer of the sum over all measured values."""

    takes = ("x", "observed")

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head

    def forward(self, x: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        return self.head(torch.where(observed, x, 0.0).sum(dim=1))  # type: ignore[no-any-return]


class Recurrent(nn.Module):
    """A small recurrent network, read at the last step."""

    takes = ("x", "observed", "length")

    def __init__(self, features: int, k: int) -> None:
        super().__init__()
        self.cell = nn.GRU(2 * features, 8, batch_first=True)
        self.head = nn.Linear(8, k)

    def forward(self, x: torch.Tensor, observed: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        given = torch.cat([torch.where(observed, x, 0.0), observed.to(x.dtype)], dim=2)
        hidden, _ = self.cell(given)
        return self.head(hidden[torch.arange(len(x)), length - 1])  # type: ignore[no-any-return]


def draw_model(rng: Random, kind: str, k: int, shift: Floats, scale: Floats, x: Any) -> Model:
    """A model with k classes of features with these shifts and scales.   x: the cohort, to fit estimators on"""
    width = len(shift)
    classes = tuple(f"class {c}" for c in range(k)) if rng.random() < 0.3 else None
    if kind in ("logistic", "mlp", "ridge"):
        return Model(kind, (_fitted(rng, kind, x, k),), classes, k)
    if kind in SEQUENCES:
        return Model(kind, (_of_sequences(rng, kind, width, k, shift, scale),), classes, k)
    output = "decision" if kind == "decision" else "logits"
    dtype = torch.float32 if kind in ("network", "ensemble") and rng.random() < 0.4 else torch.float64
    plain = kind in ("linear", "decision", "tempered") or (kind == "ensemble" and rng.random() < 0.5)
    first = _linear(rng, width, k) if plain else _network(rng, width, k)
    nets = [first, *(_relative(rng, first) for _ in range(int(rng.integers(1, 3)) if kind == "ensemble" else 0))]
    members = []
    for net in nets:
        module: nn.Module = Standardised(net, shift, scale).to(dtype)
        if kind == "network" and rng.random() < 0.15:
            module, output = Softmaxed(module), "probabilities"
        temperature = float(rng.choice([0.5, 2.0, 3.0])) if kind == "tempered" else 1.0
        members.append(Member(module, output, temperature=temperature))
    return Model(kind, tuple(members), classes, k)


class Softmaxed(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.net(x), dim=1)


def _fill(rng: Random, net: nn.Module, size: float) -> None:
    """Weights N(0, size^2 / inputs), biases N(0, 0.25 size^2)."""
    with torch.no_grad():
        for parameter in net.parameters():
            fan = parameter.shape[1] if parameter.ndim == 2 else 4.0
            parameter.copy_(torch.tensor(rng.normal(size=tuple(parameter.shape)) * size / fan**0.5))


def _linear(rng: Random, width: int, k: int) -> nn.Module:
    net = nn.Linear(width, k)
    _fill(rng, net, float(rng.choice([0.7, 1.5, 4.0])))
    if k == 2 and rng.random() < 0.3:  # features that say nothing
        with torch.no_grad():
            net.weight[:, rng.random(width) < 0.3] = 0.0
    return net.double()


def _network(rng: Random, width: int, k: int) -> nn.Module:
    hidden, act = int(rng.integers(4, 17)), nn.Tanh if rng.random() < 0.6 else nn.ReLU
    layers: list[nn.Module] = [nn.Linear(width, hidden), act()]
    if rng.random() < 0.4:
        layers += [nn.Linear(hidden, hidden), act()]
    net = nn.Sequential(*layers, nn.Linear(hidden, k))
    _fill(rng, net, float(rng.choice([1.2, 2.0, 3.5])))
    return net.double()


def _relative(rng: Random, net: nn.Module) -> nn.Module:
    """Another member of an ensemble: weights that differ by about a fifth."""
    other = copy.deepcopy(net)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(torch.tensor(1.0 + 0.2 * rng.normal(size=tuple(parameter.shape))))
    return other


def _of_sequences(rng: Random, kind: str, width: int, k: int, shift: Floats, scale: Floats) -> Member:
    if kind == "grud":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            grud = GRUD(width, 6, k, shift=torch.tensor(shift).float(), scale=torch.tensor(scale).float())
        _fill(rng, grud, 1.5)
        return Member(grud.double(), "logits")
    net: nn.Module = Recurrent(width, k)
    if kind == "total":
        net = Total(nn.Linear(width, k))
    _fill(rng, net, 1.5)
    dtype = torch.float32 if kind == "recurrent" and rng.random() < 0.5 else torch.float64
    return Member(Standardised(net, shift, scale).to(dtype), "logits")


def _fitted(rng: Random, kind: str, x: Floats, k: int) -> Member:
    """Fitted to a random rule on rows like those of the cohort."""
    size = x.std(axis=0) + 1e-3 + 0.1 * np.abs(x).max(axis=0)
    rows = x[rng.integers(len(x), size=60)] + rng.normal(size=(60, x.shape[1])) * size
    score = ((rows - rows.mean(axis=0)) / rows.std(axis=0)) @ rng.normal(size=(x.shape[1], k)) + rng.normal(
        size=(60, k)
    )
    labels = score.argmax(axis=1)
    labels[:k] = np.arange(k)  # every class is there
    estimator: Any = {
        "logistic": lambda: LogisticRegression(C=float(rng.choice([0.3, 3.0]))),
        "mlp": lambda: MLPClassifier((8,), max_iter=60, learning_rate_init=0.03, random_state=0),
        "ridge": RidgeClassifier,
    }[kind]()
    whole = make_pipeline(StandardScaler(), estimator) if kind == "mlp" or rng.random() < 0.6 else estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        whole.fit(rows, labels)
    return Member(None, "decision" if kind == "ridge" else "logits", estimator=whole)


def _estimator_in_other_units(estimator: Any, factors: Floats) -> Any:
    other = copy.deepcopy(estimator)
    parts = [step for _, step in other.steps] if hasattr(other, "steps") else [other]
    if isinstance(parts[0], StandardScaler):
        parts[0].mean_ = parts[0].mean_ * factors
        parts[0].scale_ = parts[0].scale_ * factors
        parts[0].var_ = parts[0].var_ * factors**2
    else:
        parts[0].coef_ = parts[0].coef_ / factors
    return other


def shifted(member: Member, by: Floats) -> None:
    """Add `by` (k,) to the member's scores before any softmax, so that fewer or more are where they should be."""
    if member.estimator is not None:
        last = member.estimator.steps[-1][1] if hasattr(member.estimator, "steps") else member.estimator
        biases = last.intercepts_[-1] if isinstance(last, MLPClassifier) else np.atleast_1d(last.intercept_)
        biases += by if len(biases) == len(by) else by[-1] - by[0]
        if not isinstance(last, MLPClassifier):
            last.intercept_ = biases
        return
    assert member.module is not None
    head = [part for part in member.module.modules() if isinstance(part, nn.Linear)][-1]
    moved = by if len(head.bias) == len(by) else by[1:] - by[:1]  # of two classes GRU-D has one logit
    with torch.no_grad():
        head.bias.add_(torch.tensor(moved))
