"""Names that pages may ask for, and the functions that answer: each turns result files into text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evidence.results import Results

TEXTS: dict[str, Callable[[Results], str]] = {}
VALUES: dict[str, Callable[[Results], Mapping[str, str]]] = {}


def text(name: str) -> Callable[[Callable[[Results], str]], Callable[[Results], str]]:
    """Registers what writes a block of a page, or one value."""

    def register(renderer: Callable[[Results], str]) -> Callable[[Results], str]:
        TEXTS[name] = renderer
        return renderer

    return register


def values(
    prefix: str,
) -> Callable[[Callable[[Results], Mapping[str, str]]], Callable[[Results], Mapping[str, str]]]:
    """Registers what gives several values at once: pages ask for `prefix.name`."""

    def register(renderer: Callable[[Results], Mapping[str, str]]) -> Callable[[Results], Mapping[str, str]]:
        VALUES[prefix] = renderer
        return renderer

    return register
