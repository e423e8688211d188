"""`multiplicative_weights`: answers each analyst separately, by selecting, measuring and learning in turns.

Hardt, Ligett & McSherry (2012), for whole statements. The mechanism selects a statement by its largest cell error,
and measures all of its cells for the price of one or two. Every round uses all measurements again. The final
answers are fitted to all measurements at once, and a noisy test says how large their largest error is at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.model.results import NO_ANSWERS, AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.checking import check_enumerable, check_setting, planned_workloads
from equipoise_server.mechanisms.interface import GRID_BITS, OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.multiplicative_weights.forecast import (
    expected_from_nothing,
    expected_from_prior,
)
from equipoise_server.mechanisms.multiplicative_weights.plan import (
    WeightsParameters,
    check_options,
    data_parts,
    plan_weights,
)
from equipoise_server.mechanisms.multiplicative_weights.prior_plan import (
    PriorWeightsParameters,
    plan_from_prior,
    prior_events,
)
from equipoise_server.mechanisms.multiplicative_weights.turns import learn_in_turns
from equipoise_server.mechanisms.own_stream import own_stream
from equipoise_server.mechanisms.parameters import read_either
from equipoise_server.mechanisms.prior.choice import NONE, OWN, STANDING, Start, starts_of
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.measure import fitted_prior, measured_for, support_of
from equipoise_server.mechanisms.prior.support import Support
from equipoise_server.mechanisms.repair.final_tests import certify
from equipoise_server.mechanisms.repair.private_weights import answer_scores, tested_half_width
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.running_time import (
    counting_bytes,
    counting_seconds,
    fitting_bytes,
    weights_seconds,
)
from equipoise_server.randomness.stream import KeyedStream

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
    the data by at least `2 (e - 2 v - r)^2`, of log|X| at most (`hypothesis`), where r is one record, by which sums
    are rounded down at most. So the mean over all T hypotheses errs by at most `sqrt(log|X| / 2T) + 2 v + r + s`:
    the promise. The fitted answers are delivered where their own test
    certifies no more than that, with what it certifies; otherwise the mean is, with the promise, as it
    is where the test is seen to have failed (`tested_half_width`).

    From a prior: a measurement of the round's own is charged once for all analysts, and costs them nothing, as no
    workload has a part in it. The charge of turns never used what the hypothesis starts from. What the
    measurement tells, and a test of all other answers, give the intervals (`repair.final_tests`); nothing is
    promised before.
    """

    name = "multiplicative_weights"
    fitted = True

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan rounds and noise from the shares and the budget.

        Options: `prior`, "own", "standing" or "none", says whether hypotheses start from a measurement, and which
        one; without it, the planner takes what is expected to err least. `rounds` forces the number of rounds.
        """
        return self.starts(setting)[0].plan

    def starts(self, setting: PublicParameters) -> list[Start]:
        """Plan a round from every prior that it may start from, best first."""
        check_setting(setting)
        check_options(setting.options)
        return starts_of(
            setting,
            {
                NONE: lambda: self._from_nothing(setting),
                OWN: lambda: self._from_prior(setting, OWN),
                STANDING: lambda: self._from_prior(setting, STANDING),
            },
        )

    def _from_nothing(self, setting: PublicParameters) -> MechanismPlan:
        check_enumerable(f"{self.name} without a prior", setting)
        parameters = plan_weights(setting)
        return make_plan(
            self.name,
            setting,
            parameters,
            data_parts(setting, parameters),
            max_half_width=parameters.proven / 2**GRID_BITS,
            expected_error=expected_from_nothing(setting, parameters),
            seconds=counting_seconds(setting) + weights_seconds(setting, parameters.rounds),
            memory_bytes=counting_bytes(setting) + fitting_bytes(setting),
        )

    def _from_prior(self, setting: PublicParameters, prior: str) -> MechanismPlan:
        parameters = plan_from_prior(setting, prior)
        return make_plan(
            self.name,
            setting,
            parameters,
            prior_events(setting, parameters),
            max_half_width=parameters.tests.limit / 2**GRID_BITS,
            expected_error=expected_from_prior(setting, parameters, parameters.prior),
            max_uncertified=setting.queries,
            seconds=counting_seconds(setting)
            + weights_seconds(setting, parameters.rounds)
            + parameters.prior.seconds(),
            memory_bytes=counting_bytes(setting) + fitting_bytes(setting) + parameters.prior.memory_bytes(),
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
        answer = self._answering(setting, plan, data, seed, progress)
        answers = {}
        progress("learning", 0, max(1, len(present)))
        for done, (analyst, workload) in enumerate(present.items(), 1):
            answers[analyst] = answer(workload, own_stream(seed, workload, "weights/learning", analyst))
            progress("learning", done, len(present))
        return Outcome(answers)

    def _answering(
        self, setting: PublicParameters, plan: MechanismPlan, data: Counts, seed: bytes, progress: OnStep
    ) -> Callable[[CompiledWorkload, KeyedStream], Answers]:
        """Return what answers one workload. A prior is measured or read here, once; no workload is an argument."""
        parameters = read_either(plan.parameters, WeightsParameters, PriorWeightsParameters)
        if isinstance(parameters, WeightsParameters):
            return lambda workload, stream: learn(parameters, workload, data, setting.records, stream)
        progress("measuring", 0, 1)
        measured = measured_for(parameters.prior, setting, data, seed)
        support = support_of(measured)
        prior = fitted_prior(parameters.prior, measured, support)
        progress("measuring", 1, 1)
        known = Known(measured, support, prior)
        return lambda workload, stream: learn_from_prior(parameters, known, workload, data, stream)


def learn(
    parameters: WeightsParameters,
    workload: CompiledWorkload,
    data: Counts,
    records: int,
    stream: KeyedStream,
) -> Answers:
    """Compute one analyst's answers: T rounds, then a fit, then the test of the fit.

    Args:
        parameters: of the plan.
        workload: the analyst's.
        data: the private table.
        records: of the table.
        stream: the randomness of this analyst's run.
    """
    if workload.empty:
        return NO_ANSWERS
    counts = data.count(workload)
    uniform = np.zeros(data.universe_size, dtype=np.int64)
    learnt = learn_in_turns(parameters, workload, counts, records, uniform, stream)
    fitted = learnt.fitted(workload)
    largest = int(answer_scores(counts, records, fitted).max())
    noisy_largest = largest + int(parameters.certify_noise.draw(1, stream)[0])
    tested = tested_half_width(noisy_largest, parameters.margin, fitted, records)
    # What is proven is so of the mean over all rounds; the fit is nearly always far better.
    values, half_width = fitted, tested
    if tested > parameters.proven:
        values, half_width = learnt.total // parameters.rounds, parameters.proven
    return answers_within(values, METHOD, half_width)


@dataclass(frozen=True, eq=False)
class Known:
    """What all analysts' turns start from, and no workload has a part in.

    `measured`: the released measurement, which gives what it tells an interval, and is what values keep to.
    `support`: the records that have weights. `prior`: the distribution over them, fitted to the measurement.
    """

    measured: Measured
    support: Support
    prior: Prior


def learn_from_prior(
    parameters: PriorWeightsParameters,
    known: Known,
    workload: CompiledWorkload,
    data: Counts,
    stream: KeyedStream,
) -> Answers:
    """Compute one analyst's answers from a prior: the turns, a fit that starts from the prior, and its intervals.

    Args:
        parameters: of the plan.
        known: the measurement and the prior.
        workload: the analyst's.
        data: the private table.
        stream: the analyst's own.
    """
    if workload.empty:
        return NO_ANSWERS
    counts = data.count(workload)
    measured, prior, queries = known.measured, known.prior, known.support.queries(workload)
    learnt = learn_in_turns(parameters, queries, counts, measured.records, prior.potential, stream)
    fitted = learnt.fitted(queries, prior.weights.astype(np.float64))
    return certify(parameters.tests, workload, counts, fitted, measured, METHOD, stream)
