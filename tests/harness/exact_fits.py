"""A grant's fits in fractions: what its tables and its own noises tell without any rounding.

The theorem is the server's: `tests/unit/mechanisms/grant/test_joined_fits.py` compares that with normal equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import Meaning, Told, places_of, subsets
from equipoise.queries.own_precision import EXACTLY, Parts, cells_outside

Exact = NDArray[Any]
"""Fractions, or whole numbers of Python."""

NO_MEASUREMENT: Mapping[Axes, tuple[Fraction, Exact]] = {}


class ExactFits:
    """All noisy counts of one grant, as they were drawn."""

    def __init__(self) -> None:
        self._tables: list[tuple[Told, Fraction, Exact]] = []
        self._own: dict[bytes, list[tuple[int, list[int]]]] = {}

    def learn(self, meaning: Meaning, cost: int, noisy: NDArray[np.int64]) -> None:
        """Add noisy counts, in the order of the meaning's key."""
        self._own.setdefault(meaning.key, []).append((cost, noisy.tolist()))
        if meaning.told is not None and meaning.told.whole:
            table = noisy.astype(object).reshape(meaning.told.mask.shape)
            self._tables.append((meaning.told, Fraction(cost, meaning.moved), table))

    def own(self, meaning: Meaning) -> list[Fraction]:
        """The mean, by what was paid, of one statement's noisy counts, in the order of its meaning's key."""
        drawn = self._own[meaning.key]
        paid = sum(cost for cost, _ in drawn)
        columns = zip(*(noisy for _, noisy in drawn), strict=True)
        costs = [cost for cost, _ in drawn]
        return [
            Fraction(sum(cost * each for cost, each in zip(costs, column, strict=True)), paid) for column in columns
        ]

    def counts(
        self, told: Told, measured: Mapping[Axes, tuple[Fraction, Exact]] = NO_MEASUREMENT
    ) -> list[Fraction]:
        """The least-squares fit to all tables. `measured`: each part of a measurement, with its precision."""
        parts = {part: self._part(part, measured.get(part)) for part in subsets(told.table)}
        table = np.full([told.sizes[axis] for axis in told.table], Fraction(0), dtype=object)
        for kept in subsets(told.table):
            shape = [told.sizes[axis] if axis in kept else 1 for axis in told.table]
            for part, known in parts.items():
                if known is not None and set(kept) <= set(part):
                    share = Fraction((-1) ** (len(part) - len(kept)), cells_outside(told, kept))
                    down = _summed(known, part, kept).reshape(shape)
                    table = np.asarray(table + down * share, dtype=object)
        ordered = table.transpose([told.table.index(axis) for axis in (*told.axes, *told.rest)]) * told.mask
        every = tuple(range(len(told.table)))
        return list(_summed(ordered, every, every[: len(told.axes)]).reshape(-1))

    def _part(self, part: Axes, measured: tuple[Fraction, Exact] | None) -> Exact | None:
        precision, known = measured or (Fraction(0), np.zeros((), dtype=object))
        if precision == EXACTLY:
            return known
        weighted = known * precision
        for told, paid, noisy in self._tables:
            if set(part) <= set(told.axes):
                own = paid / cells_outside(told, part)
                weighted = weighted + _summed(noisy, told.axes, part) * own
                precision += own
        return np.asarray(weighted / precision, dtype=object) if precision else None


def measured_parts(
    precisions: Parts, tables: Iterable[tuple[Axes, Exact, int]]
) -> dict[Axes, tuple[Fraction, Exact]]:
    """Parts of a measurement for `ExactFits.counts`, of tables as numerators and their denominator."""
    return {
        axes: (precisions[axes], numerators.astype(object) * Fraction(1, denominator))
        for axes, numerators, denominator in tables
    }


def as_asked(meaning: Meaning, counts: list[Fraction], opposite_of: int | None = None) -> list[Fraction]:
    """Counts of a meaning's key as the statement asks for them. `opposite_of`: all records, for the other side."""
    own = [counts[place] for place in places_of(meaning).tolist()]
    return own if opposite_of is None else [opposite_of - each for each in own]


def _summed(table: Exact, axes: Axes, kept: Axes) -> Exact:
    away = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(table.sum(axis=away) if away else table, dtype=object)
