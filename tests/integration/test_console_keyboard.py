"""Requests, grants and the calendar in a real browser, by the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.console_browser import TWO_LOOKS, Person, browser_is_here, chromium, console_of
from harness.shop_commands import Run, register

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not browser_is_here(), reason="needs Chromium and the group `browser`"),
]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def test_a_grant_is_asked_for_given_and_spent(browser: Any, place: Path, run: Run) -> None:
    register(run, place)
    with console_of(place / "ann") as own, console_of(place / "state" / "profiles" / "operator") as address:
        ann, operator = Person(browser, own, TWO_LOOKS), Person(browser, address, TWO_LOOKS)
        follow(ann, "Grants", "Ask for a grant")
        typed(ann, {"Dataset": "shop", "Wished data epsilon": "0.5", "Why, in one sentence": HOSTILE})
        press(ann, "Send the request", "waiting")
        assert ann.page.get_by_text(HOSTILE).first.is_visible()

        follow(operator, "Requests", "What waits for you")
        follow(operator, "ann", "Or why not")
        follow(operator, "Grant this request", "New grant")
        typed(operator, {"Delta, well below": "1e-6"})
        press(operator, "Give the grant", "Abort this grant")
        operator.go("/requests/ann/1")
        operator.page.get_by_text("The grant that was given").wait_for()
        operator.check()

        ann.go("/grants")
        ann.check()
        grant_id = run("ann", "budget")["grants"][0]["id"]
        follow(ann, grant_id, "What each statement has cost")
        typed(ann, {"Questions in SQL": "SELECT colour, COUNT(*) FROM shop GROUP BY colour", "Or rho": "0.001"})
        press(ann, "Ask these questions now", "1 statement answered")
        ann.go(f"/rounds/{grant_id}")
        follow(ann, "What each statement has cost", "marginal")
        follow(ann, "Datasets", "What I may ask about")
        follow(ann, "shop", "Where you can ask now")


@pytest.mark.nightly
def test_rounds_are_scheduled_and_stopped(browser: Any, place: Path, run: Run) -> None:
    register(run, place)
    with console_of(place / "state" / "profiles" / "operator") as address:
        operator = Person(browser, address)
        follow(operator, "Calendar", "Nothing is opened by the calendar")
        follow(operator, "Open rounds by the calendar", "How far apart")
        terms = {
            "The first is opened at": "2099-01-31T06:00",
            "How long each is open": "3d",
            "Shares, one a line": "ann=3/10",
            "Delta, well below": "1e-6",
            "Epsilon, of a year": "11",
            "Delta, of a year": "1e-4",
        }
        typed(operator, terms)
        press(operator, "Have the server open", "Nothing yet.")
        follow(operator, "Calendar", "Schedules, newest first")
        (made,) = run("operator", "operator", "round", "schedules")["schedules"]
        follow(operator, made["id"], "259,200 seconds")
        operator.page.locator("summary").focus()
        operator.page.keyboard.press("Enter")
        press(operator, "Open no more rounds", "none: stopped")


def follow(person: Person, link: str, comes: str) -> None:
    """Follows a link, and waits for a text of the page that comes, which is looked at."""
    person.tab_to(link, "link")
    person.page.keyboard.press("Enter")
    person.page.get_by_text(comes).first.wait_for()
    person.check()


def typed(person: Person, fields: dict[str, str]) -> None:
    """Types into fields, by what they are called."""
    for name, value in fields.items():
        person.tab_to(name, "textbox")
        person.page.keyboard.press("Control+A")
        person.page.keyboard.type(value)


def press(person: Person, button: str, comes: str) -> None:
    """Presses a button, and waits for a text of the page that comes, which is looked at."""
    person.tab_to(button)
    person.page.keyboard.press("Enter")
    person.page.get_by_text(comes).first.wait_for()
    person.check()
