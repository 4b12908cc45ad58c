"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.examples import small_net

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_code_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["age", "bmi", "bp"]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=names)
    frame["patient_id"] = [f"P-{j:03d}" for j in range(50)]
    space = {"net": small_net(3), "frame": frame}
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, space)
    assert (tmp_path / "plan.html").stat().st_size > 1000
    assert 0 < space["plan"].count < 50
    assert set(space["plan"].ids) <= set(frame["patient_id"])
    assert set(space["budgets"]) == {"bp", "nurse_hours", "people"}


def test_the_two_commands_are_in_the_makefile() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for command in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
