"""A round's start from a prior, and the intervals of what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.equilibrium.parameters import PriorStart
from equipoise_server.mechanisms.interface import OnStep, PublicParameters
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.measure import fitted_prior, measured_for, support_of
from equipoise_server.mechanisms.prior.support import Support
from equipoise_server.mechanisms.repair.final_tests import certify
from equipoise_server.mechanisms.repair.statement_repair import SynopsisCounts
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.randomness.stream import KeyedStream


@dataclass(frozen=True, eq=False)
class Begun:
    """What was measured before anything was played, and the prior fitted to it: released, no workload in it.

    `support`: the records over which the prior and the data player keep weights.
    """

    parameters: PriorStart
    measured: Measured
    support: Support
    prior: Prior

    @property
    def prior_records(self) -> NDArray[np.int64]:
        """The records along the prior that the synopsis has: int64, places in the support."""
        return self.prior.records(self.parameters.laid_out)


def begin(start: PriorStart, setting: PublicParameters, data: Counts, seed: bytes, progress: OnStep) -> Begun:
    """Measure the prior's marginals, or read what was released of them, and fit it. No workload is an argument.

    Args:
        start: the plan of the prior.
        setting: of the run.
        data: the private table; its marginals are counted, unless they were released before.
        seed: of the round.
        progress: called before and after.
    """
    progress("measuring", 0, 1)
    measured = measured_for(start.prior, setting, data, seed)
    progress("measuring", 1, 1)
    support = support_of(measured)
    return Begun(start, measured, support, fitted_prior(start.prior, measured, support))


def certify_all(
    begun: Begun,
    workloads: Mapping[str, CompiledWorkload],
    counts: NDArray[np.int64],
    synopsis: SynopsisCounts,
    seed: bytes,
    progress: OnStep,
) -> dict[str, Answers]:
    """Return the synopsis's answers to every analyst, with intervals, each analyst's alone.

    Args:
        begun: the measured prior.
        workloads: of the analysts who are present.
        counts: the table's, int64[k] of all analysts' queries, one after another.
        synopsis: the synopsis's counts of the same queries.
        seed: of the round.
        progress: called before anything is tested.
    """
    # Told once, before anything, as in repair.
    progress("repairing", 0, 1)
    values = on_grid(synopsis.counts, synopsis.size)
    answers, first = {}, 0
    for analyst, workload in workloads.items():
        own = slice(first, first + workload.query_count)
        first = own.stop
        answers[analyst] = certify(
            begun.parameters.tests,
            workload,
            counts[own],
            values[own],
            begun.measured,
            AnswerMethod.SYNOPSIS,
            KeyedStream.derive(seed, "repair/final test", analyst),
        )
    return answers
