"""What a round releases of the data, in either of two forms: tables with noise, or residuals.

Both fit one distribution to all that was measured, and estimate every query about a table of the family.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.joined_workloads import some_statements
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.pooled.direct import DirectAnswers, direct_answers
from equipoise_server.mechanisms.pooled.family import Family
from equipoise_server.mechanisms.pooled.independent import independent_counts
from equipoise_server.mechanisms.pooled.measured import MeasuredTable, estimate
from equipoise_server.mechanisms.pooled.synopsis import fitted_weights
from equipoise_server.mechanisms.residuals.estimates import estimates_of, outside_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.queries import ResidualQueries


@dataclass(frozen=True, eq=False)
class ReleasedTables:
    """Tables of a family, each with independent noise on its cells."""

    family: Family
    tables: Sequence[MeasuredTable]
    records: int

    def weights(self) -> NDArray[np.float64]:
        """Return the distribution fitted to all tables: float64[|X|]."""
        return fitted_weights(self.family.sizes, self.tables, self.records)

    def direct(self, workload: CompiledWorkload, chance: float) -> DirectAnswers:
        """Estimate every query from the tables that hold its statement's; `chance` as in `direct_answers`."""
        asked = sorted({axes for axes in workload.statement_tables() if self.family.holds(axes)})
        estimates = {axes: estimate(self.family.sizes, axes, self.tables, self.records) for axes in asked}
        return direct_answers(workload, estimates, chance)


@dataclass(frozen=True, eq=False)
class ReleasedResiduals:
    """The residuals of a family.

    Attributes:
        measured: the released numbers.
        fitted: whether a distribution over the universe is fitted to them.
    """

    measured: Measured
    fitted: bool

    def weights(self) -> NDArray[np.float64] | None:
        """Return the distribution fitted to all residuals: float64[|X|]; None where none is."""
        if not self.fitted:
            return None
        queries, records = ResidualQueries(self.measured.noise.family), self.measured.records
        numbers, variances = queries.measured(self.measured), queries.variances(self.measured)
        return fit(queries, numbers / records, variances / records**2).distribution

    def direct(self, workload: CompiledWorkload, chance: float) -> DirectAnswers:
        """Estimate every query about the family's tables; `chance` as in `direct_answers`."""
        outside = set(outside_of(workload, self.measured.noise.family))
        inside = np.array([number not in outside for number in range(workload.statement_count)], dtype=np.bool_)
        estimates = estimates_of(some_statements(workload, np.flatnonzero(inside).tolist()), self.measured)
        known = np.repeat(inside, np.diff(workload.statement_offsets))
        counts, deviation = np.zeros(workload.query_count), np.zeros(workload.query_count)
        reach = np.full(workload.query_count, np.inf)
        counts[known], deviation[known] = estimates.counts, np.sqrt(estimates.variances)
        reach[known] = math.sqrt(2 * math.log(2 / chance)) * deviation[known] * (1 + 1e-9) + estimates.slack
        if outside and not self.fitted:
            counts[~known] = independent_counts(some_statements(workload, sorted(outside)), self.measured)
        return DirectAnswers(counts, reach, deviation)
