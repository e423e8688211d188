"""Answers from a released measurement alone: post-processing, in arithmetic that every machine repeats."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.reach import code_lengths, reaches
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.universe import is_enumerable
from equipoise_server.mechanisms.answers import MAX_PARTS, answers_within
from equipoise_server.mechanisms.fitted_records import FittedRecords
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.fit import Target, fit_potential
from equipoise_server.mechanisms.prior.support import Universe
from equipoise_server.mechanisms.repair.weights_hypothesis import MAX_GAP
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured

UNITS = 2.0**GRID_BITS
MAX_ANSWER = float(MAX_PARTS << GRID_BITS)  # an answer is at most so many times all records, in units of 2^-40


def answers_of(workload: CompiledWorkload, measured: Measured, log: Fraction) -> Answers:
    """Return the measurement's own answers to a workload, each with its interval and its standard error.

    They are unbiased and not cut at 0, and all of them agree with one another, in whatever round they are given. A
    fit to the tables errs more on sums of many cells (on Adult, 20,000 conjunctions of two attributes: a mean of
    0.0019 against 0.0012), so that it makes the synthetic table only.

    Args:
        workload: statements that the family tells.
        measured: the released numbers.
        log: of 2 over beta, as `reach.log_chance` gives it.
    """
    reach = reaches(log, code_lengths(workload, measured.noise.family))
    return measured_answers(estimates_of(workload, measured), measured.records, reach)


def measured_answers(estimates: Estimates, records: int, reach: NDArray[np.float64]) -> Answers:
    """Return the measurement's own answers. `reach`: float64[k], half-widths in standard deviations.

    Args:
        estimates: of k counts.
        records: the public number of records.
        reach: float64[k], half-widths in standard deviations.
    """
    deviations = np.sqrt(estimates.variances)
    half_widths = _upwards(deviations * reach + estimates.slack, records, 2)  # two units: of both roundings
    values = np.rint(np.clip(estimates.counts * (UNITS / records), -MAX_ANSWER, MAX_ANSWER)).astype(np.int64)
    return answers_within(values, AnswerMethod.GAUSSIAN, half_widths, _upwards(deviations, records))


def synthetic_table(measured: Measured, records: int) -> Synopsis:
    """Return synthetic records along one distribution that is fitted to the tables of the largest sets."""
    noise = measured.noise
    if not is_enumerable(noise.sizes, math.prod(noise.sizes)):
        return FittedRecords.of(measured).synopsis(records)
    targets = []
    for axes in noise.largest:
        counts, variances = measured.table(axes).counts(), cell_variances(noise, axes)
        targets.append(Target(axes, counts / measured.records, float(variances.max()) / measured.records**2))
    fitted = Prior(np.maximum(fit_potential(Universe(noise.sizes), targets), -MAX_GAP))
    return Synopsis.of_cells(fitted.records(records), noise.sizes)


def _upwards(amounts: NDArray[np.float64], records: int, more: int = 0) -> NDArray[np.int64]:
    """Amounts of records as parts of all in units of 2^-40: rounded up, and so many more; at most 1."""
    units = np.ceil(amounts * (UNITS / records) * (1 + 2.0**-50)) + more
    return np.asarray(np.minimum(units, ONE), dtype=np.int64)
