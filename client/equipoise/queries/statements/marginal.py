"""A whole marginal table: one linear query a cell."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import check_names
from equipoise.queries.statements.kind import JsonForm, LinearKind
from equipoise.queries.workload_builder import WorkloadBuilder

MAX_CELLS = 1 << 20  # of one marginal


@dataclass(frozen=True)
class Marginal:
    """All cells of the table over `attributes`: one query for each combination, the last varying fastest.

    >>> Marginal(("origin", "month"))
    Marginal(attributes=('origin', 'month'))
    """

    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names("marginal.attributes", self.attributes)


def _add(marginal: Marginal, workload: WorkloadBuilder, predicates: PredicateCompiler, path: str) -> None:
    axes = predicates.axes(marginal.attributes, f"{path}.attributes")
    cells = math.prod(predicates.schema.sizes[axis] for axis in axes)
    if cells > MAX_CELLS:
        raise InvalidArgument(f"{path}.attributes", f"make {cells:,} cells; at most {MAX_CELLS:,} are allowed")
    workload.add_table(axes)


MARGINAL: LinearKind[Marginal] = LinearKind(
    forms={Marginal: JsonForm("marginal", flat=True)},
    # A record leaves one cell and another one enters a cell.
    l1_sensitivity=2,
    add=_add,
    cells=lambda marginal: marginal.attributes,
)
