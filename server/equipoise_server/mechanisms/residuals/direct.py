"""Answers to statements of a measured family: unbiased values, and half-widths for all that may ever be asked.

A session's statements may be chosen after earlier answers were seen, so a half-width that fails for each statement
with a small chance says nothing about the one that is chosen. These half-widths hold for *all* statements about
tables of the family at once, asked or not, whoever chooses them and however. All queries are signed sums of boxes,
and boxes are of three kinds, the simpler the fewer: single cells; ranges, which take a run of neighbouring
categories on every axis; and all others. Of each kind there are finitely many over all sets of the family, and each
kind has a third of the chance. Boxes whose records count by the weights of a sum have a part of the last third: the
schema makes these weights of an attribute and two of its ends, so that there are finitely many, too.

Proof. The noise of a box is sub-Gaussian with the variance of `variances.product_variances`, by weight or not, so
of N boxes none errs by more than `sqrt(2 log(2 N / chance))` deviations, but for `chance`. A sum of boxes errs by
at most the sum of what its boxes err by. The number of records is public and exact.

Values and half-widths are the same on every machine: they come from `estimates` and elementwise arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.product_terms import product_terms
from equipoise.residuals.query_variances import outside_of
from equipoise.residuals.variances import Factors, product_variances
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured

UPWARD = 1 + 1e-9
SQUARE_BITS = 10  # squares of multipliers are rounded up to units of 2^-10
KINDS = 3  # of boxes
WEIGHTED_PART = 1 / 16  # of the chance of all but cells and ranges: what boxes with weights have
BLOCK = 1 << 13  # boxes that are treated at once


@dataclass(frozen=True, eq=False)
class DirectAnswers:
    """What a measurement says about the queries of one statement, in records: float64[k] each.

    Attributes:
        counts: unbiased estimates.
        reach: by how much each may err.
        deviation: the standard deviation of each.
    """

    counts: NDArray[np.float64]
    reach: NDArray[np.float64]
    deviation: NDArray[np.float64]


@dataclass(frozen=True)
class UniformReach:
    """By how many deviations the boxes of a family err, all of them at once, but for `chance`."""

    family: ResidualFamily
    chance: Fraction

    def cells(self) -> float:
        """Return the multiplier of single cells."""
        return math.sqrt(self._square(math.log(self._summed(lambda size: size))))

    def of(self, axes: Axes, factors: Factors) -> NDArray[np.float64]:
        """Return the multiplier of each of q boxes over one set of axes: float64[q].

        Args:
            axes: of the set, ascending.
            factors: for each axis what the boxes take of it: float64[q, size], 0 or 1, or weights between.
        """
        ranges = self._summed(lambda size: size * (size + 1) // 2)
        # Every set has an equal part of the chance of all its boxes.
        sizes = [self.family.sizes[axis] for axis in axes]
        boxes = sum(sizes) * math.log(2) + math.log(len(self.family.sets))
        cells = self._summed(lambda size: size)
        # Two ends of an attribute of so many categories, with the lowest and the highest.
        weights = math.log(max(1, sum(size * (size + 1) // 2 for size in sizes)) / WEIGHTED_PART)
        logs = (boxes + weights, boxes - math.log1p(-WEIGHTED_PART), math.log(ranges), math.log(cells))
        squares = [self._square(each) for each in logs]
        kinds = np.min([_kinds(each) for each in factors], axis=0) if axes else np.array([3])
        return np.asarray(np.sqrt(np.array(squares)[kinds]))

    def _summed(self, count: Callable[[int], int]) -> int:
        return sum(math.prod(count(self.family.sizes[axis]) for axis in axes) for axes in self.family.sets)

    def _square(self, log_count: float) -> float:
        square = 2 * (log_count + math.log(2 * KINDS / float(self.chance)))
        return math.ceil(square * UPWARD * (1 << SQUARE_BITS)) / (1 << SQUARE_BITS)


def answerable(family: ResidualFamily, statement: CompiledWorkload) -> bool:
    """Return whether a family tells all that a statement asks about."""
    return not outside_of(statement, family)


def direct_answers(measured: Measured, reach: UniformReach, statement: CompiledWorkload) -> DirectAnswers:
    """Answer all queries of one statement, which the measured family must hold (`answerable`)."""
    told = estimates_of(statement, measured)
    reached = np.zeros(statement.query_count)
    for terms in product_terms(statement):
        for start in range(0, len(terms.queries), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(terms.queries)))
            factors = terms.factors(rows)
            variances = product_variances(measured.noise, terms.axes, factors)
            deviations = np.sqrt(np.maximum(variances, 0.0)) * np.abs(terms.coefficients[rows])
            np.add.at(reached, terms.queries[rows], deviations * reach.of(terms.axes, factors))
    return DirectAnswers(told.counts, reached * UPWARD + told.slack, np.sqrt(told.variances) * UPWARD)


def _kinds(factor: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return 3 for each box that takes one category of an axis, 2 for a run of neighbours, 1 for any other.

    And 0 where it takes categories by weights between 0 and 1.
    """
    runs = factor[:, 0] + (np.diff(factor, axis=1) == 1).sum(axis=1)
    whole = np.where(factor.sum(axis=1) == 1, 3, np.where(runs == 1, 2, 1))
    return np.where(((factor > 0) & (factor < 1)).any(axis=1), 0, whole).astype(np.int64)
