"""The connection: what servers refuse comes back as what it is, and what cannot be reached is said so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
from harness.answers import some_answers
from harness.fake_server import connected, refuse

from equipoise.clients.analyst import Client
from equipoise.clients.connection import Connection
from equipoise.clients.refusals import REASON_KEY, RETRY_KEY
from equipoise.errors import (
    BY_REASON,
    EquipoiseError,
    InternalError,
    InvalidArgument,
    NotServed,
    TooFast,
    Unavailable,
    WrongState,
)
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.results import results_to_chunks

ROUND = "r1"
VALUES = np.arange(5000, dtype=np.int64)
CHUNKS = list(results_to_chunks(ROUND, some_answers(VALUES, 1, 7)))


@pytest.mark.parametrize("reason", BY_REASON)
def test_every_refusal_comes_back_as_what_it_was(reason: str) -> None:
    kind = BY_REASON[reason]
    sent = InvalidArgument("statements[3]", "is odd") if kind is InvalidArgument else kind("as said")

    def show(_: Any, context: Any) -> Any:
        refuse(context, sent)

    with connected({"GetAnalystRound": show}) as connection, pytest.raises(EquipoiseError) as refused:
        Client(connection).round(ROUND)
    assert type(refused.value) is kind
    assert refused.value.message == sent.message


def test_a_refusal_is_not_repeated() -> None:
    calls = []

    def show(request: Any, context: Any) -> Any:
        calls.append(request)
        refuse(context, WrongState("too late"))

    with connected({"GetAnalystRound": show}) as connection, pytest.raises(WrongState):
        Client(connection).round(ROUND)
    assert len(calls) == 1


def test_one_that_came_too_early_waits_as_it_was_told() -> None:
    calls = 0

    def get_identity(_: Any, context: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            refuse(context, TooFast("too often", retry_seconds=0.01))
        return analyst_pb2.GetIdentityResponse(name="ann", role=types_pb2.ROLE_ANALYST)

    with connected({"GetIdentity": get_identity}) as connection:
        assert Client(connection).identity().name == "ann"
    assert calls == 2


def test_one_that_has_too_much_open_is_told_at_once() -> None:
    calls = 0

    def get_identity(_: Any, context: Any) -> Any:
        nonlocal calls
        calls += 1
        refuse(context, TooFast("too many are open"))

    with connected({"GetIdentity": get_identity}) as connection, pytest.raises(TooFast, match="open"):
        Client(connection).identity()
    assert calls == 1


@pytest.mark.parametrize("seconds", ["nan", "1e400", "-1", "soon", ""])
def test_what_a_lying_server_says_in_a_refusal_does_no_harm(seconds: str) -> None:
    calls = 0

    def get_identity(_: Any, context: Any) -> Any:
        nonlocal calls
        calls += 1
        context.set_trailing_metadata(((REASON_KEY, "RATE"), (RETRY_KEY, seconds)))
        context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
        context.set_details("a\x1b[2J\x9b31m\u202eb\nc")
        raise RuntimeError

    with connected({"GetIdentity": get_identity}) as connection, pytest.raises(EquipoiseError) as refused:
        Client(connection).identity()
    # Where nobody catches it, Python prints it.
    assert str(refused.value).isprintable()
    assert calls == 1


def test_what_is_not_there_is_said_so() -> None:
    with connected({}) as connection, pytest.raises(NotServed):
        Client(connection).identity()


def test_an_unknown_failure_is_internal() -> None:
    def show(_: Any, __: Any) -> Any:
        raise RuntimeError("of the fake")

    with connected({"GetAnalystRound": show}) as connection, pytest.raises(InternalError):
        Client(connection).round(ROUND)


def test_a_closed_connection_says_so() -> None:
    with connected({}) as connection:
        client = Client(connection)
        client.close()
        with pytest.raises(Unavailable, match="closed"):
            client.identity()
        with pytest.raises(Unavailable, match="closed"):
            next(client.stream(ROUND))


def test_closing_in_the_middle_of_a_stream_ends_it() -> None:
    def stream(_: Any, context: Any) -> Iterator[Any]:
        yield analyst_pb2.StreamResultsResponse(chunk=CHUNKS[0])
        while context.is_active():
            pass

    with connected({"StreamResults": stream}) as connection:
        client = Client(connection)
        results = client.stream(ROUND)
        next(results)
        client.close()
        with pytest.raises(Unavailable):
            next(results)


def test_nobody_there() -> None:
    connection = Connection(grpc.insecure_channel("127.0.0.1:1"), "127.0.0.1:1")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1 cannot be reached"), Client(connection) as client:
        client.identity()
