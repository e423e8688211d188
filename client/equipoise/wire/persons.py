"""Who is a person in a table, as a message, and back."""

from __future__ import annotations

from equipoise.model.persons import PersonMode, Persons
from equipoise.v1 import types_pb2
from equipoise.wire.messages import MessageCodec
from equipoise.wire.scalars import Numbers

_MODES = Numbers(
    {
        PersonMode.ROWS: types_pb2.PERSON_MODE_ROWS,
        PersonMode.EVENTS: types_pb2.PERSON_MODE_EVENTS,
        PersonMode.AVERAGE: types_pb2.PERSON_MODE_AVERAGE,
        PersonMode.ONE: types_pb2.PERSON_MODE_ONE,
    }
)
PERSONS = MessageCodec(types_pb2.Persons, Persons, mode=_MODES)
