"""Names that pages may ask for, and the functions that answer: each turns result files into text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps

from research.evidence.results import Results

Renderer = Callable[[Results], str]

TEXTS: dict[str, Renderer] = {}
VALUES: dict[str, Callable[[Results], Mapping[str, str]]] = {}


def text(name: str) -> Callable[[Renderer], Renderer]:
    """Registers what writes a block of a page, or one value."""

    def register(renderer: Renderer) -> Renderer:
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


def waits_for(*files: str) -> Callable[[Renderer], Renderer]:
    """Where such a result file is not there yet, this is said."""

    def waiting(renderer: Renderer) -> Renderer:
        @wraps(renderer)
        def render(results: Results) -> str:
            absent = [f"`{file}.parquet`" for file in files if not results.has(file)]
            return f"*Not measured yet: there is no {' and no '.join(absent)}.*" if absent else renderer(results)

        return render

    return waiting
