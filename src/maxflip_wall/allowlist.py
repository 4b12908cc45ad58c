"""The positive list: what model files may contain (allowlist.toml). Anything else is refused."""

import re
import tomllib
from importlib.resources import files

ALLOWED = tomllib.loads(files("maxflip_wall").joinpath("allowlist.toml").read_text("utf-8"))


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern, with its line breaks removed, matches the whole text."""
    return re.fullmatch(pattern.replace("\n", ""), text, re.ASCII) is not None
