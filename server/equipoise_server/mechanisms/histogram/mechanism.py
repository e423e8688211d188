"""`histogram`: adds noise to every cell of the universe once, and computes every answer from the noisy cells.

The identity strategy (Li, Hay, Rastogi, Miklau & McGregor 2010): its cost and its half-widths depend neither on
the number of queries nor on who asks them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, noisy_on_grid
from equipoise_server.mechanisms.calibration import (
    noise_distribution,
)
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.histogram.plan import (
    HistogramParameters,
    cell_limit,
    half_widths_of,
    plan_histogram,
    standard_errors_of,
)
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED
from equipoise_server.randomness.stream import KeyedStream

METHOD = AnswerMethod.HISTOGRAM


class Histogram:
    """The mechanism `histogram`.

    Formal guarantees. A record replaced takes one from a cell and adds one to another: the cells move by 2 in L1
    and by `sqrt(2)` in L2. For the people in the table, up to the truncation of the samplers: discrete Laplace
    noise of scale `2 / epsilon` on each cell is epsilon-DP; discrete Gaussian noise of variance `v` costs `1 / v`
    in zCDP. For the analysts: nothing, for either unit; answers are functions of the noisy cells, which know no
    query, and of the analyst's own workload. With probability `1 - beta` every truth lies in its answer's interval
    (`weighted_noise_tail`): for a query that covers `c` of the `N` cells, one that grows with `c (1 - c / N)`. The
    plan promises the one at the largest support of any share, which is half of the cells where none is declared.
    Since all records are known to be `n`, what the noisy cells are too many or too few in sum is spread over them:
    of the noise in `c` cells, that leaves `c (1 - c / N)` variances of one cell.
    """

    name = "histogram"
    fitted = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a round with the noise distribution that has the smaller half-width. There are no options."""
        return plan_histogram(self.name, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Add noise to every cell, whoever is present, and answer each analyst from the noisy cells."""
        present = planned_workloads(setting, data, workloads)
        parameters = HistogramParameters.from_json(plan.parameters)
        limit, size, records = cell_limit(setting), setting.universe_size, setting.records
        progress("adding noise", 0, 1)
        noisy = noise_distribution(parameters.noise, MAX_MOVED).draw(size, KeyedStream.derive(seed, "noise/cells"))
        np.clip(noisy, -limit, limit, out=noisy)
        noisy += data.dense()
        progress("adding noise", 1, 1)
        if not present:
            return Outcome({})
        together = concatenate(list(present.values()))
        progress("counting", 0, 1)
        noisy_counts = together.counts(noisy)
        # The excess of all noisy cells is spread evenly: `covered (whole + rest / size)`, to the nearest record.
        whole, rest = divmod(int(noisy.sum()) - records, size)
        covered = together.covered()
        spread = covered * whole + (2 * covered * rest + size) // (2 * size)
        delivered = answers_within(
            noisy_on_grid(noisy_counts - spread, records),
            METHOD,
            half_widths_of(parameters, covered, setting),
            standard_errors_of(parameters, covered, setting),
        )
        progress("counting", 1, 1)
        answers, start = {}, 0
        for analyst, workload in present.items():
            own = slice(start, start := start + workload.query_count)
            answers[analyst] = delivered[own]
        return Outcome(answers)
