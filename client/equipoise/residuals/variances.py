"""Variances and covariances of what a residual measurement says: exact, and from public things alone.

They are those of continuous Gaussian noise of the recorded parameters. A discrete Gaussian of parameter t has at
most that variance and is sub-Gaussian with it, and so is every weighted sum (`accounting.gaussian_rho`;
`mechanisms.pooled.measured.estimated_variance` has the proof).

The noises of different residuals are independent, and both the maps and the sums asked for are products over axes.
So the variance of a product query over the axes B is `sum_A s_A prod_{i in B} f_i(level of i in A)`, where f_i is
what noise of variance 1 on that level adds to the weighted sum along axis i (`AxisBasis.level_products`). In no
order this is `|w|^2 - (1.w)^2 / m` for axes in A and `((1.w) / m)^2` for the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.axis_bases import bases_of
from equipoise.residuals.noise import ResidualNoise

Factors = Sequence[NDArray[np.float64]]
"""The weights of q product queries along each of their axes: float64[q, size] each."""


def product_variances(noise: ResidualNoise, axes: Axes, factors: Factors) -> NDArray[np.float64]:
    """Return the variance of each of q product queries over one set of axes: float64[q], in records squared.

    Args:
        noise: the measurement.
        axes: a set of its family, ascending.
        factors: for each of these axes the weights of all queries: 0 and 1 for boxes.
    """
    bases = bases_of(noise.sizes, noise.family.is_ordered)
    products = [bases[axis].level_products(own, own) for axis, own in zip(axes, factors, strict=True)]
    return _contracted(noise.level_variances(axes), products, (len(factors[0]) if axes else 1,))


def product_covariances(
    noise: ResidualNoise, axes: Axes, factors: Factors, other_axes: Axes, other_factors: Factors
) -> NDArray[np.float64]:
    """Return the covariance of each query with the one at the same place of another list: float64[q].

    The two lists may be over different sets of the family; each list is over one. Only residuals over axes of both
    sets are in both answers.
    """
    bases = bases_of(noise.sizes, noise.family.is_ordered)
    one, other = dict(zip(axes, factors, strict=True)), dict(zip(other_axes, other_factors, strict=True))
    common = tuple(axis for axis in axes if axis in other)
    queries = len(factors[0]) if axes else len(other_factors[0]) if other_axes else 1
    outside = np.ones(queries)
    for axis in set(axes) ^ set(other_axes):
        outside *= bases[axis].means(one[axis] if axis in one else other[axis])
    products = [bases[axis].level_products(one[axis], other[axis]) for axis in common]
    return outside * _contracted(noise.level_variances(common), products, (queries,))


def cell_variances(noise: ResidualNoise, axes: Axes) -> NDArray[np.float64]:
    """Return the variance of every cell of a table: one dimension for each axis, of size 1 where all agree."""
    bases = bases_of(noise.sizes, noise.family.is_ordered)
    return _contracted(noise.level_variances(axes), *_along([bases[axis].cell_strengths() for axis in axes]))


def largest_variance(noise: ResidualNoise, axes: Axes) -> float:
    """Return what no weighted sum of a table's cells, of weights from 0 to 1, has more variance than.

    *Proof.* The table sums to the known number of records, so weights w have the variance of w - 1/2, whose squares
    sum to at most N / 4 for N cells; times that is the largest eigenvalue of the cells' covariance matrix at most.
    That matrix is `sum s (x) C_i`, over the residuals' levels, with `C_i` what noise of variance 1 on a level adds
    to the covariance of an axis's categories. In no order `C_i` is `J / m^2` for level 0 and `I - J / m` for level
    1: projections on spaces that are orthogonal, of eigenvalues `1 / m` and 1, so that the levels of these axes
    never add up, and the largest counts. On an ordered axis every row of `C_i` has absolute values that sum to the
    root of its own diagonal number (a bin's part of a level's number, as the parts of all bins sum to 1), and no
    eigenvalue of a sum is above its largest row.
    """
    bases = bases_of(noise.sizes, noise.family.is_ordered)
    levels = noise.level_variances(axes)
    ordered = [axis in noise.family.ordered for axis in axes]
    rows = _along([np.sqrt(bases[axis].cell_strengths()) for axis in axes if axis in noise.family.ordered])
    largest = 0.0
    for index in np.ndindex(
        *(1 if by_level else count for by_level, count in zip(ordered, levels.shape, strict=True))
    ):
        place = tuple(slice(None) if by_level else level for by_level, level in zip(ordered, index, strict=True))
        summed = float(_contracted(levels[place], *rows).max())
        for axis, by_level, level in zip(axes, ordered, index, strict=True):
            summed /= 1 if by_level or level else noise.sizes[axis]
        largest = max(largest, summed)
    return largest * math.prod(noise.sizes[axis] for axis in axes) / 4


def _along(strengths: Sequence[NDArray[np.float64]]) -> tuple[list[NDArray[np.float64]], tuple[int, ...]]:
    """Give each axis's numbers, [size, levels + 1], a dimension of its own; and return the shape of all sizes."""
    shapes = [[-1 if other == place else 1 for other in range(len(strengths))] for place in range(len(strengths))]
    along = [each.reshape([*shape, each.shape[1]]) for each, shape in zip(strengths, shapes, strict=True)]
    return along, tuple(len(each) for each in strengths)


def _contracted(
    levels: NDArray[np.float64], products: Sequence[NDArray[np.float64]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Sum the products of `s` and of the axes' numbers, [..., levels + 1], over all levels, elementwise.

    So weights that are whole numbers give the same bits on every machine.
    """
    sums = np.zeros(shape)
    for index in np.ndindex(levels.shape):
        if levels[index]:
            part = np.full(shape, levels[index])
            for level, each in zip(index, products, strict=True):
                part = part * each[..., level]
            sums += part
    return sums
