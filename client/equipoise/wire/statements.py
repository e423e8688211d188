"""Statements to messages and back: the one place that knows the message of every kind.

What comes from the other side is checked completely: unknown fields, unset choices, NaN. A malformed message raises
`InvalidArgument` naming the field as the message calls it. Whether attributes exist and numbers are in range is
seen when a statement is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from equipoise.errors import InvalidArgument
from equipoise.queries.predicate_compiler import MAX_DEPTH
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.statements import Marginal, Statement, Statistic, Sum
from equipoise.v1 import types_pb2
from equipoise.wire.fields import (
    checked_attributes,
    checked_number,
    checked_text,
    checked_texts,
    refuse_unknown_fields,
)
from equipoise.wire.statistics import read_statistic, write_statistic

NO_PRICE = "must not be set: a grant alone is paid from"
NO_QUESTIONS = "must not be set: in a round the header of the submission commits to the questions"
COMMITMENT_BYTES = 32
MAX_STATEMENT_BYTES = 1 << 20  # far beyond any that compiles, but for one that lists very many categories


class SentStatement(NamedTuple):
    """A statement of a session, as its analyst sent it.

    `rho`: what it may cost of a grant, in units of 10^-12, or 0. `questions`: the 32 bytes that commit to the
    questions that it was translated from; empty for none.
    """

    statement: Statement
    rho: int
    questions: bytes

    @property
    def extra_bytes(self) -> int:
        """How many bytes of the message commit to questions: its tag, its length and 32 bytes, or none."""
        return 2 + len(self.questions) if self.questions else 0


def statement_to_bytes(statement: Statement, rho: int = 0, questions: bytes = b"") -> bytes:
    """Returns the bytes of one Statement message, the same for equal statements. Raises `InvalidArgument`.

    Args:
        statement: what is asked.
        rho: what it may cost of a grant, in units of 10^-12 of rho, below 2^63; 0 where it is asked of none.
        questions: what commits to the questions that it was translated from, 32 bytes; empty for none.
    """
    message = types_pb2.Statement(rho=rho, questions_commitment=questions)
    write_statement(statement, message, "statement")
    return message.SerializeToString(deterministic=True)


def statement_from_bytes(data: bytes, path: str = "statement") -> Statement:
    """Reads one Statement message. Raises `InvalidArgument`, naming what is below `path`.

    Args:
        data: a serialized Statement of at most 1 MiB.
        path: the statement's place, which messages name.
    """
    return _bare(sent_from_bytes(data, path), path)


def sent_from_bytes(data: bytes, path: str = "statement") -> SentStatement:
    """Reads a Statement of a session, with its price and what commits to questions. Raises `InvalidArgument`.

    Args:
        data: a serialized Statement of at most 1 MiB.
        path: the statement's place, which messages name.
    """
    if len(data) > MAX_STATEMENT_BYTES:
        raise InvalidArgument(path, f"is larger than {MAX_STATEMENT_BYTES:,} bytes; split it")
    return _read(data, path)


def _bare(sent: SentStatement, path: str) -> Statement:
    if sent.rho:
        raise InvalidArgument(f"{path}.rho", NO_PRICE)
    if sent.questions:
        raise InvalidArgument(f"{path}.questions_commitment", NO_QUESTIONS)
    return sent.statement


def write_statement(statement: Statement, target: types_pb2.Statement, path: str) -> None:
    """Fills a message. Raises `InvalidArgument` naming what is below `path`."""
    if isinstance(statement, Marginal):
        target.marginal.SetInParent()
        target.marginal.attributes.extend(checked_texts(statement.attributes, path, ".marginal.attributes"))
        if statement.where is not None:
            _write_predicate(statement.where, target.marginal.where, f"{path}.marginal.where", 1)
    elif isinstance(statement, Sum):
        _write_sum(statement, target.sum, f"{path}.sum")
    elif isinstance(statement, Statistic):
        write_statistic(statement, target.statistic, f"{path}.statistic")
    else:
        _write_predicate(statement, target.predicate, f"{path}.predicate", 1)


def _write_sum(statement: Sum, target: types_pb2.Sum, path: str) -> None:
    target.attribute = checked_text(statement.attribute, path, ".attribute")
    if statement.by:
        target.by.extend(checked_texts(statement.by, path, ".by"))
    if statement.where is not None:
        _write_predicate(statement.where, target.where, f"{path}.where", 1)
    if statement.low is not None:
        target.low = checked_number(statement.low, path, ".low")
    if statement.high is not None:
        target.high = checked_number(statement.high, path, ".high")


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


def read_statement(data: bytes, path: str) -> Statement:
    """Reads one Statement message of any size. Raises `InvalidArgument` naming what is below `path`.

    Args:
        data: a serialized Statement.
        path: the statement's place, which messages name.
    """
    return _bare(_read(data, path), path)


def _read(data: bytes, path: str) -> SentStatement:
    message = types_pb2.Statement()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise InvalidArgument(path, "is not a serialized Statement, or is nested too deeply") from None
    try:
        questions = message.questions_commitment
        if questions and len(questions) != COMMITMENT_BYTES:
            raise InvalidArgument(".questions_commitment", f"must have {COMMITMENT_BYTES} bytes, or none")
        return SentStatement(_statement_of(message), message.rho, questions)
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}{error.field}", error.problem) from None


def _statement_of(message: types_pb2.Statement) -> Statement:
    """Returns the statement; errors name what is within it, `.predicate.among` for example."""
    refuse_unknown_fields(message, "")
    match message.WhichOneof("statement"):
        case "predicate":
            return _read_predicate(message.predicate, ".predicate", 1)
        case "marginal":
            marginal = message.marginal
            attributes = checked_attributes(marginal.attributes, ".marginal.attributes")
            where = marginal.HasField("where")
            return Marginal(attributes, _read_predicate(marginal.where, ".marginal.where", 1) if where else None)
        case "sum":
            return _read_sum(message.sum, ".sum")
        case "statistic":
            return read_statistic(message.statistic, ".statistic")
        case _:
            raise InvalidArgument("", "is neither a predicate nor a marginal nor a sum nor a statistic")


def _read_sum(message: types_pb2.Sum, path: str) -> Sum:
    return Sum(
        checked_text(message.attribute, path, ".attribute"),
        checked_attributes(message.by, f"{path}.by") if message.by else (),
        _read_predicate(message.where, f"{path}.where", 1) if message.HasField("where") else None,
        checked_number(message.low, path, ".low") if message.HasField("low") else None,
        checked_number(message.high, path, ".high") if message.HasField("high") else None,
    )


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
