"""Schemas, statements and workloads as messages, and back.

What comes from the other side is checked completely: versions, unknown fields, unset choices, NaN. What is
malformed raises `InvalidArgument` naming the field as the message calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from equipoise.errors import InvalidArgument
from equipoise.queries.predicate_compiler import MAX_DEPTH
from equipoise.queries.predicates import (
    AllOf,
    Among,
    AnyOf,
    Interval,
    Marginal,
    Not,
    Predicate,
    Statement,
    Statistic,
)
from equipoise.queries.schema import Schema, make_attribute
from equipoise.v1 import types_pb2
from equipoise.wire.fields import checked_number, checked_text, checked_texts
from equipoise.wire.outline import MAX_STATEMENT_BYTES, VERSION, outline
from equipoise.wire.statistics import read_statistic, write_statistic

MAX_REMEMBERED = 1 << 16  # statements of one workload that are not read again where they are repeated


def schema_to_message(schema: Schema) -> types_pb2.Schema:
    """The message of a schema."""
    return types_pb2.Schema(
        attributes=[
            types_pb2.Attribute(
                name=each.name,
                categories=each.categories,
                edges=each.edges,
                missing=each.missing,
                unknown=each.unknown,
                clamp=each.clamp,
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
                each.name,
                tuple(each.categories),
                tuple(each.edges),
                each.missing,
                each.unknown,
                each.clamp,
            )
            for i, each in enumerate(message.attributes)
        )
    )


def workload_to_bytes(statements: Sequence[Statement]) -> bytes:
    """The bytes of a Workload message, the same for equal statements. Raises `InvalidArgument`."""
    message = types_pb2.Workload(version=VERSION)
    for i, statement in enumerate(statements):
        _write_statement(statement, message.statements.add(), f"statements[{i}]")
    if not statements:
        raise InvalidArgument("statements", "are empty; a workload asks for something")
    return message.SerializeToString(deterministic=True)


def statement_to_bytes(statement: Statement) -> bytes:
    """The bytes of one Statement message, the same for equal statements. Raises `InvalidArgument`."""
    message = types_pb2.Statement()
    _write_statement(statement, message, "statement")
    return message.SerializeToString(deterministic=True)


def statement_from_bytes(data: bytes, path: str = "statement") -> Statement:
    """Reads one Statement message. Raises `InvalidArgument`, naming what is below `path`."""
    if len(data) > MAX_STATEMENT_BYTES:
        raise InvalidArgument(path, f"is larger than {MAX_STATEMENT_BYTES:,} bytes; split it")
    return _read_statement(data, path)


def workload_from_bytes(data: bytes, most_statements: int | None = None) -> tuple[Statement, ...]:
    """Reads a Workload message. Raises `InvalidArgument`, naming for example `statements[3].predicate.among`.

    Statements take many times their bytes once they are read, so they are counted and measured before, and read
    one at a time: raises `BudgetExhausted` for more than `most_statements`.
    """
    found = outline(data, most_statements)
    if found.version != VERSION:
        raise InvalidArgument("version", f"is {found.version}, but must be {VERSION}")
    if found.unknown_field is not None:
        raise InvalidArgument("workload", f"has an unknown field with number {found.unknown_field}")
    if found.slots is not None:
        raise InvalidArgument("slots", "belong to sessions; a workload that is submitted has none")
    if not found.statements:
        raise InvalidArgument("statements", "are empty; a workload asks for something")
    # Large workloads ask many things more than once: those are read once, and then compiled once, too.
    read: dict[bytes, Statement] = {}
    statements = []
    for i, (start, stop) in enumerate(found.statements):
        piece = data[start:stop]
        statement = read.get(piece)
        if statement is None:
            statement = _read_statement(piece, f"statements[{i}]")
            if len(read) < MAX_REMEMBERED:
                read[piece] = statement
        statements.append(statement)
    return tuple(statements)


def _write_statement(statement: Statement, target: types_pb2.Statement, path: str) -> None:
    if isinstance(statement, Marginal):
        target.marginal.SetInParent()
        target.marginal.attributes.extend(checked_texts(statement.attributes, path, ".marginal.attributes"))
    elif isinstance(statement, Statistic):
        write_statistic(statement, target.statistic, f"{path}.statistic")
    else:
        _write_predicate(statement, target.predicate, f"{path}.predicate", 1)


def _write_predicate(predicate: Predicate, target: types_pb2.Predicate, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArgument(path, f"is nested deeper than {MAX_DEPTH} levels")
    match predicate:
        case Among(attribute, categories):
            target.among.attribute = checked_text(attribute, path, ".among.attribute")
            target.among.categories.extend(checked_texts(categories, path, ".among.categories"))
        case Interval(attribute, low, high):
            target.interval.attribute = checked_text(attribute, path, ".interval.attribute")
            target.interval.low = checked_number(low, path, ".interval.low")
            target.interval.high = checked_number(high, path, ".interval.high")
        case AllOf(conditions) | AnyOf(conditions):
            kind = "all" if isinstance(predicate, AllOf) else "any"
            if not isinstance(conditions, tuple | list) or not conditions:
                raise InvalidArgument(f"{path}.{kind}.conditions", "must be at least one")
            parts = target.all.conditions if isinstance(predicate, AllOf) else target.any.conditions
            for i, condition in enumerate(conditions):
                _write_predicate(condition, parts.add(), f"{path}.{kind}.conditions[{i}]", depth + 1)
        case Not(condition):
            _write_predicate(condition, target.negation, f"{path}.negation", depth + 1)
        case _:
            raise InvalidArgument(path, "is not a predicate")


def _read_statement(data: bytes, path: str) -> Statement:
    message = types_pb2.Statement()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise InvalidArgument(path, "is not a serialized Statement, or is nested too deeply") from None
    try:
        return _statement_of(message)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}{error.field}", error.problem) from None


def _statement_of(message: types_pb2.Statement) -> Statement:
    """The statement; errors name what is within it, `.predicate.among` for example."""
    refuse_unknown_fields(message, "")
    match message.WhichOneof("statement"):
        case "predicate":
            return _read_predicate(message.predicate, ".predicate", 1)
        case "marginal":
            return Marginal(checked_texts(tuple(message.marginal.attributes), ".marginal", ".attributes"))
        case "statistic":
            return read_statistic(message.statistic, ".statistic")
        case _:
            raise InvalidArgument("", "is neither a predicate nor a marginal nor a statistic")


def _read_predicate(message: types_pb2.Predicate, path: str, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise InvalidArgument(path, f"is nested deeper than {MAX_DEPTH} levels")
    match message.WhichOneof("condition"):
        case "among":
            among = message.among
            attribute = checked_text(among.attribute, path, ".among.attribute")
            return Among(attribute, checked_texts(tuple(among.categories), path, ".among.categories"))
        case "interval":
            interval = message.interval
            return Interval(
                checked_text(interval.attribute, path, ".interval.attribute"),
                checked_number(interval.low, path, ".interval.low"),
                checked_number(interval.high, path, ".interval.high"),
            )
        case "all":
            return AllOf(_read_conditions(message.all.conditions, f"{path}.all.conditions", depth))
        case "any":
            return AnyOf(_read_conditions(message.any.conditions, f"{path}.any.conditions", depth))
        case "negation":
            return Not(_read_predicate(message.negation, f"{path}.negation", depth + 1))
        case _:
            raise InvalidArgument(path, "holds no condition")


def _read_conditions(messages: Sequence[types_pb2.Predicate], path: str, depth: int) -> tuple[Predicate, ...]:
    if not messages:
        raise InvalidArgument(path, "must be at least one")
    return tuple(_read_predicate(each, f"{path}[{i}]", depth + 1) for i, each in enumerate(messages))


def refuse_unknown_fields(message: Message, path: str) -> None:
    """Protobuf keeps fields it does not know; here they would be signed and stored without being understood."""
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
