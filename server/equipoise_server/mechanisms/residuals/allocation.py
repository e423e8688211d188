"""Divides a data budget among the residuals of a family: for a least sum of variances, or a least largest one.

With `v_A` what variance `s_A = 1` of a residual adds to the objective, and `c_A` what its precision `1 / s_A`
costs, `sum v_A s_A` is least under `sum c_A / s_A = rho` for `s_A = sqrt(c_A / v_A) T / rho`, `T = sum sqrt(c_A
v_A)`, and is `T^2 / rho`. Two things are not such sums, and are made so by weights that adapt: the cost is that of
the worst of many kinds of pairs of records (weights on kinds; `c_A` is their mean), and the objective may be the
largest of many variances (weights on sets; `v_A` is their mean). Whatever the weights, `T^2 / rho` bounds the
optimum from below, for the largest is at least the mean; and the `s` found, scaled until the worst kind costs rho,
bounds it from above.

This is a search in floating point, on public numbers. Its result is integers, which are charged for what they are
(`ResidualNoise.rho`): no guarantee rests on how well it converges. As a replay makes the plan again, every machine
must find the same integers. So it adds, multiplies, divides and takes square roots, number by number in a fixed
order, and other sums are correctly rounded (`math.fsum`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.cost import OUTWARD
from equipoise.accounting.residuals import PARAMETER_BITS, Residual, residual_scale
from equipoise.errors import BudgetExhausted
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.mechanisms.residuals.allocation_terms import Asked, Costs, Uses
from equipoise_server.randomness.discrete_gaussian import MAX_VARIANCE

STEPS = 60
GAP = 1e-3  # between the bounds on the optimum, at which the search ends
ROOTS = 4  # powers of steps are multiples of 2^-4
FIRST_POWER = 3 << ROOTS
FINE = 1e-4  # of the budget: left to rounding
FIRST_CUT = 0.2  # the first attempt at a smaller scale


@dataclass(frozen=True)
class Allocation:
    """An allocation.

    Attributes:
        noise: the parameters. They cost at most the rho that they were made for.
        value: the objective, in records squared, that they reach.
        bound: no allocation of the same rho reaches less.
    """

    noise: ResidualNoise
    value: float
    bound: float


def least_summed(
    family: ResidualFamily,
    rho: float | Fraction,
    weights: Mapping[Axes, float] | None = None,
    asked: Asked = "both",
) -> Allocation:
    """Minimise the weighted sum of the mean variances of the family's tables.

    Args:
        family: what is measured.
        rho: the budget, for replacing one record.
        weights: for some sets of the family, above 0; each set of the family must be within one of them. If nothing
            is given, every one of the largest sets has its number of cells: the sum over all of their cells.
        asked: whose mean variance counts on ordered axes.

    Raises:
        InvalidArgument: weights that are not of this family, or leave a residual without a use.
        BudgetExhausted: the noise would be coarser than its sampler can draw.
    """
    chosen = _cells(family) if weights is None else weights
    return _least(family, rho, chosen, asked, largest=False)


def least_largest(
    family: ResidualFamily,
    rho: float | Fraction,
    scales: Mapping[Axes, float] | None = None,
    asked: Asked = "cells",
) -> Allocation:
    """Minimise the largest mean variance of a table over its scale.

    Args:
        family: what is measured.
        rho: the budget, for replacing one record.
        scales: for some sets of the family, above 0, as in `least_summed`; 1 for each of the largest sets if
        nothing
            is given. In no order all cells of a table have the same variance.
        asked: whose mean variance counts on ordered axes.

    Raises as `least_summed` does.
    """
    chosen = dict.fromkeys(family.largest, 1.0) if scales is None else scales
    return _least(family, rho, chosen, asked, largest=True)


def _cells(family: ResidualFamily) -> dict[Axes, float]:
    return {axes: float(math.prod(family.sizes[axis] for axis in axes)) for axes in family.largest}


def _least(
    family: ResidualFamily, rho: float | Fraction, weights: Mapping[Axes, float], asked: Asked, largest: bool
) -> Allocation:
    """Maximise T over the weights, in which it is concave, by multiplicative steps that never lower it.

    The derivatives of T are proportional to the costs of the kinds of pairs and to the variances of the sets. A
    step multiplies each weight by a power of its derivative; the power grows while steps succeed, and falls where
    one would lower T.
    """
    use = Uses.of(family, weights, asked)
    if not family.residuals:
        return Allocation(ResidualNoise.of(family, ()), 0.0, 0.0)
    costs, budget = Costs.of(family), float(rho)
    scale = np.array([weights[axes] for axes in use.sets])
    factors = 1 / scale if largest else scale
    on_kinds = costs.start()
    on_sets = np.full(len(factors), 1 / len(factors)) if largest else np.ones(len(factors))
    best, value, highest, power = np.empty(0), math.inf, 0.0, FIRST_POWER
    kept = on_kinds, on_sets
    slopes: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    for _ in range(STEPS):
        means, uses = costs.means(on_kinds), use.total(on_sets * factors)
        total = _sum(np.sqrt(means * uses))
        if total >= highest:
            highest, kept, power = total, (on_kinds, on_sets), power + -(-power // 3)
            spread = np.sqrt(means / uses) * (total / budget)
            by_kind, reached = costs.by_kind(spread), use.variances(spread) * factors
            slopes = by_kind, reached
            worst = float(by_kind.max())
            objective = (float(reached.max()) if largest else _sum(reached)) * worst / budget
            if objective < value:
                best, value = spread * (worst / budget), objective
        else:
            power = -(-power // 4)
        if value <= highest**2 / budget * (1 + GAP) or slopes is None or not (largest or costs.weighed):
            break
        on_kinds = _multiplied(kept[0], slopes[0], power) if costs.weighed else on_kinds
        on_sets = _multiplied(kept[1], slopes[1], power) if largest else on_sets
    if not costs.weighed:
        # Once, and not at every step: of 22 attributes this takes seconds.
        best = best * (costs.worst(best) / budget)
    noise = _rounded_up(family, best, budget)
    reached = use.variances(1 / np.array(list(_precisions(family, noise).values()))) * factors
    bound = highest**2 / budget if costs.weighed else 0.0
    return Allocation(noise, float(reached.max()) if largest else _sum(reached), bound)


def _multiplied(weights: NDArray[np.float64], slopes: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    """Multiply weights by slopes to a power, in units of 2^-4, by square roots and products alone."""
    factor = slopes / slopes.max()
    for _ in range(ROOTS):
        factor = np.sqrt(factor)
    moved = weights
    for bit in range(power.bit_length()):
        moved = moved * factor if power >> bit & 1 else moved
        factor = factor * factor
    return np.asarray(moved / _sum(moved))


def _sum(numbers: NDArray[np.float64]) -> float:
    return math.fsum(numbers.ravel().tolist())


def _rounded_up(family: ResidualFamily, spread: NDArray[np.float64], rho: float) -> ResidualNoise:
    """The parameters of normalised variances. Rounding up lowers the cost; scaling uses what that leaves."""
    scales = [residual_scale(family.sizes, family.is_ordered, residual) for residual in family.residuals]
    # What the largest scale gives costs at most rho, as it is never below the variances themselves.
    low, high = 0.0, OUTWARD**3
    best = ResidualNoise.of(family, _integers(spread, scales, high))
    while high - low > FINE and best.rho() < rho * (1 - FINE):
        middle = (low + high) / 2 if low else high * (1 - FIRST_CUT)
        tried = ResidualNoise.of(family, _integers(spread, scales, middle))
        if tried.rho() <= rho:
            best, high = tried, middle
        else:
            low = middle
    return best


def _integers(spread: NDArray[np.float64], scales: list[int], factor: float) -> list[int]:
    parameters = [
        max(1, math.ceil(Fraction(variance * factor) * scale))
        for variance, scale in zip(spread.tolist(), scales, strict=True)
    ]
    if max(parameters) > MAX_VARIANCE * (1 << PARAMETER_BITS):
        raise BudgetExhausted(
            "data_budget: is too small for so many tables; the noise would be coarser than its sampler can draw"
        )
    return parameters


def _precisions(family: ResidualFamily, noise: ResidualNoise) -> dict[Residual, float]:
    return {
        residual: residual_scale(family.sizes, family.is_ordered, residual) / parameter
        for residual, parameter in noise.by_residual.items()
    }
