"""`pooled` by noise on tables: what is expected and promised of it, from public facts."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.errors import BudgetExhausted
from equipoise.queries.marginal_tables import Axes
from equipoise_server.mechanisms.expected_error import (
    COVERED,
    UNIFORM,
    at_most,
    fitted_part,
    gaussian_mean,
    mean_over_queries,
    mixed_error,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, GaussianNoise
from equipoise_server.mechanisms.pooled.family import Family, table_cells
from equipoise_server.mechanisms.pooled.measured import estimated_variance, reach

# Of what `fitted_part` says, of tables of c cells: CELL_PART c^CELLS_POWER; from Adult (2,000 to 2,000,000 records)
# and from binary attributes.
CELL_PART, CELLS_POWER = 1.2, -0.075
PREDICATE_PART = 0.5  # of the direct estimate's error that the fit to all tables leaves, measured on Adult


def tables_expected_error(setting: PublicParameters, family: Family, rho: Fraction) -> float:
    """Return the mean error that is expected where every one of the family's largest tables gets as much rho."""
    if not family.sets:
        return 0.0
    variance = float(GaussianNoise.within(rho / len(family.largest)).variance * MAX_MOVED)
    measured = [(axes, variance) for axes in family.largest]
    pairs: list[Axes] = [axes for axes in family.sets if len(axes) == 2]
    boxes = [
        gaussian_mean(COVERED * (1 - COVERED) * cells * estimated_variance(family.sizes, axes, measured))
        for axes in pairs or family.largest
        for cells in (table_cells(family.sizes, axes),)
    ]
    predicate = at_most(PREDICATE_PART * sum(boxes) / len(boxes) / setting.records, UNIFORM)
    deviation = math.sqrt(variance) / setting.records
    cells = sum(table_cells(family.sizes, axes) for axes in family.largest)
    cell = (
        CELL_PART
        * math.pow(cells / len(family.largest), CELLS_POWER)
        * gaussian_mean(deviation**2)
        * fitted_part(deviation, len(family.largest), cells)
    )
    return mean_over_queries(setting, lambda share: min(1.0, mixed_error(share, predicate, cell)))


def tables_half_width(family: Family, least_rho: Fraction, chance: float, summed: float) -> float:
    """Return the largest reach of a certified answer, in records, where each table gets at least so much rho."""
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
    for axes in family.sets:
        variance, cells = estimated_variance(family.sizes, axes, measured), table_cells(family.sizes, axes)
        widest = max(
            widest,
            reach(variance * (1 - 1 / cells), chance),
            reach(variance * min(summed, cells / 4), chance) if predicates else 0.0,
        )
    return widest
