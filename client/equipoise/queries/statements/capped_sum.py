"""The mean of a binned attribute, none counted as more than a cap."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.statements.kind import JsonForm, StatisticKind
from equipoise.queries.statistics import (
    CompiledStatistic,
    Databases,
    binned,
    decimal,
    exact_sums,
    means,
    place_of,
    places_of,
    widest,
)


@dataclass(frozen=True)
class CappedSum:
    """The sum of a binned attribute's values, none counted as more than `cap`, as a fraction of the records.

    The largest move by one of 1,000 records, which a session must allow (`options.sensitivity`):

    >>> from equipoise import Attribute, Schema, CappedSum
    >>> from equipoise.queries.workload_compiler import compile_statistic
    >>> delay = Attribute("delay", ("[0, 15)", "[15, 60)"), (0.0, 15.0, 60.0))
    >>> compile_statistic(CappedSum("delay", 15.0), Schema((delay,)), "statement").sensitivity(1000)
    Fraction(1, 8000)
    """

    attribute: str
    cap: float


@dataclass(frozen=True, eq=False)
class CompiledCappedSum(CompiledStatistic):
    """The mean place, none counted as more than the cap's: `places` are those that count.

    Theorem: Delta = r / n, with r the widest distance of two places that count, at most the cap's own. Proof: one
    term of the sum moves, by at most r. Equality: from one end to the other.
    """

    axis: int
    places: NDArray[np.int64]

    @property
    def axes(self) -> tuple[int, ...]:
        """The attribute itself."""
        return (self.axis,)

    def sensitivity(self, records: int) -> Fraction:
        """r / n."""
        return widest(self.places) / records

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Returns the mean, rounded down."""
        places = self.places[databases.categories(self.axis)]
        return means(exact_sums(databases, databases.counts, places), databases.records.tolist())


def _compile(capped: CappedSum, schema: Schema, path: str) -> CompiledCappedSum:
    axis = binned(schema, capped.attribute, path)
    attribute = schema.attributes[axis]
    if attribute.dates:
        raise InvalidArgument(f"{path}.attribute", f"{capped.attribute!r} holds dates, which have no sum")
    cap = decimal(capped.cap, f"{path}.cap", attribute.edges[0], attribute.edges[-1])
    return CompiledCappedSum(axis, np.minimum(places_of(attribute), place_of(cap, attribute)))


CAPPED_SUM: StatisticKind[CappedSum] = StatisticKind({CappedSum: JsonForm("capped_sum")}, _compile)
