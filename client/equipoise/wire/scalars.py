"""Times and enumerations of messages, and what becomes of a message that cannot be understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from equipoise.errors import DataLoss, InvalidArgument

Message = TypeVar("Message")
Rest = ParamSpec("Rest")
Value = TypeVar("Value")
Number = TypeVar("Number", bound=int)


def from_server(
    read: Callable[Concatenate[Message, Rest], Value],
) -> Callable[Concatenate[Message, Rest], Value]:
    """Makes the reader of a request into one of a server's message.

    It raises `DataLoss` instead of `InvalidArgument`, because its caller did not write the message.
    """

    @wraps(read)
    def reading(message: Message, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Value:
        try:
            return read(message, *args, **kwargs)
        except InvalidArgument as error:
            raise DataLoss(f"the server sent what cannot be understood: {error.message}") from None

    return reading


class Numbers(Generic[Value, Number]):
    """The values that an enumeration of the protocol stands for, and its numbers; `unsaid` is what 0 stands for."""

    def __init__(self, numbers: Mapping[Value, Number], unsaid: Value | None = None) -> None:
        self._numbers = dict(numbers)
        self._values: dict[int, Value] = {number: value for value, number in numbers.items()}
        if unsaid is not None:
            self._values[0] = unsaid

    def write(self, value: Value, field: str) -> Number:
        """Returns the number of a value. Raises `InvalidArgument` naming `field` for a value that has none."""
        if value not in self._numbers:
            raise InvalidArgument(field, f"must be {' or '.join(map(str, self._numbers))}")
        return self._numbers[value]

    def read(self, number: int, field: str) -> Value:
        """Returns the value of a number.

        Raises `InvalidArgument` naming `field` for a number that stands for none.
        """
        if number not in self._values:
            raise InvalidArgument(field, f"must be {' or '.join(map(str, self._numbers))}, and is number {number}")
        return self._values[number]


def time_to_message(time: datetime, field: str = "time") -> Timestamp:
    """Returns the message of a time, which must carry a time zone, else `InvalidArgument` naming `field`."""
    if time.tzinfo is None:
        raise InvalidArgument(field, "must say its time zone")
    message = Timestamp()
    message.FromDatetime(time)
    return message


def time_from_message(message: Timestamp, field: str = "time") -> datetime:
    """Returns the time in UTC. Raises `InvalidArgument` naming `field` for what is no time."""
    try:
        return message.ToDatetime(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument(field, "is not a time") from None
