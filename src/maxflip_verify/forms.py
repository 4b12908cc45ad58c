"""Checks the structure of plan files against forms.toml."""

import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

FORMS = tomllib.loads(files("maxflip_verify").joinpath("forms.toml").read_text("utf-8"))
TYPES = {"int": int, "text": str, "bool": bool, "null": type(None), "list": list, "table": dict}


def misfits(value: Any, form: Any, place: str) -> Iterator[str]:
    """A sentence for every key that is missing, unknown or of a type other than in forms.toml."""
    if isinstance(form, dict) and isinstance(value, dict):
        known = {key.rstrip("?"): inner for key, inner in form.items()}
        for key in sorted(value.keys() | {key for key in form if key[-1] not in "?*"}):
            if key not in value or not known.keys() & {key, "*"}:
                yield f"{place}: the key {key!r} is {'not in the format' if key in value else 'missing'}"
            else:
                yield from misfits(value[key], known.get(key, known.get("*")), f"{place}: {key}")
    elif isinstance(form, list) and isinstance(value, list):
        for item in value:
            yield from misfits(item, form[0], place)
    else:
        words = form.split("|") if isinstance(form, str) else ["null"] if "or null?" in form else []
        if not any(_fits(value, word) for word in words):
            yield f"{place}: got {value!r:.80}, wanted {form!s:.80}"


def _fits(value: Any, word: str) -> bool:
    if word in ("number", "size"):  # finite; a size is >= 0
        return type(value) in (int, float) and (word == "number" or value >= 0) and abs(value) <= sys.float_info.max
    return word == "any" or (type(value) is TYPES[word] if word in TYPES else repr(value) == word)
