"""`laplace` and `gaussian`: add independent noise to every count of a round.

All counts of a round are one vector, whose sensitivity is at most the sum of the declared sensitivities. So the
cost depends on the number of tables, not on the number of their cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within, noisy_on_grid, standard_error_on_grid
from equipoise_server.mechanisms.calibration import (
    Calibration,
    calibrate_laplace,
    least_gaussian,
    noise_distribution,
)
from equipoise_server.mechanisms.checking import planned_workloads
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters, plan_noise
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.own_stream import own_stream


@dataclass(frozen=True)
class IndependentNoise:
    """Noise of one law and one scale on every count of every analyst. `calibrate`: which law.

    Formal guarantees. Let `l1_sensitivity` be the sum of all shares' declared sensitivities, absent analysts'
    included. For the people in the table, up to the truncation of the samplers:
    `laplace`, of scale `l1_sensitivity / epsilon`, is epsilon-DP;
    `gaussian`, of variance `v`, costs `l1_sensitivity / (2 v)` in zCDP. (A record replaced moves the vector of all
    counts by at most `l1_sensitivity` in L1 and, as each query moves by at most 1, by at most
    `sqrt(l1_sensitivity)` in L2.) For the analysts: nothing, for either unit. Given the shares, an analyst's
    answers are a function of its own workload, the data and its own noise; noise never depends on what is
    submitted. With probability `1 - beta` all truths lie in their intervals, one quantile of
    the law to either side: a union bound over all declared queries. Answers are unbiased, so they are not cut at 0
    and at all records; their intervals are.
    """

    name: str
    calibrate: Calibration
    fitted: ClassVar[bool] = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Noise from the shares and the data budget. There are no options."""
        return plan_noise(self.name, self.calibrate, setting)

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Each analyst's counts, with noise from a stream of its own."""
        parameters = NoiseParameters.from_json(plan.parameters)
        counts = noisy_counts(setting, parameters, data, workloads, seed, progress)
        answers = {analyst: noisy_answers(parameters, own, setting.records) for analyst, own in counts.items()}
        return Outcome(answers)


def noisy_counts(
    setting: PublicParameters,
    parameters: NoiseParameters,
    data: Counts,
    workloads: Mapping[str, CompiledWorkload],
    seed: bytes,
    progress: OnStep,
) -> dict[str, NDArray[np.int64]]:
    """Return the noisy counts of each analyst who is present, int64[k]: what the whole round costs.

    Args:
        setting: of the plan.
        parameters: of the plan.
        data: the private table.
        workloads: of the analysts who submitted one.
        seed: of the round; each analyst has a stream of its own.
        progress: called before and after counting.
    """
    present = planned_workloads(setting, data, workloads)
    law = noise_distribution(parameters.noise, parameters.l1_sensitivity)
    progress("counting", 0, 1)
    counts = data.count(concatenate(list(present.values()))) if present else np.zeros(0, dtype=np.int64)
    progress("counting", 1, 1)
    noisy, start = dict[str, NDArray[np.int64]](), 0
    for analyst, workload in present.items():
        own = counts[start : (start := start + workload.query_count)]
        noisy[analyst] = own + law.draw(own.size, own_stream(seed, workload, "noise/answers", analyst))
    return noisy


def noisy_answers(parameters: NoiseParameters, noisy: NDArray[np.int64], records: int) -> Answers:
    """Return noisy counts as one analyst's answers.

    Args:
        parameters: of the plan.
        noisy: one analyst's counts, int64[k].
        records: of the table.
    """
    law = noise_distribution(parameters.noise, parameters.l1_sensitivity)
    error = standard_error_on_grid(law.variance, records)
    return answers_within(noisy_on_grid(noisy, records), parameters.noise.method, parameters.half_width, error)


LAPLACE = IndependentNoise("laplace", calibrate_laplace)
GAUSSIAN = IndependentNoise("gaussian", least_gaussian)
