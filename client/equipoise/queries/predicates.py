"""What may be asked: predicates on attributes, whole marginal tables, and in some sessions statistics.

>>> from equipoise import attribute, Marginal
>>> late = attribute("dep_delay") >= 15
>>> late & attribute("carrier").isin(["AA", "UA"])
All(conditions=(Interval(attribute='dep_delay', low=15.0, high=inf), Among(attribute='carrier', \
categories=('AA', 'UA'))))
>>> Marginal(("origin", "month"))
Marginal(attributes=('origin', 'month'))
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


class Operators:
    """`&`, `|` and `~` on predicates."""

    def __and__(self: Predicate, other: Predicate) -> AllOf:  # type: ignore[misc]
        return AllOf((*_parts(self, AllOf), *_parts(other, AllOf)))

    def __or__(self: Predicate, other: Predicate) -> AnyOf:  # type: ignore[misc]
        return AnyOf((*_parts(self, AnyOf), *_parts(other, AnyOf)))

    def __invert__(self: Predicate) -> Predicate:  # type: ignore[misc]
        return self.condition if isinstance(self, Not) else Not(self)

    def __bool__(self) -> bool:
        raise TypeError("combine predicates with & | ~, not with and, or, not, or chained comparisons")


@dataclass(frozen=True)
class Among(Operators):
    """The attribute's category is one of `categories`."""

    attribute: str
    categories: tuple[str, ...]


@dataclass(frozen=True)
class Interval(Operators):
    """The binned attribute lies in [`low`, `high`); both are edges of its bins, or infinite."""

    attribute: str
    low: float
    high: float


@dataclass(frozen=True)
class AllOf(Operators):
    """Every condition holds."""

    conditions: tuple[Predicate, ...]


@dataclass(frozen=True)
class AnyOf(Operators):
    """At least one condition holds."""

    conditions: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not(Operators):
    """The condition does not hold."""

    condition: Predicate


Predicate = Among | Interval | AllOf | AnyOf | Not


@dataclass(frozen=True)
class Marginal:
    """All cells of the table over `attributes`: one query for each combination, the last varying fastest."""

    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Quantile:
    """The value of a binned attribute below which `level` of the records lie: the mean over `window` of them there.

    The smaller the window, the more one record can move it; without one, a single record moves it from one end of
    the range to the other. Exactly: `equipoise.queries.statistics.CompiledQuantile`.
    """

    attribute: str
    level: float
    window: float


@dataclass(frozen=True)
class Variance:
    """The variance of a binned attribute's values."""

    attribute: str


@dataclass(frozen=True)
class CountDistinct:
    """How many different combinations of the attributes' categories occur, as a fraction of the records."""

    attributes: tuple[str, ...]


@dataclass(frozen=True)
class CappedSum:
    """The sum of a binned attribute's values, none counted as more than `cap`, as a fraction of the records."""

    attribute: str
    cap: float


Statistic = Quantile | Variance | CountDistinct | CappedSum
"""Numbers that are no linear queries; their values are places in [0, 1] within the attribute's range."""

Statement = Among | Interval | AllOf | AnyOf | Not | Marginal | Statistic


@dataclass(frozen=True)
class AttributeName:
    """An attribute, from which predicates are made by comparison."""

    name: str

    def isin(self, categories: Iterable[str]) -> Among:
        """The category is one of these labels."""
        return Among(self.name, tuple(categories))

    def between(self, low: float, high: float) -> Interval:
        """The value lies in [`low`, `high`); both must be edges of the attribute's bins, or infinite."""
        return Interval(self.name, float(low), float(high))

    def __eq__(self, category: object) -> Among:  # type: ignore[override]
        return Among(self.name, (_label(category),))

    def __ne__(self, category: object) -> Not:  # type: ignore[override]
        return Not(Among(self.name, (_label(category),)))

    def __lt__(self, edge: float) -> Interval:
        return Interval(self.name, -math.inf, float(edge))

    def __ge__(self, edge: float) -> Interval:
        return Interval(self.name, float(edge), math.inf)

    __hash__ = None  # type: ignore[assignment]


def attribute(name: str) -> AttributeName:
    """The attribute `name`, to be compared: `attribute("origin") == "JFK"`."""
    return AttributeName(name)


def median(name: str, window: float) -> Quantile:
    """The smoothed median of the binned attribute `name`: the mean of the `window` of all records in the middle."""
    return Quantile(name, 0.5, window)


def _label(category: object) -> str:
    if not isinstance(category, str):
        raise TypeError(f"a category is compared as its label, a string, not {category!r}")
    return category


def _parts(predicate: Predicate, kind: type[AllOf] | type[AnyOf]) -> tuple[Predicate, ...]:
    """The conditions of a chain of the same operator, so that `a & b & c` is flat and stays shallow."""
    return predicate.conditions if isinstance(predicate, kind) else (predicate,)
