"""`pooled` by residuals: the noise, from public facts alone, and what is expected and promised of it.

Every residual of the family is measured once (`mechanisms.residuals`). The noise is in the plan. As no vote decides
it, it costs the analysts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.residuals import axis_levels
from equipoise.model.rounds import Share
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import (
    cell_variances,
    largest_variance,
    product_variances,
)
from equipoise_server.mechanisms.expected_error import (
    FIT_ERROR,
    UNIFORM,
    at_most,
    gaussian_mean,
    holds_conditions,
    mean_over_queries,
    mixed_error,
    part_of_dense,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled.family import Family, asked_sets, table_cells
from equipoise_server.mechanisms.pooled.measured import reach
from equipoise_server.mechanisms.pooled.tables_plan import PAIR
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.expected_error import residual_fit_part
from equipoise_server.mechanisms.residuals.sum_error import sum_error

MAX_RESIDUALS = 1 << 14  # with levels: each has a number in the plan
CONDITION_PART = 0.95  # of the error of a condition's estimate, which the fit leaves


def plan_residuals(setting: PublicParameters, family: Family, rho: Fraction) -> ResidualNoise:
    """Return the noise of least summed variance within `rho`.

    Where tables are asked for, the variances of all cells of the family's largest tables are summed. In rounds of
    conditions alone every set of the family counts alike, with the mean variance of its cells, and of its prefixes
    along ordered attributes.
    """
    conditions = all(holds_conditions(share) for share in setting.shares)
    return _least(family, measured_by_levels(setting, family), rho, conditions)


def measured_by_levels(setting: PublicParameters, family: Family) -> tuple[int, ...]:
    """Return the ordered attributes; none where their levels make more residuals than plans can hold."""
    ordered = frozenset(setting.ordered)
    levels = [axis_levels(size, axis in ordered) for axis, size in enumerate(family.sizes)]
    residuals = sum(math.prod(levels[axis] for axis in axes) for axes in family.sets)
    return setting.ordered if residuals <= MAX_RESIDUALS else ()


@lru_cache(maxsize=32)
def _least(family: Family, ordered: tuple[int, ...], rho: Fraction, conditions: bool) -> ResidualNoise:
    measured = ResidualFamily.closed(family.sizes, family.largest, ordered)
    if conditions:
        return least_summed(measured, rho, dict.fromkeys(measured.sets, 1.0), "prefixes").noise
    return least_summed(measured, rho, asked="cells").noise


def residuals_half_width(
    noise: ResidualNoise, family: Family, chance: float, summed: float, sharing: int = 1
) -> float:
    """Return the largest reach of a certified answer, in records: of all cells, and of what `summed` covers.

    Args:
        noise: of every residual.
        family: whose tables are told.
        chance: of one answer to be further off.
        summed: how many cells an answer with an interval may add up; 1: only the cells of tables.
        sharing: how many answers that add up cells have the chance of one together; sums by weights are a record
            further off.
    """
    predicates = summed > 1 or family.covers(summed)
    widest = 0.0
    for axes in family.sets:
        cell = reach(float(cell_variances(noise, axes).max()), chance)
        box = largest_variance(noise, axes) * min(1.0, 4 * summed / table_cells(family.sizes, axes))
        widest = max(widest, cell, reach(box, chance / sharing) + 1 if predicates else 0.0)
    return widest


def residuals_expected_error(setting: PublicParameters, noise: ResidualNoise, family: Family) -> float:
    """Return the mean error that is expected of answers fitted to all residuals.

    Conditions count as if a table of two attributes told them. Where sums are expected, every answer counts as one,
    which the fit helps no more than a condition.
    """
    if setting.sums:

        def of_sums(share: Share) -> float:
            asked = asked_sets(family, share.ways or PAIR)
            return min(1.0, CONDITION_PART * sum_error(noise, asked) / setting.records)

        return mean_over_queries(setting, of_sums)
    drawn = (
        0 if setting.enumerable else sum(math.prod(noise.sizes[axis] - 1 for axis in axes) for axes in family.sets)
    )
    cells = {
        ways: _cell_error(setting.records, noise, asked_sets(family, ways), drawn)
        for ways in {share.ways for share in setting.shares}
    }
    pairs: list[Axes] = [axes for axes in family.sets if len(axes) == 2]
    box = _box_error(noise, pairs or family.largest) / setting.records

    def of_share(share: Share) -> float:
        dense = CONDITION_PART * box * part_of_dense(share, setting.universe_size)
        return min(1.0, mixed_error(share, math.hypot(at_most(dense, UNIFORM), FIT_ERROR), cells[share.ways]))

    return mean_over_queries(setting, of_share)


def _cell_error(records: int, noise: ResidualNoise, sets: Sequence[Axes], drawn: int) -> float:
    """Return the mean error of the cells of these sets' tables, as a fraction of the records.

    Args:
        records: `n`.
        noise: of the residuals.
        sets: of the family, measured by these residuals.
        drawn: how many numbers are fitted by weights on drawn records; 0: on all that can exist.
    """
    sizes = [table_cells(noise.sizes, axes) for axes in sets]
    means = [_mean(cell_variances(noise, axes)) for axes in sets]
    every = sum(sizes)
    total = math.fsum(each * math.sqrt(mean) for each, mean in zip(sizes, means, strict=True))
    deviation = total / max(1, every) / records
    return gaussian_mean(deviation**2) * residual_fit_part(deviation, every / max(1, len(sizes)), drawn)


def _box_error(noise: ResidualNoise, sets: Sequence[Axes]) -> float:
    """Return the mean error of the estimates of boxes of half of the categories of each attribute of these sets.

    The half in the middle: along ordered attributes it is a range, which few levels tell.
    """
    variances = []
    for axes in sets:
        sizes = [noise.sizes[axis] for axis in axes]
        places = [np.arange(size)[None] for size in sizes]
        halves = [
            (size // 4 <= at) & (at < size // 4 + (size + 1) // 2) for size, at in zip(sizes, places, strict=True)
        ]
        variances += product_variances(noise, axes, [half.astype(np.float64) for half in halves]).tolist()
    return math.fsum(map(gaussian_mean, variances)) / max(1, len(variances))


def _mean(numbers: NDArray[np.float64]) -> float:
    return math.fsum(numbers.ravel().tolist()) / numbers.size
