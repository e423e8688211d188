"""The statements of a session of `low_sensitivity`: their values on the data and on the candidate databases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.queries.axis_weights import WEIGHT_BITS
from equipoise.queries.fixed_point import GRID_BITS, on_grid
from equipoise.queries.statistics import CompiledStatistic, Databases, grid_units
from equipoise.queries.workload_compiler import CompiledStatement, CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.epochs.question import DIRECTION_BITS, Scale, prior_answers_within
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior

SENSITIVITY = 1 << 10  # units of a scale that one record may move: a finer one gains nothing beside the noise
_HALF = GRID_BITS // 2


def scale_for(declared: Fraction) -> Scale:
    """The finest scale on which no statement of the declared sensitivity moves by more than `SENSITIVITY` units.

    On the grid of values it moves by at most `m = grid_units(declared)`, so rounded down from there to units of
    `1 / units` by at most `ceil(m units / 2^40)`.
    """
    l1_sensitivity = grid_units(declared)
    units = min((1 << GRID_BITS) - 1, (SENSITIVITY << GRID_BITS) // l1_sensitivity)
    return Scale(units, -(-(l1_sensitivity * units) >> GRID_BITS))


def rounding(scale: Scale) -> int:
    """By how many units of 2^-40 a value and what stands for it on the scale differ, at most.

    The value is rounded down to the grid, which takes less than one unit, and from there to the scale.
    """
    return math.ceil(Fraction(1 << GRID_BITS, scale.units)) + 1


@dataclass(frozen=True, eq=False)
class Proportion(CompiledStatistic):
    """The fraction of records for which a predicate holds, or a sum of weights, as a statistic.

    Theorem: Delta = 1 / n. Proof: one record counts or does not. A sum of weights is rounded down to whole records,
    and moves by one of them at most (`axis_weights`).
    """

    predicate: CompiledWorkload

    @property
    def axes(self) -> tuple[int, ...]:
        """Those of the predicate or sum."""
        (axes,) = self.predicate.statement_tables()
        return axes

    def sensitivity(self, records: int) -> Fraction:
        """1 / n."""
        return Fraction(1, records)

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Return the fraction, rounded down; sums stay below 2^57."""
        units = self.predicate.unit_transpose(np.ones(1, dtype=np.int64))[databases.cells]
        return on_grid(databases.sums(databases.counts * units) >> WEIGHT_BITS, databases.records)


def statistic_of(statement: CompiledStatement) -> CompiledStatistic:
    """Return a statement as a statistic with one value. Raises `InvalidArgument` for a table."""
    if isinstance(statement, CompiledStatistic):
        return statement
    if statement.query_count != 1 or statement.l1_sensitivity != 1:
        raise InvalidArgument(
            "statement", "is a table; low_sensitivity answers single numbers: conditions, sums, statistics"
        )
    return Proportion(statement)


def database_of(sizes: tuple[int, ...], data: Counts) -> Databases:
    """Return a table as the database that statistics are computed on. `sizes`: the categories of each attribute."""
    histogram = data.dense()
    cells = np.flatnonzero(histogram)
    return Databases.of(sizes, cells, histogram[cells])


@dataclass(frozen=True, eq=False)
class DatabaseQuestion:
    """A statistic, whose universe are the candidates: on several of them it comes to the mean of its values.

    `known`: a prior's measurement, and the largest half-width up to which it answers; None without a prior.
    """

    statistic: CompiledStatistic
    candidates: Databases
    data: Databases
    scale: Scale
    known: tuple[MeasuredPrior, int] | None = None

    @property
    def l1_sensitivity(self) -> int:
        """One cell, which moves by the scale's sensitivity at most."""
        return 1

    def truth(self) -> NDArray[np.int64]:
        """Return the data's value, rounded down to the scale's units."""
        return np.array([int(self.statistic.values(self.data)[0]) * self.scale.units >> GRID_BITS], dtype=np.int64)

    def multiset_answers(self, multiset: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the mean value of the candidates, int64[candidates] how often each, rounded down."""
        high, low = (int((half * multiset).sum()) for half in np.divmod(self._values, 1 << _HALF))
        return np.array([((high << _HALF) + low) // int(multiset.sum())], dtype=np.int64)

    def prior_answers(self, expected: NDArray[np.int64]) -> Answers | None:
        """Return what a prior's measurement tells of a predicate within its half-width: it tells no statistic."""
        return (
            prior_answers_within(self.known, self.statistic.predicate, expected)
            if isinstance(self.statistic, Proportion)
            else None
        )

    def direction(self, signs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the candidates' values, all with the one sign, in units of 2^-16."""
        direction: NDArray[np.int64] = signs[0] * (self._values >> GRID_BITS - DIRECTION_BITS)
        return direction

    @cached_property
    def _values(self) -> NDArray[np.int64]:
        return self.statistic.values(self.candidates)
