"""The mean error that is expected of tables told by their residuals, from public facts alone.

No promise rests on it. `mechanisms.expected_error` says how the constants of such formulas were found.
"""

from __future__ import annotations

import math

from equipoise.accounting.residuals import MAX_PAIR_TYPES
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.expected_error import cells_of_a_table, gaussian_mean
from equipoise_server.mechanisms.prior.support import RECORDS

# Of a fit to tables of c cells each, with noise of deviation s: RESIDUAL_FIT (c s)^RESIDUAL_POWER. Powers from
# -0.29 to -0.42 fit equally well.
RESIDUAL_FIT, RESIDUAL_POWER = 0.328, -0.29
# Weights on N drawn records follow k numbers only so far: UNFIT k / N times the variance that a cell has in N draws
# stays. As measured of made-up tables of 13 to 100 attributes of ten categories, 100,000 and 1,000,000 records.
UNFIT = 0.5
# Attributes in no order over which the worst pair of records is found among all kinds.
EXACT_ATTRIBUTES = MAX_PAIR_TYPES.bit_length() - 1


def residual_fit_part(deviation: float, cells: float, numbers: float = 0.0) -> float:
    """Return the part of the error of cells restored from residuals that a fit leaves; tables of so many cells.

    What tables share is averaged before the fit, so their number has no part in it, unless the distribution lives
    on drawn records.

    Args:
        deviation: of the noise on one cell, as a fraction of the records.
        cells: how many a table has.
        numbers: of residuals that are fitted by weights on drawn records (`prior.support`); 0: all records that
            can exist have weights.
    """
    if not deviation:
        return 1.0
    part = RESIDUAL_FIT * math.pow(cells * deviation, RESIDUAL_POWER)
    unfit = UNFIT * numbers / (cells * (RECORDS * deviation) ** 2)
    return min(1.0, math.sqrt(part**2 + unfit))


def told_by_residuals(deviation: float, share: Share, attributes: int) -> float:
    """Return the mean error of tables whose residuals are measured, and fitted on drawn records, as a fraction.

    Args:
        deviation: of noise on each count that costs as much, as a fraction of the records.
        share: which asks for tables alone.
        attributes: of the table, with two categories or more.
    """
    cells = cells_of_a_table(share)
    tables = max(1.0, share.queries / cells)
    told = deviation * part_of_residuals(attributes, share.ways, tables, cells)
    numbers = numbers_of_residuals(attributes, share.ways, tables, cells)
    return min(1.0, gaussian_mean(told**2) * residual_fit_part(told, cells, numbers))


def numbers_of_residuals(attributes: int, ways: int, tables: float, cells: float) -> float:
    """Return how many numbers the residuals of tables have, as `part_of_residuals` counts the sets.

    Args:
        attributes: of the table.
        ways: attributes of each table asked for; 0 where nothing tells, and then there are none.
        tables: how many.
        cells: of each.
    """
    if not 0 < ways <= attributes:
        return 0.0
    free = max(1.0, math.pow(cells, 1 / ways)) - 1
    return math.fsum(
        min(math.comb(attributes, count), tables * math.comb(ways, count)) * math.pow(free, count)
        for count in range(1, ways + 1)
    )


def part_of_residuals(attributes: int, ways: int, tables: float, cells: float) -> float:
    """Return the deviation of cells that residuals tell, as a part of that of noise on each count.

    By the best allocation (`residuals.allocation`) where all attributes have `g` categories, with `g^ways` cells a
    table, and every set of `k` attributes is in as many tables: each of `D = min(C(attributes, k), tables C(ways,
    k))` sets in `tables C(ways, k) / D`. Over its variance a set's residual costs `p = (1 - 1/g)^k`, and to a cell
    it adds `p g^(-2 (ways - k))` times that. So the part is the sum over `k` of `p g^(k - ways) sqrt(D C(ways, k) /
    tables)`. Of tables over more attributes than those whose worst pair of records is found, a bound of it is
    charged, which is `g / (g - 1)` times as much.

    Args:
        attributes: of the table.
        ways: attributes of each table asked for; 0 where nothing tells, and then the part is 1.
        tables: how many.
        cells: of each.
    """
    if not 0 < ways <= attributes:
        return 1.0
    categories = max(1.0, math.pow(cells, 1 / ways))
    part = 0.0
    for count in range(1, ways + 1):
        chosen = math.comb(ways, count)
        sets = min(math.comb(attributes, count), tables * chosen)
        cost = math.pow(1 - 1 / categories, count) * math.pow(categories, count - ways)
        part += cost * math.sqrt(sets * chosen / tables)
    if min(attributes, tables * ways) > EXACT_ATTRIBUTES:
        part *= math.sqrt(categories / max(1.0, categories - 1))
    return min(1.0, part)
