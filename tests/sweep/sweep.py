"""Ask the question of a seed, and hold every law against the answers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.sweep import files, known  # noqa: F401 (their laws)
from tests.sweep.answers import Answers
from tests.sweep.laws import LAWS
from tests.sweep.questions import Question, ask

PAPER_EVERY = 10  # seeds: the paper's solvers are slow


@dataclass(frozen=True)
class Failure:
    seed: int
    law: str
    words: str
    question: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.law}: {self.words}\n    {self.question}"


@dataclass
class Swept:
    """Which laws a question breaks, and the processor time that each law took; solving counts for the first to ask."""

    failures: list[Failure] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def sweep(seed: int, *, every: bool = False, only: str = "") -> Swept:
    """every: hold all laws against it, of all solvers, also those meant for a share of the seeds
    only: laws whose name has this in it"""
    began = time.process_time()
    question = ask(seed)
    swept = sweep_question(question, every=every, only=only)
    return Swept(swept.failures, {"ask": time.process_time() - began - sum(swept.seconds.values()), **swept.seconds})


def sweep_question(question: Question, *, every: bool = False, only: str = "") -> Swept:
    swept, seed = Swept(), question.seed
    answers = Answers(question, paper=every or seed % PAPER_EVERY == 0)

    def failed(law: str, words: str) -> None:
        swept.failures.append(Failure(seed, law, words, str(question)))

    began = time.process_time()
    try:
        for _ in answers.plans():
            pass
    except Exception as error:
        failed("every_solver_answers", f"{type(error).__name__}: {error}")
        return swept
    finally:
        swept.seconds["solve"] = time.process_time() - began
    for law in LAWS:
        if only in law.name and (every or only or law.is_asked(seed)):
            began = time.process_time()
            try:
                for words in law.check(answers):
                    failed(law.name, words)
            except Exception as error:
                failed(law.name, f"{type(error).__name__}: {error}")
            swept.seconds[law.name] = time.process_time() - began
    return swept
