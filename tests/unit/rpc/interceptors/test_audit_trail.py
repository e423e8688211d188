"""The audit trail says who did what to what, how it ended, and nothing of what was asked."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf.message import Message
from structlog.testing import capture_logs

from equipoise.errors import NotFound
from equipoise.model.identities import Caller, Role
from equipoise.v1 import analyst_pb2, operator_pb2, types_pb2
from equipoise_server.identity.policy import MethodPolicy, Ownership, Rate
from equipoise_server.rpc.interceptors.audit_trail import MAX_IDENTIFIER, recorded

CALLER = Caller("ann", Role.ANALYST)
ROW = MethodPolicy(frozenset(Role), Ownership.SHARE, Rate.CHANGE, "something_done")
SECRET = "carrier UA"


def logged_of(
    *messages: Message, row: MethodPolicy = ROW, error: BaseException | None = None
) -> list[dict[str, object]]:
    with capture_logs() as logged:
        try:
            with recorded(row, CALLER) as entry:
                for message in messages:
                    entry.note(message)
                if error is not None:
                    raise error
        except type(error or KeyError()):
            pass
    return [dict(entry) for entry in logged]


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([operator_pb2.AbortRoundRequest(round_id="r", reason=SECRET)], {"round_id": "r"}),
        ([operator_pb2.SetCapRequest(account="data/shop")], {"account": "data/shop"}),
        ([operator_pb2.AddAnalystRequest(name="bob", signing_request=b"x")], {"name": "bob"}),
        (
            [
                operator_pb2.OpenRoundRequest(terms=types_pb2.RoundTerms(dataset="shop", options=SECRET)),
                operator_pb2.OpenRoundResponse(detail=types_pb2.RoundDetail(round=types_pb2.Round(id="r"))),
            ],
            {"dataset": "shop", "round_id": "r"},
        ),
        (
            [
                analyst_pb2.SubmitWorkloadRequest(header=analyst_pb2.SubmitHeader(round_id="r")),
                analyst_pb2.SubmitWorkloadRequest(piece=SECRET.encode()),
            ],
            {"round_id": "r"},
        ),
        ([operator_pb2.RetireDatasetRequest(name="x" * 1000)], {"name": "x" * MAX_IDENTIFIER}),
    ],
    ids=lambda value: value[0].DESCRIPTOR.name if isinstance(value, list) else "",
)
def test_identifiers_are_logged_and_nothing_else(messages: list[Message], named: dict[str, str]) -> None:
    (entry,) = logged_of(*messages)
    fixed = {"event": "something_done", "log_level": "info", "caller": "ann", "role": "analyst", "outcome": "OK"}
    assert entry == fixed | named


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(NotFound(SECRET), "NOT_FOUND"), (ValueError(SECRET), "INTERNAL"), (asyncio.CancelledError(), "CANCELLED")],
)
def test_what_failed_is_logged_with_its_outcome(error: BaseException, outcome: str) -> None:
    (entry,) = logged_of(error=error)
    assert entry["outcome"] == outcome
    assert SECRET not in str(entry)


def test_what_has_no_event_is_not_logged() -> None:
    assert logged_of(row=MethodPolicy(frozenset(Role), Ownership.SHARE, Rate.READ)) == []
