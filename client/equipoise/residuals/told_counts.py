"""What a dataset's standing measurement tells of a statement of a grant, before anything is asked or paid.

The measurement is public, so that analyst, server and auditor come to the same. Variances are computed by
elementwise arithmetic on whole numbers (`query_variances`), which every machine repeats, and are taken as exact
fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from equipoise.accounting import RHO_UNIT
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.meanings import Meaning, places_of
from equipoise.queries.own_precision import EXACTLY, MeasuredPrecision
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

    def tells(self, asked: CompiledWorkload, meaning: Meaning) -> MeasuredPrecision | None:
        """Return how precisely the measurement tells a statement's counts; None where it does not tell them.

        Args:
            asked: the statement, compiled alone.
            meaning: what it asks.
        """
        if outside_of(asked, self.noise.family):
            return None
        variances = query_variances(asked, self.noise)
        rows = np.zeros(meaning.counts, dtype=np.intp)
        if meaning.told is not None:
            rows = meaning.told.squares[2][places_of(meaning)]
        largest = np.zeros(int(rows.max(initial=0)) + 1)
        np.maximum.at(largest, rows, variances)
        scale = Fraction(self.person_records**2 * RHO_UNIT, 2)
        units = [Fraction(each) * ROUNDING for each in largest.tolist()]
        precisions = tuple(min(EXACTLY, scale / each) if each else EXACTLY for each in units)
        return MeasuredPrecision(precisions, int(own_code_lengths(asked).max(initial=1)))
