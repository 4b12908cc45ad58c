"""Pages say what result files say; who types a figure by hand is told."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import markdown
import pytest

from maxflip import KL
from maxflip.plan.holding import SHARES as PARTLY
from maxflip.study.sizing import WEIGHTS
from maxflip.study.tuning import scale_free_grid
from research.evidence import __main__ as program
from research.evidence.files import ROOT, Made, write
from research.evidence.pages import PageError, marks, pages, render, rewrite, stale
from research.evidence.rendering import names
from research.evidence.report import report
from research.evidence.results import Results
from research.experiments.cohorts import MARGIN
from research.experiments.hold.cases import CLOSE
from research.experiments.hold.credit import Credit
from research.experiments.hold.icu import Stays
from research.experiments.protocol import SHARES, SMALL_STEP

MADE = Made("python -m x", "2026-01-02", "abc1234", "2 cores (x86_64)", {"torch": "2.13.0"}, 3.5)
SCALE = {"samples": 1000, "features": 2, "count": 7, "seconds": 1.25, "solving_seconds": 0.5, "peak_gib": 0.125}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    demo = {"printed": "7 of 9\n", "count": 7, "people": 9, "price_bmi": 0.2}
    write("scale", [SCALE], MADE, tmp_path / "data")
    write("demo", [demo], MADE, tmp_path / "data")
    return Results(tmp_path / "data")


def page_of(tmp_path: Path, text: str) -> Path:
    (tmp_path / "docs" / "results").mkdir(parents=True, exist_ok=True)
    page = tmp_path / "README.md"
    page.write_text(text)
    return page


def test_every_page_says_what_its_result_files_say() -> None:
    assert stale(Results()) == []


def test_settings_of_the_study_are_those_of_its_code() -> None:
    """Sentences of pages that have no table to be compared with (research/tests/experiments/test_study.py)"""

    def percents(shares: Iterable[float]) -> str:
        *some, last = (f"{100 * share:.0f}" for share in shares)
        return f"{', '.join(some)} and {last} %"

    said = {
        "docs/experiments.md": (
            f"The margin is {MARGIN},",
            f"{percents(SHARES['paper'].values())} of what an unlimited KL consumes",
            f"{percents(SHARES['binding'].values())} of what the cheapest flips consume",
            "of {:g}, {:g}, {:g} and {:g}: the most flips".format(*WEIGHTS),
            f"a smaller step of its probabilities, {SMALL_STEP},",
            f"one smaller start of lambda ({min(scale_free_grid(KL)['start_lambda']):g})",
        ),
        "docs/results/hold.md": (
            f"| {100 * Credit.share:g} % of each | {100 * Stays.share:g} % of each |",
            f"the margin give or take {CLOSE}",
        ),
        "docs/hold.md": ("*" + ", ".join(f"{100 * share:g} %" for share in PARTLY[1:]) + "*",),
    }
    for page, sentences in said.items():
        text = (ROOT / page).read_text()
        assert [sentence for sentence in sentences if sentence not in text] == [], page


def test_what_can_be_rendered_is_shown_by_a_page() -> None:
    results = Results()
    asked = {mark.name for page in pages() for mark in marks(page, results)}
    assert names(results) - asked == set()


def test_a_block_and_a_value_are_put_where_their_marks_are(tmp_path: Path, results: Results) -> None:
    page = page_of(
        tmp_path,
        "It flips <!--= demo.count -->?<!--/--> people.\n\n<!-- evidence: scale.jobs -->\nold\n<!-- end -->\nEnd.\n",
    )
    assert rewrite(results, tmp_path) == ["README.md"]
    assert page.read_text() == (
        "It flips <!--= demo.count -->7<!--/--> people.\n\n<!-- evidence: scale.jobs -->\n\n"
        "*2026-01-02, commit abc1234, 2 cores (x86_64), torch 2.13.0; 4 s.*\n\n"
        "| samples | flipped | seconds, command to audited plan | of it solving | peak memory |\n"
        "| --- | --- | --- | --- | --- |\n| 1,000 | 7 | 1.2 | 0.5 | 0.12 GiB |\n\n<!-- end -->\nEnd.\n"
    )
    assert rewrite(results, tmp_path) == []


def test_a_check_names_page_line_and_mark(tmp_path: Path, results: Results) -> None:
    page_of(tmp_path, "first\nIt flips <!--= demo.count -->8<!--/--> with <!--= demo.units_of_bmi -->five<!--/-->.\n")
    (line,) = stale(results, tmp_path)
    assert line.startswith("README.md:2: 'demo.count' is not what its result file says")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "x <!--= demo.cuont -->7<!--/-->",
            "README.md:1: 'demo.cuont': 'demo' has no value 'cuont'; did you mean 'count'?",
        ),
        ("<!-- evidence: scale.job -->\n<!-- end -->", "nothing renders 'scale.job'; did you mean 'scale.jobs'?"),
        ("x\n<!--= demo.count -->7<!--/-->", "README.md:2: put a word before the value 'demo.count'"),
        ("- <!--= demo.count -->7<!--/-->", "README.md:1: put a word before the value 'demo.count'"),
        ("<!-- evidence: scale.jobs -->\nnever ended", "README.md:1: a mark that is not ended"),
        ("x <!--=demo.count-->7<!--/-->", "README.md:1: a mark that is not ended, or not written as"),
        ("<!-- evidence: scale.choose -->\n<!-- end -->", "choose.parquet"),
    ],
)
def test_what_is_no_mark_is_refused(tmp_path: Path, results: Results, text: str, said: str) -> None:
    page = page_of(tmp_path, text)
    with pytest.raises(PageError) as caught:
        render(page, results)
    assert said in str(caught.value)


def test_marks_are_invisible_on_a_site(tmp_path: Path, results: Results) -> None:
    page = page_of(
        tmp_path,
        "| a | b |\n| --- | --- |\n| all <!--= demo.units_of_bmi -->?<!--/--> | <!--= demo.count -->?<!--/--> |\n\n"
        "Of **<!--= demo.count -->?<!--/-->** some.\n\n<!-- evidence: demo.printed -->\n<!-- end -->\n\nEnd.\n",
    )
    html = markdown.markdown(render(page, results), extensions=["tables"])
    shown = " ".join(re.sub(r"<!--.*?-->|<[^>]*>", "", html).split())
    assert shown == "a b all five 7 Of 7 some. 7 of 9 End."
    assert "<code>7 of 9\n</code>" in html


def test_a_measurement_that_is_not_kept_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = (Results().folder / "scale.parquet").read_bytes()
    report({"scale": [SCALE]}, MADE, ["scale.jobs"], keep=False)
    assert "| 1,000 | 7 | 1.2 | 0.5 | 0.12 GiB |" in capsys.readouterr().out
    assert (Results().folder / "scale.parquet").read_bytes() == before


def test_the_program_checks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["evidence", "pages", "--check"])
    assert program.main() == 0
    monkeypatch.setattr(program, "stale", lambda _: ["README.md:2: it says 8"])
    capsys.readouterr()
    assert program.main() == 1
    assert capsys.readouterr().out == "README.md:2: it says 8\n"
