"""A whole marginal table, of all records or of those that satisfy a condition: one linear query a cell."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import Predicate, check_attributes
from equipoise.queries.statements.kind import JsonForm, LinearKind
from equipoise.queries.workload_builder import WorkloadBuilder

MAX_CELLS = 1 << 20  # of one marginal


@dataclass(frozen=True)
class Marginal:
    """All cells of the table over `attributes`: one query for each combination, the last varying fastest.

    With `where`, a cell is the fraction of all records that are in it and satisfy the condition; the others are in
    no cell.

    >>> from equipoise import attribute
    >>> Marginal(("origin", "month"), where=attribute("carrier") == "AA")
    Marginal(attributes=('origin', 'month'), where=Among(attribute='carrier', categories=('AA',)))
    """

    attributes: tuple[str, ...]
    where: Predicate | None = None

    def __post_init__(self) -> None:
        check_attributes("marginal.attributes", self.attributes)


def _add(marginal: Marginal, workload: WorkloadBuilder, predicates: PredicateCompiler, path: str) -> None:
    axes = predicates.axes(marginal.attributes, f"{path}.attributes")
    cells = math.prod(predicates.schema.sizes[axis] for axis in axes)
    if cells > MAX_CELLS:
        raise InvalidArgument(f"{path}.attributes", f"make {cells:,} cells; at most {MAX_CELLS:,} are allowed")
    if marginal.where is None:
        workload.add_table(axes)
    else:
        where = f"{path}.where"
        workload.add_restricted_table(axes, predicates.compile(marginal.where, where), where)


MARGINAL: LinearKind[Marginal] = LinearKind(
    forms={Marginal: JsonForm("marginal", flat=True)},
    # A record leaves one cell and another one enters a cell: 1 in each. With `where` both may happen, or one of
    # them, or neither: at most 2, and exactly 2 between records of two cells that satisfy the condition.
    l1_sensitivity=2,
    add=_add,
    cells=lambda marginal: marginal.attributes,
)
