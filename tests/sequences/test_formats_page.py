"""docs/formats.md: its job about sequences is one."""

from __future__ import annotations

import re
from pathlib import Path

from maxflip import Nearest, solve
from maxflip._util.events import silent
from maxflip.cli.run_job import run_job
from maxflip.io.job.read import read_job
from tests.sequences.stays import long_table, write_stays

PAGE = Path(__file__).parent.parent.parent / "docs" / "formats.md"


def job() -> str:
    section = PAGE.read_text().partition("\n## Sequences\n")[2].partition("\n## ")[0]
    (text,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    return f"{text}\n[report]\nfrontier = false  # its solves take their time\n"


def test_the_job_about_sequences_runs(tmp_path: Path) -> None:
    released = run_job(write_stays(tmp_path, job()), tmp_path / "plan", overwrite=False, watch=silent)
    assert released.plan.count > 0
    assert any("divided among 5 groups" in notice for notice in released.plan.notices)


def test_its_other_way_to_name_steps_is_one_too(tmp_path: Path) -> None:
    other = re.sub(r"^steps = .*\n", "", job(), flags=re.MULTILINE).replace("# steps_column", "steps_column")
    long = long_table()
    long["changeable"] = [True] * len(long["stay"])
    read = read_job(write_stays(tmp_path, other, long))
    classifier = read.load_classifier(silent)
    assert solve(read.with_classes_of(classifier).problem(read.read_cohort(), classifier), Nearest()).count > 0
