"""A browser, and the site of the whole library, for the tests that need them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from symflops.cli.main import main
from symflops.read.spec_files import shipped, specs_in

MODELS = tuple(file.name for file in specs_in(shipped("specs")))
ADDRESSES = {file.name: f"{file.group}/{file.name}.html" for file in specs_in(shipped("specs"))}


@dataclass(frozen=True)
class Site:
    """A site on disk."""

    folder: Path

    def address(self, name: str) -> str:
        return (self.folder / ADDRESSES[name]).as_uri()


@pytest.fixture(scope="session")
def site(once) -> Site:
    def write(folder: Path) -> None:
        assert main(["site", "-o", str(folder)]) == 0

    return Site(once("site", write))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. These tests run only when asked for (``-m system``), so a missing one is a failure and not a skip."""
    program = shutil.which("chromium")
    assert program, "install Chromium (Debian: chromium): it was not found"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """A page whose console and network are watched; ``problems`` are what a person would not want to be there."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("console", lambda message: message.type in ("error", "warning") and self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or self.problems.append(f"asks for {request.url}"))
        page.on("requestfailed", lambda request: self.problems.append(f"{request.url} fails"))

    def open(self, address: str) -> Page:
        self.page.goto(address)
        self.page.wait_for_function("document.documentElement.dataset.math === 'set'", timeout=60_000)
        if self.page.locator("#calculator-form").count():
            self.page.wait_for_function("document.getElementById('calculator-form').dataset.ready === 'true'")
        return self.page


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", offline=True)
    yield Watched(context.new_page())
    context.close()
