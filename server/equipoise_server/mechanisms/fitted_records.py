"""A distribution over the records of a support, fitted to a measurement of residuals, at any width.

It sees released numbers only: post-processing. One machine gives the same bits for the same measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.record_list import RecordList
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.answers import moved_into
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.prior.distribution import laid_out
from equipoise_server.mechanisms.prior.measure import drawn_support
from equipoise_server.mechanisms.repair.weights_hypothesis import rounded_weights
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.queries import ResidualQueries

NEAR = 2  # standard errors by which a fit may move an answer, as measured on a wide public table
MEDIAN = 0.4549  # of the square of a Gaussian number of variance 1
MEDIAN_DEVIATION = 2.33  # of the median of n of them, as a part of it, times the root of n


@dataclass(frozen=True, eq=False)
class FittedRecords:
    """A distribution over a list of records. `weights`: integers, int64[size], with a sum below 2^52."""

    support: RecordList
    weights: NDArray[np.int64]

    @classmethod
    def of(cls, measured: Measured) -> FittedRecords:
        """Draw a support along what was measured, and fit its weights to every residual."""
        support, records = drawn_support(measured), measured.records
        queries = ResidualQueries(measured.noise.family, support)
        numbers, variances = queries.measured(measured), queries.variances(measured)
        fitted = fit(queries, numbers / records, variances / records**2)
        return cls(support, rounded_weights(fitted.distribution)[0])

    def synopsis(self, count: int) -> Synopsis:
        """Return `count` records, as many of each as its weight deserves, up to less than one.

        They are laid out in the order of their categories, the first attribute counting most. So any run of
        neighbours in that order holds its share, too.
        """
        order = np.lexsort(self.support.codes[::-1])
        chosen = order[laid_out(self.weights[order], count)]
        return Synopsis(self.support.sizes, np.take(self.support.codes, chosen, axis=1))

    def answers(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Return what the distribution says about every query: int64[k], in units of 2^-40."""
        counts = ListedWorkload(workload, self.support).counts(self.weights)
        values: NDArray[np.int64] = np.rint(counts * (float(ONE) / int(self.weights.sum()))).astype(np.int64)
        return values


def moved_near(
    answers: Answers, values: NDArray[np.int64], offsets: NDArray[np.int64], method: AnswerMethod
) -> Answers:
    """Give fitted values to measured answers, each in its interval, as far as the measurement bears the fit out.

    Args:
        answers: measured, with intervals and standard errors, k of them.
        values: fitted, int64[k], in units of 2^-40.
        offsets: int64[statements + 1], where each statement's answers begin; the last is k.
        method: how the values were found.

    A support may lack records that the table has, and a fit to many tables may end before it is near. So a value
    lies `NEAR` standard errors off at most, and of a statement it has the weight of `_credible`. Both read one
    statement's own measurement and the fit, so whatever else is asked changes nothing.
    """
    deviations = answers.standard_errors
    credible = _credible((values - answers.values) / np.maximum(deviations, 1), offsets)
    between = answers.values + np.rint(np.repeat(credible, np.diff(offsets)) * (values - answers.values))
    room = NEAR * deviations
    near = np.clip(between, answers.values - room, answers.values + room).astype(np.int64)
    return moved_into(answers, near, method)


def _credible(distances: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each statement's fitted values beside its measured ones: float64[statements].

    A measured value is off a fitted one by the noise, of variance 1 here, and by the fit's own error, of mean
    square b. The best weight of the fit is `1 / (1 + b)`. The median square of the distances tells `1 + b`, however
    far off a few of them are. What exceeds it by less than `NEAR` of its own deviations counts as noise alone.

    Args:
        distances: of fitted values from measured ones in standard errors, float64[k].
        offsets: where each statement's begin, the last of which is k.
    """
    squares, sizes = distances**2, np.diff(offsets)
    order = np.lexsort((squares, np.repeat(np.arange(len(sizes)), sizes)))
    medians = squares[order[offsets[:-1] + (sizes - 1) // 2]]
    of_noise = MEDIAN * (1 + NEAR * MEDIAN_DEVIATION / np.sqrt(sizes))
    return np.asarray(of_noise / np.maximum(medians, of_noise))
