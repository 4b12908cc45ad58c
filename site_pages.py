"""What `mkdocs build` needs beyond docs/: pages of the repository's root, the list of results, a look at the outcome.

README.md, CONTRIBUTING.md and CHANGELOG.md are pages of the site as they stand; their links into docs/ are made to
fit. Pages that no other part of the navigation names are results. A built page that would load something from another
machine ends the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
OVERVIEW = "results.md"  # of all results: it comes first
# What a browser fetches on its own: not links, which a reader follows.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon|dns-prefetch))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+""",
    re.IGNORECASE,
)


def on_config(config: Any) -> Any:
    named = {*_named(config.nav)}
    docs = Path(config.docs_dir)
    others = [page.relative_to(docs).as_posix() for page in sorted(docs.rglob("*.md"))]
    results = sorted((page for page in others if page not in named), key=lambda page: page != OVERVIEW)
    config.nav = [{"Results": results} if item == {"Results": "results"} else item for item in config.nav]
    return config


def on_files(files: Files, config: Any) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=as_page((ROOT / name).read_text())))
    return files


def on_post_build(config: Any) -> None:
    loaded = {
        f"{page.relative_to(config.site_dir)}: {found}"
        for page in sorted(Path(config.site_dir).rglob("*.html"))
        for found in loaded_from_elsewhere(page.read_text())
    }
    if loaded:
        raise PluginError("These pages load something from another machine:\n" + "\n".join(sorted(loaded)))


def as_page(text: str) -> str:
    """The text of a page of the root, with links as they are in docs/.

    >>> as_page("[a](docs/api.md#budget) ![b](docs/pictures/b.png) [c](CONTRIBUTING.md) [d](https://example.org)")
    '[a](api.md#budget) ![b](pictures/b.png) [c](contributing.md) [d](https://example.org)'
    """
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("](docs/", "](")


def loaded_from_elsewhere(html: str) -> list[str]:
    """
    >>> loaded_from_elsewhere('<script src="https://cdn.example.org/x.js"></script><a href="https://example.org">x</a>')
    ['<script src="https://cdn.example.org/x.js']
    >>> loaded_from_elsewhere('<link href="//fonts.example.org/a.css" rel="stylesheet"><link rel="icon" href="a.svg">')
    ['<link href="//fonts.example.org/a.css']
    """
    return _LOADED.findall(html)


def _named(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _named(part)]
