"""The fraction of the records for which a condition holds: one linear query."""

from __future__ import annotations

from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.statements.kind import JsonForm, LinearKind
from equipoise.queries.workload_builder import WorkloadBuilder


def _add(condition: Predicate, workload: WorkloadBuilder, predicates: PredicateCompiler, path: str) -> None:
    workload.add_boxes(predicates.compile(condition, path), path)


CONDITION: LinearKind[Predicate] = LinearKind(
    forms={
        Among: JsonForm("among"),
        Interval: JsonForm("interval"),
        AllOf: JsonForm("all", flat=True),
        AnyOf: JsonForm("any", flat=True),
        Not: JsonForm("not", flat=True),
    },
    # A record counts or it does not.
    l1_sensitivity=1,
    add=_add,
    cells=lambda _condition: (),
)
