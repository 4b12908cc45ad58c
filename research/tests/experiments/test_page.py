"""docs/results/training.md names the commands of the records; its numbers are rendered from them."""

from __future__ import annotations

import json
import re

from research.evidence.files import ROOT
from research.experiments.train import WEIGHTS

PAGE = (ROOT / "docs" / "results" / "training.md").read_text()


def test_commands_are_those_of_the_records() -> None:
    stated = set(re.findall(r"^    python -m research.experiments.train (\w+)", PAGE, re.MULTILINE))
    commands = [json.loads(path.read_text())["command"] for path in WEIGHTS.glob("*.json")]
    assert stated == {command.split()[3] for command in commands}
