"""What a kind of statement is: all that has to tell kinds apart asks here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.schema import Schema
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_builder import WorkloadBuilder

S = TypeVar("S")


@dataclass(frozen=True)
class JsonForm:
    """How a class is written in a statements file: `{key: {field: ...}}`, or `{key: first field, other: ...}`.

    `flat`: the second form. Fields that are None are left out there.
    """

    key: str
    flat: bool = False


@dataclass(frozen=True)
class LinearKind(Generic[S]):
    """Statements that are linear queries.

    `forms`: its classes. `l1_sensitivity`: by how much the counts of all queries of one statement move together, at
    most, when one record is replaced; a number of the kind alone, so that it tells nothing of a statement's
    content but whether it is a single query (`moves`). `add`: adds a statement's queries to a workload, with the
    place that errors name. `cells`: the attributes whose combinations are its queries, the last one varying
    fastest; none for a single query.
    """

    forms: Mapping[type[Any], JsonForm]
    l1_sensitivity: int
    add: Callable[[S, WorkloadBuilder, PredicateCompiler, str], None]
    cells: Callable[[S], tuple[str, ...]]

    def moves(self, statement: S) -> int:
        """Returns by how much a statement's counts move together, at most: a single query's by at most 1."""
        return self.l1_sensitivity if self.cells(statement) else 1


@dataclass(frozen=True)
class StatisticKind(Generic[S]):
    """Statements that are one number and no linear query, answered in sessions of `low_sensitivity` only.

    `forms`: its classes. `compile`: against a schema, with the place that errors name; what is compiled knows its
    sensitivity. `meaning`: what a value in [0, 1] stands for, in words; empty where it stands for itself.
    """

    forms: Mapping[type[Any], JsonForm]
    compile: Callable[[S, Schema, str], CompiledStatistic]
    meaning: Callable[[S, float, Schema], str] = lambda _statement, _value, _schema: ""


StatementKind = LinearKind[Any] | StatisticKind[Any]
