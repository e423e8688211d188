"""Compiles statements to a workload: linear queries over a schema's universe, for both sides of the wire.

>>> import numpy as np
>>> from equipoise import Attribute, Marginal, Schema, attribute
>>> schema = Schema((Attribute("sex", ("f", "m")), Attribute("smokes", ("no", "yes"))))
>>> workload = compile_workload([attribute("sex") == "f", Marginal(("smokes",))], schema)
>>> workload.counts(np.array([10, 20, 30, 40]))
array([30, 40, 60])
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.schema import Schema
from equipoise.queries.statements import LinearKind, Statement, Statistic, StatisticKind, kind_of
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_builder import WorkloadBuilder

__all__ = [
    "CompiledStatement",
    "CompiledWorkload",
    "compile_single",
    "compile_statement",
    "compile_statistic",
    "compile_workload",
]

CompiledStatement = CompiledWorkload | CompiledStatistic
"""One statement as a session answers it: a workload of exactly one, or a statistic."""


def compile_workload(statements: Sequence[Statement], schema: Schema) -> CompiledWorkload:
    """Compiles statements against a schema.

    Raises `InvalidArgument` naming what is wrong, such as `statements[3].conditions[0].attribute`, and for
    statistics, which are no linear queries (`equipoise.queries.statistics`).
    """
    predicates, workload = PredicateCompiler(schema), WorkloadBuilder(schema.sizes)
    for i, statement in enumerate(statements):
        add_statement(statement, workload, predicates, f"statements[{i}]")
    return workload.build()


def compile_single(statement: Statement, schema: Schema, path: str = "statement") -> CompiledWorkload:
    """Compiles one statement as a workload of its own. Raises `InvalidArgument` naming what is below `path`.

    Args:
        statement: what is asked.
        schema: of the table.
        path: what errors call the statement.
    """
    workload = WorkloadBuilder(schema.sizes)
    add_statement(statement, workload, PredicateCompiler(schema), path)
    return workload.build()


def compile_statement(statement: Statement, schema: Schema, path: str = "statement") -> CompiledStatement:
    """Compiles one statement as a session takes it. Raises `InvalidArgument` naming what is below `path`.

    Args:
        statement: what is asked.
        schema: of the table.
        path: what errors call the statement.
    """
    kind = kind_of(statement)
    if isinstance(kind, StatisticKind):
        return kind.compile(statement, schema, path)
    return compile_single(statement, schema, path)


def compile_statistic(statistic: Statistic, schema: Schema, path: str = "statement") -> CompiledStatistic:
    """Compiles a statistic.

    Args:
        statistic: what is asked.
        schema: of the table.
        path: what errors call the statement.

    Raises:
        InvalidArgument: naming what is below `path`; for any other statement, too.
    """
    kind = kind_of(statistic)
    if not isinstance(kind, StatisticKind):
        raise InvalidArgument(path, "is not a statistic")
    return kind.compile(statistic, schema, path)


def _linear(statement: Statement, path: str) -> LinearKind[Statement]:
    kind = kind_of(statement)
    if kind is None:
        raise InvalidArgument(path, "is not a statement")
    if isinstance(kind, StatisticKind):
        raise InvalidArgument(path, "is a statistic; only sessions of low_sensitivity answer statistics")
    return kind


def add_statement(
    statement: Statement, workload: WorkloadBuilder, predicates: PredicateCompiler, path: str
) -> None:
    """Compiles a statement into a workload that is being built.

    Args:
        statement: what is asked, no statistic.
        workload: the builder, which is added to.
        predicates: the compiler of the same schema.
        path: what errors call the statement.

    Raises:
        InvalidArgument: naming what is below `path`.
    """
    kind = _linear(statement, path)
    kind.add(statement, workload, predicates, path)
    workload.end_statement(kind.moves(statement))
