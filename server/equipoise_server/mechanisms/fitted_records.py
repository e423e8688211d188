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


def moved_near(answers: Answers, values: NDArray[np.int64], method: AnswerMethod) -> Answers:
    """Give fitted values to measured answers, in its interval, `NEAR` standard errors off at most.

    A support may lack records that the table has. Then the fit is wrong by many standard errors of some answers,
    and no interval need show it; the measurement itself is wrong by so much only by chance.

    Args:
        answers: measured, with intervals and standard errors, k of them.
        values: fitted, int64[k], in units of 2^-40.
        method: how the values were found.
    """
    room = NEAR * answers.standard_errors
    return moved_into(answers, np.clip(values, answers.values - room, answers.values + room), method)
