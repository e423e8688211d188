"""What single fields of statements must hold, checked as they are written to messages and as they are read.

A field's place is given as `path` and `name`, which are joined only for an error: there may be millions of them.
"""

from __future__ import annotations

import math

from equipoise.errors import InvalidArgument


def checked_text(value: object, path: str, name: str) -> str:
    """A string that UTF-8 can hold, and not an empty one."""
    if not isinstance(value, str) or not value:
        raise InvalidArgument(path + name, "must be a string, and not empty")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidArgument(path + name, "holds half of a surrogate pair")
    return value


def checked_texts(values: object, path: str, name: str) -> tuple[str, ...]:
    """At least one of them."""
    if not isinstance(values, tuple | list) or not values:
        raise InvalidArgument(path + name, "must be at least one")
    if all(isinstance(each, str) and each and each.isascii() for each in values):
        return tuple(values)
    return tuple(checked_text(each, path, f"{name}[{i}]") for i, each in enumerate(values))


def checked_number(value: object, path: str, name: str) -> float:
    """A number that is none of the NaNs."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(path + name, "is not a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.nan
    if math.isnan(found):
        raise InvalidArgument(path + name, "is not a number, or too large for one")
    return found
