"""A second implementation of the networks, one sample and one time step at a time, from docs/networks.md.

It is slow and shares no code with the library, so that both are unlikely to have the same error.
"""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxflip_wall import Unreadable, read, read_tensors, reading

Array = NDArray[Any]
NAMED = {"inputs", "classes", "static"}  # arguments given as a number or as names
ARGUMENTS = {
    "GRUD": {*NAMED, "hidden"},
    "SparseTimeLSTM": {*NAMED, "hidden", "sparse", "time", "static_time"},
    "SequenceTransformer": {*NAMED, "hidden", "heads", "layers"},
}


@dataclass(frozen=True)
class Network:
    """A network from a .safetensors file; it computes in the type of its tensors."""

    kind: str
    arguments: dict[str, Any]
    tensors: dict[str, Array]

    @classmethod
    def load(cls, path: Path) -> "Network":
        return cls.parse(read(path), str(path))

    @classmethod
    def parse(cls, data: bytes, name: str) -> "Network":
        """Raises Unreadable if the file is no such network, Refused if it could run code."""
        held = read_tensors(data, name)
        with reading(name):
            header = json.loads(held.metadata["maxflip"])
            if header["format"] != 1 or header["output"] != "logits":
                raise Unreadable(f"wanted format 1 and logits, got {header!r:.200}")
            net = cls(header["network"], header["arguments"], held.arrays)
            if net.arguments.keys() != ARGUMENTS.get(net.kind):
                raise Unreadable(f"the network {net.kind!r:.80} of {net.arguments!r:.200} is not known")
            shapes = {tensor: array.shape for tensor, array in net.tensors.items()}
            if shapes != (wanted := net.shapes()) or len({array.dtype for array in net.tensors.values()}) != 1:
                wrong = sorted(set(shapes.items()) ^ set(wanted.items()))
                raise Unreadable(f"no {net.kind} of {net.arguments!r:.200}: {wrong!r:.300}")
            for tensor, array in net.tensors.items():
                if not np.isfinite(array).all() or (tensor.endswith("scale") and not (array > 0).all()):
                    raise Unreadable(f"{tensor} is not finite, or a scale is not above 0")
        return net

    def wide(self) -> "Network":
        """The network with its tensors in float64."""
        return replace(self, tensors={name: array.astype(np.float64) for name, array in self.tensors.items()})

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.tensors["scale"].dtype

    @property
    def features(self) -> list[str] | None:
        return self.arguments["inputs"] if isinstance(self.arguments["inputs"], list) else None

    @property
    def says(self) -> dict[str, Any]:
        """Entries of a job's [model] table that the file states; classes without names are named by their numbers."""
        named = isinstance(self.arguments["classes"], list)
        return {
            "output": "logits",
            "classes": self.arguments["classes"] if named else [str(i) for i in range(self.size("classes"))],
        }

    def size(self, what: str) -> int:
        given = self.arguments[what]
        number = len(given) if what in NAMED and isinstance(given, list) else given
        if type(number) is not int or number < 0:
            raise Unreadable(f"{what} must be a whole number, got {given!r:.80}")
        return number

    def columns(self) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
        """Of a Sparse Time LSTM: dense, sparse, time; static time, static plain."""
        sparse, time, static_time = self.arguments["sparse"], self.arguments["time"], self.arguments["static_time"]
        moving, still = range(self.size("inputs")), range(self.size("static"))
        for some, among in ((sparse + time, moving), (static_time, still)):
            if len(set(some)) < len(some) or not all(type(i) is int and i in among for i in some):
                raise Unreadable(f"columns {some!r:.200} must be different ones of the first {len(among)}")
        dense = [i for i in moving if i not in sparse and i not in time]
        return dense, sparse, time, static_time, [i for i in still if i not in static_time]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every tensor that the network must have, and its shape."""
        F, H, k, S = self.size("inputs"), self.size("hidden"), self.size("classes"), self.size("static")
        if max(F, H, k, S) > sum(array.size for array in self.tensors.values()):
            raise Unreadable("its header claims more than the file holds")
        found: dict[str, tuple[int, ...]] = {"shift": (F,), "scale": (F,)}
        found |= {"static_shift": (S,), "static_scale": (S,)} if S else {}

        def linear(name: str, rows: int, columns: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
            return {f"{name}.weight": (rows, columns)} | ({f"{name}.bias": (rows,)} if bias else {})

        head = H + S
        if self.kind == "GRUD":
            found |= {"time_scale": (), "means": (F,), "decay_x_weight": (F,), "decay_x_bias": (F,)}
            found |= linear("decay_h", H, F) | linear("gates", 3 * H, 2 * F) | linear("recurrent", 3 * H, H, False)
        elif self.kind == "SparseTimeLSTM":
            dense, sparse, time, static_time, plain = self.columns()
            found |= linear("gates", 4 * H, len(dense))
            found |= linear("recurrent", 5 * H if sparse else 4 * H, H, False)
            if sparse:
                found |= linear("sparse_gate", H, len(sparse)) | linear("sparse_value", H, len(sparse))
            if time:
                found |= linear("fading", H, len(time), False) | linear("memory", H, H)
            if static_time:
                found |= linear("static_fading", H, len(static_time), False)
            if plain:
                found |= linear("static_value", H, len(plain))
            head = 2 * H if plain else H
        else:
            if self.size("layers") not in range(1, 101) or H % 2 or H % self.size("heads"):
                raise Unreadable(f"no transformer has {self.arguments!r:.200}")
            found |= {"time_scale": ()} | linear("step", H, 2 * F) | linear("encoder.norm", 1, 1)
            for layer in [f"encoder.layers.{n}" for n in range(self.arguments["layers"])]:
                found |= {f"{layer}.self_attn.in_proj_weight": (3 * H, H), f"{layer}.self_attn.in_proj_bias": (3 * H,)}
                found |= linear(f"{layer}.self_attn.out_proj", H, H)
                found |= linear(f"{layer}.linear1", 4 * H, H) | linear(f"{layer}.linear2", H, 4 * H)
                found |= linear(f"{layer}.norm1", 1, 1) | linear(f"{layer}.norm2", 1, 1)
            found |= {name: (H,) for name in found if "norm" in name}
        return found | linear("head", 1 if k == 2 else k, head)

    def probabilities(self, x: Array, observed: Array, time: Array, static: Array | None = None) -> NDArray[np.float64]:
        """(T, F) values, (T, F) flags, (T,) timestamps, (S,) -> (k,)"""
        z = self.logits(x, observed, time, static)
        likely = np.exp(z - z.max())
        return np.asarray(likely / likely.sum(), dtype=np.float64)

    def logits(self, x: Array, observed: Array, time: Array, static: Array | None = None) -> NDArray[np.float64]:
        t = self.tensors
        x, time = np.asarray(x, dtype=self.dtype), np.asarray(time, dtype=self.dtype)
        values = np.where(observed, (x - t["shift"]) / t["scale"], self.dtype.type(0))
        known = np.zeros(0, self.dtype)
        if self.size("static"):
            known = (np.asarray(static, dtype=self.dtype) - t["static_shift"]) / t["static_scale"]
        run = {"GRUD": self._gru_d, "SparseTimeLSTM": self._sparse_time_lstm, "SequenceTransformer": self._transformer}
        state = run[self.kind](values, np.asarray(observed).astype(self.dtype), time, known)
        z = self._linear("head", state).astype(np.float64)
        return np.concatenate([[0.0], z]) if len(z) == 1 else z

    def _linear(self, name: str, v: Array) -> Array:
        product = self.tensors[f"{name}.weight"] @ v
        return np.asarray(product + self.tensors[f"{name}.bias"] if f"{name}.bias" in self.tensors else product)

    def _gru_d(self, values: Array, mask: Array, time: Array, known: Array) -> Array:
        t, H = self.tensors, self.size("hidden")
        U, U_c = t["recurrent.weight"][: 2 * H], t["recurrent.weight"][2 * H :]
        mean = (t["means"] - t["shift"]) / t["scale"]
        last, gap, h = mean.copy(), np.zeros_like(mean), np.zeros(H, self.dtype)
        for step in range(len(values)):
            m = mask[step]
            if step:
                gap = (time[step] - time[step - 1]) / t["time_scale"] + np.where(mask[step - 1] == 1, 0, gap)
            last = np.where(m == 1, values[step], last)
            gamma_x = np.exp(-np.maximum(0, t["decay_x_weight"] * gap + t["decay_x_bias"]))
            x = np.where(m == 1, values[step], gamma_x * last + (1 - gamma_x) * mean)
            h = np.exp(-np.maximum(0, self._linear("decay_h", gap))) * h
            given = self._linear("gates", np.concatenate([x, m]))
            r, z = np.split(_sigmoid(given[: 2 * H] + U @ h), 2)
            c = np.tanh(given[2 * H :] + U_c @ (r * h))
            h = (1 - z) * h + z * c
        return np.concatenate([h, known])

    def _sparse_time_lstm(self, values: Array, mask: Array, _: Array, known: Array) -> Array:
        dense, sparse, time, static_time, plain = self.columns()
        H = self.size("hidden")
        h = c = np.zeros(H, self.dtype)
        for step in range(len(values)):
            given = self._linear("gates", values[step, dense])
            inner = self.tensors["recurrent.weight"] @ h
            i, f, o = np.split(_sigmoid(given[: 3 * H] + inner[: 3 * H]), 3)
            g = np.tanh(given[3 * H :] + inner[-H:])
            if time:
                gamma = np.exp(-np.maximum(0, self._linear("fading", values[step, time])))
                short = np.tanh(self._linear("memory", c))
                c = (c - short) + gamma * short
            c = f * c + i * g
            if any(mask[step, sparse] == 1):
                a = _sigmoid(self._linear("sparse_gate", values[step, sparse]) + inner[3 * H : 4 * H])
                c = c + a * np.tanh(self._linear("sparse_value", values[step, sparse]))
            h = o * np.tanh(c)
        if static_time:
            h = h * np.exp(-np.maximum(0, self._linear("static_fading", known[static_time])))
        return np.concatenate([h, np.maximum(0, self._linear("static_value", known[plain]))]) if plain else h

    def _transformer(self, values: Array, mask: Array, time: Array, known: Array) -> Array:
        t, H, heads = self.tensors, self.size("hidden"), self.arguments["heads"]
        waves = np.array([10_000.0 ** (-2 * k / H) for k in range(H // 2)]).astype(self.dtype)
        phases = [(s - time[0]) / t["time_scale"] * waves for s in time]
        steps = [
            self._linear("step", np.concatenate([x, m])) + np.concatenate([np.sin(p), np.cos(p)])
            for x, m, p in zip(values, mask, phases, strict=True)
        ]
        for layer in [f"encoder.layers.{n}" for n in range(self.arguments["layers"])]:
            normed = np.array([self._norm(f"{layer}.norm1", s) for s in steps])
            mixed = normed @ t[f"{layer}.self_attn.in_proj_weight"].T + t[f"{layer}.self_attn.in_proj_bias"]
            q, k, v = (np.split(part, heads, axis=1) for part in np.split(mixed, 3, axis=1))
            seen = np.concatenate([_attend(*one) for one in zip(q, k, v, strict=True)], axis=1)
            steps = [s + self._linear(f"{layer}.self_attn.out_proj", a) for s, a in zip(steps, seen, strict=True)]
            for n, s in enumerate(steps):
                wide = self._linear(f"{layer}.linear1", self._norm(f"{layer}.norm2", s))
                activated = np.array([w * (1 + math.erf(w / math.sqrt(2))) / 2 for w in wide], dtype=self.dtype)
                steps[n] = s + self._linear(f"{layer}.linear2", activated)
        return np.concatenate([np.mean([self._norm("encoder.norm", s) for s in steps], axis=0), known])

    def _norm(self, name: str, v: Array) -> Array:
        centred = v - v.mean()
        spread = np.sqrt((centred * centred).mean() + self.dtype.type(1e-5))
        return np.asarray(centred / spread * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"])


def _sigmoid(v: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-v)))


def _attend(q: Array, k: Array, v: Array) -> Array:
    """softmax(q k' / sqrt(d)) v.   q, k, v (T, d)"""
    fit = q @ k.T / np.sqrt(q.dtype.type(q.shape[1]))
    share = np.exp(fit - fit.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True) @ v)
