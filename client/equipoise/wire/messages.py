"""One codec for messages that say what a dataclass of the model says: both directions from one declaration.

The fields of the message are those of the dataclass, under the same names, and `MessageCodec` refuses to be made
where they are not. So a new field is added to the model and to the protocol, and travels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.errors import InvalidArgument
from equipoise.wire.scalars import time_from_message, time_to_message

Value = TypeVar("Value")
Sent = TypeVar("Sent", bound=Message)


class FieldCodec(Protocol):
    """How one field is written and read; what cannot be read raises `InvalidArgument` naming the given field."""

    def write(self, value: Any, field: str, /) -> Any:
        """What stands in the message."""

    def read(self, sent: Any, field: str, /) -> Any:
        """Returns the value."""


class Unwritable(ValueError):
    """A value that no message can say. `field`: where it is. `wanted`: what must stand there."""

    def __init__(self, field: str, wanted: str) -> None:
        super().__init__(f"{field}: {wanted}")
        self.field, self.wanted = field, wanted


@dataclasses.dataclass(frozen=True)
class Converted:
    """A field that two functions convert; neither is told the field's name."""

    to_message: Callable[[Any], Any]
    from_message: Callable[[Any], Any]

    def write(self, value: Any, _: str) -> Any:
        """What stands in the message."""
        return self.to_message(value)

    def read(self, sent: Any, _: str) -> Any:
        """Returns the value."""
        return self.from_message(sent)


class _Same:
    """A field whose value stands in the message as it is."""

    def write(self, value: Any, _: str) -> Any:
        return value

    def read(self, sent: Any, _: str) -> Any:
        return sent


class _Time:
    """A time; it must carry a time zone, and is read in UTC."""

    def write(self, value: datetime, field: str) -> Timestamp:
        return time_to_message(value, field)

    def read(self, sent: Timestamp, field: str) -> datetime:
        return time_from_message(sent, field)


_SAME, _TIME = _Same(), _Time()


class MessageCodec(Generic[Value, Sent]):
    """How the values of one dataclass are written as messages, and how they are read.

    Args:
        message: The message's class.
        value: The dataclass. A field whose type allows None is left out of the message where it is None; a field of
            tuples is repeated.
        codecs: How fields are converted that are neither times nor the same in both.
        names: The attributes that are called otherwise than the message's fields, by the fields' names.

    Raises:
        TypeError: Where one has a field that the other lacks, or a message or an enumeration has no codec.
    """

    def __init__(
        self,
        message: type[Sent],
        value: type[Value],
        names: Mapping[str, str] | None = None,
        **codecs: FieldCodec,
    ) -> None:
        self._message, self._value = message, value
        hints = get_type_hints(value)
        known: dict[str, Any] = {
            (names or {}).get(field.name, field.name): field for field in message.DESCRIPTOR.fields
        }
        attributes = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
        if set(known) != set(attributes) or not set(codecs) <= set(known):
            raise TypeError(f"{message.DESCRIPTOR.name} and {value.__name__} do not have the same fields")
        self._fields = [
            _Field(
                name,
                known[name],
                NoneType in get_args(hints[name]),
                get_origin(hints[name]) is tuple,
                codecs.get(name) or _usual(known[name]),
            )
            for name in attributes
        ]

    def write(self, value: Value, field: str = "") -> Sent:
        """Write a message. Raises `Unwritable` for what no message can say: a fault of whoever made the value."""
        sent = self._message()
        for each in self._fields:
            each.write(getattr(value, each.attribute), sent, field)
        return sent

    def write_request(self, value: Value, field: str = "") -> Sent:
        """Write what a caller gave. Raises `InvalidArgument` naming what is below `field`."""
        try:
            return self.write(value, field)
        except Unwritable as problem:
            raise InvalidArgument(problem.field, problem.wanted) from None

    def read(self, sent: Sent, field: str = "") -> Value:
        """Read a message. Raises `InvalidArgument` naming what is below `field`."""
        return self._value(**{each.attribute: each.read(sent, field) for each in self._fields})


@dataclasses.dataclass(frozen=True)
class _Field:
    """A field of a message, and the attribute that it stands for."""

    attribute: str
    descriptor: Any  # of protobuf
    optional: bool
    repeated: bool
    codec: FieldCodec

    def write(self, value: Any, message: Message, above: str) -> None:
        name = self.descriptor.name
        field = f"{above}.{name}" if above else name
        if value is None and self.optional:
            return
        try:
            if self.repeated:
                sent = [self.codec.write(each, f"{field}[{i}]") for i, each in enumerate(value)]
                getattr(message, name).extend(sent)
            elif self.descriptor.message_type is not None:
                part: Message = getattr(message, name)
                part.SetInParent()
                part.CopyFrom(self.codec.write(value, field))
            else:
                setattr(message, name, self.codec.write(value, field))
        except Unwritable:
            raise
        except (TypeError, ValueError) as problem:
            wanted = _WANTED.get(self.descriptor.cpp_type, "is not what it must be")
            raise Unwritable(field, wanted) from problem

    def read(self, message: Message, above: str) -> Any:
        name = self.descriptor.name
        field = f"{above}.{name}" if above else name
        if self.optional and not message.HasField(name):
            return None
        sent = getattr(message, name)
        if self.repeated:
            return tuple(self.codec.read(each, f"{field}[{i}]") for i, each in enumerate(sent))
        return self.codec.read(sent, field)


_WANTED = {
    FieldDescriptor.CPPTYPE_UINT32: "must be a number, at least 0",
    FieldDescriptor.CPPTYPE_UINT64: "must be a number, at least 0",
    FieldDescriptor.CPPTYPE_STRING: "must be text",
}


def _usual(field: Any) -> FieldCodec:
    if field.enum_type is not None or field.message_type is not None:
        if field.message_type is Timestamp.DESCRIPTOR:
            return _TIME
        raise TypeError(f"{field.full_name} has no codec")
    return _SAME
