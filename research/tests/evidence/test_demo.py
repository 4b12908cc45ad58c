"""The README shows what the demo prints and plans today."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.evidence.demo import changes, printed, run
from research.evidence.files import ROOT
from research.evidence.results import Results


def test_the_demo_is_what_the_result_files_say(tmp_path: Path) -> None:
    text, plan = run(tmp_path)
    (held,), (now,) = Results().rows("demo"), printed(text, plan)
    assert held["printed"] == text
    assert (held["count"], held["people"]) == (plan.count, len(plan.fates))
    assert f"plans for {len(plan.fates)} diabetes patients" in (ROOT / "README.md").read_text()
    assert held["price_bmi"] == pytest.approx(now["price_bmi"], rel=1e-6)
    for before, after in zip(Results().rows("demo_changes"), changes(plan), strict=True):
        assert (before["id"], before["feature"], before["unit"]) == (after["id"], after["feature"], after["unit"])
        assert before["change"] == pytest.approx(after["change"], rel=1e-6)
