"""The console in a real browser: Debian's Chromium, driven by Playwright, and looked at by axe.

For people to look at, the tests put a picture of every page that they check into the directory that the environment
variable CONSOLE_PICTURES names: light and dark, wide and narrow.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.waiting import PATIENCE

CHROMIUM = Path("/usr/bin/chromium")
# Nothing that Chromium does by itself may reach out of the machine.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERIOUS = ("serious", "critical")
MAX_TABS = 120
SHOWS_THAT_IT_SCROLLS = """[...document.querySelectorAll(".scroll")].every(
    each => each.scrollWidth <= each.clientWidth || getComputedStyle(each).boxShadow !== "none")"""
PICTURES = os.environ.get("CONSOLE_PICTURES", "")
Looks = Sequence[tuple[str, int]]  # colour schemes, and widths in pixels
LOOKS: Looks = tuple((scheme, width) for scheme in ("light", "dark") for width in (1280, 390))
TWO_LOOKS: Looks = (LOOKS[0], LOOKS[-1])  # each scheme and each width once


def browser_is_here() -> bool:
    """Whether the browser and what drives it are installed; CI has both."""
    return bool(os.environ.get("CI")) or (CHROMIUM.exists() and find_spec("playwright") is not None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is installed

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def console_of(profile: Path) -> Iterator[str]:
    """The program `equipoise console` of a profile; gives the address that it prints."""
    command = [sys.executable, "-m", "equipoise.cli", "console", "--json", "--profile", str(profile)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        try:
            yield str(json.loads(program.stdout.readline())["address"])
        finally:
            program.terminate()
            program.wait(PATIENCE)


class Person:
    """Somebody who uses a console in a browser, and sees whether a page is as it must be, in some looks."""

    def __init__(self, browser: Any, address: str, looks: Looks = LOOKS) -> None:
        self.looks = looks
        self.context = browser.new_context()
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.page.on("dialog", lambda dialog: self._trouble(f"a dialog: {dialog.message}", dialog))
        self.page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.goto(address)
        self.base = self.page.url.rstrip("/")

    def _trouble(self, what: str, dialog: Any) -> None:
        self.troubles.append(what)
        dialog.dismiss()

    def go(self, path: str) -> None:
        """Opens a page of the console."""
        self.page.goto(self.base + path)

    def click(self, name: str, role: str = "button") -> None:
        """Presses a button, or follows a link, by what it says."""
        self.page.get_by_role(role, name=name).first.click()

    def save(self, name: str, role: str = "link") -> bytes:
        """What is downloaded by a link or button."""
        with self.page.expect_download() as waiting:
            self.click(name, role)
        return Path(waiting.value.path()).read_bytes()

    def tab_to(self, name: str, role: str = "button") -> None:
        """Moves the focus by the keyboard alone; where it is can be seen."""
        wanted = self.page.get_by_role(role, name=name).first
        for _ in range(MAX_TABS):
            if wanted.evaluate("each => each === document.activeElement"):
                assert wanted.evaluate("each => getComputedStyle(each).outlineStyle") != "none"
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{name} is not reached by the keyboard")

    def check(self) -> None:
        """The page has no serious fault of accessibility and fits its window, in each look."""
        from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - only where it is installed

        for scheme, width in self.looks:
            self.page.emulate_media(color_scheme=scheme)
            self.page.set_viewport_size({"width": width, "height": 900})
            found = Axe().run(self.page).response["violations"]
            assert [each["id"] for each in found if each["impact"] in SERIOUS] == [], (self.page.url, found)
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, self.page.url
            assert self.page.evaluate(SHOWS_THAT_IT_SCROLLS), self.page.url
            if PICTURES:
                self.picture(f"{scheme}-{width}")
        self.page.set_viewport_size({"width": LOOKS[0][1], "height": 900})
        assert self.troubles == []

    def picture(self, kind: str) -> None:
        """Keeps what the page looks like, under its title."""
        role = self.page.locator(".role").inner_text()
        name = re.sub("[^a-z0-9]+", "-", f"{role} {self.page.title()}".lower())
        self.page.screenshot(path=Path(PICTURES) / f"{name}-{kind}.png", full_page=True)
