"""Conditions on one record, made by comparing attributes.

>>> from equipoise import attribute
>>> late = attribute("dep_delay") >= 15
>>> late & attribute("carrier").isin(["AA", "UA"])
AllOf(conditions=(Interval(attribute='dep_delay', low=15.0, high=inf), Among(attribute='carrier', \
categories=('AA', 'UA'))))
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import NoReturn

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import seconds_of


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
    low: Edge
    high: Edge


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
Edge = float
"""An edge of a binned attribute, of dates in seconds since 1970-01-01 00:00 UTC; infinite for none."""


@dataclass(frozen=True)
class AttributeName:
    """An attribute, from which predicates are made by comparison."""

    name: str

    def isin(self, categories: Iterable[str]) -> Among:
        """Returns the category is one of these labels. Raises `InvalidArgument` for a bare string or none."""
        check_names("isin", categories)
        labels = tuple(_label(category) for category in categories)
        if not labels:
            raise InvalidArgument("isin", "must be at least one category")
        return Among(self.name, labels)

    def between(self, low: float | str | date, high: float | str | date) -> Interval:
        """Returns the value lies in [`low`, `high`); both must be edges of the attribute's bins, or infinite.

        Edges that are dates may be written in ISO 8601. Raises `InvalidArgument`.
        """
        return Interval(self.name, self._edge(low), self._edge(high))

    def __eq__(self, category: object) -> Among:  # type: ignore[override]
        return Among(self.name, (_label(category),))

    def __ne__(self, category: object) -> Not:  # type: ignore[override]
        return Not(Among(self.name, (_label(category),)))

    def __lt__(self, edge: float | str | date) -> Interval:
        return Interval(self.name, -math.inf, self._edge(edge))

    def __ge__(self, edge: float | str | date) -> Interval:
        return Interval(self.name, self._edge(edge), math.inf)

    def __gt__(self, edge: float | str | date) -> NoReturn:
        raise self._between_bins(">", ">=", edge)

    def __le__(self, edge: float | str | date) -> NoReturn:
        raise self._between_bins("<=", "<", edge)

    def _edge(self, edge: float | str | date) -> Edge:
        if isinstance(edge, str | date):
            return seconds_of(self.name, edge)
        try:
            return float(edge)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument(self.name, "is compared with neither a number nor a date") from None

    def _between_bins(self, operator: str, answered: str, edge: object) -> InvalidArgument:
        problem = f"`{operator} {edge!r}` would part a bin: bins are half-open, [low, high)"
        return InvalidArgument(self.name, f"{problem}; write `{answered}` and an edge of the attribute's bins")

    __hash__ = None  # type: ignore[assignment]


def attribute(name: str) -> AttributeName:
    """Returns the attribute `name`, to be compared: `attribute("origin") == "JFK"`."""
    return AttributeName(name)


def check_names(field: str, names: object) -> None:
    """Raises `InvalidArgument` for a bare string, which would be read as one name a letter."""
    if isinstance(names, str):
        raise InvalidArgument(field, f"must be several names, such as ({names!r},), not the bare string {names!r}")


def check_attributes(field: str, names: object) -> None:
    """Raises `InvalidArgument` unless these are the names of attributes, at least one and all different."""
    check_names(field, names)
    if not isinstance(names, tuple | list) or not names:
        raise InvalidArgument(field, "must be at least one name")
    seen: set[str] = set()
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"{field}[{i}]", f"must be an attribute's name, a string, not {name!r}")
        if name in seen:
            raise InvalidArgument(f"{field}[{i}]", f"{name!r} is listed twice")
        seen.add(name)


def _label(category: object) -> str:
    if not isinstance(category, str):
        raise TypeError(f"a category is compared as its label, a string, not {category!r}")
    return category


def _parts(predicate: Predicate, kind: type[AllOf] | type[AnyOf]) -> tuple[Predicate, ...]:
    """Returns the conditions of a chain of the same operator, so that `a & b & c` is flat and stays shallow."""
    return predicate.conditions if isinstance(predicate, kind) else (predicate,)
