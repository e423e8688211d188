"""How many different combinations of categories occur."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.fixed_point import on_grid
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import check_attributes
from equipoise.queries.schema import Schema
from equipoise.queries.statements.kind import JsonForm, StatisticKind
from equipoise.queries.statistics import CompiledStatistic, Databases


@dataclass(frozen=True)
class CountDistinct:
    """How many different combinations of the attributes' categories occur, as a fraction of the records.

    The largest move by one of 1,000 records, which a session must allow (`options.sensitivity`):

    >>> from equipoise import Attribute, Schema, CountDistinct
    >>> from equipoise.queries.workload_compiler import compile_statistic
    >>> delay = Attribute("delay", ("[0, 15)", "[15, 60)"), (0.0, 15.0, 60.0))
    >>> compile_statistic(CountDistinct(("delay",)), Schema((delay,)), "statement").sensitivity(1000)
    Fraction(1, 1000)
    """

    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_attributes("count_distinct.attributes", self.attributes)


@dataclass(frozen=True, eq=False)
class CompiledCountDistinct(CompiledStatistic):
    """The number of different combinations of categories, of the `attributes`, divided by n.

    Theorem: Delta = 1 / n. Proof: a record that leaves takes at most its own combination with it, one that comes
    brings at most its own. Equality: all records alike, and one of them replaced by another combination.
    """

    attributes: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        """Those whose combinations are counted."""
        return self.attributes

    def sensitivity(self, records: int) -> Fraction:
        """1 / n."""
        return Fraction(1, records)

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Combinations over records, rounded down."""
        combinations = databases.owners
        for axis in self.attributes:
            combinations = combinations * databases.sizes[axis] + databases.categories(axis)
        ordered = np.sort(combinations)
        different = ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
        owners = different // math.prod(databases.sizes[axis] for axis in self.attributes)
        return on_grid(np.bincount(owners, minlength=len(databases.starts)), databases.records)


def _compile(distinct: CountDistinct, schema: Schema, path: str) -> CompiledCountDistinct:
    return CompiledCountDistinct(PredicateCompiler(schema).axes(distinct.attributes, f"{path}.attributes"))


COUNT_DISTINCT: StatisticKind[CountDistinct] = StatisticKind(
    {CountDistinct: JsonForm("count_distinct", flat=True)}, _compile
)
