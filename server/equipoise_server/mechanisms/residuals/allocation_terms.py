"""What the precision of residuals costs, and what their variances add to the tables that are asked about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.residuals import (
    MAX_PAIR_TYPES,
    PairTypes,
    Residual,
    costs_by_type,
    diagonal,
    mean_costs,
    pair_types,
    residual_costs,
    used_axes,
)
from equipoise.errors import InvalidArgument
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.axis_bases import AxisBasis, bases_of
from equipoise.residuals.family import ResidualFamily

Asked = Literal["cells", "prefixes", "both"]
"""What is asked along ordered axes: single categories, prefixes, or both alike."""

MAX_WEIGHED_TYPES = 1 << 16  # kinds of pairs that get weights; beyond, every residual counts alone


@dataclass(frozen=True, eq=False)
class Costs:
    """What precision costs.

    Attributes:
        types: the kinds of pairs on each axis that is measured.
        weighed: whether kinds of pairs get weights; else every residual counts alone: by its diagonal, which nearly
            all of a pair that differs everywhere costs, or, where a bound is charged, by its part of the bound.
    """

    family: ResidualFamily
    types: dict[int, PairTypes]
    weighed: bool

    @classmethod
    def of(cls, family: ResidualFamily) -> Costs:
        """Find the kinds of pairs of a family."""
        types = {
            axis: pair_types(family.sizes[axis], family.is_ordered[axis]) for axis in used_axes(family.residuals)
        }
        return cls(family, types, math.prod(len(each.first) for each in types.values()) <= MAX_WEIGHED_TYPES)

    def start(self) -> NDArray[np.float64]:
        """Return the first weights, of the shape of `by_kind`: of independent uniform records on axes in no order.

        Pairs on an ordered axis are cut at level 1 half of the time, and at each further level half as often.
        """
        weights = np.ones(1)
        for axis, types in self.types.items() if self.weighed else ():
            own = 0.5 ** np.arange(len(types.first))
            if axis not in self.family.ordered:
                own = np.array([1.0, self.family.sizes[axis] - 1.0])
            weights = np.multiply.outer(weights, own / math.fsum(own.tolist()))
        return weights[0] if self.weighed else weights

    def means(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean cost of each residual's precision over weighted kinds of pairs: float64[residuals]."""
        return mean_costs(self.types, self.family.residuals, weights) if self.weighed else self._alone

    def by_kind(self, spread: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cost of each kind of pair; where kinds are not weighed one number, of residuals alone."""
        if self.weighed:
            return costs_by_type(self.types, self._precisions(spread))
        return np.array([math.fsum((self._alone / spread).tolist())])

    def worst(self, spread: NDArray[np.float64]) -> float:
        """Return what the worst pair is charged, which takes seconds where there are millions of kinds."""
        return residual_costs(self.family.sizes, self.family.is_ordered, self._precisions(spread))

    def _precisions(self, spread: NDArray[np.float64]) -> dict[Residual, float]:
        return dict(zip(self.family.residuals, (1 / spread).tolist(), strict=True))

    @cached_property
    def _alone(self) -> NDArray[np.float64]:
        """What precision 1 of each residual costs alone: float64[residuals]."""
        family = self.family
        if math.prod(len(each.first) for each in self.types.values()) > MAX_PAIR_TYPES:
            return np.array(
                [residual_costs(family.sizes, family.is_ordered, {each: 1.0}) for each in family.residuals]
            )
        return np.array([diagonal(family.sizes, family.is_ordered, each) for each in family.residuals])


@dataclass(frozen=True, eq=False)
class Uses:
    """What the variance of each residual adds to the mean variance of each table that is asked about.

    Entry j says that variance 1 of residual `residual[j]` adds `amount[j]` to the set at place `place[j]`.
    """

    sets: tuple[Axes, ...]
    residuals: int
    place: NDArray[np.int64]
    residual: NDArray[np.int64]
    amount: NDArray[np.float64]

    @classmethod
    def of(cls, family: ResidualFamily, sets: Mapping[Axes, float], asked: Asked) -> Uses:
        """Raises `InvalidArgument` naming weights that cannot be used."""
        for axes, weight in sets.items():
            if axes not in family.sets:
                raise InvalidArgument("weights", f"name the set {axes}, which is not one of the family's")
            if not 0 < weight < math.inf:
                raise InvalidArgument("weights", f"must be above 0 and finite; that of {axes} is {weight}")
        numbers = {residual: number for number, residual in enumerate(family.residuals)}
        bases = bases_of(family.sizes, family.is_ordered)
        strengths = [_strengths(basis, axis in family.ordered, asked) for axis, basis in enumerate(bases)]
        place, residual, amount = [], [], []
        for number, axes in enumerate(sets):
            amounts = np.ones(1)
            for axis in axes:
                amounts = np.multiply.outer(amounts, strengths[axis])
            for index in np.ndindex(amounts.shape[1:]):
                if any(index):
                    name = tuple((axis, level) for axis, level in zip(axes, index, strict=True) if level)
                    place.append(number)
                    residual.append(numbers[name])
                    amount.append(float(amounts[(0, *index)]))
        unused = sorted(set(range(len(numbers))) - set(residual))
        if unused:
            axes = tuple(axis for axis, _ in family.residuals[unused[0]])
            raise InvalidArgument("weights", f"leave the set {axes} of the family without a use")
        arrays = np.array(place, dtype=np.int64), np.array(residual, dtype=np.int64), np.array(amount)
        return cls(tuple(sets), len(numbers), *arrays)

    def total(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each residual's variance adds to the weighted sum over sets: float64[residuals]."""
        return np.bincount(self.residual, self.amount * weights[self.place], self.residuals).astype(np.float64)

    def variances(self, spread: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean variance of each set: float64[sets]."""
        return np.bincount(self.place, self.amount * spread[self.residual], len(self.sets)).astype(np.float64)


def _strengths(basis: AxisBasis, ordered: bool, asked: Asked) -> NDArray[np.float64]:
    """The mean strength of each level on what is asked along one axis.

    Both alike: each of the two counts by what it would be at best, alone and with all pairs costing alike.
    """
    cells = np.asarray(basis.cell_strengths().mean(axis=0))
    if not ordered or asked == "cells":
        return cells
    prefixes = basis.prefix_strengths()
    if asked == "prefixes":
        return prefixes
    best = [math.fsum(np.sqrt(each[1:]).tolist()) ** 2 for each in (cells, prefixes)]
    return cells + prefixes * (best[0] / best[1])
