"""The stream of a session, one message at a time."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from harness.abuse.place import (
    ANALYST,
    ASKED,
    Place,
)
from harness.rounds_bench import SALT
from harness.server_process import Credentials, Refusal

from equipoise.v1 import analyst_pb2
from equipoise.wire.statements import statement_to_bytes

ASK = f"{ANALYST}/AskQueries"
RED, TABLE = (statement_to_bytes(each) for each in ASKED)
CALL_SECONDS = 120


def attach(session_id: str, after: int = 0, salt: bytes = SALT, accepted: bool = True) -> bytes:
    message = analyst_pb2.AttachSession(
        session_id=session_id, after_sequence=after, commitment_salt=salt, accept_unprotected=accepted
    )
    return analyst_pb2.AskQueriesRequest(attach=message).SerializeToString()


def asked(sequence: int, statement: bytes) -> bytes:
    message = analyst_pb2.AskQueriesRequest.Asked(sequence=sequence, statement=statement)
    return analyst_pb2.AskQueriesRequest(asked=message).SerializeToString()


class Talk:
    """A stream that says and hears one message at a time."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        call: Any = channel.stream_stream(ASK)
        self.call = call(iter(self._said.get, None), timeout=CALL_SECONDS)

    def say(self, *messages: bytes) -> None:
        for each in messages:
            self._said.put(each)

    def hear(self) -> analyst_pb2.AskQueriesResponse:
        return analyst_pb2.AskQueriesResponse.FromString(next(self.call))

    def end(self) -> Refusal:
        """How the stream ends."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError as error:
            return Refusal.of(error)
        return Refusal("OK", "", "")

    def close(self) -> None:
        self._said.put(None)
        self.call.cancel()


@contextmanager
def talk(here: Place, who: Credentials) -> Iterator[Talk]:
    with here.channel(who) as channel:
        begun = Talk(channel)
        try:
            yield begun
        finally:
            begun.close()
