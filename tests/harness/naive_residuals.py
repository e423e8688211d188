"""The dense reference: the measured matrix over a whole universe, and what restores a table from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.residuals import PARAMETER_BITS, Residual, diagonal, residual_scale
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.noise import ResidualNoise


def level_rows(size: int, ordered: bool) -> list[NDArray[np.float64]]:
    """The integer map of each level of one axis, from its definition; level 0 is the sum."""
    rows = [np.ones((1, size))]
    if not ordered:
        return [*rows, size * np.eye(size) - 1]
    block = 1 << (size - 1).bit_length()
    while block > 1:
        level = []
        for start in range(0, size, block):
            row = np.zeros(size)
            row[start : start + block // 2], row[start + block // 2 : start + block] = 1, -1
            if (row < 0).any():
                level.append(row)
        rows.append(np.array(level))
        block //= 2
    return rows


def restored_covariance(noise: ResidualNoise, axes: Axes) -> NDArray[np.float64]:
    """The covariance of all cells of a restored table: by least squares from all maps and their noise.

    The maps of one axis in no order are told redundantly, and centring is the least-squares use of that; everything
    else is told once, so that there is nothing to choose.
    """
    kinds = noise.family.is_ordered
    maps: list[NDArray[Any]] = [np.ones((1, 1))]
    names: list[Residual] = [()]
    for axis in axes:
        levels = level_rows(noise.sizes[axis], kinds[axis])
        maps = [np.kron(one, level) for one in maps for level in levels]
        names = [(*name, *([(axis, level)] if level else [])) for name in names for level in range(len(levels))]
    variances = [
        np.full(len(rows), noise.by_residual[name] / 2**PARAMETER_BITS if name else 1e-9)
        for name, rows in zip(names, maps, strict=True)
    ]
    matrix, spread = np.concatenate(maps), np.concatenate(variances)
    return np.asarray(np.linalg.inv(matrix.T @ (matrix / spread[:, None])))


def add_remove_rho(sizes: Sequence[int], ordered: Sequence[bool], parameters: Mapping[Residual, int]) -> float:
    """The rho where a record is added or removed, half of `sum_A p_A / s_A`: less than where one is replaced."""
    return sum(
        diagonal(sizes, ordered, residual) * residual_scale(sizes, ordered, residual) / parameter / 2
        for residual, parameter in parameters.items()
    )
