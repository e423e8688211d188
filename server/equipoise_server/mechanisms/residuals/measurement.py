"""Measures the residuals of a family, and puts marginals and boxes together from them: all in exact integers.

Formal guarantees: for tables that differ in one replaced record the released integers are `noise.rho()`-zCDP
(`accounting.residuals_rho`); everything else here is post-processing. The expectation of every restored cell is the
true count, all restored tables agree with one another where they overlap, and each sums to the number of records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.axis_bases import bases_of
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.counts import Counts
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

NUMBER_BYTES = 8  # of one released integer
FITS = 1 << 62  # int64 holds what stays below it; larger numbers are Python's


@dataclass(frozen=True, eq=False)
class ExactTable:
    """A restored marginal: `numerators / denominator`, with one dimension for each of `axes`.

    Numerators are int64, or Python's integers where these could overflow.
    """

    axes: Axes
    numerators: NDArray[np.int64]
    denominator: int

    def counts(self) -> NDArray[np.float64]:
        """Return the cells as float64, each rounded twice at most. They may be negative."""
        return np.asarray(self.numerators / self.denominator, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured: released, and safe to publish.

    Attributes:
        noise: the public noise.
        records: the number of records, public.
        numbers: for each set of the family the noisy integers of its residuals, int64, one dimension for each axis:
            along it the numbers of level 1, then of level 2 and so on.
    """

    noise: ResidualNoise
    records: int
    numbers: Mapping[Axes, NDArray[np.int64]]

    @classmethod
    def from_bytes(cls, noise: ResidualNoise, records: int, data: bytes) -> Measured:
        """Read what `to_bytes` wrote. Raises `ValueError` for bytes of another length."""
        family = noise.family
        bases = bases_of(family.sizes, family.is_ordered)
        shapes = {axes: tuple(bases[axis].places[-1].stop for axis in axes) for axes in family.sets}
        if len(data) != NUMBER_BYTES * sum(map(math.prod, shapes.values())):
            raise ValueError(f"the {len(data):,} bytes are not those of the family's numbers")
        left, numbers = np.frombuffer(data, dtype="<i8").astype(np.int64), {}
        for axes, shape in shapes.items():
            own, left = np.split(left, [math.prod(shape)])
            numbers[axes] = own.reshape(shape)
        return cls(noise, records, numbers)

    def to_bytes(self) -> bytes:
        """Write the numbers set by set, in the family's order: 8 bytes for each, little endian."""
        return b"".join(self.numbers[axes].astype("<i8").tobytes() for axes in self.noise.family.sets)

    def table(self, axes: Axes) -> ExactTable:
        """Return the unbiased marginal over a set of the family, exactly.

        Raises `ValueError` for a set that the family does not hold.
        """
        family = self.noise.family
        if not family.holds(axes):
            raise ValueError(f"the marginal over {axes} was not measured")
        every = bases_of(family.sizes, family.is_ordered)
        telling = tuple(axis for axis in axes if family.sizes[axis] > 1)
        bases = [every[axis] for axis in telling]
        parts = {axes: self.numbers[axes] for axes in family.sets if set(axes) <= set(telling)}
        largest = sum(int(np.abs(part).max()) for part in parts.values()) + self.records
        fits = largest * math.prod(each.growth for each in bases) < FITS
        table = np.zeros([each.places[-1].stop + 1 for each in bases], dtype=np.int64 if fits else object)
        table[(0,) * len(bases)] = self.records
        for own, part in parts.items():
            table[tuple(slice(1, None) if axis in own else 0 for axis in telling)] = part
        for place, basis in enumerate(bases):
            table = basis.restore(table, place)
        shape = tuple(family.sizes[axis] for axis in axes)
        return ExactTable(axes, table.reshape(shape), math.prod(each.denominator for each in bases))

    def product(self, axes: Axes, factors: Sequence[Sequence[int]]) -> Fraction:
        """Return the estimate of one product query: the weighted sum of a table's cells, for a box of 0 and 1.

        Args:
            axes: a set of the family.
            factors: for each of these axes an integer weight for every category.

        Raises:
            ValueError: the family does not hold the set, or a factor has another length.
        """
        table = self.table(axes)
        if [len(each) for each in factors] != [self.noise.sizes[axis] for axis in axes]:
            raise ValueError("a query has a factor for each of its axes, and a weight for each category")
        sums = table.numerators.astype(object)
        for own in factors:
            sums = np.tensordot(np.array(own, dtype=object), sums, axes=(0, 0))
        return Fraction(int(sums), table.denominator)


def measure(data: Counts, noise: ResidualNoise, seed: bytes, label: str) -> Measured:
    """Count the family's marginals, and add discrete Gaussian noise to the integers of each residual.

    Args:
        data: the private table.
        noise: the family, and the parameter of each residual.
        seed: of the round; every residual draws from a stream of its own.
        label: names the purpose of these streams, once in a round.

    Raises:
        ValueError: the table is over another universe, or too large for exact integers.
    """
    family = noise.family
    if data.universe_size != math.prod(family.sizes):
        raise ValueError("the table is over another universe")
    bases = bases_of(family.sizes, family.is_ordered)
    numbers = {}
    for axes, table in data.marginals(family.sets):
        # No number on the way is above this: a cell has a weight of at most its axis's size along every axis.
        if data.records * math.prod(bases[axis].size for axis in axes) >= FITS:
            raise ValueError(f"the residuals over {axes} are too large for exact integers")
        exact = table
        for place, axis in enumerate(axes):
            exact = bases[axis].analyse(exact, place)
        noisy = np.array(exact, dtype=np.int64)
        for residual in family.residuals_of(axes):
            own = tuple(bases[axis].places[level - 1] for axis, level in residual)
            law = DiscreteGaussian(noise.variance(residual))
            name = ",".join(f"{axis}.{level}" for axis, level in residual)
            drawn = law.draw(noisy[own].size, KeyedStream.derive(seed, label, name))
            noisy[own] += drawn.reshape(noisy[own].shape)
        numbers[axes] = noisy
    return Measured(noise, data.records, {axes: numbers[axes] for axes in family.sets})
