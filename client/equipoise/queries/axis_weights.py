"""Weights of the categories of one attribute, and sums of records by them in whole records.

A weighted query gives each record a weight in [0, 1], in whole units of 2^-16. Its count is the sum of the records'
weights rounded down to whole records, once, at the end. So it is a whole number from 0 to the number of records, as
every other count, and is the same on every machine.

Theorem: where one record is replaced, a weighted count moves by at most 1. Proof: the sum of weights moves by some
d with |d| <= 1, and floor(s + d) lies between floor(s - 1) = floor(s) - 1 and floor(s + 1) = floor(s) + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import EXACT

WEIGHT_BITS = 16
WHOLE = 1 << WEIGHT_BITS  # units: a weight of 1
EXACT_BITS = EXACT.bit_length() - 1 - WEIGHT_BITS  # records that sum to 2^37 at most have exact sums by weights


@dataclass(frozen=True)
class AxisWeights:
    """The weight of each category of attribute `axis`. `units`: whole units of 2^-16, from 0 to 2^16."""

    axis: int
    units: tuple[int, ...]

    @property
    def array(self) -> NDArray[np.int64]:
        """The units: int64[categories]."""
        return np.array(self.units, dtype=np.int64)

    @property
    def counted(self) -> int:
        """The mask of the categories whose weight is above 0: bit c of category c."""
        return sum(1 << category for category, units in enumerate(self.units) if units)


def whole_sums(
    sum_up: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    histogram: NDArray[np.int64],
    weighted: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the counts of all queries in whole records, rounded down: int64[k].

    Args:
        sum_up: sums every query over a histogram: int64[k], in units of 2^-16 where a query is weighted. It is
            exact where the histogram's absolute values sum to at most 2^53, or to 2^37 where any query is weighted.
        histogram: int64[records of a list], whose absolute values sum to at most 2^53.
        weighted: which queries are weighted, bool[k].
    """
    if not weighted.any():
        return sum_up(histogram)
    return whole_and_rest(sum_up, histogram, weighted)[0]


def whole_and_rest(
    sum_up: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    histogram: NDArray[np.int64],
    weighted: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return whole records, and the units of weighted queries that are left over, below 2^16: int64[k] each.

    Args:
        sum_up: adds up a histogram for each query, as for `whole_sums`.
        histogram: the records of each cell, int64[|X|].
        weighted: which queries are weighted, bool[k].
    """
    if int(np.abs(histogram).sum()) <= 1 << EXACT_BITS:
        sums = sum_up(histogram)
        return np.where(weighted, sums >> WEIGHT_BITS, sums), np.where(weighted, sums & WHOLE - 1, 0)
    # Too many for exact sums by weights: the last bits of all numbers apart, so few that these sum to 2^37 at most.
    bits = EXACT_BITS - len(histogram).bit_length()
    high, high_rest = whole_and_rest(sum_up, histogram >> bits, weighted)
    low, low_rest = whole_and_rest(sum_up, histogram & (1 << bits) - 1, weighted)
    rest = (high_rest << bits) + low_rest
    return (high << bits) + low + (rest >> WEIGHT_BITS), rest & WHOLE - 1


def in_units(coefficients: NDArray[np.int64], weighted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[k] coefficients whose combination is in units of 2^-16, as weighted queries are.

    Args:
        coefficients: one for each query, int64[k].
        weighted: which queries add up weights, bool[k].
    """
    return np.where(weighted, coefficients, coefficients << WEIGHT_BITS)


def check_unweighted(weighted: NDArray[np.bool_]) -> None:
    """Raise `ValueError` where a query is weighted, bool[k]: its multiples at records are no whole numbers."""
    if weighted.any():
        raise ValueError("weighted queries have no exact transpose")
