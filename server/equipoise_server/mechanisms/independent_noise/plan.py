"""What `laplace` and `gaussian` plan: the noise on every count, and its cost."""

from __future__ import annotations

from fractions import Fraction

from equipoise.accounting import ApproximateDpEvent, Cost, charge_of, events_to_json
from equipoise.errors import InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.records.codec import COUNT, canonical_object, key
from equipoise_server.mechanisms.budget_rounding import sampler_delta
from equipoise_server.mechanisms.calibration import (
    Calibration,
    noise_distribution,
)
from equipoise_server.mechanisms.checking import check_costs, check_setting
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import NOISE, AnswerNoise
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.repair.statement_repair import bound_on_grid
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds, drawing_seconds


@canonical_object
class NoiseParameters(Parameters):
    """`noise` of counts that move by 1 in sum; `l1_sensitivity`: by how much all counts of a round may move.

    `bound`: the error of every answer, in units of 2^-40.
    """

    noise: AnswerNoise = key("noise", NOISE)
    l1_sensitivity: int = key("l1_sensitivity", COUNT)
    bound: int = key("bound", COUNT)


def plan_noise(name: str, calibrate: Calibration, setting: PublicParameters) -> MechanismPlan:
    """Plan a round of the mechanism called `name`, with noise of the law that `calibrate` gives."""
    check_setting(setting)
    for option in setting.options:
        raise InvalidArgument(f"options.{option}", f"unknown; {name} has no options")
    l1_sensitivity = sum(share.l1_sensitivity for share in setting.shares)
    noise, part = calibrate(setting.data_budget)
    law = noise_distribution(noise, l1_sensitivity)
    truncated = setting.queries * law.truncation_delta()
    slack = sampler_delta(truncated, setting.data_budget.epsilon, [part])
    parts = [part, ApproximateDpEvent("samplers", Fraction(0), slack)]
    analyst_cost = Cost() if setting.protects_analysts else None
    data_cost = charge_of(parts)
    check_costs(setting, data_cost, analyst_cost)
    parameters = NoiseParameters(
        noise,
        l1_sensitivity,
        bound_on_grid(law.quantile(Fraction(setting.beta) / (2 * setting.queries)), setting.records),
    )
    return MechanismPlan(
        mechanism=name,
        parameters=parameters.to_json(),
        data_cost=data_cost,
        analyst_cost=analyst_cost,
        error_bound=parameters.bound / 2**GRID_BITS,
        max_uncertified=0,
        seconds=counting_seconds(setting) + drawing_seconds(law, setting.queries, len(setting.shares)),
        memory_bytes=counting_bytes(setting),
        data_events=events_to_json(name, parts),
        analyst_events=events_to_json(name, []),
    )
