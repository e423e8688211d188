"""Statistics of values that are counted one by one or bin by bin: means, variances, correlations, quantiles.

Counts come as arrays whose last dimension is that of the values (of a correlation, the last two). A statistic is
bounded over all counts within their intervals, and over all values within their bins. Categories of records without
a value are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise.derived.bounded import Bounded, Numbers
from equipoise.queries.numeric_values import NumericValues


def mean_of_counts(counts: Bounded, values: NumericValues) -> Bounded:
    """Returns the mean of the clamped values.

    Args:
        counts: of each category, along the last dimension.
        values: what the categories stand for.
    """
    own, (lows, highs) = _valued(counts, values), _ends(values)
    return _means(own, Bounded((lows + highs) / 2, lows, highs)).within(float(values.low), float(values.high))


def variance(counts: Bounded, values: NumericValues) -> Bounded:
    """Returns the variance of the clamped values, as of a population: the mean square less the squared mean.

    The mean square about any fixed number is the variance plus the squared distance of the mean from it. So the
    variance is at most the largest mean square about the mean that was told, and at least the smallest one less the
    largest squared distance.

    Args:
        counts: of each category, along the last dimension.
        values: what the categories stand for.
    """
    own, (lows, highs) = _valued(counts, values), _ends(values)
    distances = _about_mean(own, lows, highs)
    return _spread(own, distances, _means(own, distances)).within(0.0, float(values.span) ** 2 / 4)


def correlation(counts: Bounded, one: NumericValues, other: NumericValues) -> Bounded:
    """Returns the correlation of two attributes, from -1 to 1; no number where one of them has a single value.

    The covariance is the mean product of the distances from two fixed numbers, less the product of the means'
    distances from them. Its bounds are divided by those of the deviations.

    Args:
        counts: of each pair of categories, along the last two dimensions.
        one: what the categories of the first of the two stand for.
        other: what those of the second stand for.
    """
    rows, columns = np.array(one.valued)[:, None], np.array(other.valued)
    flat = _each(counts, lambda own: own[..., rows, columns].reshape(*own.shape[:-2], -1))
    distances = []
    for values, along in ((one, (-1, 1)), (other, (1, -1))):
        shape = (len(rows), len(columns))
        lows, highs = (np.broadcast_to(ends.reshape(along), shape).reshape(-1) for ends in _ends(values))
        distances.append(_about_mean(flat, lows, highs))
    first, second = distances
    products = _product(first, second)
    means = [_means(flat, each) for each in distances]
    shift = _product(*means)
    covariance = Bounded(
        _mean(flat.values, products.values) - shift.values,
        _least(flat, products.lows) - shift.highs,
        _most(flat, products.highs) - shift.lows,
    )
    spreads = [_spread(flat, each, mean) for each, mean in zip(distances, means, strict=True)]
    with np.errstate(all="ignore"):
        deviation = _each(_product(*spreads), np.sqrt)
        upside_down = Bounded(1 / deviation.values, 1 / deviation.highs, 1 / deviation.lows)
        found = _product(covariance, upside_down)
    value = np.where(deviation.values > 0, found.values, np.nan)
    sure = deviation.lows > 0
    return Bounded(value, np.where(sure, found.lows, np.nan), np.where(sure, found.highs, np.nan)).within(-1.0, 1.0)


def quantile(counts: Bounded, values: NumericValues, level: float) -> Bounded:
    """Returns the value below which `level` of the records lie, between neighbours in proportion, as SQL has it.

    Of N records it lies between those of ranks `floor(level (N - 1)) + 1` and `ceil(level (N - 1)) + 1`. The first
    of them is in a bin or below only if more than `level (N - 1)` records are there, and the second is in a bin or
    above only if fewer than `level (N - 1) + 1` are below it. The interval is from the lower end of the first bin
    for which counts within their intervals allow that, to the upper end of the last one.

    Args:
        counts: of each category, along the last dimension.
        values: what the categories stand for.
        level: from 0 to 1; a half for the median.
    """
    lows, highs = _ends(values)
    order = np.lexsort((highs, lows))
    own = _each(_valued(counts, values), lambda each: each[..., order])
    lows, highs = lows[order], highs[order]
    below, above = _cumulated(own), _cumulated(_each(own, lambda each: each[..., ::-1]))
    above = _each(above, lambda each: each[..., ::-1])  # in this bin or higher
    # Of the records in a bin or lower, and higher ones; and of those lower, and in the bin or higher.
    higher, lower = above.lows - np.maximum(own.lows, 0), below.lows - np.maximum(own.lows, 0)
    first = (1 - level) * below.highs + level > level * higher
    last = (1 - level) * lower < level * above.highs + (1 - level)
    unknown = np.isnan(own.lows).any(axis=-1)
    least = lows[np.argmax(first, axis=-1)]
    most = highs[len(highs) - 1 - np.argmax(last[..., ::-1], axis=-1)]
    found = Bounded(
        _interpolated(own.values, (lows + highs) / 2, level),
        np.where(unknown, np.nan, least),
        np.where(unknown, np.nan, most),
    )
    return found.within(float(values.low), float(values.high))


def _interpolated(counts: Numbers, middles: Numbers, level: float) -> Numbers:
    """The quantile of the middles, each as often as it is counted; NaN of no records."""
    cumulated = np.cumsum(np.maximum(counts, 0), axis=-1)
    records = cumulated[..., -1]
    place = level * np.maximum(records - 1, 0)

    def at(rank: Numbers) -> Numbers:
        return np.asarray(middles[np.minimum((cumulated <= rank[..., None]).sum(axis=-1), len(middles) - 1)])

    whole = np.floor(place)
    low, high = at(whole), at(np.minimum(whole + 1, np.maximum(np.ceil(records) - 1, 0)))
    return np.where(records > 0, low + (high - low) * (place - whole), np.nan)


def _about_mean(counts: Bounded, lows: Numbers, highs: Numbers) -> Bounded:
    """How far the values of each category are from the mean that was told, which is a fixed number."""
    about = np.nan_to_num(_mean(counts.values, (lows + highs) / 2))[..., None]
    return Bounded((lows + highs) / 2 - about, lows - about, highs - about)


def _means(counts: Bounded, scores: Bounded) -> Bounded:
    return Bounded(_mean(counts.values, scores.values), _least(counts, scores.lows), _most(counts, scores.highs))


def _spread(counts: Bounded, distances: Bounded, mean: Bounded) -> Bounded:
    """The variance of values by their distances from a fixed number, and the mean of these."""
    squares = _square(distances)
    shift = _square(mean)
    return Bounded(
        _mean(counts.values, squares.values) - shift.values,
        np.maximum(_least(counts, squares.lows) - shift.highs, 0),
        _most(counts, squares.highs),
    )


def _square(each: Bounded) -> Bounded:
    most = np.maximum(each.lows**2, each.highs**2)
    least = np.where((each.lows < 0) & (each.highs > 0), 0, np.minimum(each.lows**2, each.highs**2))
    return Bounded(each.values**2, least, most)


def _product(one: Bounded, other: Bounded) -> Bounded:
    corners = [first * second for first in (one.lows, one.highs) for second in (other.lows, other.highs)]
    return Bounded(one.values * other.values, np.minimum.reduce(corners), np.maximum.reduce(corners))


def _each(own: Bounded, change: Callable[[Numbers], Numbers]) -> Bounded:
    return Bounded(change(own.values), change(own.lows), change(own.highs))


def _cumulated(own: Bounded) -> Bounded:
    return _each(_each(own, lambda each: np.maximum(each, 0)), lambda each: np.cumsum(each, axis=-1))


def _valued(counts: Bounded, values: NumericValues) -> Bounded:
    """The counts of the categories that have a value."""
    return _each(counts, lambda each: each[..., list(values.valued)])


def _ends(values: NumericValues) -> tuple[Numbers, Numbers]:
    """The smallest and the largest value of each category that has one: float64[valued] each."""
    ends = np.array([own for own in values.ranges if own is not None], dtype=np.float64)
    return ends[:, 0], ends[:, 1]


def _mean(counts: Numbers, scores: Numbers) -> Numbers:
    """The mean of the scores, each as often as it is counted; NaN of no records."""
    own = np.maximum(counts, 0)
    records = own.sum(axis=-1)
    with np.errstate(all="ignore"):
        return np.where(records > 0, (own * scores).sum(axis=-1) / records, np.nan)


def _least(counts: Bounded, scores: Numbers) -> Numbers:
    """The least mean of scores that counts within their intervals allow, of some record at least.

    A mean is a quotient of linear functions of the counts, so it is least where every count is at one end. The
    counts of scores below it are then at their upper ends, and all others at their lower ends: one of the ways to
    part the scores in their order.
    """
    least, most, scores = np.broadcast_arrays(np.maximum(counts.lows, 0), np.maximum(counts.highs, 0), scores)
    order = np.argsort(scores, axis=-1)
    least, most, scores = (np.take_along_axis(each, order, axis=-1) for each in (least, most, scores))
    records = least.sum(axis=-1)[..., None] + np.cumsum(most - least, axis=-1)
    summed = (least * scores).sum(axis=-1)[..., None] + np.cumsum((most - least) * scores, axis=-1)
    with np.errstate(all="ignore"):
        means = np.where(records > 0, summed / records, np.inf)
    found = means.min(axis=-1)
    return np.where(np.isfinite(found), found, np.nan)


def _most(counts: Bounded, scores: Numbers) -> Numbers:
    """The largest mean of scores that counts within their intervals allow."""
    return -_least(counts, -scores)
