"""What a question shows of its counts: arithmetic, with the intervals carried through.

The intervals of all counts hold together, so whatever is computed from their ends holds with them, too: the result
lies between the least and the largest number that counts within their intervals give. What is computed of values is
in `equipoise.derived`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.derived import Bounded, mean, quantile, total, variance
from equipoise.model.results import AnswerMethod
from equipoise.queries.numeric_values import NumericValues
from equipoise.questions.measures import PUBLIC, SEVERAL, Clamped, Counted, Measure


@dataclass(frozen=True)
class Count:
    """How many records a measure counts in each group."""

    measure: Measure


@dataclass(frozen=True)
class Total:
    """The sum of some values, or their mean. `added`: their weights; `counted`: how many records have one."""

    added: Measure
    counted: Measure
    values: NumericValues
    mean: bool = False


@dataclass(frozen=True)
class Spread:
    """A statistic of values that are counted one by one, by its name in SQL. `level`: of QUANTILE_CONT."""

    name: str
    of: Clamped
    counted: Measure
    values: NumericValues
    level: float = 0.5


@dataclass(frozen=True)
class Number:
    """A number that was written."""

    value: float


@dataclass(frozen=True)
class Arithmetic:
    """`left operator right`; the operator is one of `+ - * /`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Rounded:
    """A number to so many decimals."""

    of: Expression
    decimals: int


@dataclass(frozen=True)
class GroupValue:
    """The value of one of the question's keys, by its place."""

    key: int


Expression: TypeAlias = "Count | Total | Spread | Number | Arithmetic | Rounded | GroupValue"


def measures_of(expression: Expression) -> Iterator[Measure]:
    """Yields what an expression needs counted."""
    match expression:
        case Count(measure):
            yield measure
        case Total(added, counted, _, _):
            yield from (added, counted)
        case Spread(_, _, counted, _, _):
            yield counted
        case Arithmetic(_, left, right):
            yield from measures_of(left)
            yield from measures_of(right)
        case Rounded(of, _):
            yield from measures_of(of)


def computed(expression: Expression, counted: Mapping[Measure, Counted]) -> Counted:
    """Returns an expression's values for all groups, with intervals.

    Args:
        expression: of counts; no key's value.
        counted: what was counted, by measure.

    Returns:
        Values, NaN where there is none, as of a division by 0; and intervals, NaN where a count has none.
    """
    match expression:
        case Count(measure):
            return counted[measure]
        case Total(added, records, of, is_mean):
            weighed, own = counted[added], counted[records]
            found = (mean if is_mean else total)(_bounded(weighed), _bounded(own), of)
            return Counted(found.values, found.lows, found.highs, _joined(weighed.methods, own.methods))
        case Spread():
            return _spread(expression, counted[expression.counted])
        case Number(value):
            number = np.array(value)
            return Counted(number, number, number, np.array(PUBLIC, dtype=np.uint8))
        case Rounded(of, decimals):
            inner = computed(of, counted)
            values, lows, highs = (_rounded(each, decimals) for each in (inner.values, inner.lows, inner.highs))
            return Counted(values, lows, highs, inner.methods)
        case Arithmetic(operator, left, right):
            return _combined(operator, computed(left, counted), computed(right, counted))
    raise AssertionError(f"{expression} is no number of each group")


def _bounded(counted: Counted) -> Bounded:
    return Bounded(counted.values, counted.lows, counted.highs)


def _spread(expression: Spread, counts: Counted) -> Counted:
    if expression.name == "QUANTILE_CONT":
        found = quantile(_bounded(counts), expression.values, expression.level)
    else:
        found = variance(_bounded(counts), expression.values)
        if expression.name == "STDDEV_POP":
            found = Bounded(np.sqrt(found.values), np.sqrt(found.lows), np.sqrt(found.highs))
    methods = counts.methods[..., 0]
    for place in range(1, counts.methods.shape[-1]):
        methods = _joined(methods, counts.methods[..., place])
    return Counted(found.values, found.lows, found.highs, methods)


def _rounded(numbers: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Halves go away from 0, as in SQL."""
    scale = 10.0 ** abs(decimals)
    scaled = numbers * scale if decimals >= 0 else numbers / scale
    whole = np.trunc(scaled)
    whole = whole + np.where(np.abs(scaled - whole) >= 0.5, np.sign(scaled), 0.0)
    return np.asarray(whole / scale if decimals >= 0 else whole * scale)


def _combined(operator: str, left: Counted, right: Counted) -> Counted:
    methods = _joined(left.methods, right.methods)
    with np.errstate(all="ignore"):
        match operator:
            case "+":
                ends = left.lows + right.lows, left.highs + right.highs
                return Counted(left.values + right.values, *ends, methods)
            case "-":
                ends = left.lows - right.highs, left.highs - right.lows
                return Counted(left.values - right.values, *ends, methods)
            case "*":
                return Counted(left.values * right.values, *_products(left, right), methods)
            case _:
                values = np.where(right.values == 0, np.nan, left.values / right.values)
                upside_down = Counted(right.values, 1 / right.highs, 1 / right.lows, right.methods)
                lows, highs = _products(left, upside_down)
                # Where the divisor may be 0, the quotient may be anything.
                sure = (right.lows > 0) | (right.highs < 0)
                return Counted(values, np.where(sure, lows, np.nan), np.where(sure, highs, np.nan), methods)


def _products(left: Counted, right: Counted) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest product of numbers within two intervals."""
    corners = [one * other for one in (left.lows, left.highs) for other in (right.lows, right.highs)]
    return np.asarray(np.minimum.reduce(corners)), np.asarray(np.maximum.reduce(corners))


def _joined(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """How a number was answered that is computed from two: uncertified if either is."""
    uncertified = (one == AnswerMethod.UNCERTIFIED) | (other == AnswerMethod.UNCERTIFIED)
    alike = np.where(one == PUBLIC, other, np.where((other == PUBLIC) | (one == other), one, SEVERAL))
    return np.where(uncertified, AnswerMethod.UNCERTIFIED, alike).astype(np.uint8)


@cache
def method_label(method: int) -> str:
    """Returns what a number of `Counted.methods` is called."""
    if method in (PUBLIC, SEVERAL):
        return "public" if method == PUBLIC else "several"
    return AnswerMethod(method).label
