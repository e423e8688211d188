"""What the dataset's standing measurement tells of a grant's statements, and its part in their answers.

The measurement is public and was paid for when it was made, so that it costs the grant nothing. Its noise is
independent of all that is drawn for the grant. So each count is the mean of both by inverse variance, which is
unbiased, and whose variance follows. Or the measured marginals are fitted together with the tables that were paid
for, part by part, where that is more precise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.released import ReleasedNumbers
from equipoise.residuals.told_counts import StandingNoise
from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, total
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.standing.released import named_measurement, released_numbers


@dataclass(frozen=True, eq=False)
class StandingCounts:
    """A standing measurement, as a grant answers from it: its noise, which is in the terms, and its numbers."""

    noise: StandingNoise
    measured: Measured

    @classmethod
    def of(cls, setting: PublicParameters, planned: ReleasedNumbers | None) -> StandingCounts | None:
        """Return the measurement that a grant's plan names; None where it names none.

        Args:
            setting: with the measurement in its options, and with its numbers.
            planned: which one the plan names.

        Raises:
            ValueError: the numbers are not those that the plan names.
        """
        if planned is None:
            return None
        noise = named_measurement(setting).noise
        return cls(StandingNoise(noise, setting.person_records), released_numbers(setting, planned, noise))

    def table(self, axes: Axes) -> Rounded:
        """Return the measured marginal over a set of the family, in records: one dimension for each axis."""
        if axes not in self._tables:
            counts = self.measured.table(axes).counts()
            # Each is a quotient of two integers: it is rounded, and so is an integer of 2^53 or more.
            self._tables[axes] = Rounded(counts, 3 * OPERATION * total(counts))
        return self._tables[axes]

    @cached_property
    def _tables(self) -> dict[Axes, Rounded]:
        return {}

    def estimates(self, asked: CompiledWorkload) -> Estimates:
        """Return what the measurement alone tells of a statement, of which its family has the table."""
        return estimates_of(asked, self.measured)


def combined(one: Estimates, other: Estimates) -> Estimates:
    """Return the means of two independent estimates by inverse variance, count by count.

    Args:
        one: of k counts.
        other: of the same counts.
    """
    both = one.variances + other.variances
    # Of two that are both exact the first counts.
    weights = np.divide(other.variances, both, out=np.ones_like(both), where=both > 0)
    counts = one.counts * weights + other.counts * (1 - weights)
    # With u as in `grant.rounded`, and the larger count M: a weight errs by 2 u at most, which moves the mean by
    # 4 M u, as the counts differ by up to 2 M. The other weight and the products err by 2 M u, and the sum by M u.
    # Both weights add up to 1, so that the larger slack holds for both.
    largest = np.maximum(np.abs(one.counts), np.abs(other.counts))
    slack = np.maximum(one.slack, other.slack) + 7 * OPERATION * largest
    return Estimates(counts, one.variances * weights, slack)
