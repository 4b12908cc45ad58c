"""What a name that pages ask for says; all renderers are known here."""

from __future__ import annotations

import importlib
import pkgutil
from difflib import get_close_matches

from research.evidence import renderers
from research.evidence.registry import TEXTS, VALUES
from research.evidence.results import Results

for _module in pkgutil.iter_modules(renderers.__path__):
    importlib.import_module(f"{renderers.__name__}.{_module.name}")


def rendered(name: str, results: Results) -> str:
    if name in TEXTS:
        return TEXTS[name](results)
    prefix, _, one = name.rpartition(".")
    if prefix not in VALUES:
        raise LookupError(f"nothing renders {name!r}{_nearest(name, [*TEXTS, *VALUES])}")
    known = VALUES[prefix](results)
    if one not in known:
        raise LookupError(f"{prefix!r} has no value {one!r}{_nearest(one, list(known))}")
    return known[one]


def names(results: Results) -> set[str]:
    """All that pages may ask for."""
    return set(TEXTS) | {f"{prefix}.{one}" for prefix, renderer in VALUES.items() for one in renderer(results)}


def _nearest(name: str, known: list[str]) -> str:
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
