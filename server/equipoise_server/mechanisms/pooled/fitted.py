"""What a round fits to its measurement, and the answers that both together give.

Either is post-processing. Queries outside the family have no interval, and stay uncertified here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import ONE
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.answers import answers_within, moved_into, uncertified, with_answers
from equipoise_server.mechanisms.fitted_records import FittedRecords, moved_near
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.pooled.direct import DirectAnswers
from equipoise_server.mechanisms.residuals.measurement import Measured


class Fitted(Protocol):
    """One distribution that is fitted to all that was measured."""

    @property
    def synopsis(self) -> Synopsis:
        """Records along the distribution, which every analyst may download."""
        ...

    def answered(self, together: CompiledWorkload, direct: DirectAnswers, records: int, certified: int) -> Answers:
        """Return the answer to every query, with the interval of the measurement, which holds whatever was fitted.

        Args:
            together: all workloads of the round.
            direct: what the measurement alone says about its queries.
            records: of the table.
            certified: the largest half-width of an answer that is certified, in units of 2^-40.
        """
        ...


@dataclass(frozen=True, eq=False)
class FittedSynopsis:
    """Records along a distribution over the universe: their counts are the values."""

    synopsis: Synopsis

    def answered(self, together: CompiledWorkload, direct: DirectAnswers, records: int, certified: int) -> Answers:
        """Return the synopsis's value where it lies in the interval, as it errs less than the measurement.

        Beyond, the synopsis is known to be wrong, and the measurement itself is delivered, not cut at 0.
        """
        tables, known = _by_tables(direct, records, certified)
        values = self.synopsis.answers(together)
        inside = (tables.lows <= values) & (values <= tables.highs)
        possible = np.where(np.isfinite(direct.reach) & ~inside, np.clip(tables.values, 0, ONE), values)
        answers = with_answers(uncertified(possible), known, tables[known])
        fitted = known & inside
        return with_answers(answers, fitted, moved_into(tables, values, AnswerMethod.FITTED)[fitted])


@dataclass(frozen=True, eq=False)
class FittedSupport:
    """A distribution over the records of a support, whose own answers are the values."""

    distribution: FittedRecords
    synopsis: Synopsis

    @classmethod
    def of(cls, measured: Measured, count: int) -> FittedSupport:
        """Fit a distribution to a measurement, and lay out so many records along it."""
        distribution = FittedRecords.of(measured)
        return cls(distribution, distribution.synopsis(count))

    def answered(self, together: CompiledWorkload, direct: DirectAnswers, records: int, certified: int) -> Answers:
        """Return the distribution's value near the measured one (`moved_near`)."""
        tables, known = _by_tables(direct, records, certified)
        values = self.distribution.answers(together)
        near = moved_near(tables, values, together.statement_offsets, AnswerMethod.MEASURED)
        return with_answers(uncertified(values), known, near[known])


def _by_tables(direct: DirectAnswers, records: int, certified: int) -> tuple[Answers, NDArray[np.bool_]]:
    """Return the measurement's own answers, and which of them may be told with their interval."""
    told = np.isfinite(direct.reach)
    # Two units: the measurement's rounding, and the half-width's.
    half_widths = np.where(told, on_grid_upwards(np.where(told, direct.reach, 0), records, 2), 0)
    measured = np.rint(direct.counts * (float(ONE) / records)).astype(np.int64)
    errors = on_grid_upwards(direct.deviation, records)
    return answers_within(measured, GaussianNoise.method, half_widths, errors), told & (half_widths <= certified)


def on_grid_upwards(amounts: NDArray[np.float64], records: int, more: int = 0) -> NDArray[np.int64]:
    """Return amounts of records as parts of all in units of 2^-40: rounded up, so many more; at most 1.

    Args:
        amounts: float64[k], of records.
        records: how many there are in all.
        more: units that are added after rounding.

    Returns:
        int64[k].
    """
    units = np.ceil(amounts * (float(ONE) / records)) + more
    return np.asarray(np.minimum(units, ONE), dtype=np.int64)
