"""What ann does in a round, who may be any analyst: the neighbouring inputs of the non-interference test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.message import Message
from harness.noninterference.wire_view import ask
from harness.rounds_bench import COLOUR, SALT, SIZE

from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import analyst_pb2
from equipoise.wire.workloads import workload_to_bytes

STATEMENTS, QUERIES, SENSITIVITY = 4, 12, 6  # of every share

USUAL: Sequence[Statement] = (COLOUR == "red", Marginal(("size",)))
OTHER: Sequence[Statement] = (Marginal(("colour", "size")), (SIZE == "xl") | ~(COLOUR == "green"), SIZE == "s")
WHOLE: Sequence[Statement] = (*OTHER, Marginal(("colour",)))  # the whole share
BEYOND: Sequence[Statement] = (SIZE == "s",) * QUERIES  # as many statements as all shares have together


@dataclass(frozen=True)
class Ann:
    """How ann speaks to the server in one round."""

    channel: grpc.Channel
    round_id: str

    def submit(self, workload: bytes, name: str) -> str:
        """The status of a submission."""
        return self._status("SubmitWorkload", upload(self.round_id, name, workload))

    def withdraw(self, name: str) -> str:
        """The status of a withdrawal."""
        return self._status("WithdrawWorkload", [withdrawal(self.round_id, name)])

    def _status(self, method: str, requests: list[Message]) -> str:
        return ask(self.channel, method, requests).status


def asks_as_usual(ann: Ann) -> None:
    """One workload."""
    assert ann.submit(workload_to_bytes(USUAL), "first") == "OK"


def asks_something_else(ann: Ann) -> None:
    """Another one in its place, of another size."""
    asks_as_usual(ann)
    assert ann.submit(workload_to_bytes(OTHER), "second") == "OK"


def withdraws(ann: Ann) -> None:
    """The workload is taken back."""
    asks_as_usual(ann)
    assert ann.withdraw("third") == "OK"


def stays_away(_: Ann) -> None:
    """Nothing at all."""


def asks_nonsense(ann: Ann) -> None:
    """Nothing but what is refused, again and again."""
    for number in range(10):
        assert ann.submit(b"\xff" * (1 + 1000 * number), f"nonsense {number}") == "INVALID_ARGUMENT"
        assert ann.submit(workload_to_bytes(BEYOND), f"beyond {number}") == "RESOURCE_EXHAUSTED"
        assert ann.withdraw(f"nothing {number}") == "NOT_FOUND"


def asks_all_that_is_allowed(ann: Ann) -> None:
    """The whole share, replaced many times."""
    for number in range(5):
        assert ann.submit(workload_to_bytes(USUAL), f"usual {number}") == "OK"
        assert ann.submit(workload_to_bytes(WHOLE), f"whole {number}") == "OK"


Conduct = Callable[[Ann], None]
CONDUCTS: tuple[Conduct, ...] = (
    asks_something_else,
    withdraws,
    stays_away,
    asks_nonsense,
    asks_all_that_is_allowed,
)


def request_of(round_id: str, name: str) -> str:
    """The id of a request that is called `name` in this round: a caller's ids are for all its rounds."""
    return f"{round_id} {name}"


def upload(round_id: str, name: str, workload: bytes) -> list[Message]:
    """What is sent to submit a workload, as the request called `name`."""
    header = analyst_pb2.SubmitHeader(
        round_id=round_id,
        request_id=request_of(round_id, name),
        commitment_salt=SALT,
        workload_bytes=len(workload),
    )
    return [analyst_pb2.SubmitWorkloadRequest(header=header), analyst_pb2.SubmitWorkloadRequest(piece=workload)]


def withdrawal(round_id: str, name: str) -> Message:
    """What is sent to withdraw, as the request called `name`."""
    return analyst_pb2.WithdrawWorkloadRequest(round_id=round_id, request_id=request_of(round_id, name))


def dry(round_id: str, workload: bytes) -> list[Message]:
    """What is sent to try a workload out."""
    header = analyst_pb2.SubmitHeader(round_id=round_id, workload_bytes=len(workload))
    return [analyst_pb2.DryRunWorkloadRequest(header=header), analyst_pb2.DryRunWorkloadRequest(piece=workload)]


def asking(session_id: str, statements: Sequence[bytes] = (), after: int = 0) -> list[Message]:
    """What is sent to attach to a session, and to ask in it."""
    attach = analyst_pb2.AttachSession(session_id=session_id, after_sequence=after, commitment_salt=SALT)
    asked = (
        analyst_pb2.AskQueriesRequest.Asked(sequence=sequence, statement=statement)
        for sequence, statement in enumerate(statements, start=after + 1)
    )
    return [
        analyst_pb2.AskQueriesRequest(attach=attach),
        *(analyst_pb2.AskQueriesRequest(asked=each) for each in asked),
    ]
