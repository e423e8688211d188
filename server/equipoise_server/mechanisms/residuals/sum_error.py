"""The mean error of sums of values that residuals tell, as their noise alone makes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import product_variances
from equipoise_server.mechanisms.expected_error import gaussian_mean


def sum_error(noise: ResidualNoise, sets: Sequence[Axes]) -> float:
    """Return the mean error of sums, in records: of each attribute of these sets, in a cell of all others.

    The weights of the attribute's categories grow evenly from 0 to 1.

    Args:
        noise: of the residuals.
        sets: of attributes, of the family.
    """
    errors: list[float] = []
    for axes in sets:
        cell = [np.eye(noise.sizes[axis])[noise.sizes[axis] // 2][None] for axis in axes]
        for place, axis in enumerate(axes):
            weights = np.linspace(0.0, 1.0, noise.sizes[axis])[None]
            factors = [*cell[:place], weights, *cell[place + 1 :]]
            errors += map(gaussian_mean, product_variances(noise, axes, factors).tolist())
    return math.fsum(errors) / max(1, len(errors))
