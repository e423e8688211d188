"""How much work a statement is for a session by turns: a public rule, which depends on the statement's shape alone.

All statements of a turn must be answered before the next turn ends, or everybody sees that they were not. So in a
session by turns a statement may be no more work than its share's part of a turn. One unit is about a microsecond
of one ordinary core; the weights were measured, with every statement answered afresh and learnt from
(`docs/sessions.md` has the rule in words). A statement is charged the same whether or not it was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement, StatisticKind, kind_of
from equipoise.queries.universe_size import MAX_UNIVERSE
from equipoise.queries.workload_builder import WorkloadBuilder
from equipoise.queries.workload_compiler import CompiledStatement, add_statement

BASE = 1_500_000  # of any statement; all weights in thousandths of a unit
BYTE = 400  # of the statement as it is sent
PRODUCT = 8_000  # of two boxes while a condition is compiled, for each attribute of the schema
TABLE = 800_000  # of each table of the universe that is needed
UNIVERSE_CELL = 30  # of each cell of the universe, for each of these tables
LISTED_CELLS = 1 << 21  # as much as these, where possible records are not listed: a support, and 10^6 records
BOX_CELL = 20  # of each cell of a box's table
INSIDE_CELL = 150  # of each cell of a marginal with a condition, for each of the condition's boxes
ANSWER = 400  # of each answer
UNIT = 1_000
PART = 4  # of its share's part of a turn that one statement may take by this rule: the rest is for a busy machine


def most_work(turn_seconds: int, shares: int) -> int:
    """Returns the most work of one statement in a session with turns of this length, of this many shares.

    Args:
        turn_seconds: the length of a turn.
        shares: how many analysts have a share.

    Returns:
        The work in units of about a microsecond.
    """
    return turn_seconds * 1_000_000 // (PART * shares)


def compile_with_work(
    statement: Statement, schema: Schema, encoded_bytes: int, path: str = "statement"
) -> tuple[CompiledStatement, int]:
    """Compiles a statement as a session takes it.

    Args:
        statement: the statement.
        schema: the schema of its dataset.
        encoded_bytes: the length of the statement as it is sent.
        path: what errors name.

    Returns:
        The compiled statement and its work. A statistic is as much as any other: its plan counts what it takes.

    Raises:
        InvalidArgument: the statement is wrong, naming what is below `path`.
    """
    kind = kind_of(statement)
    if isinstance(kind, StatisticKind):
        return kind.compile(statement, schema, path), (BASE + BYTE * encoded_bytes) // UNIT
    predicates, workload = PredicateCompiler(schema), WorkloadBuilder(schema.sizes)
    add_statement(statement, workload, predicates, path)
    compiled = workload.build()
    compiling = BYTE * encoded_bytes + PRODUCT * len(schema.sizes) * predicates.products_in_all
    return compiled, (BASE + compiling + _answering(compiled)) // UNIT


def _answering(compiled: CompiledWorkload) -> int:
    """Returns the weight of counting a statement twice, on data and hypothesis, and of learning from it."""
    sizes = compiled.schema_sizes

    def cells(axes: Iterable[int]) -> int:
        return math.prod(sizes[axis] for axis in axes)

    tables = {group.axes for group in compiled.groups} | {each.table_axes for each in compiled.restricted}
    tables |= {tuple(sorted(each.axes)) for each in compiled.marginals}
    boxes = sum(len(group.queries) * cells(group.axes) for group in compiled.groups)
    boxes += sum(len(each.first_queries) * cells(each.table_axes) for each in compiled.restricted)
    inside = sum(len(each.first_queries) * each.cells for each in compiled.restricted)
    universe = math.prod(sizes)
    passed = universe if universe <= MAX_UNIVERSE else LISTED_CELLS
    counted = len(tables) * (TABLE + UNIVERSE_CELL * passed) + BOX_CELL * boxes + INSIDE_CELL * inside
    return counted + ANSWER * compiled.query_count
