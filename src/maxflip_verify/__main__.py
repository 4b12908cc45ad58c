"""`maxflip-verify DIR`: exit code 0 passed, 5 failed; 2, 3, 4, 7 (docs/formats.md) if the audit is not possible."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from maxflip_verify import audit
from maxflip_wall import Refused, Unreadable


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("maxflip-verify", description="Check a plan folder from its files alone.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--cohort", type=Path, metavar="F", help="the cohort, if it has moved")
    parser.add_argument("--model", type=Path, metavar="F", help="the model, if it has moved")
    parser.add_argument("--static", type=Path, metavar="F", help="the file of static features, if it has moved")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = parser.parse_args(argv)
    try:
        result = audit(given.folder, cohort=given.cohort, model=given.model, static=given.static)
    except (Refused, Unreadable) as error:
        print("maxflip-verify:", *str(error).split(), file=sys.stderr)  # one line, also if a file name has line breaks
        return error.exit_code
    try:
        print(json.dumps({"passed": result.passed, **asdict(result)}) if given.json else result, flush=True)
    except OSError as error:  # a closed pipe keeps the exit code of the audit; a full disk is an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 4 if not isinstance(error, BrokenPipeError) else 0 if result.passed else 5
    return 0 if result.passed else 5


if __name__ == "__main__":
    sys.exit(main())
