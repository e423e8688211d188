"""The kinds of statements: a module each, which says all that a kind means, and the one list of them.

A new kind is its module, its place in `KINDS` and in `Statement`, and its messages (`equipoise.wire.statements`).
"""

from __future__ import annotations

from equipoise.queries.predicates import Predicate
from equipoise.queries.statements.capped_sum import CAPPED_SUM, CappedSum
from equipoise.queries.statements.condition import CONDITION
from equipoise.queries.statements.count_distinct import COUNT_DISTINCT, CountDistinct
from equipoise.queries.statements.kind import JsonForm, LinearKind, StatementKind, StatisticKind
from equipoise.queries.statements.marginal import MARGINAL, Marginal
from equipoise.queries.statements.quantile import QUANTILE, Quantile, median
from equipoise.queries.statements.sum import SUM, Sum
from equipoise.queries.statements.variance import VARIANCE, Variance

__all__ = [
    "KINDS",
    "MAX_STATEMENT_SENSITIVITY",
    "CappedSum",
    "CountDistinct",
    "JsonForm",
    "LinearKind",
    "Marginal",
    "Quantile",
    "Statement",
    "StatementKind",
    "Statistic",
    "StatisticKind",
    "Sum",
    "Variance",
    "kind_of",
    "median",
]

Statistic = Quantile | Variance | CountDistinct | CappedSum
"""Numbers that are no linear queries; their values are places in [0, 1] within the attribute's range."""

Statement = Predicate | Marginal | Sum | Statistic

KINDS: tuple[StatementKind, ...] = (CONDITION, MARGINAL, SUM, QUANTILE, VARIANCE, COUNT_DISTINCT, CAPPED_SUM)

MAX_STATEMENT_SENSITIVITY = max(kind.l1_sensitivity for kind in KINDS if isinstance(kind, LinearKind))
"""By how much the counts of any statement move at most when one record is replaced (L1)."""

_KIND_OF: dict[type[object], StatementKind] = {each: kind for kind in KINDS for each in kind.forms}


def kind_of(statement: Statement) -> StatementKind | None:
    """Returns the kind of a statement; None for what is none, which callers without a type checker send."""
    return _KIND_OF.get(type(statement))
