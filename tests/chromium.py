"""The chromium that is installed, without a window, asking nobody for anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

QUIET = (
    "--no-sandbox",  # as root, chromium starts only so
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def installed() -> str | None:
    """Its path."""
    return shutil.which("chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    path = installed()
    if path is None:
        raise SystemExit("There is no chromium here; .ci/browser-tools installs it.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()
