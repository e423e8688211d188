"""Sums and means of values from the answers to `Sum`, with the error of binning in their intervals."""

from __future__ import annotations

import numpy as np

from equipoise.derived.bounded import Bounded, ratio
from equipoise.queries.numeric_values import NumericValues


def total(weighed: Bounded, counted: Bounded, values: NumericValues) -> Bounded:
    """Returns the sum of the clamped values.

    The truth. Of N records with a value the weights add up to T, and an answer tells T rounded down, so T is at
    most a record above what the answer's interval holds. Each record's value is `low + span weight`, but for
    `error` at most. So the sum is `low N + span T`, but for `error N` at most.

    Args:
        weighed: the answers to a `Sum`, in records.
        counted: how many records with a value there are in the same cells.
        values: of the statement (`Sum.values`).
    """
    low, span, error = float(values.low), float(values.span), float(values.error)
    most = np.maximum(counted.highs, 0)
    ends = [np.minimum(each * counted.lows, each * counted.highs) for each in (low, -low)]
    lows = ends[0] + span * np.maximum(weighed.lows, 0) - error * most
    highs = -ends[1] + span * (weighed.highs + 1) + error * most
    return Bounded(low * counted.values + span * weighed.values, lows, highs)


def mean(weighed: Bounded, counted: Bounded, values: NumericValues) -> Bounded:
    """Returns the mean of the clamped values: `low + span T / N`, but for `error` at most, from `low` to `high`.

    The count has its part in the interval once: what it may err by moves T / N alone, not `low`. Of no records
    there is no mean; where none may be there, the interval is all that a mean can be.

    Args:
        weighed: the answers to a `Sum`, in records.
        counted: how many records with a value there are in the same cells.
        values: of the statement (`Sum.values`).
    """
    low, high, span, error = float(values.low), float(values.high), float(values.span), float(values.error)
    reached = Bounded(weighed.values, np.maximum(weighed.lows, 0), weighed.highs + 1)
    places = ratio(reached, counted)
    about = Bounded(low + span * places.values, low + span * places.lows - error, low + span * places.highs + error)
    return about.within(low, high)
