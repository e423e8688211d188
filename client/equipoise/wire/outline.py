"""The outermost level of a serialized workload, found without a parser: where its statements lie, and no more.

A parsed message takes some twenty times its bytes, and no other thread runs while it is parsed. So what is too
much is refused here, at the first statement too many. The encoding: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.wire.statements import MAX_STATEMENT_BYTES

VERSION = 1

MAX_SLOT = (1 << 62) - 1
# The tags of `Workload`: a field's number and how it is encoded.
_VERSION, _STATEMENT, _SLOTS = 1 << 3 | 0, 2 << 3 | 2, 3 << 3 | 2
_MAX_VERSIONS = 16  # the last one counts; who writes it more often only wants it to be read
_ENCODINGS = (0, 1, 2, 3, 5)  # that a field may begin with
_MAX_NUMBER_BYTES, _MAX_LENGTH_BYTES = 10, 5  # in bytes


@dataclass
class Outline:
    """Of a workload: its version, where each statement begins and ends, and the first field that is unknown.

    `slots`: of a session; None where the field is not there.
    """

    version: int = 0
    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    slots: list[int] | None = None
    unknown_field: int | None = None


def outline(data: bytes, max_statements: int | None) -> Outline:
    """Returns the outline of a workload's bytes, up to the first unknown field.

    Raises `InvalidArgument` for what is not encoded rightly and for a statement that is too large,
    `BudgetExhausted` for more than `max_statements`.

    Args:
        data: a serialized Workload.
        max_statements: how many it may have; None: any number.
    """
    outlined, at, versions = Outline(), 0, 0
    while at < len(data):
        at = _short_statements(data, at, outlined, max_statements)
        if at == len(data):
            break
        tag, at = _number(data, at, _MAX_LENGTH_BYTES)
        if tag == _STATEMENT:
            length, start = _number(data, at, _MAX_LENGTH_BYTES)
            at = start + length
            if at > len(data):
                raise not_a_workload()
            if len(outlined.starts) == max_statements:
                raise BudgetExhausted(f"the workload has more statements than the {max_statements} of your share")
            if length > MAX_STATEMENT_BYTES:
                path = f"statements[{len(outlined.starts)}]"
                raise InvalidArgument(path, f"is larger than {MAX_STATEMENT_BYTES:,} bytes; split it")
            outlined.starts.append(start)
            outlined.stops.append(at)
        elif tag == _SLOTS:
            length, start = _number(data, at, _MAX_LENGTH_BYTES)
            at = start + length
            if at > len(data):
                raise not_a_workload()
            outlined.slots = _numbers(data[start:at], len(outlined.starts))
        elif tag == _VERSION:
            version, at = _number(data, at, _MAX_NUMBER_BYTES)
            outlined.version = version & 0xFFFF_FFFF  # as parsers read a uint32
            versions += 1
            if versions > _MAX_VERSIONS:
                raise not_a_workload()
        elif 0 < tag >> 3 < 1 << 29 and tag & 7 in _ENCODINGS:
            outlined.unknown_field = tag >> 3
            break
        else:
            raise not_a_workload()
    return outlined


def _short_statements(data: bytes, at: int, outlined: Outline, most: int | None) -> int:
    """Adds statements as long as they are short, up to `most` in all, and returns where the next field begins.

    Nearly all of a workload's fields are such ones, and there may be millions of them.
    """
    add_start, add_stop = outlined.starts.append, outlined.stops.append
    allowed, size = sys.maxsize if most is None else most - len(outlined.starts), len(data)
    for _ in itertools.repeat(None, allowed):
        if at + 1 >= size or data[at] != _STATEMENT:
            break
        length = data[at + 1]
        stop = at + 2 + length
        if length >= 128 or stop > size:
            break
        add_start(at + 2)
        add_stop(stop)
        at = stop
    return at


def not_a_workload() -> InvalidArgument:
    """Returns what is raised for bytes that no parser reads."""
    return InvalidArgument("workload", "is not a serialized Workload, or is nested too deeply")


def asked_to_bytes(statements: Sequence[bytes], slots: Sequence[int]) -> bytes:
    """Return the Workload of what one analyst asked in a session: its statements' exact bytes, and their slots.

    The same bytes for the same arguments, and no others are a session's workload. Raises `ValueError` unless there
    is a slot for each statement, and these ascend.

    Args:
        statements: each a serialized Statement, in the order of their slots.
        slots: of the session, from 1, ascending.
    """
    if not len(statements) == len(slots) > 0 or not _ascending(slots):
        raise ValueError("there must be a slot for each statement, in ascending order")
    pieces = [bytes([_VERSION, VERSION])]
    for statement in statements:
        pieces += [bytes([_STATEMENT]), _varint(len(statement)), statement]
    packed = b"".join(map(_varint, slots))
    return b"".join([*pieces, bytes([_SLOTS]), _varint(len(packed)), packed])


def asked_from_bytes(data: bytes, max_statements: int | None = None) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    """Returns what `asked_to_bytes` wrote: the statements' exact bytes, and their slots.

    Raises `InvalidArgument` for everything else, `BudgetExhausted` for more than `max_statements`.

    Args:
        data: a serialized Workload with slots.
        max_statements: how many it may have; None: any number.
    """
    outlined = outline(data, max_statements)
    statements = tuple(data[start:stop] for start, stop in zip(outlined.starts, outlined.stops, strict=True))
    slots = tuple(outlined.slots or ())
    if not statements or len(slots) != len(statements) or not _ascending(slots):
        raise InvalidArgument("slots", "must be one for each statement, in ascending order")
    if asked_to_bytes(statements, slots) != data:
        raise InvalidArgument("workload", "is not written as the workload of a session is")
    return statements, slots


def _ascending(slots: Sequence[int]) -> bool:
    pairs = itertools.pairwise(slots)
    return slots[0] >= 0 and slots[-1] <= MAX_SLOT and all(before < after for before, after in pairs)


def _varint(number: int) -> bytes:
    """Returns a number as `_number` reads it."""
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _numbers(packed: bytes, most: int) -> list[int]:
    """Numbers one after another; no more than `most` are read, and one more where there are more."""
    numbers: list[int] = []
    at = 0
    while at < len(packed) and len(numbers) <= most:
        number, at = _number(packed, at, _MAX_NUMBER_BYTES)
        numbers.append(number)
    return numbers


def _number(data: bytes, at: int, longest: int) -> tuple[int, int]:
    """Returns the number that begins at `at`, seven bits a byte and the lowest first, and where it ends."""
    if at < len(data) and data[at] < 128:
        return data[at], at + 1  # as nearly all of them
    number = 0
    for i, byte in enumerate(data[at : at + longest]):
        number |= (byte & 127) << 7 * i
        if byte < 128:
            return number, at + i + 1
    raise not_a_workload()
