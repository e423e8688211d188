"""What single fields of statements must hold, checked as they are written to messages and as they are read.

A field's place is given as `path` and `name`, which are joined only for an error: there may be millions of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import check_attributes


def checked_text(value: object, path: str, name: str) -> str:
    """Returns a string that UTF-8 can hold, and that is not empty.

    Raises `InvalidArgument` for all else, naming `path` and `name`.

    Args:
        value: what was given.
        path: the message's place, with its dot.
        name: of the field.
    """
    if not isinstance(value, str) or not value:
        raise InvalidArgument(path + name, "must be a string, and not empty")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidArgument(path + name, "holds half of a surrogate pair")
    return value


def checked_texts(values: object, path: str, name: str) -> tuple[str, ...]:
    """Returns strings that UTF-8 can hold, at least one, none of them empty.

    Raises `InvalidArgument` for all else, naming `path` and `name`.

    Args:
        values: what was given.
        path: the message's place, with its dot.
        name: of the field.
    """
    if not isinstance(values, tuple | list) or not values:
        raise InvalidArgument(path + name, "must be at least one")
    if all(isinstance(each, str) and each and each.isascii() for each in values):
        return tuple(values)
    return tuple(checked_text(each, path, f"{name}[{i}]") for i, each in enumerate(values))


def checked_number(value: object, path: str, name: str) -> float:
    """Returns a number that is no NaN. Raises `InvalidArgument` for all else, naming `path` and `name`.

    Args:
        value: what was given.
        path: the message's place, with its dot.
        name: of the field.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(path + name, "is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise InvalidArgument(path + name, "is not a number, or too large for one")
    return number


def refuse_unknown_fields(message: Message, path: str) -> None:
    """Raises `InvalidArgument` for fields of a message that protobuf does not know, naming the first one's place.

    Protobuf keeps such fields; here they would be signed and stored without being understood.
    """
    size = message.ByteSize()
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() != size:
        where, number = next(_unknown_fields(message, path))
        raise InvalidArgument(where, f"has an unknown field with number {number}")


def _unknown_fields(message: Message, path: str) -> Iterator[tuple[str, int]]:
    unknown = UnknownFieldSet(message)
    for i in range(len(unknown)):
        yield path, unknown[i].field_number
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        name = f"{path}.{descriptor.name}"
        if isinstance(value, Message):
            yield from _unknown_fields(value, name)
        else:
            for i, each in enumerate(value):
                yield from _unknown_fields(each, f"{name}[{i}]")


def checked_attributes(names: Sequence[str], path: str) -> tuple[str, ...]:
    """Returns the names of attributes of a message, checked here, where an error can name their place.

    Args:
        names: as the message has them.
        path: the field's place.

    Raises:
        InvalidArgument: there is none, one is there twice, or is no text.
    """
    read = checked_texts(tuple(names), path, "")
    check_attributes(path, read)
    return read
