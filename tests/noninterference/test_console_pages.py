"""What an analyst's pages show does not depend on what another analyst does: the same bytes in both worlds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from harness.console_pages import PORT, Browser
from harness.noninterference.conducts import Conduct, asking, asks_all_that_is_allowed, stays_away
from harness.noninterference.wire_view import ask
from harness.noninterference.worlds import DAY, RoundOf, World, fresh, world

from equipoise.clients.connection import Connection
from equipoise.console.access import Access
from equipoise.console.desk import Desk
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.model.identities import Caller, Role
from equipoise.queries.statements import Marginal
from equipoise.v1 import analyst_pb2, operator_pb2
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.terms import terms_to_message

ROUNDS = (RoundOf("gaussian", "query", perfect=True), RoundOf("histogram", "analyst", perfect=True, closes=True))
OWN_WORLD = ("/", "/datasets", "/datasets/shop", "/grants", "/receipts")
PAGES = ("", "/table", "/results", "/results?counts=yes", "/results/results.csv", "/synopsis")
RANDOM = re.compile(r"[0-9a-f]{32}|sha256:[0-9a-f]+")


@pytest.mark.full
def test_the_pages_of_one_analyst_do_not_show_what_another_does(tmp_path: Path) -> None:
    asked = dict(lived(tmp_path / "asks", asks_all_that_is_allowed))
    away = dict(lived(tmp_path / "away", stays_away))
    assert asked.keys() == away.keys()
    assert [place for place, page in asked.items() if away[place] != page] == []
    assert any("statement" in page for page in asked.values())
    assert all("For the report." in asked[f"{stage} /grants"] for stage in ("open", "sealed", "released"))
    assert all("marginal" in asked[f"{stage} spending"] for stage in ("open", "sealed", "released"))
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
        granted = given(made, "bob")
        spends(made.viewers.channels["bob"], granted)
        assert browser.post("/grants", dataset="shop", reason="For the report.").status_code == 200
        made.ask([conduct] * len(ROUNDS))
        if conduct is asks_all_that_is_allowed:
            asks_for_grants_and_spends_one(made)
        yield from looked(browser, made, granted, "open")
        made.seal()
        yield from looked(browser, made, granted, "sealed")
        made.release()
        yield from looked(browser, made, granted, "released")


def given(made: World, analyst: str) -> str:
    """The id of a new grant."""
    terms = terms_to_message(grant_terms("shop", analyst, Budget(0.5, 1e-6), None, 0.05))
    opened = made.operator.OpenSession(operator_pb2.OpenSessionRequest(terms=terms, request_id=fresh()))
    return opened.detail.round.id


def asks_for_grants_and_spends_one(made: World) -> None:
    """What ann does outside of rounds."""
    for number in range(3):
        wish = analyst_pb2.RequestGrantRequest(dataset="shop", reason="Why not?", request_id=str(number))
        assert ask(made.ann, "RequestGrant", [wish]).status == "OK"
    spends(made.ann, given(made, "ann"))


def spends(channel: grpc.Channel, grant_id: str) -> None:
    """One statement that is answered."""
    statement = statement_to_bytes(Marginal(("size",)), 10**8)
    assert len(ask(channel, "AskQueries", asking(grant_id, [statement])).messages) == 2


def looked(browser: Browser, made: World, granted: str, stage: str) -> Iterator[tuple[str, str]]:
    """All pages, without what is random."""
    for path in (*OWN_WORLD, "/rounds/00000000000000000000000000000000"):
        yield f"{stage} {path}", RANDOM.sub("random", browser.get(path).text)
    yield f"{stage} spending", RANDOM.sub("random", browser.get(f"/rounds/{granted}/spending").text)
    for each in made.viewers.rounds:
        for path in PAGES:
            page = browser.get(f"/rounds/{each.round_id}{path}").text
            yield f"{stage} {each.name}{path}", RANDOM.sub("random", page)
