"""The command line of a benchmark that has sections: each measures something and leaves result files."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

from research.evidence.files import made_here
from research.evidence.report import Files, report

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Section(Generic[Asked]):
    """block: the part of a page that its files make"""

    measure: Callable[[Asked], Files]
    block: str


def tell(text: str) -> None:
    """Beside the tables, while it runs."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def parser_of(description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_keep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="write the result files and render the pages")


def run(
    benchmark: str,
    parser: argparse.ArgumentParser,
    sections: Mapping[str, Section[Asked]],
    asked: Callable[[argparse.Namespace], Asked],
) -> None:
    """asked: from the parsed arguments, what every section gets"""
    parser.add_argument("--only", default=",".join(sections), help="some of " + ", ".join(sections))
    add_keep(parser)
    given = parser.parse_args()
    unknown = set(given.only.split(",")) - set(sections)
    if unknown:
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    question = asked(given)
    for name in given.only.split(","):
        began = time.monotonic()
        files = sections[name].measure(question)
        command = f"python -m research.benchmarks.{benchmark} --data DIR --only {name} --keep"
        made = made_here(command, time.monotonic() - began, ("torch", "foolbox"))
        print(f"## {name}\n")
        report(files, made, [sections[name].block], keep=given.keep)
