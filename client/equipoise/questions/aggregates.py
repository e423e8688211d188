"""Numbers of each group, put together in Python: counts, shares, sums, means, quantiles, and arithmetic with them.

>>> from equipoise import Attribute, Schema
>>> schema = Schema((Attribute("delay", ("early", "late"), (-15.0, 15.0, 60.0)),))
>>> mean("delay").meant(schema, frozenset()).added.added
Clamped(attribute='delay', low=None, high=None)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.queries.numeric_values import NumericValues, numeric_values
from equipoise.queries.predicates import Predicate
from equipoise.queries.schema import Schema
from equipoise.questions.conditions import all_of, category_set
from equipoise.questions.expressions import Arithmetic, Count, Expression, Number, Rounded, Spread, Total
from equipoise.questions.measures import Clamped, Measure


@dataclass(frozen=True)
class Aggregate:
    """A number of each group.

    `meant`: gives the number for a table of a schema that is grouped by some attributes. Raises `InvalidArgument`.
    """

    meant: Callable[[Schema, frozenset[str]], Expression]

    def __add__(self, other: Aggregate | float) -> Aggregate:
        return _combined("+", self, other)

    def __radd__(self, other: float) -> Aggregate:
        return _combined("+", other, self)

    def __sub__(self, other: Aggregate | float) -> Aggregate:
        return _combined("-", self, other)

    def __rsub__(self, other: float) -> Aggregate:
        return _combined("-", other, self)

    def __mul__(self, other: Aggregate | float) -> Aggregate:
        return _combined("*", self, other)

    def __rmul__(self, other: float) -> Aggregate:
        return _combined("*", other, self)

    def __truediv__(self, other: Aggregate | float) -> Aggregate:
        return _combined("/", self, other)

    def __rtruediv__(self, other: float) -> Aggregate:
        return _combined("/", other, self)

    def round(self, decimals: int = 0) -> Aggregate:
        """Returns the number to so many decimals; its interval, too."""
        return Aggregate(lambda schema, grouped: Rounded(self.meant(schema, grouped), decimals))


def count(where: Predicate | bool = True) -> Aggregate:
    """Returns how many records each group has.

    Args:
        where: which of them are counted; True: all.
    """
    return _constant(Count(Measure(where)))


def share(of: Predicate, among: Predicate | bool = True) -> Aggregate:
    """Returns which part of each group's records satisfies a condition: two counts, divided.

    Args:
        of: the condition.
        among: which records are looked at; True: all.
    """
    return count(all_of((among, of))) / count(among)


def total(
    name: str, *, low: float | None = None, high: float | None = None, where: Predicate | bool = True
) -> Aggregate:
    """Returns the sum of an attribute's values in each group, of the records that have one.

    Args:
        name: of an attribute with bins, or whose labels are numbers.
        low: values below count as this; an edge or a value; None: the lowest one.
        high: values above count as this; None: the highest one. A narrow range means little noise.
        where: which records are added up; True: all.
    """
    return Aggregate(lambda schema, grouped: _total(schema, grouped, Clamped(name, low, high), where, mean=False))


def mean(
    name: str, *, low: float | None = None, high: float | None = None, where: Predicate | bool = True
) -> Aggregate:
    """Returns the mean of an attribute's values in each group, of the records that have one.

    Args:
        name: as in `total`.
        low: as in `total`.
        high: as in `total`.
        where: as in `total`.
    """
    return Aggregate(lambda schema, grouped: _total(schema, grouped, Clamped(name, low, high), where, mean=True))


def quantile(
    name: str,
    level: float = 0.5,
    *,
    low: float | None = None,
    high: float | None = None,
    where: Predicate | bool = True,
) -> Aggregate:
    """Returns a quantile of an attribute's values in each group; the median if no level is given.

    Args:
        name: as in `total`.
        level: which part of the values lies below, from 0 to 1.
        low: as in `total`.
        high: as in `total`.
        where: which records are looked at; True: all.

    Raises:
        InvalidArgument: the level is not from 0 to 1.
    """
    if not 0 <= level <= 1:
        raise InvalidArgument("level", "must be from 0 to 1")
    of = Clamped(name, low, high)

    def meant(schema: Schema, grouped: frozenset[str]) -> Expression:
        return Spread("QUANTILE_CONT", of, Measure(where, parted=name), _values(schema, grouped, of), float(level))

    return Aggregate(meant)


def _total(
    schema: Schema, grouped: frozenset[str], of: Clamped, where: Predicate | bool, *, mean: bool
) -> Expression:
    values = _values(schema, grouped, of)
    valued = all_of((where, category_set(schema.attribute(of.attribute), values.valued)))
    return Total(Measure(where, added=of), Measure(valued), values, mean)


def _values(schema: Schema, grouped: frozenset[str], of: Clamped) -> NumericValues:
    """What the categories stand for. Refuses an attribute without numbers, and end bins that hold any number."""
    attribute = schema.attribute(of.attribute)
    if of.attribute in grouped:
        raise InvalidArgument(of.attribute, "is in group_by; each group has a single value of it")
    if attribute.clamp and (of.low is None or of.high is None):
        ends = f"low={attribute.edges[0]:g} and high={attribute.edges[-1]:g}"
        raise InvalidArgument(
            of.attribute, f"has values beyond its edges in its end bins; give {ends}, or narrower"
        )
    return numeric_values(attribute, of.low, of.high, of.attribute)


def _constant(expression: Expression) -> Aggregate:
    return Aggregate(lambda *_: expression)


def _combined(operator: str, left: Aggregate | float, right: Aggregate | float) -> Aggregate:
    one, other = (each if isinstance(each, Aggregate) else _constant(Number(float(each))) for each in (left, right))
    return Aggregate(
        lambda schema, grouped: Arithmetic(operator, one.meant(schema, grouped), other.meant(schema, grouped))
    )
