"""What a round releases of the data, in either of two forms: tables with noise, or residuals.

Both fit one distribution to all that was measured, and estimate every query about a table of the family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.model.synopsis import Synopsis
from equipoise.queries.joined_workloads import some_statements
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.query_variances import outside_of
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.pooled.direct import DirectAnswers, deviations_of_reach, direct_answers
from equipoise_server.mechanisms.pooled.family import Family
from equipoise_server.mechanisms.pooled.fitted import Fitted, FittedSupport, FittedSynopsis
from equipoise_server.mechanisms.pooled.measured import MeasuredTable, estimate
from equipoise_server.mechanisms.pooled.synopsis import fitted_weights, synthetic_records
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.queries import ResidualQueries


class Released(Protocol):
    """What was measured. All else is post-processing of it."""

    def fitted(self, count: int) -> Fitted:
        """Fit one distribution to all of it, each number weighted by its noise, and lay out `count` records."""
        ...

    def direct(self, workload: CompiledWorkload, chance: float) -> DirectAnswers:
        """Estimate every query; `chance` as `DirectAnswers` says."""
        ...


@dataclass(frozen=True, eq=False)
class ReleasedTables:
    """Tables of a family, each with independent noise on its cells."""

    family: Family
    tables: Sequence[MeasuredTable]
    records: int

    def fitted(self, count: int) -> Fitted:
        """Fit a distribution over the universe to all tables, and lay out so many records along it."""
        sizes = self.family.sizes
        weights = fitted_weights(sizes, self.tables, self.records)
        return FittedSynopsis(Synopsis.of_cells(synthetic_records(weights, count), sizes))

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
        over_universe: whether every possible record gets a weight, or those of a support do.
    """

    measured: Measured
    over_universe: bool

    def fitted(self, count: int) -> Fitted:
        """Fit a distribution to all residuals, and lay out so many records along it."""
        if not self.over_universe:
            return FittedSupport.of(self.measured, count)
        queries, records = ResidualQueries(self.measured.noise.family), self.measured.records
        numbers, variances = queries.measured(self.measured), queries.variances(self.measured)
        sizes = self.measured.noise.sizes
        weights = fit(queries, numbers / records, variances / records**2).distribution
        return FittedSynopsis(Synopsis.of_cells(synthetic_records(weights, count), sizes))

    def direct(self, workload: CompiledWorkload, chance: float) -> DirectAnswers:
        """Estimate every query about the family's tables; `chance` as in `direct_answers`."""
        outside = set(outside_of(workload, self.measured.noise.family))
        inside = np.array([number not in outside for number in range(workload.statement_count)], dtype=np.bool_)
        estimates = estimates_of(some_statements(workload, np.flatnonzero(inside).tolist()), self.measured)
        known = np.repeat(inside, np.diff(workload.statement_offsets))
        counts, deviation = np.zeros(workload.query_count), np.zeros(workload.query_count)
        reach = np.full(workload.query_count, np.inf)
        counts[known], deviation[known] = estimates.counts, np.sqrt(estimates.variances)
        far = deviations_of_reach(workload, chance) * deviation * (1 + 1e-9)
        reach[known] = far[known] + estimates.slack
        return DirectAnswers(counts, reach, deviation)
