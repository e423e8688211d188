"""What a prior's measurement is known, and expected, to err by: from its public parameters."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise_server.mechanisms.expected_error import fitted_part, gaussian_mean
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.prior.plan import VARIANCE_BITS, PriorParameters
from equipoise_server.mechanisms.residuals.direct import UniformReach
from equipoise_server.mechanisms.residuals.variances import cell_variances

UPWARD = 1 + 1e-6


def told_half_width(prior: PriorParameters, chance: Fraction, records: int) -> int:
    """Return the largest half-width of a single cell that is measured, in units of 2^-40.

    Args:
        prior: the measurement.
        chance: that any interval of the measurement misses its truth.
        records: `n`, how many records the table has.
    """
    noise = prior.noise
    largest = max(float(cell_variances(noise, axes).max()) for axes in noise.family.sets)
    reach = UniformReach(noise.family, chance).cells() * math.sqrt(largest) / records
    return min(1 << GRID_BITS, math.ceil(float(reach) * UPWARD * 2.0**GRID_BITS))


def prior_expected_error(prior: PriorParameters, records: int) -> float:
    """Return the mean error that is expected of what a measurement tells: of a fit to its tables."""
    sizes, tables = prior.noise.sizes, prior.noise.largest
    cells = [math.prod(sizes[axis] for axis in axes) for axes in tables]
    variance = sum(map(math.prod, zip(prior.variances, cells, strict=True))) / sum(cells) / 2**VARIANCE_BITS
    deviation = math.sqrt(variance) / records
    return min(1.0, gaussian_mean(deviation**2)) * fitted_part(deviation, len(tables), sum(cells))
