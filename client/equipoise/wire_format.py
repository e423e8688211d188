"""The outermost level of a serialized workload, found without a parser: where its statements lie, and no more.

A parsed message takes some twenty times its bytes, and no other thread runs while it is parsed. So what is too
much is refused here, at the first statement too many. The encoding: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.errors import BudgetExhausted, InvalidArgument

MAX_STATEMENT_BYTES = 1 << 20  # far beyond any that compiles, but for one that lists very many categories
_VERSION, _STATEMENT = 1 << 3 | 0, 2 << 3 | 2  # the tags of `Workload`: a field's number and how it is encoded
_MOST_VERSIONS = 16  # the last one counts; who writes it more often only wants it to be read
_ENCODINGS = (0, 1, 2, 3, 5)  # that a field may begin with
_LONGEST_NUMBER, _LONGEST_LENGTH = 10, 5  # in bytes


@dataclass
class Outline:
    """Of a workload: its version, where its statements begin and end, and the first field that is unknown."""

    version: int = 0
    statements: list[tuple[int, int]] = field(default_factory=list)
    unknown_field: int | None = None


def outline(data: bytes, most_statements: int | None) -> Outline:
    """The outline of a workload's bytes, up to the first unknown field.

    Raises `InvalidArgument` for what is not encoded rightly and for a statement that is too large,
    `BudgetExhausted` for more than `most_statements`.
    """
    found, at, versions = Outline(), 0, 0
    while at < len(data):
        tag, at = _number(data, at, _LONGEST_LENGTH)
        if tag == _STATEMENT:
            length, start = _number(data, at, _LONGEST_LENGTH)
            at = start + length
            if at > len(data):
                raise not_a_workload()
            if len(found.statements) == most_statements:
                raise BudgetExhausted(f"the workload has more statements than the {most_statements} of your share")
            if length > MAX_STATEMENT_BYTES:
                path = f"statements[{len(found.statements)}]"
                raise InvalidArgument(path, f"is larger than {MAX_STATEMENT_BYTES:,} bytes; split it")
            found.statements.append((start, at))
        elif tag == _VERSION:
            version, at = _number(data, at, _LONGEST_NUMBER)
            found.version = version & 0xFFFF_FFFF  # as parsers read a uint32
            versions += 1
            if versions > _MOST_VERSIONS:
                raise not_a_workload()
        elif 0 < tag >> 3 < 1 << 29 and tag & 7 in _ENCODINGS:
            found.unknown_field = tag >> 3
            break
        else:
            raise not_a_workload()
    return found


def not_a_workload() -> InvalidArgument:
    """What is raised for bytes that no parser reads."""
    return InvalidArgument("workload", "is not a serialized Workload, or is nested too deeply")


def _number(data: bytes, at: int, longest: int) -> tuple[int, int]:
    """The number that begins at `at`, seven bits a byte and the lowest first, and where it ends."""
    if at < len(data) and data[at] < 128:
        return data[at], at + 1  # as nearly all of them
    number = 0
    for i, byte in enumerate(data[at : at + longest]):
        number |= (byte & 127) << 7 * i
        if byte < 128:
            return number, at + i + 1
    raise not_a_workload()
