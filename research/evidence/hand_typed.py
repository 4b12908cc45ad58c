"""Numbers that look measured and stand outside all marks of a page: each is a setting that is listed, or a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from research.evidence.files import ROOT
from research.evidence.pages import BEGIN, pages

_UNITS = r"%|ms|s|seconds|minutes|hours?|GiB|GB|MiB|MB"
MEASURED = re.compile(rf"(?<![\w.,])[−+-]?(?:\d[\d,]*\.\d+(?:\s?(?:{_UNITS}))?|\d[\d,]*\s?(?:{_UNITS}))(?![\w]|\.\d)")
_NO_PROSE = re.compile(
    r"^<!-- evidence:.*?^<!-- end -->$|<!--=.*?<!--/-->|<!--.*?-->"  # rendered, or not shown
    r"|^```.*?^```$|^    [^\n]*$|`[^`\n]*`"  # code
    r"|\]\([^)]*\)|<https?:[^>]*>|arXiv \d+\.\d+",  # where to look
    re.MULTILINE | re.DOTALL,
)


_ALSO = ("docs/experiments.md",)  # it has nothing rendered: what it says of the study are settings


def watched(root: Path = ROOT) -> Iterator[Path]:
    """All pages that have something measured, and those of the results."""
    for page in pages(root):
        name = page.relative_to(root).as_posix()
        if name in _ALSO or name.startswith("docs/results/") or BEGIN.search(page.read_text()):
            yield page


def hand_typed(page: Path, settings: Mapping[str, tuple[str, ...]], root: Path = ROOT) -> list[str]:
    """A line for each such number, and for each listed setting that the page does not have."""
    source = page.read_text()
    name = page.relative_to(root).as_posix()
    prose = _blank(_NO_PROSE, source)
    said = []
    for phrase in settings.get(name, ()):
        if phrase not in prose:
            said.append(
                f"{name}: the setting {phrase!r} in research/evidence/settings.py stands nowhere in the page; remove it"
            )
        prose = prose.replace(phrase, " " * len(phrase))
    for match in MEASURED.finditer(prose):
        line = source.count("\n", 0, match.start()) + 1
        said.append(
            f"{name}:{line}: {match[0]!r} is typed by hand. If it was measured, put it into a result file and a mark "
            "around it (research/evidence/pages.py says how); if it is a setting, its phrase goes into evidence/settings.py"
        )
    return said


def _blank(pattern: re.Pattern[str], source: str) -> str:
    """The same length and lines, with spaces for what matches."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
