"""`multiplicative_weights`: answers each analyst separately, by selecting, measuring and learning in turns.

Hardt, Ligett & McSherry (2012), for whole statements. The mechanism selects a statement by its largest cell error,
and measures all of its cells for the price of one or two. Every round uses all measurements again. The final
answers are fitted to all measurements at once, and a noisy test says how large their largest error is at most.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from equipoise.model.results import NO_ANSWERS, AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.checking import check_enumerable, check_setting, planned_workloads
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.hypothesis import Hypothesis, gain_slack
from equipoise_server.mechanisms.interface import GRID_BITS, OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.multiplicative_weights.plan import (
    WeightsParameters,
    data_parts,
    expected_error,
    plan_weights,
)
from equipoise_server.mechanisms.own_stream import own_stream
from equipoise_server.mechanisms.repair.private_weights import (
    answer_scores,
    rounding_error,
    selection_exponents,
    selection_step,
    tested_half_width,
)
from equipoise_server.mechanisms.running_time import (
    counting_bytes,
    counting_seconds,
    fitting_bytes,
    weights_seconds,
)
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential

METHOD = AnswerMethod.MULTIPLICATIVE_WEIGHTS


class MultiplicativeWeights:
    """The mechanism `multiplicative_weights`.

    Formal guarantees. For the people in the table, with m analysts of T rounds each, absent ones included:
    `m (T e_s^2 / 8 + T rho_m + e_c^2 / 2)` in zCDP. A score is the largest error of a statement's cells in records,
    which moves by at most 1, so a selection has range `e_s`; a measured statement costs `rho_m`, the same for
    predicates and marginals (`accounting.gaussian_rho`); the largest error of all final answers moves by 1 and is
    tested with `e_c`. For the analysts: nothing, for either unit: an analyst's answers are a function of the public
    shares, its own workload, the data and its own noise.

    Errors, with probability `1 - beta` for all analysts at once. Let `v` bound the noise of all measurements and
    `s` what selections fall short by. A round whose selected statement errs by e brings the hypothesis closer to
    the data by at least `2 (e - 2 v)^2`, of log|X| at most (`hypothesis`), so the mean over all T hypotheses errs
    by at most `sqrt(log|X| / 2T) + 2 v + s`: the promise. The fitted answers are delivered where their own test
    certifies no more than that, with what it certifies; otherwise the mean is, with the promise, as it
    is where the test is seen to have failed (`tested_half_width`).
    """

    name = "multiplicative_weights"
    fitted = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan rounds and noise from the shares and the budget. The option `rounds` forces the number of rounds."""
        check_setting(setting)
        check_enumerable(setting)
        parameters = plan_weights(setting)
        return make_plan(
            self.name,
            setting,
            parameters,
            data_parts(setting, parameters),
            max_half_width=parameters.proven / 2**GRID_BITS,
            expected_error=expected_error(setting),
            seconds=counting_seconds(setting) + weights_seconds(setting, parameters.rounds),
            memory_bytes=counting_bytes(setting) + fitting_bytes(setting),
        )

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Answer each analyst separately, with the analyst's own random stream."""
        present = planned_workloads(setting, data, workloads)
        parameters = WeightsParameters.from_json(plan.parameters)
        answers = {}
        progress("learning", 0, max(1, len(present)))
        for done, (analyst, workload) in enumerate(present.items(), 1):
            stream = own_stream(seed, workload, "weights/learning", analyst)
            answers[analyst] = learn(parameters, workload, data, setting.records, stream)
            progress("learning", done, len(present))
        return Outcome(answers)


def learn(
    parameters: WeightsParameters,
    workload: CompiledWorkload,
    data: Counts,
    records: int,
    stream: KeyedStream,
) -> Answers:
    """Compute one analyst's answers: T rounds, then a fit, then the test of the fit."""
    if workload.empty:
        return NO_ANSWERS
    counts, starts = data.count(workload), workload.statement_offsets
    slack = gain_slack(rounding_error(records, data.universe_size))
    hypothesis = Hypothesis(np.zeros(data.universe_size, dtype=np.int64), slack)
    # For each query: the sum of 1 / variance, and the sum of the measured fractions with these weights.
    precision, weighted = np.zeros(len(counts)), np.zeros(len(counts))
    total = np.zeros(len(counts), dtype=np.int64)
    step = selection_step(parameters.select_epsilon)
    for _ in range(parameters.rounds):
        expected = hypothesis.answers(workload)
        total += expected
        scores = np.maximum.reduceat(answer_scores(counts, records, expected), starts[:-1])
        chosen = int(draw_exponential(selection_exponents(scores, step), 1, stream)[0])
        cells = slice(int(starts[chosen]), int(starts[chosen + 1]))
        law = parameters.noise.law(workload.statement_sensitivity(chosen))
        noisy = (counts[cells] + law.draw(cells.stop - cells.start, stream)) / records
        hypothesis.measured(workload, chosen, noisy, parameters.reach / 2.0**GRID_BITS)
        weight = records**2 / float(parameters.noise.variance * workload.statement_sensitivity(chosen))
        precision[cells] += weight
        weighted[cells] += weight * noisy
    variances = np.divide(1.0, precision, out=np.full(len(counts), np.inf), where=precision > 0)
    measured = np.divide(weighted, precision, out=np.zeros(len(counts)), where=precision > 0)
    fitted = np.rint(np.clip(fit(workload, measured, variances).answers, 0, 1) * 2.0**GRID_BITS).astype(np.int64)
    largest = int(answer_scores(counts, records, fitted).max())
    noisy_largest = largest + int(parameters.certify_noise.draw(1, stream)[0])
    tested = tested_half_width(noisy_largest, parameters.margin, fitted, records)
    # What is proven is so of the mean over all rounds; the fit is nearly always far better.
    values, half_width = fitted, tested
    if tested > parameters.proven:
        values, half_width = total // parameters.rounds, parameters.proven
    return answers_within(values, METHOD, half_width)
