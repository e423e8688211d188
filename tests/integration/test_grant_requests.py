"""Requests for grants: each analyst's own, bounded, and decided once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.rounds_bench import TERMS, Bench

from equipoise.errors import InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.model.own_world import RequestState
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.rounds.grant_requests import MAX_WAITING, GrantRequests

WHY = "For the yearly report."
GRANT = grant_terms("shop", "ann", Budget(0.2, 1e-6), None, 0.05)


@pytest.fixture
def wishes(on_sqlite: Bench) -> GrantRequests:
    return on_sqlite.rounds.grant_requests


def test_a_request_is_kept_once_and_only_its_analyst_and_operators_see_it(wishes: GrantRequests) -> None:
    first = wishes.ask("ann", "shop", WHY, 0.5, "a")
    assert wishes.ask("ann", "shop", WHY, 0.5, "a") == first
    second = wishes.ask("ann", "nowhere", WHY, 0.0, "b")
    (bobs,) = [wishes.ask("bob", "shop", WHY, 0.0, "a")]
    assert (first.number, second.number, bobs.number) == (1, 2, 1)
    assert wishes.own("ann") == ([second, first], "")
    assert wishes.own("bob") == ([bobs], "")
    page, token = wishes.own("ann", 1)
    assert (page, wishes.own("ann", 1, token)) == ([second], ([first], ""))
    page, token = wishes.all(decided=False, page_size=2)
    assert (page, wishes.all(False, 2, token)) == ([bobs, second], ([first], ""))


def test_so_many_wait_and_others_have_their_own_room(wishes: GrantRequests) -> None:
    for number in range(MAX_WAITING):
        wishes.ask("ann", "shop", WHY, 0.0, str(number))
    with pytest.raises(WrongState, match="wait for an operator"):
        wishes.ask("ann", "shop", WHY, 0.0, "one more")
    assert wishes.ask("bob", "shop", WHY, 0.0, "first").number == 1
    wishes.decide("ann", 3, "", "Later.", "decline")
    assert wishes.ask("ann", "shop", WHY, 0.0, "one more").number == MAX_WAITING + 1


def test_a_request_is_decided_once_by_a_grant_of_its_own(on_sqlite: Bench, wishes: GrantRequests) -> None:
    wishes.ask("ann", "shop", WHY, 0.0, "a")
    wishes.ask("bob", "shop", WHY, 0.0, "a")
    given = on_sqlite.sessions.open(GRANT, "give").id
    with pytest.raises(InvalidArgument, match="not a grant of bob"):
        wishes.decide("bob", 1, given, "", "wrong")
    with pytest.raises(InvalidArgument, match="no such round"):
        wishes.decide("bob", 1, "0" * 32, "", "wrong")
    session = on_sqlite.opened(replace(TERMS, mechanism="gaussian", options={}))
    with pytest.raises(InvalidArgument, match="no open grant"):
        wishes.decide("ann", 1, session, "", "wrong")
    with pytest.raises(NotFound):
        wishes.decide("ann", 2, given, "", "wrong")
    with pytest.raises(InvalidArgument, match="must be empty"):
        wishes.decide("ann", 1, given, "Here you are.", "wrong")
    granted = wishes.decide("ann", 1, given, "", "grant", "olga")
    assert (granted.state, granted.grant_id) == (RequestState.GRANTED, given)
    assert wishes.decide("ann", 1, given, "", "grant", "olga") == granted
    with pytest.raises(WrongState, match="was granted before"):
        wishes.decide("ann", 1, "", "No.", "decline")
    assert [each.analyst for each in wishes.all(decided=False)[0]] == ["bob"]
    assert len(wishes.all(decided=True)[0]) == 2


@pytest.mark.parametrize("reason", ["", "x" * 501, "two\nlines", "\x00"])
def test_a_sentence_is_one_line_of_what_can_be_printed(wishes: GrantRequests, reason: str) -> None:
    with pytest.raises(InvalidArgument, match="reason"):
        wishes.ask("ann", "shop", reason, 0.0, "a")
    with pytest.raises(InvalidArgument, match="answer"):
        wishes.decide("ann", 1, "", reason, "a")


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_an_epsilon_is_a_number(wishes: GrantRequests, epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        wishes.ask("ann", "shop", WHY, epsilon, "a")
    with pytest.raises(InvalidArgument, match="dataset"):
        wishes.ask("ann", "no name", WHY, 0.0, "a")


def test_a_deleted_analysts_requests_go_with_it(on_sqlite: Bench, wishes: GrantRequests) -> None:
    wishes.ask("ann", "shop", WHY, 0.0, "a")
    kept = wishes.ask("bob", "shop", WHY, 0.0, "a")
    delete_analyst(on_sqlite.rounds.operations, "ann", "delete")
    assert wishes.all(decided=True) == ([kept], "")
