"""Who is a person in a table, as a message, and back."""

from __future__ import annotations

from equipoise.model.persons import EACH_ROW, PersonMode, Persons
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
_SAID = MessageCodec(types_pb2.Persons, Persons, mode=_MODES)


class _Persons:
    """Persons as a message. One that says nothing means that each row is a person."""

    def write(self, persons: Persons, field: str = "") -> types_pb2.Persons:
        return _SAID.write_request(persons, field)

    def read(self, sent: types_pb2.Persons, field: str = "") -> Persons:
        return EACH_ROW if sent == types_pb2.Persons() else _SAID.read(sent, field)


PERSONS = _Persons()
