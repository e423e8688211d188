"""In a session by turns nobody can see whether another asks, nor what, nor how long the answers take.

Worlds that differ in what ann does; all that the others see, on the wire and byte for byte, is the same but for
values, ways of answering and intervals, which the mechanism accounts for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import grpc
from harness.audit_size import AuditSize
from harness.dangers import SMALL_TABLE_SENT
from harness.noninterference.conducts import BEYOND, OTHER, USUAL, asking
from harness.noninterference.looking import OWN, Watched
from harness.noninterference.telling import ACCEPTED
from harness.noninterference.wire_view import PATIENCE, Seen, View, ask, difference
from harness.noninterference.worlds import (
    DAY,
    SHARES,
    World,
    fresh,
    nothing_of_analysts_is_logged,
    set_clock,
    world,
)
from harness.waiting import until
from sqlalchemy import func, select

from equipoise.queries.statements import Statement
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.storage.tables.session import asked

TURN_SECONDS, TURNS = 10, 5
READABLE_SECONDS = 180
STATEMENTS = 3  # of every share
TELLING = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
    "from harness.noninterference import telling; telling.tell_what_is_accepted(state)"
)


def encoded(statements: Sequence[Statement]) -> list[bytes]:
    return [statement_to_bytes(each) for each in statements]


@dataclass(frozen=True)
class Ann:
    """What ann does: how often she attaches, each time saying the same, and whether she waits for answers."""

    said: Sequence[bytes]
    times: int = 1

    def act(self, channel: grpc.Channel, session_id: str) -> None:
        for _ in range(self.times):
            threading.Thread(
                target=ask, args=(channel, "AskQueries", asking(session_id, self.said)), daemon=True
            ).start()


STAYS_AWAY = Ann((), times=0)
CONDUCTS = {
    "asks": Ann(encoded(OTHER)),
    "asks_beyond_the_share": Ann(encoded(BEYOND)),
    "asks_nonsense": Ann([b"\xff" * 1000], times=10),
    "comes_and_goes": Ann(encoded(USUAL), times=10),
}


class Talk:
    """One viewer's stream, read by a thread of its own to its end."""

    def __init__(self, channel: grpc.Channel, viewer: str, session_id: str, statements: Sequence[bytes]) -> None:
        self._seen: list[Seen] = []

        def read() -> None:
            self._seen.append(ask(channel, "AskQueries", asking(session_id, statements), viewer))

        self._thread = threading.Thread(target=read, daemon=True)
        self._thread.start()

    def end(self) -> Seen:
        self._thread.join(PATIENCE)
        assert self._seen, "the stream did not end"
        return self._seen[0]


def opened(made: World) -> Watched:
    share = {"statements": STATEMENTS, "queries": 12}
    terms = types_pb2.RoundTerms(
        dataset="shop",
        unit=types_pb2.PROTECTION_UNIT_QUERY,
        data_budget=types_pb2.Budget(epsilon=4.0, delta=1e-4),
        analyst_budget=types_pb2.Budget(epsilon=8.0, delta=1e-4),
        beta=0.05,
        mechanism="online_private",
        shares=[types_pb2.Share(analyst=name, **share) for name in SHARES],
        release_grid_seconds=60,
        session=types_pb2.SessionTerms(length=TURNS, turn_seconds=TURN_SECONDS),
        accepted=SMALL_TABLE_SENT,
    )
    request = operator_pb2.OpenSessionRequest(terms=terms, request_id=fresh())
    shown = made.operator.OpenSession(request).detail.round
    return Watched("a session by turns", shown.id, shown.seed_commitment, perfect=False)


def lived(place: Path, ann: Ann, *, to_the_end: bool) -> tuple[View, list[bytes]]:
    """What the viewers see of one world, until all have their answers or the results are out; and the accounts."""
    with world(place, DAY, [], TELLING) as made:
        session = opened(made)
        made.viewers.rounds = [session]
        ann.act(made.ann, session.round_id)
        talks = [
            Talk(made.viewers.channels[name], name, session.round_id, encoded(statements))
            for name, statements in OWN.items()
        ]
        file, asked_for = made.server.state / ACCEPTED, sum(map(len, OWN.values()))
        until(lambda: file.exists() and sum(name in OWN for name in file.read_text().split()) == asked_for)
        for turn in range(1, TURNS):
            set_clock(made.server.state, made.begin + timedelta(seconds=turn * TURN_SECONDS))
            wait_until_stored(made, sum(min(turn, len(statements)) for statements in OWN.values()))
        for talk in talks:
            made.viewers.keep(talk.end(), session)
        made.viewers.look("asked")
        if to_the_end:
            set_clock(made.server.state, made.begin + timedelta(seconds=READABLE_SECONDS - 60))
            made._released(session.round_id)
            set_clock(made.server.state, made.begin + timedelta(seconds=READABLE_SECONDS))
            made.viewers.look("readable")
        nothing_of_analysts_is_logged(made)
        return made.viewers.view, made.accounts()


def wait_until_stored(made: World, answers: int) -> None:
    """Until so many answers of the viewers are stored: they are told at the turn's end, whenever that was."""
    store = open_deployment(made.server.state, made.begin).open_store()

    def all_are() -> bool:
        with store.read() as connection:
            query = select(func.count()).where(asked.c.analyst.in_(list(OWN)))
            return int(connection.execute(query).scalar_one()) == answers

    try:
        until(all_are)
    finally:
        store.close()


def test_nobody_sees_whether_another_asks_in_a_session_by_turns(tmp_path: Path, audit_size: AuditSize) -> None:
    """At the fast size ann asks, and nobody waits for the results; at the nightly one in every way."""
    nightly = audit_size.worlds > 1
    first = lived(tmp_path / "first", STAYS_AWAY, to_the_end=nightly)
    told = [seen for seen in first[0] if seen.method == "AskQueries" and seen.status == "OK"]
    assert [len(seen.messages) for seen in told[:2]] == [1 + len(OWN[name]) for name in OWN]
    for name, conduct in CONDUCTS.items() if nightly else [("asks", CONDUCTS["asks"])]:
        other = lived(tmp_path / name, conduct, to_the_end=nightly)
        assert difference(first[0], other[0]) is None
        assert first[1] == other[1]
