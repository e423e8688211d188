"""Answers as they are published: columns of whole units of 2^-40."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.fixed_point import ONE


class AnswerMethod(IntEnum):
    """How a query was answered; the numbers are the wire's."""

    SYNOPSIS = 1
    LAPLACE = 2
    GAUSSIAN = 3
    MULTIPLICATIVE_WEIGHTS = 4
    UNCERTIFIED = 5
    PROJECTION = 6
    HISTOGRAM = 7
    SMALL_DB = 8
    HYPOTHESIS = 9
    FITTED = 10
    MEASURED = 11

    @property
    def label(self) -> str:
        """The name as people write it, such as `multiplicative_weights`."""
        return self.name.lower()


# Of these the law of the noise is known, and with it the standard error.
WITH_STANDARD_ERROR = (
    AnswerMethod.LAPLACE,
    AnswerMethod.GAUSSIAN,
    AnswerMethod.PROJECTION,
    AnswerMethod.HISTOGRAM,
    AnswerMethod.FITTED,
    AnswerMethod.MEASURED,
)
_HAS_ERROR = np.isin(np.arange(256), WITH_STANDARD_ERROR)  # by the number of a method


Integers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = tuple[Integers, NDArray[np.uint8], Integers, Integers, Integers]


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to one query after another, in columns of equal length. An answer's method says what it carries.

    Attributes:
        values: int64[k], in units of 2^-40. Unbiased ones may lie below 0 or above 1.
        methods: uint8[k], numbers of `AnswerMethod`.
        lows: int64[k], the lower ends of the intervals, in units of 2^-40 from 0 to 1; 0 of an uncertified answer,
            which has no interval.
        highs: int64[k], the upper ends, alike.
        standard_errors: int64[k], in units of 2^-40, rounded up: the standard deviation of the noise in the
            measurement from which the interval is made; 0 of a method that is not in `WITH_STANDARD_ERROR`.
    """

    values: NDArray[np.int64]
    methods: NDArray[np.uint8]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    standard_errors: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns}) != 1:
            raise ValueError("the columns of answers must be equally long")
        if any(column.dtype != np.int64 for column in self.columns if column is not self.methods):
            raise ValueError("the columns of answers must be int64")
        if self.methods.dtype != np.uint8:
            raise ValueError("methods must be uint8")

    @classmethod
    def join(cls, parts: Iterable[Answers]) -> Answers:
        """Returns the answers of all parts, one after another."""
        values, methods, lows, highs, errors = zip(*(part.columns for part in (NO_ANSWERS, *parts)), strict=True)
        return cls(*map(np.concatenate, (values, methods, lows, highs, errors)))

    @property
    def columns(self) -> Columns:
        """The columns, in the order of the attributes."""
        return self.values, self.methods, self.lows, self.highs, self.standard_errors

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which answers have an interval, bool[k]."""
        return np.asarray(self.methods != AnswerMethod.UNCERTIFIED)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which answers have a standard error, bool[k]."""
        return np.asarray(_HAS_ERROR[self.methods])

    def misses(self, truths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Returns which intervals the truths, float64[k] as fractions, lie outside of: bool[k]."""
        units = truths * float(ONE)
        return np.asarray(self.certified & ((units < self.lows) | (units > self.highs)))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, chosen: slice | NDArray[np.generic]) -> Answers:
        """Returns the chosen answers: a slice, a mask or indices."""
        values, methods, lows, highs, errors = self.columns
        return Answers(values[chosen], methods[chosen], lows[chosen], highs[chosen], errors[chosen])

    def check(self) -> None:
        """Raises `ValueError` for a column that holds what a method does not carry, or no interval."""
        if len(self) and not 1 <= int(self.methods.min()) <= int(self.methods.max()) <= max(AnswerMethod):
            raise ValueError(f"methods must be from 1 to {max(AnswerMethod)}")
        if not ((self.lows >= 0) & (self.lows <= self.highs) & (self.highs <= ONE)).all():
            raise ValueError("lows and highs must be intervals within 0 and 1")
        if self.highs[~self.certified].any():
            raise ValueError("highs must be 0 for uncertified answers, which have no interval")
        if (self.standard_errors < 0).any() or self.standard_errors[~self.measured].any():
            raise ValueError("standard_errors must be at least 0, and 0 for answers that were not measured")


def _no_answers() -> Answers:
    none = np.zeros(0, np.int64)
    return Answers(none, np.zeros(0, np.uint8), none, none, none)


NO_ANSWERS = _no_answers()


@dataclass(frozen=True, eq=False)
class ResultColumns:
    """One result message: answers `first_query`, `first_query` + 1, ... of the analyst's workload.

    `sequence` counts from 1, and `last` ends the stream.
    """

    round_id: str
    sequence: int
    first_query: int
    answers: Answers
    last: bool
