"""Arguments that several adapters take: names of classes, and the size of batches."""

from __future__ import annotations

from typing import Any

from maxflip._util.messages import shown
from maxflip.data.tables import is_listing


def read_options(classes: Any, batch_size: Any) -> tuple[tuple[str, ...] | None, list[str]]:
    """The names of the classes, None if they are not given; and the faults of both."""
    faults = []
    names = tuple(str(name) for name in classes) if is_listing(classes) else None
    if classes is not None and (names is None or len(set(names)) != len(names)):
        faults.append(f"classes: got {shown(classes)}; wanted different names, one per class.")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        faults.append(f"batch_size = {shown(batch_size)}: must be a whole number >= 1.")
    return names, faults
