"""Read a file once, if it is a plain file, and compare what it says with its form: the folder may be hostile."""

import os
import stat
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

FORMS = tomllib.loads(files("maxflip_verify").joinpath("forms.toml").read_text("utf-8"))
TYPES = {"int": int, "text": str, "bool": bool, "null": type(None), "list": list, "table": dict}
LARGEST = 8 << 30


class Unreadable(Exception):
    """A file is missing, damaged or not what its contract says: there is nothing to judge (exit 2)."""


class Refused(Exception):
    """A model file could run code when opened, so it is not opened (exit 7)."""


@contextmanager
def reading(name: object, remedy: str = "") -> Iterator[None]:
    """Whatever goes wrong in here is the file's fault: one sentence that names it, and no traceback."""
    try:
        yield
    except (Refused, Unreadable) as error:
        raise type(error)(f"{name}: {error}{remedy}") from error
    except Exception as error:
        raise Unreadable(f"{name}: {error!r:.300}{remedy}") from error


def read(path: Path, *, follow_links: bool = True) -> bytes:
    """The bytes to hash, audit and parse: one read, so that nobody swaps the file in between."""
    with reading(path):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode) or os.fstat(handle).st_size > LARGEST:
                raise Unreadable(f"must be a plain file of at most {LARGEST} bytes")
            return file.read()


def misfits(value: Any, form: Any, where: str) -> Iterator[str]:
    """Every key that is missing, unknown or of another type than in forms.toml."""
    if isinstance(form, dict) and isinstance(value, dict):
        known = {key.rstrip("?"): inner for key, inner in form.items()}
        for key in sorted(value.keys() | {key for key in form if key[-1] not in "?*"}):
            if key not in value or not known.keys() & {key, "*"}:
                yield f"{where}: the key {key!r} is {'not in the format' if key in value else 'missing'}"
            else:
                yield from misfits(value[key], known.get(key, known.get("*")), f"{where}: {key}")
    elif isinstance(form, list) and isinstance(value, list):
        for item in value:
            yield from misfits(item, form[0], where)
    else:
        words = form.split("|") if isinstance(form, str) else ["null"] if "or null?" in form else []
        if not any(_fits(value, word) for word in words):
            yield f"{where}: got {value!r:.80}, wanted {form!s:.80}"


def _fits(value: Any, word: str) -> bool:
    if word in ("number", "size"):  # finite; a size is not negative
        return type(value) in (int, float) and (word == "number" or value >= 0) and abs(value) <= sys.float_info.max
    return type(value) is TYPES[word] if word in TYPES else repr(value) == word
