"""Synthetic sequences shaped like an insurer's: 169 features of five kinds, five classes, lengths 1 to 150."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maxflip._util.frozen import FrozenMap, read_only
from maxflip.datasets.samples import Numbers, Sequences
from maxflip.errors import InputError

# Number of features of each kind. The first three kinds are sequences, the others have one value per sequence.
COUNTS: Mapping[str, int] = FrozenMap({"dense": 40, "sparse": 97, "time": 8, "static_time": 4, "static": 20})
NAMES = {kind: tuple(f"{kind}_{i}" for i in range(count)) for kind, count in COUNTS.items()}
FEATURES = (*NAMES["dense"], *NAMES["sparse"], *NAMES["time"])
STATIC = (*NAMES["static_time"], *NAMES["static"])
KINDS: Mapping[str, str] = FrozenMap({name: kind for kind, names in NAMES.items() for name in names})
CHANGEABLE = (*NAMES["dense"][:12], *NAMES["sparse"][:7])  # 19
CLASSES = ("A", "B", "C", "D", "E")
LONGEST = 150
SPARSE_SHARE = 0.03  # share of non-zero entries in sparse features
_HIDDEN = 4  # dimension of the hidden process that generates the labels
_NOISE = 0.2  # noise of the scores, so that no model is always right
_LAW = 7  # seed of the hidden process, the same for every data set; with this seed no class is rare


def insurance(n: int, seed: int) -> Sequences:
    """n sequences in float32, the same for the same n and seed. All data sets have the same hidden process.

    dense: always observed, each with its own wave   sparse: mostly 0   time: time since some event, >= 0
    static_time, static: one value per sequence. Nothing is missing. A hidden state accumulates the dense and sparse
    features step by step and decays with the time between steps. At the end, the state and the static features give
    five scores; the label is the largest score after noise is added.
    """
    if n < 1:
        raise InputError(f"n: must be at least 1, got {n!r}.")
    if seed < 0:
        raise InputError(f"seed: must be at least 0, got {seed!r}.")
    chance = np.random.default_rng([seed, n])
    lengths = 1 + np.floor(LONGEST * chance.beta(1.0, 2.5, n)).astype(np.int64).clip(0, LONGEST - 1)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    owner = np.repeat(np.arange(n), lengths)
    step = (np.arange(len(owner)) - starts[owner]).astype(np.float32)
    gap = chance.exponential(1.0, len(owner)).astype(np.float32) * (step > 0)
    times = np.cumsum(gap, dtype=np.float64)
    times -= times[starts][owner]
    values = np.concatenate(
        [_dense(chance, owner, step, n), _sparse(chance, len(owner)), _time(chance, gap, step)], axis=1
    )
    static = np.concatenate(
        [
            chance.exponential(1.0, (n, COUNTS["static_time"])),
            chance.normal(size=(n, COUNTS["static"])),
        ],
        axis=1,
    ).astype(np.float32)
    scores = _scores(values, gap, static, starts, lengths)
    labels = (scores + _NOISE * chance.gumbel(size=scores.shape)).argmax(axis=1)
    return Sequences(
        values=tuple(np.split(read_only(values), starts[1:])),
        times=tuple(np.split(read_only(times), starts[1:])),
        static=read_only(static),
        ids=tuple(f"S{j:06d}" for j in range(n)),
        features=FEATURES,
        static_features=STATIC,
        units=FrozenMap({}),
        source=f"insurance(n={n}, seed={seed})",
        labels=read_only(labels.astype(np.int64)),
        classes=CLASSES,
        dropped=FrozenMap({}),
    )


def _dense(chance: np.random.Generator, owner: NDArray[np.int64], step: Numbers, n: int) -> Numbers:
    """A level per sequence and feature, a slow wave, and noise."""
    shape = (n, COUNTS["dense"])
    level, phase = chance.normal(size=shape).astype(np.float32), chance.uniform(0, 6.28, shape).astype(np.float32)
    noise = chance.standard_normal((len(owner), COUNTS["dense"]), dtype=np.float32)
    return level[owner] + 0.5 * np.sin(phase[owner] + 0.1 * step[:, None]) + 0.5 * noise


def _sparse(chance: np.random.Generator, steps: int) -> Numbers:
    shape = (steps, COUNTS["sparse"])
    there = chance.random(shape, dtype=np.float32) < SPARSE_SHARE
    return np.where(there, 1 + chance.standard_exponential(shape, dtype=np.float32), np.float32(0))


def _time(chance: np.random.Generator, gap: Numbers, step: Numbers) -> Numbers:
    """Time since the previous step, number of steps so far, and times since unobserved events."""
    others = chance.standard_exponential((len(gap), COUNTS["time"] - 2), dtype=np.float32)
    return np.concatenate([gap[:, None], step[:, None] / 10, others], axis=1)


def _scores(
    values: Numbers, gap: Numbers, static: Numbers, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Numbers:
    """(n, 5): scores of the hidden process. Sequences are sorted by length, so that unfinished ones form a prefix."""
    law = np.random.default_rng(_LAW)
    dense, sparse = COUNTS["dense"], COUNTS["sparse"]
    weigh = np.zeros((dense + sparse, _HIDDEN))
    # Changeable features have the largest weights, so that a plan can change predictions.
    weigh[:dense] = law.normal(size=(dense, _HIDDEN)) * np.where(np.arange(dense) < 12, 0.6, 0.1)[:, None]
    weigh[dense:] = law.normal(size=(sparse, _HIDDEN)) * np.where(np.arange(sparse) < 7, 1.5, 0.2)[:, None]
    intake = np.tanh(values[:, : dense + sparse] @ weigh.astype(np.float32))
    pace = law.uniform(0.02, 0.2, _HIDDEN)
    order = np.argsort(-lengths, kind="stable")
    running = np.searchsorted(-lengths[order], -np.arange(LONGEST), side="left")  # longer than t
    state = np.zeros((len(starts), _HIDDEN))
    for t in range(int(lengths.max())):
        now = order[: running[t]]
        at = starts[now] + t
        kept = np.exp(-pace * (1 + gap[at][:, None]))
        state[now] = kept * state[now] + (1 - kept) * intake[at] * (1 + 0.5 * state[now][:, ::-1])
    strength = 1 / np.sqrt(1 - np.exp(-2 * pace * lengths[:, None]))  # scales up the states of short sequences
    beside = np.tanh(static @ law.normal(0, 0.3, (static.shape[1], _HIDDEN)))
    inner = np.tanh(
        2 * (state * strength) @ law.normal(0, 1, (_HIDDEN, _HIDDEN)) + beside @ law.normal(0, 0.3, (_HIDDEN, _HIDDEN))
    )
    scores = inner @ law.normal(0, 1, (_HIDDEN, len(CLASSES)))
    return np.asarray(scores)
