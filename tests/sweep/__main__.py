"""Sweep a range of seeds: python -m tests.sweep --from 0 --to 10000 --workers 2 --out failures.txt"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

from tests.sweep.sweep import sweep

AT_A_TIME = 20  # seeds that a worker is given


def main() -> int:
    parser = argparse.ArgumentParser(description="Hold every law against the questions of a range of seeds.")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=300, help="the seed before which it ends")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--every", action="store_true", help="all laws and solvers, also those meant for a share")
    parser.add_argument("--only", default="", help="laws whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("sweep-failures.txt"), help="file for the failures")
    given = parser.parse_args()
    seeds = range(given.first, given.last)
    seconds: Counter[str] = Counter()
    laws: Counter[str] = Counter()
    work = partial(sweep, every=given.every, only=given.only)
    with (
        ProcessPoolExecutor(
            given.workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
        ) as pool,
        given.out.open("w") as out,
    ):
        for done, swept in enumerate(pool.map(work, seeds, chunksize=AT_A_TIME), start=1):
            seconds.update(swept.seconds)
            for failure in swept.failures:
                laws[failure.law] += 1
                out.write(f"{failure}\n")
                out.flush()
            if done % 100 == 0:
                sys.stdout.write(f"{done} of {len(seeds)}, {sum(laws.values())} failures\n")
                sys.stdout.flush()
    for name, count in laws.most_common():
        sys.stdout.write(f"{count:6} {name}\n")
    sys.stdout.write(f"{sum(seconds.values()):.0f} s of processor time:\n")
    for name, took in seconds.most_common():
        sys.stdout.write(f"{took:8.1f} {name}\n")
    return 1 if laws else 0


if __name__ == "__main__":
    sys.exit(main())
