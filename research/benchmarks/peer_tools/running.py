"""The frame of every tool's script: `python -m research.benchmarks.peer_tools.SCRIPT METHOD FOLDER`.

Answers every FOLDER/NAME.question.npz with FOLDER/NAME.answer.npz: changes, seconds of processor time for them (without
imports and what is built once), and what the process held at most until then.
"""

from __future__ import annotations

import random
import resource
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from research.benchmarks.peer_tools.question import Floats, Question

SHORT, TURNS = 2.0, 3  # of a run under so many seconds, the median of so many counts


@dataclass(frozen=True, eq=False)
class Answer:
    """changes (n, F), or (S, n, F) of tools that know budgets; rows with a NaN where there are none

    bounds (S,): the most that any plan flips, NaN where that was not proved; or none
    asked: the first so many samples were tried, where time did not suffice for all; else none
    """

    changes: Floats
    bounds: Floats = field(default_factory=lambda: np.empty(0))
    asked: int | None = None


# What is built once for a question, and then answers it.
Method = Callable[[Question], Callable[[], Answer]]


def main(package: str, methods: Mapping[str, Method]) -> None:
    _, name, folder = sys.argv
    warnings.simplefilter("ignore")
    for path in sorted(Path(folder).glob("*.question.npz")):
        question = Question.load(path)
        _timed(methods[name](question.first(1)))  # what is imported or compiled at the first call
        answer, seconds = _timed(methods[name](question))
        times = [seconds]
        while seconds < SHORT and len(times) < TURNS:
            times.append(_timed(methods[name](question))[1])
        partial = path.with_name(path.name.replace("question", "partial"))
        np.savez(
            partial,
            changes=answer.changes,
            bounds=answer.bounds,
            asked=len(question.x) if answer.asked is None else answer.asked,
            seconds=float(np.median(times)),
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            version=version(package),
        )
        partial.replace(path.with_name(path.name.replace("question", "answer")))  # whole, or none


def one_by_one(question: Question, one: Callable[[Floats], NDArray[np.floating]]) -> Answer:
    """one: of a sample (F,), the point to go to, NaN where it finds none"""
    began = time.process_time()
    points = []
    for row in question.x:
        points.append(one(row))
        if time.process_time() - began >= question.seconds:
            break
    changes = np.full(question.x.shape, np.nan)
    changes[: len(points)] = question.first(len(points)).changes_to(np.stack(points))
    return Answer(changes, asked=len(points))


def _timed(answered: Callable[[], Answer]) -> tuple[Answer, float]:
    random.seed(0)
    np.random.seed(0)
    began = time.process_time()
    answer = answered()
    return answer, time.process_time() - began
