"""HAVING: which rows are shown, by their noisy numbers and by the values of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.questions.expressions import Expression, measures_of
from equipoise.questions.measures import Measure

_COMPARED = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True)
class Compared:
    """`left operator right` of two numbers; the operator is one of `= <> < <= > >=`."""

    operator: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        if self.operator not in _COMPARED:
            raise InvalidArgument("operator", f"must be one of {' '.join(_COMPARED)}")


@dataclass(frozen=True)
class AllHold:
    """Every part holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class SomeHold:
    """One part at least holds."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True)
class Fails:
    """The part is false; a number that is missing makes it neither."""

    part: Filter


Filter: TypeAlias = "Compared | AllHold | SomeHold | Fails"
Values = Callable[[Expression], NDArray[np.float64]]
Rows = NDArray[np.bool_]


def filter_measures(having: Filter) -> Iterator[Measure]:
    """Yields the measures that a filter needs."""
    match having:
        case Compared(_, left, right):
            yield from measures_of(left)
            yield from measures_of(right)
        case AllHold(parts) | SomeHold(parts):
            for part in parts:
                yield from filter_measures(part)
        case Fails(part):
            yield from filter_measures(part)


def filtered(having: Filter, values: Values) -> Rows:
    """Returns for each row whether the filter is true.

    Args:
        having: the filter.
        values: gives the numbers of an expression in all rows; NaN where one is missing.
    """
    true, _ = _truth(having, values)
    return true


def _truth(having: Filter, values: Values) -> tuple[Rows, Rows]:
    """For each row whether the filter is true, and whether it is false."""
    match having:
        case Compared(operator, left, right):
            one, other = np.broadcast_arrays(values(left), values(right))
            known = ~(np.isnan(one) | np.isnan(other))
            held = _COMPARED[operator](one, other)
            return held & known, ~held & known
        case Fails(part):
            true, false = _truth(part, values)
            return false, true
        case AllHold(parts):
            trues, falses = zip(*(_truth(part, values) for part in parts), strict=True)
            return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
        case SomeHold(parts):
            trues, falses = zip(*(_truth(part, values) for part in parts), strict=True)
            return np.logical_or.reduce(trues), np.logical_and.reduce(falses)
