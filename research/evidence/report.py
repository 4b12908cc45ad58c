"""What a measurement leaves: result files, pages that say so, and what it prints."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from research.evidence.files import FOLDER, Made, write
from research.evidence.pages import rewrite
from research.evidence.rendering import rendered
from research.evidence.results import Results

Files = Mapping[str, Sequence[Mapping[str, Any]]]


def report(files: Files, made: Made, blocks: Sequence[str], *, keep: bool) -> None:
    """Prints the blocks of pages that these files make; kept, they stand in docs/results/data and in the pages."""
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in files.items():
            write(name, rows, made, Path(folder))
        for block in blocks:
            print(rendered(block, Results(Path(folder))), end="\n\n", flush=True)
    if keep:
        for name, rows in files.items():
            write(name, rows, made, FOLDER)
        print("Rendered: " + (", ".join(rewrite(Results())) or "no page changed"))
