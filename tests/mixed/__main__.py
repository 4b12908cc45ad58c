"""Ask a range of seeds: python -m tests.mixed --from 0 --to 2000 --workers 2 --out mixed-failures.txt"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from tests.mixed.laws import Outcome, mean_ratio, outcome

AT_A_TIME, NAMED = 20, 20


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare plans of random mixed questions with the optimum.")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=200, help="the seed before which it ends")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mixed-failures.txt"), help="file for failures, worst cases")
    given = parser.parse_args()
    seeds, done = range(given.first, given.last), []
    with (
        ProcessPoolExecutor(
            given.workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool,
        given.out.open("w") as out,
    ):
        for one in pool.map(outcome, seeds, chunksize=AT_A_TIME):
            done.append(one)
            if one.failures or (one.ratio is not None and one.ratio < 1):
                out.write(
                    f"seed {one.question.seed}, {one.kind}: {one.worth} of {one.optimum.at_least}; {one.failures}\n"
                )
                out.write(f"    {one.question}\n")
                out.flush()
            if len(done) % 100 == 0:
                sys.stdout.write(f"{len(done)} of {len(seeds)}\n")
                sys.stdout.flush()
    sys.stdout.write(told(done))
    return 1 if any(one.failures for one in done) else 0


def told(done: list[Outcome]) -> str:
    """The mean of what is reached, by kind, the worst cases and the failures"""
    lines = [f"{sum(one.seconds for one in done):.0f} s of processor time to solve"]
    for kind in sorted({one.kind for one in done}):
        lines.append(_summary(kind, [one for one in done if one.kind == kind]))
    lines.append(_summary("all", done))
    short = sorted((one for one in done if one.ratio is not None and one.ratio < 1), key=lambda one: one.ratio or 0.0)
    lines += [f"seed {o.question.seed}, {o.kind}: {o.worth:g} of {o.optimum.at_least:g}" for o in short[:NAMED]]
    lines += [f"seed {one.question.seed}: {says}" for one in done for says in one.failures]
    return "\n".join(lines) + "\n"


def _summary(kind: str, some: list[Outcome]) -> str:
    ratios = [one.ratio for one in some if one.ratio is not None]
    short, bounds = sum(r < 1 for r in ratios), sum(one.bound is not None for one in some)
    return (
        f"{kind:15} {len(some):5} questions, {len(ratios):5} where somebody can be won: mean {mean_ratio(some):.4f}, "
        f"worst {min(ratios, default=1.0):.2f}, {short} below the optimum; {bounds} with a bound"
    )


if __name__ == "__main__":
    sys.exit(main())
