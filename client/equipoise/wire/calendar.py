"""Schedules of rounds as messages, and back."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.model.calendar import Period, RoundSchedule
from equipoise.v1 import operator_pb2
from equipoise.wire.accounts import BUDGET
from equipoise.wire.messages import Converted, MessageCodec
from equipoise.wire.scalars import from_server
from equipoise.wire.terms import TERMS


def period_from_text(said: str) -> Period:
    """Return the period of a name. Raises `InvalidArgument` for any other text."""
    try:
        return Period(said)
    except ValueError:
        raise InvalidArgument("period", f"must be one of {', '.join(Period)}") from None


_SCHEDULE = MessageCodec(
    operator_pb2.RoundSchedule,
    RoundSchedule,
    terms=TERMS,
    period=Converted(str, period_from_text),
    yearly_budget=BUDGET,
)
schedule_to_message, schedule_from_message = _SCHEDULE.write, from_server(_SCHEDULE.read)
