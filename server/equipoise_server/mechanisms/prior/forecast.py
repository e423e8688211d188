"""What a prior is expected to err by, from public facts alone. No promise rests on it.

Two parts: what the noise leaves, and what pairs of attributes do not tell of the data. A standing measurement may
hold some pairs only; of the others it tells both attributes alone, or less. The first follows the
standard deviation of a dense predicate on two attributes, which the measurement's noise has exactly. The constants
are of seven attributes of Adult (n = 2,000, 48,842 and 2,000,000) and of 16 binary attributes with dependence of
every order (n = 21,574), with epsilon 0.1, 1 and 10: there the mean errors of conjunctions of two, three and seven
conditions and of the cells of triples are within a factor of 2.5 of it, but where the noise is so small that pairs
alone would be exact.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from equipoise.model.rounds import Share
from equipoise_server.mechanisms.expected_error import (
    UNIFORM,
    at_most,
    gaussian_mean,
    mean_over_queries,
    only_predicates,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.residuals.variances import product_variances

FITTED_PART = 0.9  # of the noise that a predicate has in the measured tables, which the fit leaves
INDEPENDENT = 0.018  # of predicates on Adult, where the measurement holds single attributes alone
UNMEASURED = 6e-4  # of predicates, by what tables of pairs do not hold
COVERED = 0.25  # of the universe: a dense predicate on two attributes
CELL_PART, UNMEASURED_OF_CELL, UNIFORM_OF_CELL = 1.1, 0.04, 1.4  # of tables, the last two in mean cells
MAX_ERROR_FACTOR = 1.25  # times `sqrt(2 log 2k)` mean errors: the largest of k


def expected_mean(parameters: PriorParameters, setting: PublicParameters) -> float:
    """Return the mean error of the prior's answers over all declared queries, as a fraction of the records."""
    noise = gaussian_mean(dense_variance(parameters)) / setting.records
    return mean_over_queries(setting, lambda share: _mean_of(parameters, noise, share, math.inf))


def expected_of_session(parameters: PriorParameters, setting: PublicParameters) -> float:
    """Return the mean error of the prior's answers to a session's statements, as a fraction of the records.

    No more is unmeasured of a cell than of a predicate. Statements of a session are of one or two attributes more
    often than those of a round, and the constants are of a round's cells of triples.
    """
    noise = gaussian_mean(dense_variance(parameters)) / setting.records
    return mean_over_queries(setting, lambda share: _mean_of(parameters, noise, share, UNMEASURED))


def expected_largest(parameters: PriorParameters, setting: PublicParameters) -> float:
    """Return the largest error over all declared queries, as a fraction of the records, as of predicates."""
    noise = gaussian_mean(dense_variance(parameters)) / setting.records
    mean = over_all_pairs(parameters, of_predicates(noise), UNIFORM)
    return min(1.0, mean * MAX_ERROR_FACTOR * math.sqrt(2 * math.log(2 * setting.queries)))


def _mean_of(parameters: PriorParameters, noise: float, share: Share, most: float) -> float:
    if only_predicates(share):
        return over_all_pairs(parameters, of_predicates(noise), UNIFORM)
    cells = share.queries / share.statements
    left = CELL_PART * noise * math.sqrt(1 / (COVERED * cells))
    measured_error = math.hypot(at_most(left, UNIFORM_OF_CELL / cells), min(most, UNMEASURED_OF_CELL / cells))
    return over_all_pairs(parameters, measured_error, UNIFORM_OF_CELL / cells)


def over_all_pairs(parameters: PriorParameters, measured_error: float, uniform: float) -> float:
    """Return the mean error over all pairs of attributes, of which the measurement holds some.

    Args:
        parameters: the measurement. An attribute of one category tells nothing.
        measured_error: the mean error on a pair that it holds.
        uniform: what the uniform distribution errs by, where it does not hold both attributes.
    """
    family = parameters.noise.family
    axes = [axis for axis, size in enumerate(family.sizes) if size > 1]
    pairs = list(itertools.combinations(axes, min(2, len(axes))))
    measured = sum(family.holds(pair) for pair in pairs)
    single = sum(all(family.holds((axis,)) for axis in pair) for pair in pairs) - measured
    independent = max(measured_error, uniform * INDEPENDENT / UNIFORM)
    rest = (len(pairs) - measured - single) * max(measured_error, uniform)
    return (measured * measured_error + single * independent + rest) / len(pairs)


def of_predicates(noise: float) -> float:
    """Return the mean error of predicates whose answers in the measured tables err by `noise` in the mean."""
    return math.hypot(at_most(FITTED_PART * noise, UNIFORM), UNMEASURED)


def dense_variance(parameters: PriorParameters) -> float:
    """Return the mean variance, in records squared, of what tables say of half of each attribute's categories.

    Of ordered attributes these are the first half as often as every other category: ranges have less noise there.
    """
    noise = parameters.noise
    variances = []
    for axes in noise.largest:
        halves = [np.zeros((2, noise.sizes[axis])) for axis in axes]
        for half in halves:
            half[0, : (half.shape[1] + 1) // 2] = 1.0
            half[1, ::2] = 1.0
        variances += product_variances(noise, axes, halves).tolist()
    return math.fsum(variances) / len(variances)
