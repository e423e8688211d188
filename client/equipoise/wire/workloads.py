"""Schemas and workloads to messages and back.

What comes from the other side is checked completely: versions, unknown fields, unset choices, NaN. A malformed
workload raises `InvalidArgument` naming the field as the message calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema, make_attribute
from equipoise.queries.statements import Statement
from equipoise.v1 import types_pb2
from equipoise.wire.fields import refuse_unknown_fields
from equipoise.wire.outline import VERSION, Outline, outline
from equipoise.wire.statements import read_statement, write_statement

MAX_REMEMBERED = 1 << 16  # statements of one workload that are not read again where they are repeated


def schema_to_message(schema: Schema) -> types_pb2.Schema:
    """Returns the message of a schema."""
    return types_pb2.Schema(
        attributes=[
            types_pb2.Attribute(
                name=each.name,
                categories=each.categories,
                edges=each.edges,
                missing=each.missing,
                unknown=each.unknown,
                clamp=each.clamp,
                ordered=each.ordered,
                dates=each.dates,
                none=each.none,
                codes=[types_pb2.Attribute.Code(value=code, category=label) for code, label in each.codes],
            )
            for each in schema.attributes
        ]
    )


def schema_from_message(message: types_pb2.Schema) -> Schema:
    """Reads a schema. Raises `InvalidArgument`, naming for example `schema.attributes[2].edges`."""
    refuse_unknown_fields(message, "schema")
    return Schema(
        tuple(
            make_attribute(
                f"schema.attributes[{i}]",
                name=each.name,
                categories=tuple(each.categories),
                edges=tuple(each.edges),
                missing=each.missing,
                unknown=each.unknown,
                clamp=each.clamp,
                ordered=each.ordered if each.HasField("ordered") else None,
                dates=each.dates,
                none=each.none,
                codes=tuple((code.value, code.category) for code in each.codes),
            )
            for i, each in enumerate(message.attributes)
        )
    )


def workload_to_bytes(statements: Sequence[Statement]) -> bytes:
    """Returns the bytes of a Workload message, the same for equal statements. Raises `InvalidArgument`."""
    message = types_pb2.Workload(version=VERSION)
    for i, statement in enumerate(statements):
        write_statement(statement, message.statements.add(), f"statements[{i}]")
    if not statements:
        raise InvalidArgument("statements", "are empty; a workload asks for something")
    return message.SerializeToString(deterministic=True)


def workload_from_bytes(data: bytes, max_statements: int | None = None) -> tuple[Statement, ...]:
    """Reads a Workload message. Raises `InvalidArgument`, naming for example `statements[3].predicate.among`.

    Statements take many times their bytes once they are read, so they are counted and measured before, and read
    one at a time: raises `BudgetExhausted` for more than `max_statements`.

    Args:
        data: a serialized Workload.
        max_statements: how many it may have; None: any number.
    """
    # Large workloads ask many things more than once: those are read once, and then compiled once, too.
    read: dict[bytes, Statement] = {}
    statements = []
    outlined = checked_outline(data, max_statements)
    for i, (start, stop) in enumerate(zip(outlined.starts, outlined.stops, strict=True)):
        piece = data[start:stop]
        statement = read.get(piece)
        if statement is None:
            statement = read_statement(piece, f"statements[{i}]")
            if len(read) < MAX_REMEMBERED:
                read[piece] = statement
        statements.append(statement)
    return tuple(statements)


def checked_outline(data: bytes, max_statements: int | None) -> Outline:
    """Returns the outline of a serialized Workload that has one statement at least.

    Raises `InvalidArgument` for what is no workload that is submitted, `BudgetExhausted` for more than
    `max_statements`.

    Args:
        data: a serialized Workload.
        max_statements: how many it may have; None: any number.
    """
    outlined = outline(data, max_statements)
    if outlined.version != VERSION:
        raise InvalidArgument("version", f"is {outlined.version}, but must be {VERSION}")
    if outlined.unknown_field is not None:
        raise InvalidArgument("workload", f"has an unknown field with number {outlined.unknown_field}")
    if outlined.slots is not None:
        raise InvalidArgument("slots", "belong to sessions; a workload that is submitted has none")
    if not outlined.starts:
        raise InvalidArgument("statements", "are empty; a workload asks for something")
    return outlined
