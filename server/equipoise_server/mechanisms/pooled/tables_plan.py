"""`pooled` by noise on tables: what is expected and promised of it, from public facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from equipoise.errors import BudgetExhausted
from equipoise.model.rounds import Share
from equipoise.queries.marginal_tables import Axes
from equipoise_server.mechanisms.expected_error import (
    COVERED,
    FIT_ERROR,
    UNIFORM,
    at_most,
    gaussian_mean,
    mean_over_queries,
    mixed_error,
    part_of_dense,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, GaussianNoise
from equipoise_server.mechanisms.pooled.family import Family, asked_sets, table_cells
from equipoise_server.mechanisms.pooled.measured import estimated_variances, reach

# Of the error of a cell's estimate, of deviation s, what the fit leaves of tables of c cells:
# CELL_PART c^CELLS_POWER s^NOISE_POWER. What tables share is averaged before, so their number has no part in it.
CELL_PART, CELLS_POWER, NOISE_POWER = 1.06, -0.535, -0.217
# Of the error of a predicate's estimate, what the fit to all tables leaves; less in the largest tables, of which a
# fit reads more than the estimate does.
PREDICATE_PART, LARGEST_PART = 0.52, 0.29
PAIR = 2  # attributes of a statement, where the share does not declare them


def tables_expected_error(setting: PublicParameters, family: Family, rho: Fraction) -> float:
    """Return the mean error that is expected where every one of the family's largest tables gets as much rho."""
    if not family.sets:
        return 0.0
    variance = float(GaussianNoise.within(rho / len(family.largest)).variance * MAX_MOVED)
    measured = [(axes, variance) for axes in family.largest]
    if setting.sums:  # every answer counts as a sum, which the fit helps no more than a condition
        return mean_over_queries(
            setting,
            lambda share: min(
                1.0, _sum_error(family, measured, asked_sets(family, share.ways or PAIR)) / setting.records
            ),
        )
    cells = {
        ways: _cell_error(setting.records, family, measured, asked_sets(family, ways))
        for ways in {share.ways for share in setting.shares}
    }

    def of_share(share: Share) -> float:
        asked = asked_sets(family, share.ways or PAIR)
        part = PREDICATE_PART if asked is not family.largest else LARGEST_PART
        dense = part * _dense_error(family, measured, asked) / setting.records
        fitted = at_most(dense * part_of_dense(share, setting.universe_size), UNIFORM)
        return min(1.0, mixed_error(share, math.hypot(fitted, FIT_ERROR), cells[share.ways]))

    return mean_over_queries(setting, of_share)


def _dense_error(family: Family, measured: Sequence[tuple[Axes, float]], sets: Sequence[Axes]) -> float:
    """Return the mean error of the estimates of a quarter of these sets' cells, in records."""
    variances = estimated_variances(family.sizes, sets, measured)
    errors = [
        gaussian_mean(COVERED * (1 - COVERED) * table_cells(family.sizes, axes) * variance)
        for axes, variance in zip(sets, variances, strict=True)
    ]
    return math.fsum(errors) / len(errors)


def _sum_error(family: Family, measured: Sequence[tuple[Axes, float]], sets: Sequence[Axes]) -> float:
    """Return the mean error of sums of an attribute's values in a cell of all others of these sets, in records.

    The weights of its categories grow evenly from 0 to 1, so that a third of their number is what they square to.
    """
    variances = estimated_variances(family.sizes, sets, measured)
    errors = [
        gaussian_mean(variance * family.sizes[axis] / 3)
        for axes, variance in zip(sets, variances, strict=True)
        for axis in axes
    ]
    return math.fsum(errors) / len(errors)


def _cell_error(
    records: int, family: Family, measured: Sequence[tuple[Axes, float]], sets: Sequence[Axes]
) -> float:
    """Return the mean error of the cells of these sets' tables, as a fraction of the records.

    Args:
        records: `n`.
        family: which tables there are.
        measured: the largest of them, and the variance of the noise on each.
        sets: of the family.
    """
    variances = estimated_variances(family.sizes, sets, measured)
    deviation = math.sqrt(math.fsum(variances) / len(variances)) / records
    cells = sum(table_cells(family.sizes, axes) for axes in sets) / len(sets)
    left = CELL_PART * math.pow(cells, CELLS_POWER) * math.pow(deviation, NOISE_POWER)
    return left * gaussian_mean(deviation**2)


def tables_half_width(family: Family, least_rho: Fraction, chance: float, summed: float, sharing: int = 1) -> float:
    """Return the largest reach of a certified answer, in records, where each table gets at least so much rho.

    Args:
        family: whose tables are told.
        least_rho: what the data pay for each table, at least.
        chance: of one answer to be further off.
        summed: how many cells an answer with an interval may add up; 1: only the cells of tables.
        sharing: how many answers that add up cells have the chance of one together; sums by weights are a record
            further off.

    Raises:
        BudgetExhausted: the budget is too small for so many tables.
    """
    try:
        noise = GaussianNoise.within(least_rho)
        noise.law(MAX_MOVED)
    except ValueError:
        raise BudgetExhausted(
            "data_budget: is too small for so many tables; the noise would be coarser than its sampler can draw"
        ) from None
    predicates = summed > 1 or family.covers(summed)
    measured = [(axes, float(noise.variance * MAX_MOVED)) for axes in family.largest]
    widest = 0.0
    variances = estimated_variances(family.sizes, family.sets, measured)
    for axes, variance in zip(family.sets, variances, strict=True):
        cells = table_cells(family.sizes, axes)
        widest = max(
            widest,
            reach(variance * (1 - 1 / cells), chance),
            reach(variance * min(summed, cells / 4), chance / sharing) + 1 if predicates else 0.0,
        )
    return widest
