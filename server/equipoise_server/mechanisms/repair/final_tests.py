"""Intervals for a hypothesis that starts from a prior: what the measurement tells, and one test of all the rest.

A query whose attributes are in one table of the prior's family has an estimate of a known law, and so an interval,
at no further cost. Where that is wider than what the tests are planned to give, and where no table tells the query,
the test gives the interval: each analyst's largest error, measured once with noise of its own.

For the people in the table: the largest of scores of sensitivity 2^16 has that sensitivity, so one test costs
`2^32 / (2 variance)`, charged for every public place. For analysts: given the hypothesis, what one analyst sees
depends on no other workload, for both units of protection.

Which queries a test covers depends on public numbers and on the analyst's own workload. Truths lie outside with
probability at most beta: half for queries of a known law, half for all analysts' tests (`tested_half_width`). The
first half is for all declared queries (`reach`, by Chernoff's bound for sub-Gaussian numbers) where the measurement
is the round's own. Where it was released before, statements may have been chosen by its noise. Then it is for all
that can ever be asked of it (`equipoise.residuals.reach`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import ZcdpEvent, gaussian_rho
from equipoise.errors import BudgetExhausted
from equipoise.model.results import NO_ANSWERS, AnswerMethod, Answers
from equipoise.queries.joined_workloads import some_statements
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import COUNT, FRACTION, canonical_object, key, optional
from equipoise.residuals.query_variances import outside_of
from equipoise.residuals.reach import code_lengths, log_chance, reaches
from equipoise_server.mechanisms.answers import answers_within, moved_into, uncertified, with_answers
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING, answer_scores, tested_half_width
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.randomness.discrete_gaussian import MAX_VARIANCE, DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

REACH_BITS = 20  # standard deviations are recorded in units of 2^-20
MAX_PART = 8  # of the expected largest error: beyond it a test certifies nothing
SAYS_NOTHING = 1 << (GRID_BITS - 1)  # a half-width of 1/2: the answer 1/2 keeps to it, whatever the truth


@canonical_object
class FinalTestParameters:
    """Public parameters of all tests of a round.

    `variance`: of the noise on each analyst's largest score, in scores squared; 0 where nothing is tested.
    `margin`: what that noise exceeds with the chance that is allowed it, as a score. `usual`, `limit`: half-widths
    in units of 2^-40; a query of a known law is not tested where its own half-width is at most `usual`, and a test
    beyond `limit` certifies nothing. `reach`: half-widths of a known law, in units of 2^-20 standard deviations.
    `log`: where the measurement was released before, of 2 over its part of beta, which gives them instead.
    """

    variance: int = key("variance", COUNT)
    margin: int = key("margin", COUNT)
    usual: int = key("usual", COUNT)
    limit: int = key("limit", COUNT)
    reach: int = key("reach", COUNT)
    log: Fraction | None = key("log_chance", optional(FRACTION))

    @property
    def noise(self) -> DiscreteGaussian:
        """The law of the noise on an analyst's largest score."""
        return DiscreteGaussian(Fraction(self.variance))

    def events(self, analysts: int) -> list[ZcdpEvent]:
        """Return what the tests of so many public places cost the data."""
        if not self.variance:
            return []
        return [
            ZcdpEvent("final tests", gaussian_rho(Fraction(1 << 2 * SCORE_BITS), Fraction(self.variance), analysts))
        ]

    def truncation(self, analysts: int) -> Fraction:
        """Return the total variation of the tests' noise from its exact law: 0 as long as the sampler is exact."""
        return analysts * self.noise.truncation_delta() if self.variance else Fraction(0)


@dataclass(frozen=True)
class KnownLaw:
    """What a measurement tells of one workload: int64[k], in units of 2^-40; half-widths beyond 1 tell nothing."""

    values: NDArray[np.int64]
    half_widths: NDArray[np.int64]


def plan_final_tests(
    setting: PublicParameters, expected: float, rho: Fraction, released: bool = False
) -> FinalTestParameters:
    """Plan tests of all analysts within `rho`; none where it is 0.

    Args:
        setting: the public parameters.
        expected: the largest error of the hypothesis that is expected, as a fraction of the records.
        rho: the data's budget, in zCDP.
        released: whether the measurement was known before the statements are chosen.

    Raises:
        BudgetExhausted: the noise would be coarser than its sampler can draw.
    """
    analysts, scale = len(setting.shares), setting.records << SCORE_BITS
    # beta is shared out: half to all queries of a known law, half to all tests.
    deviations = math.sqrt(2 * math.log(4 * setting.queries / setting.beta))
    reach = math.ceil(deviations * 2**REACH_BITS) + 1
    log = log_chance(setting.beta / 2) if released else None
    if not rho:
        return FinalTestParameters(0, 0, SAYS_NOTHING, SAYS_NOTHING, reach, log)
    variance = math.ceil(gaussian_rho(Fraction(1 << 2 * SCORE_BITS), Fraction(1), analysts) / rho)
    if variance > MAX_VARIANCE:
        raise BudgetExhausted("data_budget: leaves too little for repair; raise it or ask for less")
    margin = DiscreteGaussian(Fraction(variance)).quantile(setting.beta / 2 / analysts)
    noise = 2 * margin + SCORE_ROUNDING
    usual = half_width_on_grid(math.ceil(expected * scale) + noise // 2, scale)
    limit = half_width_on_grid(math.ceil(MAX_PART * expected * scale) + noise, scale)
    return FinalTestParameters(variance, margin, min(usual, SAYS_NOTHING), min(limit, SAYS_NOTHING), reach, log)


def certify(
    parameters: FinalTestParameters,
    workload: CompiledWorkload,
    counts: NDArray[np.int64],
    values: NDArray[np.int64],
    measured: Measured,
    method: AnswerMethod,
    stream: KeyedStream,
) -> Answers:
    """Return the hypothesis's answers to one analyst, with their intervals.

    A value outside the interval that a measurement gives is moved into it.

    Args:
        parameters: of all tests of the round.
        workload: the analyst's, of k queries.
        counts: int64[k], the true counts.
        values: int64[k], the hypothesis's answers in units of 2^-40.
        measured: what gives queries of a known law their intervals.
        method: how answers with an interval were answered.
        stream: the analyst's own, from which the test's noise is drawn.
    """
    if workload.query_count == 0:
        return NO_ANSWERS
    records = measured.records
    law = known_law(parameters, workload, measured)
    known = law.half_widths <= parameters.usual
    answers = uncertified(values)
    own = answers_within(law.values[known], method, law.half_widths[known])
    answers = with_answers(answers, known, moved_into(own, values[known], method))
    if not parameters.variance or known.all():
        return answers
    noise = parameters.noise.draw(1, stream)
    largest = int(answer_scores(counts[~known], records, values[~known]).max())
    half_width = tested_half_width(largest + int(noise[0]), parameters.margin, values[~known], records)
    if half_width > parameters.limit:
        return answers
    return with_answers(answers, ~known, answers_within(values[~known], method, half_width))


def known_law(parameters: FinalTestParameters, workload: CompiledWorkload, measured: Measured) -> KnownLaw:
    """Return what the measurement tells of every query. Elementwise arithmetic: the same on every machine."""
    values = np.zeros(workload.query_count, dtype=np.int64)
    half_widths = np.full(workload.query_count, 1 << (GRID_BITS + 1), dtype=np.int64)
    inside = np.ones(workload.statement_count, dtype=np.bool_)
    inside[outside_of(workload, measured.noise.family)] = False
    if inside.any():
        answerable = np.repeat(inside, np.diff(workload.statement_offsets))
        asked = some_statements(workload, np.flatnonzero(inside).tolist())
        estimates = estimates_of(asked, measured)
        unit = 2.0**GRID_BITS / measured.records
        deviations: float | NDArray[np.float64] = parameters.reach / 2.0**REACH_BITS
        if parameters.log is not None:
            deviations = reaches(parameters.log, code_lengths(asked, measured.noise.family))
        reached = estimates.slack + np.sqrt(estimates.variances) * deviations
        values[answerable] = np.rint(np.clip(estimates.counts * unit, -(2.0**60), 2.0**60)).astype(np.int64)
        half_widths[answerable] = np.ceil(np.minimum(reached * unit, 2.0 ** (GRID_BITS + 1))).astype(np.int64) + 2
    return KnownLaw(values, half_widths)
