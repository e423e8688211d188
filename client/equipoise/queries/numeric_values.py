"""The numbers that the categories of an attribute stand for, and how wrong that can be for a record.

A bin stands for its middle. Where every category but those of `missing`, `unknown` and `none` is a number itself,
each stands for that number, which is exact. Values may be clamped to a range between two edges, or two numbers: a
bin outside of it then stands for the nearer end, which is exact, too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from equipoise.errors import InvalidArgument
from equipoise.queries.axis_weights import WHOLE, AxisWeights
from equipoise.queries.schema import RULES, Attribute
from equipoise.queries.schema_checks import MAX_EDGE, edge_text
from equipoise.queries.statistics import shortest

Range = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class NumericValues:
    """What categories stand for, clamped to `[low, high]`.

    `ranges`: for each category the smallest and the largest clamped value of its records; None for a category of
    records without a value.
    """

    low: Fraction
    high: Fraction
    ranges: tuple[Range | None, ...]

    @cached_property
    def span(self) -> Fraction:
        """How far apart two values can be."""
        return self.high - self.low

    def weights(self, axis: int) -> AxisWeights:
        """Returns where each category stands within the range, to the nearest unit; 0 where there is no value."""
        return AxisWeights(axis, tuple(0 if own is None else self._units(own) for own in self.ranges))

    @cached_property
    def valued(self) -> tuple[int, ...]:
        """The categories of records that have a value, ascending."""
        return tuple(category for category, own in enumerate(self.ranges) if own is not None)

    @cached_property
    def error(self) -> Fraction:
        """By how much a record's clamped value can differ from what its category stands for, at most."""
        stands = [(own, self.low + self.span * self._units(own) / WHOLE) for own in self.ranges if own is not None]
        return max(max(high - value, value - low) for (low, high), value in stands)

    def _units(self, own: Range) -> int:
        return round((sum(own, Fraction(0)) / 2 - self.low) / self.span * WHOLE)


@lru_cache(maxsize=256)  # many questions are about the same few attributes
def numeric_values(
    attribute: Attribute, low: float | None = None, high: float | None = None, path: str = "statement"
) -> NumericValues:
    """Returns what the categories of an attribute stand for.

    Args:
        attribute: one with bins, or whose categories are numbers.
        low: values below count as this; an edge or a value of the attribute; None: the lowest one.
        high: values above count as this; None: the highest one.
        path: what errors call the statement.

    Raises:
        InvalidArgument: the categories are no numbers, or an end is none of them, or the ends leave no range.

    >>> delay = Attribute("delay", ("[0, 15)", "[15, 60)"), (0.0, 15.0, 60.0))
    >>> numeric_values(delay, high=15).ranges[1], float(numeric_values(delay, high=15).error)
    ((Fraction(15, 1), Fraction(15, 1)), 7.5)
    """
    ranges = _binned(attribute) if attribute.edges else _labelled(attribute)
    if attribute.dates or not any(ranges):
        problem = "holds dates, which have no sum" if attribute.dates else "has categories that are no numbers"
        raise InvalidArgument(f"{path}.attribute", f"{attribute.name!r} {problem}")
    ends = sorted({end for own in ranges if own is not None for end in own})
    least, most = _end(low, ends, 0, f"{path}.low"), _end(high, ends, -1, f"{path}.high")
    if not least < most:
        raise InvalidArgument(f"{path}.high", "must be above low: between them there is no other value")

    def clamped(own: Range | None) -> Range | None:
        return own and (min(max(own[0], least), most), min(max(own[1], least), most))

    return NumericValues(least, most, tuple(map(clamped, ranges)))


def _binned(attribute: Attribute) -> list[Range | None]:
    edges = [shortest(float(edge)) for edge in attribute.edges]
    return [*itertools.pairwise(edges), *[None] * (attribute.size - attribute.bins)]


def _labelled(attribute: Attribute) -> list[Range | None]:
    """The values of labels; none at all where one that no rule names is no number."""
    ranges: list[Range | None] = []
    named = {getattr(attribute, rule) for rule in RULES}
    for label in attribute.categories:
        try:
            value = None if label in named else Fraction(label)
        except (ValueError, ZeroDivisionError):
            return []
        if value is not None and abs(value) > MAX_EDGE:
            return []
        ranges.append(None if value is None else (value, value))
    return ranges


def _end(value: float | None, ends: list[Fraction], place: int, path: str) -> Fraction:
    if value is None:
        return ends[place]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_EDGE:
        raise InvalidArgument(path, "must be a number")
    wanted = shortest(float(value))
    if wanted not in ends:
        nearest = min(ends, key=lambda end: abs(end - wanted))
        problem = f"{edge_text(float(value))} is no edge and no value of the attribute; the nearest is"
        raise InvalidArgument(path, f"{problem} {edge_text(float(nearest))}")
    return wanted
