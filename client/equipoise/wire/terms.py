"""An operator's terms as messages, and back; what is malformed is refused under the field's name."""

from __future__ import annotations

import json

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Ending, SessionTerms, Share, Terms
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import budget_to_message, checked_budget
from equipoise.wire.scalars import Numbers, time_from_message, time_to_message

MAX_COUNT = 2**40  # far beyond what any round can answer, and safe in every store
MAX_OPTIONS = 65_536
MAX_SESSION_OPTIONS = 3 << 20  # which may list candidates; all in one message
UNITS = Numbers({"query": types_pb2.PROTECTION_UNIT_QUERY, "analyst": types_pb2.PROTECTION_UNIT_ANALYST})
ENDINGS = Numbers(
    {
        Ending.HYPOTHESIS: types_pb2.SESSION_ENDING_HYPOTHESIS,
        Ending.STOP: types_pb2.SESSION_ENDING_STOP,
    }
)


def terms_to_message(terms: Terms) -> types_pb2.RoundTerms:
    """The message of a round's or a session's terms. Raises `InvalidArgument` for what no message can say."""
    return types_pb2.RoundTerms(
        dataset=terms.dataset,
        unit=UNITS.write(terms.unit, "terms.unit"),
        data_budget=budget_to_message(terms.data_budget),
        analyst_budget=None if terms.analyst_budget is None else budget_to_message(terms.analyst_budget),
        beta=terms.beta,
        mechanism=terms.mechanism,
        shares=[share_to_message(share, f"terms.shares[{i}]") for i, share in enumerate(terms.shares)],
        options=json.dumps(dict(terms.options)) if terms.options else "",
        close_time=None if terms.close_time is None else time_to_message(terms.close_time, "terms.close_time"),
        release_grid_seconds=_number(terms.release_grid_seconds, 32, "terms.release_grid_seconds"),
        session=None if terms.session is None else session_to_message(terms.session),
    )


def terms_from_message(message: types_pb2.RoundTerms) -> Terms:
    """The terms; those of a session where the message has a session.

    Raises `InvalidArgument` naming the field, such as `terms.shares[2].queries`.
    """
    for field in ("dataset", "mechanism"):
        if not getattr(message, field):
            raise InvalidArgument(f"terms.{field}", "is missing")
    if not 0 < message.beta < 1:
        raise InvalidArgument("terms.beta", "must lie between 0 and 1")
    protected = message.HasField("analyst_budget")
    session = message.HasField("session")
    return Terms(
        dataset=message.dataset,
        unit=UNITS.read(message.unit, "terms.unit"),
        data_budget=checked_budget(message.data_budget, "terms.data_budget"),
        analyst_budget=checked_budget(message.analyst_budget, "terms.analyst_budget") if protected else None,
        beta=message.beta,
        mechanism=message.mechanism,
        shares=tuple(share_from_message(share, f"terms.shares[{i}]") for i, share in enumerate(message.shares)),
        options=_options(message.options, MAX_SESSION_OPTIONS if session else MAX_OPTIONS),
        close_time=(
            time_from_message(message.close_time, "terms.close_time") if message.HasField("close_time") else None
        ),
        release_grid_seconds=message.release_grid_seconds,
        session=session_from_message(message.session) if session else None,
    )


def share_to_message(share: Share, field: str) -> types_pb2.Share:
    """The message of one analyst's share. Raises `InvalidArgument` naming what is below `field`."""
    return types_pb2.Share(
        analyst=share.analyst,
        statements=_number(share.statements, 64, f"{field}.statements"),
        queries=_number(share.queries, 64, f"{field}.queries"),
        sensitivity=_number(share.sensitivity, 64, f"{field}.sensitivity"),
        support=_number(share.support, 64, f"{field}.support"),
    )


def share_from_message(message: types_pb2.Share, field: str) -> Share:
    """One analyst's share. Raises `InvalidArgument` naming what is below `field`."""
    for name in ("statements", "queries"):
        if not 1 <= getattr(message, name) <= MAX_COUNT:
            raise InvalidArgument(f"{field}.{name}", f"must be from 1 to {MAX_COUNT:,}")
    if message.sensitivity > 2 * message.statements:
        raise InvalidArgument(f"{field}.sensitivity", "must be at most 2 for each statement, or 0 if not declared")
    if message.support > MAX_COUNT:
        raise InvalidArgument(f"{field}.support", f"must be at most {MAX_COUNT:,}, or 0 if not declared")
    return Share(
        analyst=message.analyst,
        statements=message.statements,
        queries=message.queries,
        sensitivity=message.sensitivity,
        support=message.support,
    )


def session_to_message(session: SessionTerms) -> types_pb2.SessionTerms:
    """The message of what makes a round a session. Raises `InvalidArgument`."""
    return types_pb2.SessionTerms(
        length=_number(session.length, 64, "session.length"),
        turn_seconds=_number(session.turn_seconds, 32, "session.turn_seconds"),
        ending=ENDINGS.write(session.ending, "session.ending"),
    )


def session_from_message(message: types_pb2.SessionTerms) -> SessionTerms:
    """What makes a round a session. Raises `InvalidArgument`."""
    if message.length > MAX_COUNT:
        raise InvalidArgument("session.length", f"must be at most {MAX_COUNT:,}, or 0 for what the shares allow")
    unsaid = message.ending == types_pb2.SESSION_ENDING_UNSPECIFIED
    return SessionTerms(
        length=message.length,
        turn_seconds=message.turn_seconds,
        ending=Ending.HYPOTHESIS if unsaid else ENDINGS.read(message.ending, "session.ending"),
    )


def _number(value: int, bits: int, field: str) -> int:
    if not 0 <= value < 1 << bits:
        raise InvalidArgument(field, "must be a number, at least 0")
    return value


def _options(text: str, most: int) -> dict[str, object]:
    field = "terms.options"
    if len(text) > most:
        raise InvalidArgument(field, f"is longer than {most:,} characters")
    try:
        options = json.loads(text or "{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidArgument(field, "is not JSON") from None
    if not isinstance(options, dict):
        raise InvalidArgument(field, 'must be a JSON object, such as {"play": "sampled"}')
    return options


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
