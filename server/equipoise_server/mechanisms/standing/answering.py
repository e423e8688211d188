"""Answers from a released measurement alone: post-processing, in arithmetic that every machine repeats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.answers import MAX_PARTS, answers_within, moved_into, with_answers
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.fit import Target, fit_potential
from equipoise_server.mechanisms.prior.support import Universe
from equipoise_server.mechanisms.repair.weights_hypothesis import MAX_GAP
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.variances import cell_variances
from equipoise_server.mechanisms.standing.reach import code_lengths, reaches

UNITS = 2.0**GRID_BITS
MOST = float(MAX_PARTS << GRID_BITS)  # an answer is at most so many times all records, in units of 2^-40


def fitted_distribution(measured: Measured) -> Prior:
    """Return one distribution over the whole universe, fitted to the tables of the family's largest sets."""
    noise, records = measured.noise, measured.records
    targets = []
    for axes in noise.largest:
        counts, variances = measured.table(axes).counts(), cell_variances(noise, axes)
        targets.append(Target(axes, counts / records, float(variances.max()) / records**2))
    return Prior(np.maximum(fit_potential(Universe(noise.sizes), targets), -MAX_GAP))


def answers_of(
    workload: CompiledWorkload, measured: Measured, log: Fraction, fitted: Prior | None = None
) -> Answers:
    """Return all answers to a workload, each with its interval and its standard error.

    The interval is the measurement's, whatever the fit says. The fitted value is delivered where it lies inside, as
    it errs less; beyond, the fit is known to be wrong, and the measured value is delivered, which is unbiased and
    not cut at 0.

    Args:
        workload: statements that the family tells.
        measured: the released numbers.
        log: of 2 over beta, as `reach.log_chance` gives it.
        fitted: the distribution fitted to `measured`; None where there is none.
    """
    reach = reaches(log, code_lengths(workload, measured.noise.family))
    tables = measured_answers(estimates_of(workload, measured), measured.records, reach)
    if fitted is None:
        return tables
    values = fitted_values(workload, fitted)
    inside = (tables.lows <= values) & (values <= tables.highs)
    return with_answers(tables, inside, moved_into(tables, values, AnswerMethod.FITTED)[inside])


def measured_answers(estimates: Estimates, records: int, reach: NDArray[np.float64]) -> Answers:
    """Return the measurement's own answers. `reach`: float64[k], half-widths in standard deviations."""
    deviations = np.sqrt(estimates.variances)
    half_widths = _upwards(deviations * reach + estimates.slack, records, 2)  # two units: of both roundings
    values = np.rint(np.clip(estimates.counts * (UNITS / records), -MOST, MOST)).astype(np.int64)
    return answers_within(values, AnswerMethod.GAUSSIAN, half_widths, _upwards(deviations, records))


def fitted_values(workload: CompiledWorkload, fitted: Prior) -> NDArray[np.int64]:
    """Return what a distribution says: int64[k], in units of 2^-40. Sums of whole weights are exact."""
    total = float(fitted.weights.sum())
    return np.rint(workload.counts(fitted.weights) / total * UNITS).astype(np.int64)


def synthetic_table(fitted: Prior, records: int) -> Synopsis:
    """Return synthetic records along a distribution."""
    return Synopsis(fitted.records(records))


def _upwards(amounts: NDArray[np.float64], records: int, more: int = 0) -> NDArray[np.int64]:
    """Amounts of records as parts of all in units of 2^-40: rounded up, and so many more; at most 1."""
    units = np.ceil(amounts * (UNITS / records) * (1 + 2.0**-50)) + more
    return np.asarray(np.minimum(units, ONE), dtype=np.int64)
