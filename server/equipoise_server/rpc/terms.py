"""From an operator's messages to our types; what is malformed is refused under the field's name."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Ending, SessionTerms, Share
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.accounts import checked_budget
from equipoise_server.rounds.records import Terms
from equipoise_server.rpc.messages import ENDINGS, UNITS

MAX_COUNT = 2**40  # far beyond what any round can answer, and safe in every store
MAX_OPTIONS = 65_536
MAX_SESSION_OPTIONS = 3 << 20  # which may list candidates; all in one message
_ENDING_NAMES = {number: ending for ending, number in ENDINGS.items()} | {
    types_pb2.SESSION_ENDING_UNSPECIFIED: Ending.HYPOTHESIS
}
_UNIT_NAMES = {number: name for name, number in UNITS.items()}


def terms_from_message(message: operator_pb2.RoundTerms, session: types_pb2.SessionTerms | None = None) -> Terms:
    """The terms, with `session` those of a session.

    Raises `InvalidArgument` naming the field, such as `terms.shares[2].queries`.
    """
    if message.unit not in _UNIT_NAMES:
        raise InvalidArgument("terms.unit", "must be query or analyst")
    for field in ("dataset", "mechanism"):
        if not getattr(message, field):
            raise InvalidArgument(f"terms.{field}", "is missing")
    if not 0 < message.beta < 1:
        raise InvalidArgument("terms.beta", "must lie between 0 and 1")
    unprotected = session is not None and not message.HasField("analyst_budget")
    return Terms(
        dataset=message.dataset,
        unit=_UNIT_NAMES[message.unit],
        data_budget=checked_budget(message.data_budget, "terms.data_budget"),
        analyst_budget=None if unprotected else checked_budget(message.analyst_budget, "terms.analyst_budget"),
        beta=message.beta,
        mechanism=message.mechanism,
        shares=tuple(_share(share, f"terms.shares[{position}]") for position, share in enumerate(message.shares)),
        options=_options(message.options, MAX_OPTIONS if session is None else MAX_SESSION_OPTIONS),
        close_time=_time(message.close_time, "terms.close_time") if message.HasField("close_time") else None,
        release_grid_seconds=message.release_grid_seconds,
        session=None if session is None else _session(session),
    )


def _time(message: Timestamp, field: str) -> datetime:
    try:
        return message.ToDatetime(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument(field, "is not a time") from None


def _share(message: types_pb2.Share, field: str) -> Share:
    for name in ("statements", "queries"):
        if not 1 <= getattr(message, name) <= MAX_COUNT:
            raise InvalidArgument(f"{field}.{name}", f"must be from 1 to {MAX_COUNT:,}")
    if message.sensitivity > 2 * message.statements:
        raise InvalidArgument(f"{field}.sensitivity", "must be at most 2 for each statement, or 0 if not declared")
    if message.support > MAX_COUNT:
        raise InvalidArgument(f"{field}.support", f"must be at most {MAX_COUNT:,}, or 0 if not declared")
    return Share(message.analyst, message.statements, message.queries, message.sensitivity, message.support)


def _session(message: types_pb2.SessionTerms) -> SessionTerms:
    if message.ending not in _ENDING_NAMES:
        raise InvalidArgument("session.ending", "must be hypothesis or stop")
    if message.length > MAX_COUNT:
        raise InvalidArgument("session.length", f"must be at most {MAX_COUNT:,}, or 0 for what the shares allow")
    return SessionTerms(message.length, message.turn_seconds, _ENDING_NAMES[message.ending])


def _options(text: str, longest: int) -> dict[str, object]:
    field = "terms.options"
    if len(text) > longest:
        raise InvalidArgument(field, f"is longer than {longest:,} characters")
    try:
        options = json.loads(text or "{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidArgument(field, "is not JSON") from None
    if not isinstance(options, dict):
        raise InvalidArgument(field, 'must be a JSON object, such as {"play": "sampled"}')
    return options


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
