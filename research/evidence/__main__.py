"""What pages say, from result files.

python -m research.evidence pages           renders all marked parts of README.md and docs/**/*.md
python -m research.evidence pages --check   exit code 1 where one is not what the result files say
python -m research.evidence demo            runs `maxflip demo` and keeps what it prints
"""

from __future__ import annotations

import argparse
import sys

from research.evidence import demo
from research.evidence.pages import PageError, rewrite, stale
from research.evidence.results import Results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of_pages = commands.add_parser("pages", help="render what is marked in the pages")
    of_pages.add_argument("--check", action="store_true", help="change nothing; exit code 1 where a page differs")
    commands.add_parser("demo", help="run the demo and keep what it prints")
    given = parser.parse_args()
    try:
        if given.command == "demo":
            demo.keep()
        elif given.check:
            wrong = stale(Results())
            print("\n".join(wrong) or "All pages say what their result files say.")
            return 1 if wrong else 0
        print("\n".join(rewrite(Results())) or "No page changed.")
    except PageError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
