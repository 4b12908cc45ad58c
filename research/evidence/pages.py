"""README.md and docs/**/*.md, whose measured parts are rendered from result files.

<!-- evidence: NAME -->            a block: all between the two lines is what the renderer NAME says
<!-- end -->

flips <!--= NAME -->100<!--/--> of 442      a value inside a line, also in a table; never at a line's start, where
                                            Markdown takes a comment for the begin of a block of HTML
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from research.evidence.files import ROOT
from research.evidence.rendering import rendered
from research.evidence.results import Results

_BLOCK = re.compile(r"^<!-- evidence: (?P<name>[\w.]+) -->\n(?P<text>.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"<!--= (?P<name>[\w.]+) -->(?P<text>[^\n]*?)<!--/-->")
_OPENING = re.compile(r"[\s>]*(?:[-*+]\s+|\d+[.)]\s+)?")  # of a line, before its words
BEGIN = re.compile(r"<!-- evidence:|<!--=")  # of a mark, well written or not


class PageError(Exception):
    """A mark that cannot be rendered; names page, line and mark."""


def pages(root: Path = ROOT) -> Iterator[Path]:
    yield root / "README.md"
    yield from sorted((root / "docs").rglob("*.md"))


@dataclass(frozen=True)
class Mark:
    """A marked part of a page. begin, end: where its text stands   is: that text   ought: what result files say"""

    name: str
    line: int
    begin: int
    end: int
    text: str
    ought: str


def marks(page: Path, results: Results) -> list[Mark]:
    """In the order of the page."""
    source = page.read_text()
    found = [(match, _block) for match in _BLOCK.finditer(source)]
    found += [(match, _value) for match in _VALUE.finditer(source)]
    _refuse_what_is_no_mark(page, source, {match.start() for match, _ in found})
    marked = []
    for match, form in sorted(found, key=lambda pair: pair[0].start()):
        name, line = match["name"], _line(source, match.start())
        if form is _value and _OPENING.fullmatch(source[: match.start()].rpartition("\n")[2]):
            raise PageError(f"{page}:{line}: put a word before the value {name!r}: at a line's start it is no value")
        try:
            ought = form(rendered(name, results))
        except (LookupError, FileNotFoundError) as error:
            raise PageError(f"{page}:{line}: {name!r}: {error.args[0]}") from error
        marked.append(Mark(name, line, *match.span("text"), match["text"], ought))
    return marked


def render(page: Path, results: Results) -> str:
    """The page with all its marked parts as the result files have them."""
    source, parts, at = page.read_text(), [], 0
    for mark in marks(page, results):
        parts += [source[at : mark.begin], mark.ought]
        at = mark.end
    return "".join([*parts, source[at:]])


def rewrite(results: Results, root: Path = ROOT) -> list[str]:
    """Renders all pages; the names of those that changed."""
    changed = []
    for page in pages(root):
        text = render(page, results)
        if text != page.read_text():
            page.write_text(text)
            changed.append(page.relative_to(root).as_posix())
    return changed


def stale(results: Results, root: Path = ROOT) -> list[str]:
    """A line for each mark whose text is not what the result files say."""
    return [
        f"{page.relative_to(root)}:{mark.line}: {mark.name!r} is not what its result file says; "
        "`python -m research.evidence pages` renders it"
        for page in pages(root)
        for mark in marks(page, results)
        if mark.text != mark.ought
    ]


def _block(text: str) -> str:
    return "\n" + text.strip("\n") + "\n\n"


def _value(text: str) -> str:
    return text


def _refuse_what_is_no_mark(page: Path, source: str, begins: set[int]) -> None:
    for match in BEGIN.finditer(source):
        if match.start() not in begins:
            raise PageError(
                f"{page}:{_line(source, match.start())}: a mark that is not ended, or not written as "
                "'<!-- evidence: NAME -->' ... '<!-- end -->' or '<!--= NAME -->...<!--/-->'"
            )


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1
