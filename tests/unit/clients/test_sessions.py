"""A grant is found by the name of its dataset, also where one has just followed another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness.fake_server import connected
from harness.shown_rounds import shown_round

from equipoise.clients.analyst import Client
from equipoise.errors import InvalidArgument, NotFound
from equipoise.model.rounds import Grant, RoundState, SessionTerms
from equipoise.v1 import analyst_pb2

NOW = datetime.now(UTC)
BEFORE, LATER = NOW - timedelta(seconds=1), NOW + timedelta(days=30)
GRANT = Grant(10**12, 0)


def found(name: str, closing: Sequence[datetime | None]) -> str:
    """The id of the grant that is found where so many are open, of which each closes at its time."""
    shown = [
        shown_round(f"{place:032x}", RoundState.OPEN, GRANT, session=SessionTerms(5), close_time=each)
        for place, each in enumerate(closing)
    ]

    def listed(_: Any, __: Any) -> Any:
        return analyst_pb2.ListSessionsResponse(sessions=shown)

    def one(request: Any, _: Any) -> Any:
        return analyst_pb2.GetAnalystRoundResponse(round=shown[int(request.round_id, 16)])

    with connected({"ListSessions": listed, "GetAnalystRound": one}) as connection:
        return Client(connection).session(name).id


@pytest.mark.parametrize("closing", [[None], [BEFORE], [LATER, BEFORE], [None, BEFORE]])
def test_the_one_that_goes_on_is_found_by_its_dataset(closing: list[datetime | None]) -> None:
    assert found("shop", closing) == f"{0:032x}"


@pytest.mark.parametrize("closing", [[LATER, None], [BEFORE, BEFORE]])
def test_of_several_the_ids_are_said(closing: list[datetime | None]) -> None:
    with pytest.raises(InvalidArgument, match="must be the id of one of your grants"):
        found("shop", closing)


def test_a_name_without_a_grant_is_said() -> None:
    with pytest.raises(NotFound, match="no open grant"):
        found("other", [None])
