"""Compiles what was asked in a session from its bytes, for both sides of the wire."""

from __future__ import annotations

import numpy as np

from equipoise.accounting import Offer
from equipoise.errors import InvalidArgument
from equipoise.queries import statement_work, workload_compiler
from equipoise.queries.grant_account import Wanted
from equipoise.queries.meanings import meaning_of
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise.residuals.told_counts import StandingNoise
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.statements import SentStatement, sent_from_bytes, statement_to_bytes


def compile_statement(data: bytes, schema: Schema, path: str = "statement") -> CompiledStatement:
    """Compiles one Statement message, whatever it may cost. Raises `InvalidArgument` naming what is below `path`.

    Args:
        data: a serialized Statement.
        path: the statement's place, which messages name.
    """
    return workload_compiler.compile_statement(sent_from_bytes(data, path).statement, schema, path)


def compile_offered(data: bytes, schema: Schema, path: str = "statement") -> tuple[CompiledStatement, Offer]:
    """Returns what `compile_statement` and `offer_of` do, and reads the message once.

    Args:
        data: a serialized Statement.
        schema: of the table.
        path: the statement's place, which messages name.
    """
    sent = sent_from_bytes(data, path)
    return workload_compiler.compile_statement(sent.statement, schema, path), _offered(sent, data)


def offer_of(data: bytes, path: str = "statement") -> Offer:
    """Returns what one Statement message asks, and what it may cost. Raises as `compile_statement`.

    Args:
        data: a serialized Statement.
        path: the statement's place, which messages name.

    Returns:
        The bytes of what is asked, without what it may cost and what commits to questions; and what it may cost.
        Where it says neither these are the exact bytes that were sent, else those that all equal statements have.
    """
    return _offered(sent_from_bytes(data, path), data)


def _offered(sent: SentStatement, data: bytes) -> Offer:
    # Noise is bound to these bytes, and a grant tells a repeated question by them: other SQL is no other question.
    return Offer(statement_to_bytes(sent.statement) if sent.rho or sent.questions else data, sent.rho)


def wanted_of(
    data: bytes, schema: Schema, path: str = "statement", standing: StandingNoise | None = None
) -> Wanted:
    """Returns what one Statement message asks of a grant, and how precisely. Raises as `compile_statement`.

    Args:
        data: a serialized Statement.
        schema: of the table.
        path: the statement's place, which messages name.
        standing: the noise of the measurement that the grant's answers are combined with; None: there is none.
    """
    return as_wanted(*compile_offered(data, schema, path), path, standing)


def as_wanted(
    compiled: CompiledStatement,
    offer: Offer,
    path: str = "statement",
    standing: StandingNoise | None = None,
) -> Wanted:
    """Returns what a compiled statement asks of a grant.

    Args:
        compiled: the statement.
        offer: its bytes, and how precisely it is wanted.
        path: the statement's place, which messages name.
        standing: the noise of the measurement that the grant's answers are combined with; None: there is none.

    Raises:
        InvalidArgument: it is a statistic.
    """
    if isinstance(compiled, CompiledStatistic):
        raise InvalidArgument(path, "is a statistic, which no grant answers")
    meaning = meaning_of(compiled, offer.question)
    return Wanted(meaning, offer.rho, None if standing is None else standing.tells(compiled, meaning))


def compile_with_work(data: bytes, schema: Schema, path: str = "statement") -> tuple[CompiledStatement, int]:
    """Compiles one Statement message, and weighs it.

    Args:
        data: the message's bytes.
        schema: of the table.
        path: what errors call the statement.

    Returns:
        The statement, and its work in the units of `equipoise.queries.statement_work`.

    Raises:
        InvalidArgument: naming what is below `path`.
    """
    sent = sent_from_bytes(data, path)
    return statement_work.compile_with_work(sent.statement, schema, len(data) - sent.extra_bytes, path)


def compile_asked(data: bytes, schema: Schema, max_statements: int | None = None) -> SessionWorkload:
    """Compiles the workload of a session.

    Args:
        data: as `asked_to_bytes` writes it.
        schema: of the table.
        max_statements: the most that it may have.

    Raises:
        InvalidArgument: for any other bytes, naming for example `statements[3].predicate.among`.
        BudgetExhausted: for more statements.
    """
    pieces, slots = asked_from_bytes(data, max_statements)
    # Much is asked again and again: it is compiled once.
    compiled: dict[bytes, CompiledStatement] = {}
    for i, piece in enumerate(pieces):
        if piece not in compiled:
            compiled[piece] = compile_statement(piece, schema, f"statements[{i}]")
    statements = tuple(compiled[piece] for piece in pieces)
    return SessionWorkload(np.array(slots, dtype=np.int64), statements, tuple(map(offer_of, pieces)))
