"""Public data for tests: read from the folder that MAXFLIP_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_data(name: str) -> Path:
    root = os.environ.get("MAXFLIP_DATA")
    if root is None:
        pytest.skip("needs public data: set MAXFLIP_DATA to the folder that holds it (docs/data.md)")
    folder = Path(root) / name
    if not folder.is_dir():
        pytest.skip(f"needs public data: MAXFLIP_DATA has no folder {name} (docs/data.md)")
    return folder
