"""What an analyst's pages show does not depend on what another analyst does: the same bytes in both worlds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness.console_pages import PORT, Browser
from harness.noninterference.conducts import Conduct, asks_all_that_is_allowed, stays_away
from harness.noninterference.worlds import DAY, RoundOf, World, world

from equipoise.clients.connection import Connection
from equipoise.console.access import Access
from equipoise.console.desk import Desk
from equipoise.model.identities import Caller, Role

ROUNDS = (RoundOf("gaussian", "query", perfect=True), RoundOf("histogram", "analyst", perfect=True, closes=True))
PAGES = ("", "/table", "/results", "/results?counts=yes", "/results/results.csv", "/synopsis")
RANDOM = re.compile(r"[0-9a-f]{32}|sha256:[0-9a-f]+")


@pytest.mark.full
def test_the_pages_of_one_analyst_do_not_show_what_another_does(tmp_path: Path) -> None:
    asked = dict(lived(tmp_path / "asks", asks_all_that_is_allowed))
    away = dict(lived(tmp_path / "away", stays_away))
    assert asked.keys() == away.keys()
    assert [place for place, page in asked.items() if away[place] != page] == []
    assert any("statement" in page for page in asked.values())
    assert not any("ann" in re.findall(r"\w+", page) for page in asked.values())


def lived(place: Path, conduct: Conduct) -> Iterator[tuple[str, str]]:
    """Bob's pages at every stage of a world in which ann acts in this way."""
    with world(place, DAY, ROUNDS) as made:
        profile = place / "bob"
        profile.mkdir()
        desk = Desk(
            profile,
            Connection(made.viewers.channels["bob"], "the server"),
            Caller("bob", Role.ANALYST),
            datetime(2030, 1, 31, tzinfo=UTC),
            Access(PORT, "place", "opening", "session", "form token"),
        )
        browser = Browser(desk)
        assert browser.client.get(desk.access.address).status_code == 200
        made.open()
        made.ask([conduct] * len(ROUNDS))
        yield from looked(browser, made, "open")
        made.seal()
        yield from looked(browser, made, "sealed")
        made.release()
        yield from looked(browser, made, "released")


def looked(browser: Browser, made: World, stage: str) -> Iterator[tuple[str, str]]:
    """All pages, without what is random."""
    for path in ("/", "/receipts", "/rounds/00000000000000000000000000000000"):
        yield f"{stage} {path}", RANDOM.sub("random", browser.get(path).text)
    for each in made.viewers.rounds:
        for path in PAGES:
            page = browser.get(f"/rounds/{each.round_id}{path}").text
            yield f"{stage} {each.name}{path}", RANDOM.sub("random", page)
