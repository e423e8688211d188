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

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise_server.mechanisms.residuals.axis_bases import bases_of
from equipoise_server.mechanisms.residuals.noise import ResidualNoise

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
    return _contracted(noise, axes, products, len(factors[0]) if axes else 1)


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
    return outside * _contracted(noise, common, products, queries)


def cell_variances(noise: ResidualNoise, axes: Axes) -> NDArray[np.float64]:
    """Return the variance of every cell of a table: one dimension for each axis, of size 1 where all agree."""
    bases = bases_of(noise.sizes, noise.family.is_ordered)
    variances = noise.level_variances(axes)
    for axis in axes:
        # The axis that is summed over is the first, and that of the cells becomes the last.
        variances = np.tensordot(variances, bases[axis].cell_strengths(), axes=(0, 1))
    return np.asarray(variances)


def _contracted(
    noise: ResidualNoise, axes: Axes, products: Sequence[NDArray[np.float64]], queries: int
) -> NDArray[np.float64]:
    sums = np.broadcast_to(noise.level_variances(axes)[None], (queries, *(each.shape[1] for each in products)))
    for each in products:
        sums = np.einsum("ql,ql...->q...", each, sums)
    return np.asarray(sums)
