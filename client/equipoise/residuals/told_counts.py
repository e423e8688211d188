"""What a dataset's standing measurement tells of a statement of a grant, before anything is asked or paid.

The measurement is public, so that analyst, server and auditor come to the same. Variances are computed by
elementwise arithmetic on whole numbers (`query_variances`), which every machine repeats, and are taken as exact
fractions.

**Parts.** A restored marginal falls apart into one part for each set R of its axes (`queries.own_precision`).
Where no axis of R has an order, the part of R is made of the numbers over exactly R alone: restoring centres them
along the axes of R, and spreads them evenly along others. So its noise is that of independent noise of one
variance on all cells of a table over R, centred, and it is independent of the noise of all other parts. On an
ordered axis of `2^L` categories the levels are orthogonal, and every halving is even, so that the same holds of
each level by itself: level l, with the variance s, has what `s 2^(l-1) / 2^L` on all cells would have. Here the
part has the largest of its levels. So every weighted sum of a part's noise is sub-Gaussian with what a table of
that precision would have. Parts with an ordered axis of another number of categories are left out, as their
halvings are not even.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.accounting import RHO_UNIT
from equipoise.accounting.residuals import residual_scale
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import Meaning, places_of
from equipoise.queries.own_precision import EXACTLY, NO_PARTS, MeasuredPrecision
from equipoise.queries.strict_json import parse_json
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.query_variances import outside_of, query_variances
from equipoise.residuals.reach import own_code_lengths
from equipoise.residuals.released import measurement_from

ROUNDING = 1 + Fraction(1, 1 << 40)  # more than doubles can make a variance too small by


@dataclass(frozen=True)
class StandingNoise:
    """The noise of the measurement that the answers of a grant are combined with.

    `person_records`: how many records each person of the table has, M.
    """

    noise: ResidualNoise
    person_records: int

    @classmethod
    def of(
        cls, value: Mapping[str, Any] | None, sizes: tuple[int, ...], person_records: int, field: str = "standing"
    ) -> StandingNoise | None:
        """Return the noise of the measurement that a record names; None where it names none.

        Args:
            value: as `ReleasedMeasurement.as_option` writes it; None: there is none.
            sizes: how many categories each attribute of the table has.
            person_records: how many records each person has, M.
            field: what errors call the value.

        Raises:
            VerificationFailed: it names none, or one of other attributes.
        """
        return None if value is None else cls(measurement_from(value, sizes, field).noise, person_records)

    @classmethod
    def read(cls, text: str, sizes: tuple[int, ...], person_records: int) -> StandingNoise | None:
        """Return the noise of the measurement that a grant is shown with; None where the text is empty.

        Args:
            text: `Grant.standing`.
            sizes: as for `of`.
            person_records: as for `of`.

        Raises:
            InvalidArgument: the text is not JSON.
            VerificationFailed: as `of` raises.
        """
        return cls.of(parse_json(text, "grant.standing"), sizes, person_records) if text else None

    @cached_property
    def parts(self) -> dict[Axes, Fraction]:
        """The precision of each part that can be fitted together with tables, and of the number of all records."""
        family, by_residual = self.noise.family, self.noise.by_residual
        found: dict[Axes, Fraction] = {(): EXACTLY}
        for axes in family.sets:
            if any(family.is_ordered[axis] and family.sizes[axis].bit_count() != 1 for axis in axes):
                continue
            largest = Fraction(0)
            for residual in family.residuals_of(axes):
                even = Fraction(by_residual[residual], residual_scale(family.sizes, family.is_ordered, residual))
                for axis, level in residual:
                    if family.is_ordered[axis]:
                        even *= Fraction(1 << (level - 1), family.sizes[axis])
                largest = max(largest, even)
            found[axes] = min(EXACTLY, self._scale / largest)
        return found

    @property
    def _scale(self) -> Fraction:
        """What over a variance is a precision."""
        return Fraction(self.person_records**2 * RHO_UNIT, 2)

    def tells(self, asked: CompiledWorkload, meaning: Meaning) -> MeasuredPrecision | None:
        """Return how precisely the measurement tells a statement's counts; None where it tells nothing of them.

        Args:
            asked: the statement, compiled alone.
            meaning: what it asks.
        """
        table = () if meaning.told is None else meaning.told.table
        parts = self.parts if any(part and set(part) <= set(table) for part in self.parts) else NO_PARTS
        if outside_of(asked, self.noise.family):
            if not parts:
                return None
            return MeasuredPrecision((Fraction(0),), int(own_code_lengths(asked).max(initial=1)), parts)
        variances = query_variances(asked, self.noise)
        rows = np.zeros(meaning.counts, dtype=np.intp)
        if meaning.told is not None:
            rows = meaning.told.squares[2][places_of(meaning)]
        largest = np.zeros(int(rows.max(initial=0)) + 1)
        np.maximum.at(largest, rows, variances)
        units = [Fraction(each) * ROUNDING for each in largest.tolist()]
        precisions = tuple(min(EXACTLY, self._scale / each) if each else EXACTLY for each in units)
        return MeasuredPrecision(precisions, int(own_code_lengths(asked).max(initial=1)), parts)
