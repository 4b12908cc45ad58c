"""Names that pages may ask for, and the functions that answer: each turns result files into text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from evidence.results import Results

_TEXTS: dict[str, Callable[[Results], str]] = {}
_VALUES: dict[str, Callable[[Results], Mapping[str, str]]] = {}


def text(name: str) -> Callable[[Callable[[Results], str]], Callable[[Results], str]]:
    """Registers what writes a block of a page, or one value."""

    def register(renderer: Callable[[Results], str]) -> Callable[[Results], str]:
        _TEXTS[name] = renderer
        return renderer

    return register


def values(
    prefix: str,
) -> Callable[[Callable[[Results], Mapping[str, str]]], Callable[[Results], Mapping[str, str]]]:
    """Registers what gives several values at once: pages ask for `prefix.name`."""

    def register(renderer: Callable[[Results], Mapping[str, str]]) -> Callable[[Results], Mapping[str, str]]:
        _VALUES[prefix] = renderer
        return renderer

    return register


def rendered(name: str, results: Results) -> str:
    if name in _TEXTS:
        return _TEXTS[name](results)
    prefix, _, one = name.rpartition(".")
    if prefix not in _VALUES:
        raise LookupError(f"nothing renders {name!r}{_nearest(name, [*_TEXTS, *_VALUES])}")
    known = _VALUES[prefix](results)
    if one not in known:
        raise LookupError(f"{prefix!r} has no value {one!r}{_nearest(one, list(known))}")
    return known[one]


def names(results: Results) -> set[str]:
    """All that pages may ask for."""
    return set(_TEXTS) | {f"{prefix}.{one}" for prefix, renderer in _VALUES.items() for one in renderer(results)}


def _nearest(name: str, known: list[str]) -> str:
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
