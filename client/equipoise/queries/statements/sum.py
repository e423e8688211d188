"""The sum of an attribute's values, of all records or in each cell of a table: linear queries with weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.queries.boxes import EVERYTHING
from equipoise.queries.numeric_values import NumericValues, numeric_values
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import Predicate, check_attributes
from equipoise.queries.schema import Schema
from equipoise.queries.statements.kind import JsonForm, LinearKind
from equipoise.queries.statements.marginal import MAX_CELLS
from equipoise.queries.workload_builder import WorkloadBuilder

Names = tuple[str, ...]  # of attributes; maybe none


@dataclass(frozen=True)
class Sum:
    """The sum of `attribute`, clamped to [`low`, `high`], over the records that satisfy `where`: one for each cell.

    `attribute` has bins, each of which stands for its middle, or categories that are numbers. `by`: the attributes
    whose combinations are the cells, the last varying fastest; none for a single sum. `low` and `high` are edges or
    values of the attribute; None stands for its lowest and its highest.

    An answer is a fraction of the records, as all answers: the places of the values within the range, from 0 at
    `low` to 1 at `high`, are added up, rounded down to whole records, and divided by all records. So the sum of the
    values is `low` times the number of records with a value, plus `high - low` times the answer times all records.
    `equipoise.derived` computes it, and means.

    >>> Sum("delay", by=("origin",), low=-15, high=180)
    Sum(attribute='delay', by=('origin',), where=None, low=-15, high=180)
    """

    attribute: str
    by: Names = ()
    where: Predicate | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.by:
            check_attributes("sum.by", self.by)
        if self.attribute in self.by:
            raise InvalidArgument("sum.by", f"names {self.attribute!r}, which is added up")

    def values(self, schema: Schema, path: str = "statement") -> NumericValues:
        """Returns what the attribute's categories stand for. Raises `InvalidArgument`.

        Args:
            schema: of the table.
            path: what errors call the statement.
        """
        axis = PredicateCompiler(schema).axis(self.attribute, f"{path}.attribute")
        return numeric_values(schema.attributes[axis], self.low, self.high, path)


def _add(statement: Sum, workload: WorkloadBuilder, predicates: PredicateCompiler, path: str) -> None:
    schema = predicates.schema
    axis = predicates.axis(statement.attribute, f"{path}.attribute")
    values = numeric_values(schema.attributes[axis], statement.low, statement.high, path)
    by = predicates.axes(statement.by, f"{path}.by")
    cells = math.prod(schema.sizes[each] for each in by)
    if cells > MAX_CELLS:
        raise InvalidArgument(f"{path}.by", f"make {cells:,} cells; at most {MAX_CELLS:,} are allowed")
    where = f"{path}.where"
    boxes = EVERYTHING if statement.where is None else predicates.compile(statement.where, where)
    workload.add_weighted_table(by, boxes, values.weights(axis), where)


SUM: LinearKind[Sum] = LinearKind(
    forms={Sum: JsonForm("sum", flat=True)},
    # Weights are at most 1. A record leaves one cell, whose rounded sum moves by at most 1, and enters another or
    # the same, which moves by at most 1 in all: at most 2, and at most 1 where there is a single cell. Counts that
    # move by at most 1 each, and by s in sum, move by at most the root of s in L2.
    l1_sensitivity=2,
    add=_add,
    cells=lambda statement: statement.by,
)
