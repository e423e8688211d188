"""Compiles what was asked in a session from its bytes, for both sides of the wire."""

from __future__ import annotations

import numpy as np

from equipoise.queries.predicates import Statistic
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import CompiledStatement, SessionWorkload
from equipoise.queries.statistics import compile_statistic
from equipoise.queries.workload_compiler import compile_alone
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.workloads import statement_from_bytes


def compile_statement(data: bytes, schema: Schema, path: str = "statement") -> CompiledStatement:
    """Compiles one Statement message. Raises `InvalidArgument` naming what is below `path`."""
    statement = statement_from_bytes(data, path)
    if isinstance(statement, Statistic):
        return compile_statistic(statement, schema, path)
    return compile_alone(statement, schema, path)


def compile_asked(data: bytes, schema: Schema, most_statements: int | None = None) -> SessionWorkload:
    """Compiles the workload of a session, as `wire_format.asked_to_bytes` writes it.

    Raises `InvalidArgument` for any other, naming for example `statements[3].predicate.among`, and
    `BudgetExhausted` for more than `most_statements`.
    """
    pieces, slots = asked_from_bytes(data, most_statements)
    # Much is asked again and again: it is compiled once.
    compiled: dict[bytes, CompiledStatement] = {}
    for i, piece in enumerate(pieces):
        if piece not in compiled:
            compiled[piece] = compile_statement(piece, schema, f"statements[{i}]")
    return SessionWorkload(np.array(slots, dtype=np.int64), tuple(compiled[piece] for piece in pieces))
