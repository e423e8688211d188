"""The noise of a residual measurement: one integer for each residual, to be recorded in a plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.accounting.residuals import PARAMETER_BITS, Residual, axis_levels, residual_scale
from equipoise.errors import InvalidArgument
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import COUNT, POSITIVE, canonical_object, key, list_of
from equipoise.residuals.family import ResidualFamily


@canonical_object
class ResidualNoise:
    """Public: a family of marginals, and the discrete Gaussian's variance for each of its residuals.

    `ordered`: the axes that are analysed by levels. `largest`: the family's largest sets. `parameters`: in the
    order of `ResidualFamily.residuals`. Raises `ValueError` where the sets are not a family's largest ones, in
    order, or the parameters are too few or too many.
    """

    sizes: tuple[int, ...] = key("sizes", list_of(COUNT))
    ordered: tuple[int, ...] = key("ordered", list_of(COUNT))
    largest: tuple[Axes, ...] = key("sets", list_of(list_of(COUNT)))
    parameters: tuple[int, ...] = key("parameters", list_of(POSITIVE))

    def __post_init__(self) -> None:
        try:
            family = ResidualFamily.closed(self.sizes, self.largest, self.ordered)
        except InvalidArgument as problem:
            raise ValueError(str(problem)) from None
        if (family.largest, family.ordered) != (self.largest, self.ordered):
            raise ValueError("largest and ordered must be those of a family, in its order")
        if len(family.residuals) != len(self.parameters):
            raise ValueError(f"{len(self.parameters)} parameters for {len(family.residuals)} residuals")

    @classmethod
    def of(cls, family: ResidualFamily, parameters: Sequence[int]) -> ResidualNoise:
        """Return the noise of a family's residuals, `parameters` in their order."""
        return cls(family.sizes, family.ordered, family.largest, tuple(parameters))

    @cached_property
    def family(self) -> ResidualFamily:
        """The family that is measured."""
        return ResidualFamily(self.sizes, self.ordered, self.largest)

    @cached_property
    def by_residual(self) -> dict[Residual, int]:
        """The parameter of each residual."""
        return dict(zip(self.family.residuals, self.parameters, strict=True))

    def rho(self) -> float:
        """Return what the measurement costs the data when one record is replaced (`accounting.residuals_rho`)."""
        return accounting.residuals_rho(self.sizes, self.family.is_ordered, self.by_residual)

    def variance(self, residual: Residual) -> Fraction:
        """Return the variance of the discrete Gaussian on the integers of a residual."""
        return Fraction(self.by_residual[residual], 1 << PARAMETER_BITS)

    def level_variances(self, axes: Axes) -> NDArray[np.float64]:
        """Return the normalised variances `s` of all residuals over subsets of `axes`: one dimension for each axis.

        Along each, level 0 stands for sets without that axis. The number of records is public: its variance is 0.
        """
        ordered = self.family.is_ordered
        variances = np.zeros([axis_levels(self.sizes[axis], ordered[axis]) + 1 for axis in axes])
        for index in np.ndindex(variances.shape):
            residual = tuple((axis, level) for axis, level in zip(axes, index, strict=True) if level)
            if residual:
                variances[index] = self.by_residual[residual] / residual_scale(self.sizes, ordered, residual)
        return variances
