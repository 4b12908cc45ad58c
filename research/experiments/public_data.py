"""Whether public data are there; if not, what to fetch from where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from maxflip.cli.datasets import SOURCES


def those_with_data(
    names: Iterable[str], folders: Mapping[str, str], data: Path | str | None, console: Console
) -> list[str]:
    """Of these, those whose folder lies in `data`, or that need none; of the others the console says what to fetch."""
    found = []
    for name in names:
        folder = folders.get(name)
        if folder is None or (data is not None and (Path(data) / folder).is_dir()):
            found.append(name)
            continue
        why = "no folder was named" if data is None else f"{data} has no folder {folder}"
        console.print(
            f"{name} is left out: {why}. Fetch it from {SOURCES[folder].where} into DIR/{folder} (docs/data.md says "
            f"which files; `maxflip data {folder} --root DIR/{folder}` checks them), and give --data DIR or set "
            "MAXFLIP_DATA to DIR.",
            soft_wrap=True,
            markup=False,
        )
    return found
