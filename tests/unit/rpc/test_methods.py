"""Binding: every method of a service is answered, and nothing else starts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from equipoise.errors import InvalidArgument, Unavailable
from equipoise.model.identities import Caller, Role
from equipoise.v1 import auditor_pb2, operator_pb2, types_pb2
from equipoise_server.identity.policy import POLICY, MethodPolicy
from equipoise_server.rpc.interceptors import authentication
from equipoise_server.rpc.interceptors.interceptor import Context
from equipoise_server.rpc.methods import Serving, _parse, _receive, bind
from equipoise_server.rpc.threads import SharedThreads, Threads

SERVICE = auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"]
PREFIX = "/equipoise.v1.AuditorService/"
ROWS = {name: row for name, row in POLICY.items() if name.startswith(PREFIX)}
CONTEXT = cast(Context, None)


class Answers:
    """Two methods of the service, and something under the names of all others that is not called here."""

    def __getattr__(self, name: str) -> object:
        return name

    def list_audit_rounds(
        self, caller: Caller, request: auditor_pb2.ListAuditRoundsRequest
    ) -> auditor_pb2.ListAuditRoundsResponse:
        return auditor_pb2.ListAuditRoundsResponse(next_page_token=f"{caller.name} {request.page_size}")

    def list_journal(self, _: Caller, __: auditor_pb2.ListJournalRequest) -> auditor_pb2.ListJournalResponse:
        return auditor_pb2.ListJournalResponse()


@pytest.fixture
def serving() -> Iterator[Serving]:
    threads = Threads(SharedThreads(2, "reading"), SharedThreads(2, "working"))
    yield Serving(threads, stall_seconds=0.05)
    threads.close()


async def sent(*messages: bytes) -> AsyncIterator[bytes]:
    """What a caller sends before it ends its side of the call."""
    for message in messages:
        yield message


def handler_of(method: str, implementation: object, policy: dict[str, MethodPolicy], serving: Serving) -> Any:
    (service,) = bind({SERVICE: implementation}, serving, policy)

    class Details:
        def __init__(self) -> None:
            self.method = PREFIX + method
            self.invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()

    return service.service(Details())


async def test_a_request_is_parsed_answered_and_serialized_inside_the_handler(serving: Serving) -> None:
    authentication._CALLER.set(Caller("eve", Role.AUDITOR))
    handler = handler_of("ListAuditRounds", Answers(), ROWS, serving)
    assert handler.request_deserializer is None
    raw = await handler.stream_unary(
        sent(auditor_pb2.ListAuditRoundsRequest(page_size=7).SerializeToString()), CONTEXT
    )
    assert auditor_pb2.ListAuditRoundsResponse.FromString(raw).next_page_token == "eve 7"
    with pytest.raises(InvalidArgument, match="is not a ListAuditRoundsRequest"):
        await handler.stream_unary(sent(b"\xff\xff"), CONTEXT)
    with pytest.raises(InvalidArgument, match=r"^request: is missing"):
        await handler.stream_unary(sent(), CONTEXT)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (operator_pb2.GetRoundRequest(round_id="a\0"), "round_id"),
        (operator_pb2.OpenRoundRequest(terms=types_pb2.RoundTerms(dataset="\0")), "terms.dataset"),
        (
            operator_pb2.OpenRoundRequest(
                terms=types_pb2.RoundTerms(shares=[types_pb2.Share(analyst="ann"), types_pb2.Share(analyst="b\0b")])
            ),
            "terms.shares.analyst",
        ),
    ],
)
def test_texts_that_one_of_the_stores_cannot_hold_are_refused_for_both(message: Message, field: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^{re.escape(field)}: must not have NUL"):
        _parse(type(message), message.SerializeToString())


def test_a_method_without_a_row_keeps_the_server_from_starting(serving: Serving) -> None:
    missing = {name: row for name, row in ROWS.items() if not name.endswith("ListJournal")}
    with pytest.raises(InvalidArgument, match=r"no row for .*ListJournal"):
        bind({SERVICE: Answers()}, serving, missing)


def test_a_method_without_an_answer_keeps_the_server_from_starting(serving: Serving) -> None:
    with pytest.raises(AttributeError, match="list_audit_rounds"):
        bind({SERVICE: object()}, serving, ROWS)


async def test_an_upload_that_brings_nothing_is_ended() -> None:
    async def stalled() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"
        await asyncio.Event().wait()

    brought = _receive(stalled(), 0.05)
    assert await anext(brought) == b"a"
    assert await anext(brought) == b"b"
    with pytest.raises(Unavailable, match="did not come in time"):
        await anext(brought)
