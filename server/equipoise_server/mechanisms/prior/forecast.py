"""What a prior is expected to err by, from public facts alone. No promise rests on it.

Three parts: what the noise leaves, what pairs of attributes do not tell of the data, and what the floor under every
record's weight adds. A standing measurement may hold some pairs only; of the others it tells both attributes alone,
or less. The first follows the standard deviation of a dense predicate on two attributes, which the measurement's
noise has exactly. The second is 0 where shares declare that statements are about two attributes at most.

`benchmarks/expectations.py` measures how well this predicts, on tables that judge no choice. On conjunctions of two
and on tables of pairs what was measured is 0.4 to 2.4 times what was expected. The second part nobody knows: it was
0.1 to 3.4 times what was expected on larger tables, and up to 9 times where no table tells of another.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from equipoise.model.rounds import Share
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import product_variances
from equipoise_server.mechanisms.expected_error import (
    UNIFORM,
    at_most,
    cells_of_a_table,
    gaussian_mean,
    mean_over_queries,
    mixed_error,
    only_predicates,
    part_of_dense,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.distribution import MIN_PART
from equipoise_server.mechanisms.prior.plan import PriorParameters

FITTED_PART = 1.0  # of the noise that a predicate has in the measured tables, which the fit leaves
INDEPENDENT = 0.018  # of predicates on Adult, where the measurement holds single attributes alone
UNMEASURED = 3.19e-4  # of predicates, by what tables of pairs do not hold
COVERED = 0.25  # of the universe: a dense predicate on two attributes
# What the floor under every record's weight adds, where most records that can exist do not: of predicates, and of
# tables in mean cells.
FLOORED, FLOORED_OF_CELL = MIN_PART / 6, 0.7 * MIN_PART
PAIR = 2  # attributes
CELL_PART, UNMEASURED_OF_CELL, UNIFORM_OF_CELL = 1.29, 0.0178, 1.4  # of tables, the last two in mean cells
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
    """Return the mean error of a share's answers: conditions count as predicates, all else as cells of tables.

    Nothing is unmeasured of statements that are about two attributes at most (`Share.ways`).
    """
    unmeasured = 0.0 if 0 < share.ways <= PAIR else 1.0
    dense = noise * part_of_dense(share, math.prod(parameters.noise.sizes))
    predicate = over_all_pairs(parameters, of_predicates(dense, unmeasured * UNMEASURED), UNIFORM)
    if only_predicates(share):
        return predicate
    cells = cells_of_a_table(share)
    left = CELL_PART * noise * math.sqrt(1 / (COVERED * cells))
    measured_error = math.hypot(
        at_most(left, UNIFORM_OF_CELL / cells),
        unmeasured * min(most, UNMEASURED_OF_CELL / cells),
        FLOORED_OF_CELL / cells,
    )
    cell = over_all_pairs(parameters, measured_error, UNIFORM_OF_CELL / cells)
    return mixed_error(share, predicate, cell)


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


def of_predicates(noise: float, unmeasured: float = UNMEASURED) -> float:
    """Return the mean error of predicates.

    Args:
        noise: what their answers in the measured tables err by in the mean, as a fraction of the records.
        unmeasured: what they err by where the tables are known exactly.
    """
    return math.hypot(at_most(FITTED_PART * noise, UNIFORM), unmeasured, FLOORED)


def dense_variance(parameters: PriorParameters) -> float:
    """Return the mean variance, in records squared, of what tables say of half of each attribute's categories.

    Of ordered attributes these are the first half as often as every other category: ranges have less noise there.
    """
    return _dense_variance(parameters.noise)


@lru_cache(maxsize=8)  # each plan asks several times, and on a wide table it takes seconds
def _dense_variance(noise: ResidualNoise) -> float:
    variances = []
    for axes in noise.largest:
        halves = [np.zeros((2, noise.sizes[axis])) for axis in axes]
        for half in halves:
            half[0, : (half.shape[1] + 1) // 2] = 1.0
            half[1, ::2] = 1.0
        variances += product_variances(noise, axes, halves).tolist()
    return math.fsum(variances) / len(variances)
