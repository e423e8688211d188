"""A prior together with its measurement, which answers some statements by itself, with intervals.

Everything here is a function of the released measurement, so it costs nothing, however many statements are
answered and whoever chooses them. What a statement is answered by depends on the statement and on what was released
before the session: intervals are cut at 0 and all records, so the released numbers have a part in their widths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, moved_into
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.measure import fitted_prior, measured_for, support_of
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.prior.support import Support
from equipoise_server.mechanisms.residuals.direct import UniformReach, answerable, direct_answers
from equipoise_server.mechanisms.residuals.measurement import Measured

MEASURED = AnswerMethod.MEASURED
UPWARD = 1 + 1e-6


@dataclass(frozen=True, eq=False)
class MeasuredPrior:
    """What is known of a table from one public measurement.

    Attributes:
        support: the records that the distribution has weights of.
        prior: the distribution over them, fitted to the measurement.
        measured: the measurement.
        reach: by how much anything that it tells may err.
    """

    support: Support
    prior: Prior
    measured: Measured
    reach: UniformReach

    @classmethod
    def of(
        cls, parameters: PriorParameters, chance: Fraction, setting: PublicParameters, data: Counts, seed: bytes
    ) -> MeasuredPrior:
        """Measure, or read what was released before, and fit. Raises what `measured_for` raises.

        Args:
            parameters: of the plan.
            chance: at most with this one any interval of `answers` misses its truth, of all that may be asked.
            setting: of the session.
            data: the private table.
            seed: of the session.
        """
        measured = measured_for(parameters, setting, data, seed)
        support = support_of(measured)
        reach = UniformReach(parameters.noise.family, chance)
        return cls(support, fitted_prior(parameters, measured, support), measured, reach)

    def holds(self, statement: CompiledWorkload) -> bool:
        """Return whether the measurement tells all that a statement asks about."""
        return answerable(self.measured.noise.family, statement)

    def answers(self, statement: CompiledWorkload, expected: NDArray[np.int64]) -> Answers:
        """Answer a statement that the measurement `holds`.

        Args:
            statement: one statement of k queries.
            expected: int64[k], in units of 2^-40, what a distribution says: each is moved into its interval.
        """
        direct = direct_answers(self.measured, self.reach, statement)
        scale = 2.0**GRID_BITS / self.measured.records
        values = np.rint(direct.counts * scale).astype(np.int64)
        # Rounded up, and two units for the rounding of the value and of this product.
        half_widths, errors = (
            np.minimum(np.ceil(each * scale) + 2, 2.0**GRID_BITS).astype(np.int64)
            for each in (direct.reach, direct.deviation)
        )
        return moved_into(answers_within(values, MEASURED, half_widths, errors), expected, MEASURED)


def measured_half_width(prior: PriorParameters, chance: Fraction, records: int) -> int:
    """Return the largest half-width of a single cell that is measured, in units of 2^-40.

    Args:
        prior: the measurement.
        chance: that any interval of the measurement misses its truth.
        records: `n`, how many records the table has.
    """
    noise = prior.noise
    largest = max(float(cell_variances(noise, axes).max()) for axes in noise.family.sets)
    reach = UniformReach(noise.family, chance).cells() * math.sqrt(largest) / records
    return min(1 << GRID_BITS, math.ceil(float(reach) * UPWARD * 2.0**GRID_BITS))
