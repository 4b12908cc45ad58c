"""Train the networks of the experiments; each leaves its weights and a record of how good they are.

python -m research.experiments.train grud --data DIR --label in_hospital --folds 5
python -m research.experiments.train grud --data DIR --label 30_day
python -m research.experiments.train oulad --data DIR --seeds 5
python -m research.experiments.train insurance
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from research.experiments import customers, stays, students

WEIGHTS = Path(__file__).parent / "weights"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m research.experiments.train", description="Train a network.")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder for weights and records")
    networks = parser.add_subparsers(dest="network", required=True)
    grud = networks.add_parser("grud", help="GRU-D on PhysioNet 2012: learned from set a, measured on set b")
    grud.add_argument("--data", type=Path, required=True, help="folder that holds physionet2012/")
    grud.add_argument("--label", choices=["in_hospital", "30_day"], default="in_hospital")
    grud.add_argument("--folds", type=int, default=0, help="instead: this many folds of set a; nothing is kept")
    grud.add_argument("--seeds", type=int, default=5, help="networks to train; the best on an inner part is kept")
    oulad = networks.add_parser("oulad", help="Sparse Time LSTM on OULAD")
    oulad.add_argument("--data", type=Path, required=True, help="folder that holds oulad/")
    oulad.add_argument("--seeds", type=int, default=5)
    insurance = networks.add_parser("insurance", help="Sparse Time LSTM on made-up sequences of an insurer")
    insurance.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)  # other numbers of threads add in another order, and give other weights
    if given.network == "grud" and given.folds:
        stays.cross_validate(given.data / "physionet2012", given.out, given.label, given.folds, tell)
    elif given.network == "grud":
        stays.train(given.data / "physionet2012", given.out, given.label, given.seeds, tell)
    elif given.network == "oulad":
        students.train(given.data / "oulad", given.out, given.seeds, tell)
    else:
        customers.train(given.out, given.seed, tell)


def tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
