"""From a server's messages to the values of `equipoise.model.rounds`, and an operator's terms the other way.

What a server sends is checked as far as it could disturb its reader: `DataLoss` where it cannot be understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.rounds import (
    Ending,
    Plan,
    Progress,
    Round,
    RoundDetail,
    RoundState,
    SessionTerms,
    Share,
    Terms,
)
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.accounts import budget_from_message, budget_to_message, cost_from_message

_UNITS = {"query": types_pb2.PROTECTION_UNIT_QUERY, "analyst": types_pb2.PROTECTION_UNIT_ANALYST}
_UNIT_NAMES: dict[int, str] = {number: name for name, number in _UNITS.items()}
_ENDINGS = {Ending.HYPOTHESIS: types_pb2.SESSION_ENDING_HYPOTHESIS, Ending.STOP: types_pb2.SESSION_ENDING_STOP}
_ENDING_NAMES: dict[int, Ending] = {number: name for name, number in _ENDINGS.items()}
_STATES: dict[int, RoundState] = {
    types_pb2.ROUND_STATE_OPEN: RoundState.OPEN,
    types_pb2.ROUND_STATE_SEALED: RoundState.SEALED,
    types_pb2.ROUND_STATE_RUNNING: RoundState.RUNNING,
    types_pb2.ROUND_STATE_RELEASED: RoundState.RELEASED,
    types_pb2.ROUND_STATE_ABORTED: RoundState.ABORTED,
}

Meaning = TypeVar("Meaning")


def round_shown(message: types_pb2.Round) -> Round:
    """A round's public part."""
    return Round(
        id=message.id,
        dataset=message.dataset,
        state=_meant(_STATES, message.state, "state"),
        unit=_meant(_UNIT_NAMES, message.unit, "unit"),
        data_budget=budget_from_message(message.data_budget),
        analyst_budget=budget_from_message(message.analyst_budget) if message.HasField("analyst_budget") else None,
        beta=message.beta,
        mechanism=message.mechanism,
        share=_share(message.share) if message.HasField("share") else None,
        open_time=_time(message.open_time),
        release_time=_time(message.release_time) if message.HasField("release_time") else None,
        abort_reason=message.abort_reason,
        seed_commitment=message.seed_commitment,
        close_time=_time(message.close_time) if message.HasField("close_time") else None,
        release_grid_seconds=message.release_grid_seconds,
        session=_session(message.session) if message.HasField("session") else None,
        answered=message.answered,
    )


def round_detail(message: types_pb2.RoundDetail) -> RoundDetail:
    """A round as operators and auditors see it."""
    progress = message.progress
    return RoundDetail(
        round=round_shown(message.round),
        shares=tuple(_share(share) for share in message.shares),
        plan=plan(message.plan),
        progress=Progress(
            progress.phase,
            progress.done,
            progress.total,
            progress.seconds_left,
            progress.complete,
            progress.peak_memory_bytes,
        ),
        requested_mechanism=message.requested_mechanism,
    )


def plan(message: types_pb2.Plan) -> Plan:
    """What a mechanism would do."""
    return Plan(
        mechanism=message.mechanism,
        parameters=message.parameters,
        data_cost=cost_from_message(message.data_cost),
        analyst_cost=cost_from_message(message.analyst_cost),
        data_budget=budget_from_message(message.data_budget),
        analyst_budget=budget_from_message(message.analyst_budget) if message.HasField("analyst_budget") else None,
        promised_error=message.promised_error,
        uncertified_at_most=message.uncertified_at_most,
        seconds=message.seconds,
        memory_bytes=message.memory_bytes,
    )


def terms_message(terms: Terms) -> operator_pb2.RoundTerms:
    """The message of an operator's terms. Raises `InvalidArgument` for what no message can say."""
    if terms.unit not in _UNITS:
        raise InvalidArgument("terms.unit", "must be query or analyst")
    if not 0 <= terms.release_grid_seconds < 1 << 32:
        raise InvalidArgument("terms.release_grid_seconds", "must be a number of seconds, at least 0")
    message = operator_pb2.RoundTerms(
        dataset=terms.dataset,
        unit=_UNITS[terms.unit],
        data_budget=budget_to_message(terms.data_budget),
        analyst_budget=None if terms.analyst_budget is None else budget_to_message(terms.analyst_budget),
        beta=terms.beta,
        mechanism=terms.mechanism,
        shares=[_share_message(share, f"terms.shares[{i}]") for i, share in enumerate(terms.shares)],
        options=terms.options,
        release_grid_seconds=terms.release_grid_seconds,
    )
    if terms.close_time is not None:
        if terms.close_time.tzinfo is None:
            raise InvalidArgument("terms.close_time", "must say its time zone")
        message.close_time.FromDatetime(terms.close_time)
    return message


def session_message(terms: Terms) -> types_pb2.SessionTerms | None:
    """The message of what makes it a session; None where it is a round. Raises `InvalidArgument`."""
    session = terms.session
    if session is None:
        return None
    if session.ending not in _ENDINGS:
        raise InvalidArgument("session.ending", f"must be {' or '.join(_ENDINGS)}")
    for name, bits in (("length", 64), ("turn_seconds", 32)):
        if not 0 <= getattr(session, name) < 1 << bits:
            raise InvalidArgument(f"session.{name}", "must be a number, at least 0")
    return types_pb2.SessionTerms(
        length=session.length, turn_seconds=session.turn_seconds, ending=_ENDINGS[session.ending]
    )


def _session(message: types_pb2.SessionTerms) -> SessionTerms:
    return SessionTerms(
        message.length, message.turn_seconds, _meant(_ENDING_NAMES, message.ending, "way of ending a session")
    )


def _share(message: types_pb2.Share) -> Share:
    return Share(message.analyst, message.statements, message.queries, message.sensitivity, message.support)


def _share_message(share: Share, field: str) -> types_pb2.Share:
    for name in ("statements", "queries", "sensitivity", "support"):
        if not 0 <= getattr(share, name) < 1 << 64:
            raise InvalidArgument(f"{field}.{name}", "must be a number, at least 0")
    return types_pb2.Share(
        analyst=share.analyst,
        statements=share.statements,
        queries=share.queries,
        sensitivity=share.sensitivity,
        support=share.support,
    )


def _time(message: Timestamp) -> datetime:
    try:
        return message.ToDatetime(tzinfo=UTC)
    except ValueError:
        raise DataLoss("the server sent a time that is none") from None


def _meant(meanings: Mapping[int, Meaning], number: int, what: str) -> Meaning:
    if number not in meanings:
        raise DataLoss(f"the server sent a {what} that this version does not know: {number}")
    return meanings[number]
