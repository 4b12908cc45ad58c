"""The site's own code: pages find their place, and nothing is loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

import site_pages


def test_pages_that_stand_nowhere_else_are_results(tmp_path: Path) -> None:
    for name in ("prices.md", "hold.md", "results.md", "results/prices.md", "results/data/table.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("# x")
    nav = [{"Start": "index.md"}, {"How": [{"Prices": "prices.md"}]}, {"Results": "results"}]
    found = site_pages.on_config(SimpleNamespace(nav=nav, docs_dir=str(tmp_path))).nav
    assert found == [*nav[:2], {"Results": ["results.md", "hold.md", "results/prices.md"]}]


def test_a_page_that_loads_from_another_machine_ends_the_build(tmp_path: Path) -> None:
    config = SimpleNamespace(site_dir=str(tmp_path))
    (tmp_path / "a.html").write_text('<a href="https://example.org">x</a><img src="pictures/a.svg">')
    site_pages.on_post_build(config)
    (tmp_path / "b.html").write_text("<img alt='x' src='https://example.org/pixel.png'>")
    with pytest.raises(PluginError, match=r"b\.html: <img alt='x' src='https://example\.org/pixel\.png"):
        site_pages.on_post_build(config)
