"""Debian's chromium, driven by playwright: one browser for all tests, a fresh context for each page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser, Page

from maxflip.plan.plan import Plan
from maxflip.report import render
from maxflip.study.insight import Insight
from tests.chromium import chromium, installed


def missing(what: str) -> NoReturn:
    """On CI everything has to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing; .ci/browser-tools installs it")
    pytest.skip(f"needs {what}; .ci/browser-tools installs it")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if installed() is None:
        missing("chromium")
    with chromium() as opened:
        yield opened


class Opened:
    """A page in the browser, with all that it asked for and complained about."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.requests: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", self._dialog)
        page.goto(file.as_uri())

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def rows(self) -> list[str]:
        """The ids in the table of people, as shown."""
        return self.page.locator("#people-table tbody th").all_inner_texts()


Open = Callable[..., Opened]


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Render a plan, open it; `width`, `scheme`, `script` as the reader has them. Nothing may go wrong meanwhile."""
    everything: list[Opened] = []

    def opened(
        plan: Plan,
        insight: Insight | None = None,
        people: Any = "full",
        *,
        width: int = 1200,
        scheme: Any = "light",
        script: bool = True,
    ) -> Opened:
        file = tmp_path / f"report-{len(everything)}.html"
        file.write_text(render(plan, insight, people), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script, locale="de-DE"
        )
        everything.append(Opened(context.new_page(), file))
        return everything[-1]

    yield opened
    for one in everything:
        assert one.faults == []
        assert [url for url in one.requests if not url.startswith("file:")] == []
        assert len(one.requests) == 1
        one.page.context.close()
