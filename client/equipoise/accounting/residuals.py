"""The privacy cost of measuring residuals of marginals: the exact maximum over all pairs of neighbouring tables.

The universe has axes of sizes `m_i`. Each axis has level 0, the sum over the axis, and one or more levels above it.
A *residual* names one level above 0 for each of some axes: `((0, 1), (3, 2))` is level 1 of axis 0 and
level 2 of axis 3. It is measured once, in integers, on the marginal table over its axes:

- An unordered axis has one level: the integer matrix `m I - J`. It subtracts the mean and multiplies by `m`.
- An ordered axis has `L = ceil(log2 m)` levels. Level `l` cuts the axis from its first bin on into blocks of
  `2^(L - l + 1)` bins. Each block with bins in both of its halves gives one number: the sum over its first half
  less the sum over its second half.

The products of these maps, applied to the table, give the residual's numbers. Each number gets independent discrete
Gaussian noise. Its variance `t` is the same for all numbers of a residual, and is recorded as an integer in units
of 2^-10.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.cost import OUTWARD

Residual = tuple[tuple[int, int], ...]
"""(axis, level) pairs, axes ascending, levels from 1 on."""

PARAMETER_BITS = 10
MAX_PAIR_TYPES = 1 << 22  # of neighbours that are told apart: 22 axes in no order


@dataclass(frozen=True, eq=False)
class PairTypes:
    """The kinds of pairs of categories `(x, x')` on one axis that neighbouring records can have.

    With `u` and `u'` the columns of a level's map at `x` and `x'`, divided by `m` on an axis in no order: `first`
    is `|u|^2`, `second` `|u'|^2` and `product` `u.u'`; each float64[types, levels + 1], and the first type is `x =
    x'`.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    product: NDArray[np.float64]


def axis_levels(size: int, ordered: bool) -> int:
    """Returns how many levels an axis of `size` categories, `ordered` or not, has above the sum."""
    return (size - 1).bit_length() if ordered else min(1, size - 1)


def pair_types(size: int, ordered: bool) -> PairTypes:
    """Returns the kinds of pairs on an axis of `size` categories, `ordered` or not, that can cost the most.

    In no order there are two: equal, where all three numbers of level 1 are `(m - 1) / m`, and different, where the
    product is `-1 / m`.

    On an ordered axis a bin has one number a level, 1 or -1, unless its block has no second half. Two bins of one
    block agree at every coarser level, differ in sign where their block is cut between them, and share no number
    after that. A bin of the first half of the axis has a number at every level (that half is a complete tree), so
    for every level from 2 on there is a pair that is cut there and has all numbers. A pair cut at level 1 has one
    bin of the second half, of r bins. The first of these has numbers at level 1 and at the last `ceil(log2 r)`
    ones, and any other has some of these. Numbers that only one record of a pair has add to the squared distance of
    what both contribute and take nothing from it, so the pairs listed cost the most.
    """
    levels = axis_levels(size, ordered)
    if not ordered:
        rows = np.array([[1.0, (size - 1) / size], [1.0, -1 / size]])[: levels + 1, : levels + 1]
        same = np.repeat(rows[:1], levels + 1, axis=0)
        return PairTypes(same, same, rows)
    full = np.ones(levels + 1)
    last = full.copy()
    if levels:
        rest = size - (1 << (levels - 1))
        last[2 : levels + 1 - (rest - 1).bit_length()] = 0.0
    kinds = [(full, full, full)]
    for level in range(1, levels + 1):
        product = np.concatenate([np.ones(level), [-1.0], np.zeros(levels - level)])
        kinds.append((full, last if level == 1 else full, product))
    if not last.all():
        kinds.append((last, full, kinds[1][2]))
    first, second, products = (np.array(column) for column in zip(*kinds, strict=True))
    return PairTypes(first, second, products)


def residual_scale(sizes: Sequence[int], ordered: Sequence[bool], residual: Residual) -> int:
    """Returns the parameter of noise whose variance is 1 in the units in which variances and costs are stated.

    The measured integers exceed these units by the product of the sizes of axes in no order.

    Args:
        sizes: the number of categories of each axis.
        ordered: whether each axis is ordered.
        residual: the axes, ascending, each with its level.

    Returns:
        The parameter in units of 2^-10 records squared.
    """
    return math.prod(1 if ordered[axis] else sizes[axis] ** 2 for axis, _ in residual) << PARAMETER_BITS


def residuals_rho(sizes: Sequence[int], ordered: Sequence[bool], parameters: Mapping[Residual, int]) -> float:
    """Returns the rho of measuring every residual of `parameters` once, when one record is replaced.

    Args:
        sizes: the number of categories of each attribute.
        ordered: whether each attribute is analysed as an ordered one.
        parameters: the discrete Gaussian's variance `t` of each residual, in units of 2^-10, at least 1.

    Returns:
        The largest `sum_A |M_A (e_x - e_x')|^2 / (2 t_A)` over all pairs of records, pushed upwards; beyond
        `MAX_PAIR_TYPES` kinds of pairs an upper bound of it.

    Raises:
        ValueError: a residual that the axes do not have, or a parameter below 1.

    Theorem. The measurement is rho-zCDP for tables that differ in one replaced record. Proof. Replacing `x` by `x'`
    moves the integer vector of residual A by `M_A (e_x - e_x')`. Discrete Gaussian noise of parameter t on integers
    that move by a vector of squared norm d costs `d / 2t` in zCDP (`gaussian_rho`), with equality in the limit of
    large t, and the residuals' noises are independent, so the costs of one pair add; the worst pair is the cost. As
    `M_A` is a product over axes, so are `|M_A e_x|^2` and `M_A e_x . M_A e_x'`, and of a pair they depend on its
    kinds (`pair_types`) alone. In no order: with D the attributes in which the records differ, `p_A = prod (m_i -
    1)/m_i` and `s_A = t_A / prod m_i^2`, the cost is `sum_A q_A(D) / s_A`, `q_A(D) = p_A - prod_A ([i not in D] -
    1/m_i)`.

    >>> residuals_rho((2,), (False,), {((0, 1),): 4 << 10})  # |(2 I - J)(e_0 - e_1)|^2 = 8
    1.000000001
    """
    return residual_costs(sizes, ordered, _weights(sizes, ordered, parameters)) * OUTWARD


def residual_costs(sizes: Sequence[int], ordered: Sequence[bool], weights: Mapping[Residual, float]) -> float:
    """Returns the cost of the worst pair without pushing it upwards.

    Args:
        sizes: the number of categories of each axis.
        ordered: whether each axis is ordered.
        weights: the precision `1 / s_A` of each residual, above 0.

    Returns:
        The rho, for replacing one record.
    """
    types = {axis: pair_types(sizes[axis], ordered[axis]) for axis in used_axes(weights)}
    if math.prod(len(each.first) for each in types.values()) > MAX_PAIR_TYPES:
        return _bound(sizes, ordered, weights)
    return float(costs_by_type(types, weights).max())


def used_axes(residuals: Iterable[Residual]) -> list[int]:
    """Returns the axes that some residual names, ascending."""
    return sorted({axis for residual in residuals for axis, _ in residual})


def costs_by_type(types: Mapping[int, PairTypes], weights: Mapping[Residual, float]) -> NDArray[np.float64]:
    """Returns each kind of pair's cost at precisions `weights` > 0: float64, one dimension an axis of `types`.

    One transform along each axis, in elementwise operations alone, so that every machine gets the same numbers.
    """
    tensor = np.zeros([each.first.shape[1] for each in types.values()])
    for index, weight in zip(_indices(types, weights), weights.values(), strict=True):
        tensor[index] = weight
    first = _transformed(tensor, [_distinct(each.first) for each in types.values()])
    second = _transformed(tensor, [_distinct(each.second) for each in types.values()])
    return np.asarray((first + second) / 2 - _transformed(tensor, [each.product for each in types.values()]))


def mean_costs(
    types: Mapping[int, PairTypes], residuals: Sequence[Residual], kinds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the mean cost of each residual's precision, float64[residuals], over weighted kinds of pairs.

    Args:
        types: the kinds of pairs on each axis.
        residuals: those whose costs are wanted.
        kinds: a weight for each kind of pair, of the shape that `costs_by_type` returns.
    """
    tensors = [
        _transformed(kinds, [_distinct(getattr(each, name)).T for each in types.values()])
        for name in ("first", "second", "product")
    ]
    means = (tensors[0] + tensors[1]) / 2 - tensors[2]
    return np.array([means[index] for index in _indices(types, residuals)])


def _indices(types: Mapping[int, PairTypes], residuals: Iterable[Residual]) -> list[tuple[int, ...]]:
    places = {axis: place for place, axis in enumerate(types)}
    indices = []
    for residual in residuals:
        index = [0] * len(places)
        for axis, level in residual:
            index[places[axis]] = level
        indices.append(tuple(index))
    return indices


def _distinct(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """One row, to be broadcast, where all are the same."""
    return matrix[:1] if (matrix == matrix[0]).all() else matrix


def diagonal(sizes: Sequence[int], ordered: Sequence[bool], residual: Residual) -> float:
    """Returns `p_A`: the most that a record adds to a residual on axes of `sizes`, `ordered` or not, squared."""
    return math.prod(1.0 if ordered[axis] else (sizes[axis] - 1) / sizes[axis] for axis, _ in residual)


def _weights(
    sizes: Sequence[int], ordered: Sequence[bool], parameters: Mapping[Residual, int]
) -> dict[Residual, float]:
    weights = {}
    for residual, parameter in parameters.items():
        axes = [axis for axis, _ in residual]
        if axes != sorted(set(axes)) or not all(
            0 <= axis < len(sizes) and 1 <= level <= axis_levels(sizes[axis], ordered[axis])
            for axis, level in residual
        ):
            raise ValueError(f"{residual} is not a residual of these attributes")
        if parameter < 1:
            raise ValueError(f"the parameter of {residual} is {parameter}, not at least 1")
        weights[residual] = residual_scale(sizes, ordered, residual) / parameter
    return weights


def _transformed(tensor: NDArray[np.float64], matrices: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    for place, matrix in enumerate(matrices):
        if matrix.shape[1] == 1 != tensor.shape[place]:  # all columns are the same
            tensor = functools.reduce(operator.add, np.split(tensor, tensor.shape[place], axis=place))
        before = tensor.reshape(math.prod(tensor.shape[:place]), tensor.shape[place], -1)
        after = np.zeros((before.shape[0], len(matrix), before.shape[2]))
        for kind, row in enumerate(matrix.tolist()):
            for level, factor in enumerate(row):
                after[:, kind] += factor * before[:, level]
        tensor = after.reshape(*tensor.shape[:place], len(matrix), *tensor.shape[place + 1 :])
    return tensor


def _bound(sizes: Sequence[int], ordered: Sequence[bool], weights: Mapping[Residual, float]) -> float:
    """The sum of every residual's own worst pair: `q_A <= p_A (1 + max_i r_i)`.

    `r_i` is how far below zero, as a part of `|u|^2`, the product of two records' numbers can be on axis i:
    `1 / (m_i - 1)` in no order, 1 on an ordered axis. A product over axes is lowest where one axis is.
    """
    parts = []
    for residual, weight in weights.items():
        lowest = max((1.0 if ordered[axis] else 1 / (sizes[axis] - 1) for axis, _ in residual), default=-1.0)
        parts.append(weight * diagonal(sizes, ordered, residual) * (1 + lowest))
    return math.fsum(parts)
