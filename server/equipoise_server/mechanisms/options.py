"""Options of a mechanism that are numbers or words: checked against their limits, and read."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from equipoise.errors import InvalidArgument


@dataclass(frozen=True)
class Limit:
    """The smallest and the largest value of an option that is a number, and whether it is a whole one."""

    smallest: float
    largest: float
    whole: bool = False


def check_options(
    options: Mapping[str, object],
    limits: Mapping[str, Limit],
    words: Mapping[str, tuple[str, ...]] | None = None,
    others: Collection[str] = (),
) -> None:
    """Refuse options that are unknown or out of range, before anything is computed from them.

    Args:
        options: that were given, by name.
        limits: of those that are numbers.
        words: of those that are words: what each may be.
        others: names of those that are checked elsewhere.

    Raises:
        InvalidArgument: an option is not what it must be; the message names it.
    """
    words = words or {}
    for name, value in sorted(options.items()):
        field = f"options.{name}"
        if name in others:
            continue
        if name in words:
            if value not in words[name]:
                raise InvalidArgument(field, f"must be {' or '.join(words[name])}")
            continue
        if name not in limits:
            raise InvalidArgument(field, f"unknown; there is {', '.join(sorted({*limits, *words, *others}))}")
        limit = limits[name]
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not limit.smallest <= number <= limit.largest:
            raise InvalidArgument(field, f"must be a number between {limit.smallest:,} and {limit.largest:,}")
        if limit.whole and number != int(number):
            raise InvalidArgument(field, "must be a whole number")


def whole(options: Mapping[str, object], name: str, default: int) -> int:
    """Return the forced whole number called `name`, or the default.

    Args:
        options: that were given, by name.
        name: of the option.
        default: what holds where it was not given.
    """
    value = options.get(name, default)
    return int(value) if isinstance(value, int | float) else default


def real(options: Mapping[str, object], name: str, default: float) -> float:
    """Return the forced real number called `name`, or the default.

    Args:
        options: that were given, by name.
        name: of the option.
        default: what holds where it was not given.
    """
    value = options.get(name, default)
    return float(value) if isinstance(value, int | float) else default
