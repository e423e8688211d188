"""What `laplace` and `gaussian` plan: the noise on every count, and its cost."""

from __future__ import annotations

from fractions import Fraction

from equipoise.model.rounds import MechanismPlan
from equipoise.records.codec import COUNT, canonical_object, key
from equipoise_server.mechanisms.budget_rounding import with_samplers
from equipoise_server.mechanisms.calibration import (
    Calibration,
    noise_distribution,
)
from equipoise_server.mechanisms.checking import check_no_options, check_setting
from equipoise_server.mechanisms.expected_error import noisy_answers_error
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.noise_calibration import NOISE, AnswerNoise
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.repair.statement_repair import half_width_on_grid
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds, drawing_seconds


@canonical_object
class NoiseParameters(Parameters):
    """`noise` of counts that move by 1 in sum; `l1_sensitivity`: by how much all counts of a round may move.

    `half_width`: of every answer's interval, in units of 2^-40.
    """

    noise: AnswerNoise = key("noise", NOISE)
    l1_sensitivity: int = key("l1_sensitivity", COUNT)
    half_width: int = key("half_width", COUNT)


def plan_noise(name: str, calibrate: Calibration, setting: PublicParameters) -> MechanismPlan:
    """Plan a round of the mechanism called `name`, with noise of the law that `calibrate` gives.

    Args:
        name: of the mechanism.
        calibrate: gives the noise, and its event, that a budget allows.
        setting: public facts.

    Raises:
        InvalidArgument: the setting is not valid, or has options, of which there are none.
        BudgetExhausted: the noise would exceed the data budget.
    """
    check_setting(setting)
    check_no_options(name, setting)
    l1_sensitivity = sum(share.l1_sensitivity for share in setting.shares)
    noise, part = calibrate(setting.data_budget)
    law = noise_distribution(noise, l1_sensitivity)
    truncated = setting.queries * law.truncation_delta()
    parameters = NoiseParameters(
        noise,
        l1_sensitivity,
        half_width_on_grid(law.quantile(Fraction(setting.beta) / (2 * setting.queries)), setting.records),
    )
    return make_plan(
        name,
        setting,
        parameters,
        with_samplers([part], truncated, setting.data_budget.epsilon),
        max_half_width=parameters.half_width / 2**GRID_BITS,
        expected_error=noisy_answers_error(law, setting.records),
        seconds=counting_seconds(setting) + drawing_seconds(law, setting.queries, len(setting.shares)),
        memory_bytes=counting_bytes(setting),
    )
