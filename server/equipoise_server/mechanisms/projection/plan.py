"""The plan of `projection`: the noise and the intervals of `gaussian`, and how far a fit may move answers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import events_from_json, events_to_json
from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.checking import check_enumerable, check_no_options
from equipoise_server.mechanisms.expected_error import fitted_error, mean_over_queries, stated
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.running_time import fitting_bytes, fitting_seconds
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

HARDLY = Fraction(1, 2**10)  # part of beta: how probably the truth itself is too far from noisy answers


def plan_projection(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a round from public facts, under the mechanism's own name."""
    check_no_options(name, setting)
    plan = GAUSSIAN.plan(setting)
    check_enumerable(name, setting)
    parameters = NoiseParameters.from_json(plan.parameters)
    return replace(
        plan,
        mechanism=name,
        expected_error=stated(expected_error(parameters, setting)),
        seconds=stated(plan.seconds + fitting_seconds(setting, deviation_of(parameters, setting))),
        memory_bytes=plan.memory_bytes + fitting_bytes(setting),
        data_events=events_to_json(name, events_from_json(plan.data_events)),
        analyst_events=events_to_json(name, []),
    )


def expected_error(parameters: NoiseParameters, setting: PublicParameters) -> float:
    """Return the mean error that is expected of fits to each analyst's own noisy answers."""
    deviation = deviation_of(parameters, setting)
    return mean_over_queries(setting, lambda share: fitted_error(deviation, share))


def deviation_of(parameters: NoiseParameters, setting: PublicParameters) -> float:
    """Return the standard deviation of each noisy answer, as a fraction of the records."""
    return math.sqrt(gaussian_law(parameters).variance) / setting.records


def furthest(parameters: NoiseParameters, setting: PublicParameters) -> int:
    """Return how far fitted counts may be from the noisy counts, in records."""
    return gaussian_law(parameters).quantile(HARDLY * Fraction(setting.beta) / (2 * setting.queries))


def gaussian_law(parameters: NoiseParameters) -> DiscreteGaussian:
    """Return the distribution of the noise on every count."""
    if not isinstance(parameters.noise, GaussianNoise):
        raise ValueError("projection starts from Gaussian noise")
    return DiscreteGaussian(parameters.noise.variance * parameters.l1_sensitivity)
