"""The best of what is not ours."""

from __future__ import annotations

from collections.abc import Mapping

OURS = "maxflip"


def best_of_others(counts: Mapping[tuple[str, str], float]) -> tuple[float, str] | None:
    """(tool, method) -> count; the largest of tools that are not maxflip, and whose it is: the first of several, and
    how many more. None where there are no others."""
    others = {key: count for key, count in counts.items() if key[0] != OURS}
    if not others:
        return None
    most = max(others.values())
    first, *more = [f"{tool}, {method}" for (tool, method), count in others.items() if count == most]
    return most, first + (f" (and {len(more)} more)" if more else "")
