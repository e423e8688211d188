"""The plan of `projection`: the noise and the intervals of `gaussian`, and how far a fit may move answers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import events_from_json, events_to_json
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.mechanisms.checking import check_no_options
from equipoise_server.mechanisms.expected_error import (
    fitted_error,
    gaussian_mean,
    holds_conditions,
    mean_over_queries,
    stated,
)
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.residuals.expected_error import told_by_residuals
from equipoise_server.mechanisms.running_time import (
    fitting_bytes,
    fitting_seconds,
    listed_bytes,
    listed_seconds,
)
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

SEARCHED = 1 + 2e-3
UPWARD = 1 + 1e-9  # far more than the doubles here can err
HARDLY = Fraction(1, 2**10)  # part of beta: how probably the truth itself is too far from noisy answers


def plan_projection(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a round from public facts, under the mechanism's own name."""
    check_no_options(name, setting)
    plan = GAUSSIAN.plan(setting)
    parameters = NoiseParameters.from_json(plan.parameters)
    if setting.enumerable:
        promised = plan.max_half_width
        seconds, memory = fitting_seconds(setting, deviation_of(parameters, setting)), fitting_bytes(setting)
    else:
        promised = tables_half_width(parameters, setting) / 2**GRID_BITS
        seconds = sum(listed_seconds(share.statements) for share in setting.shares if asks_tables(share))
        memory = listed_bytes(max(share.statements for share in setting.shares), len(setting.attributes))
    return replace(
        plan,
        mechanism=name,
        max_half_width=promised,
        expected_error=stated(expected_error(parameters, setting)),
        seconds=stated(plan.seconds + seconds),
        memory_bytes=plan.memory_bytes + memory,
        data_events=events_to_json(name, events_from_json(plan.data_events)),
        analyst_events=events_to_json(name, []),
    )


def expected_error(parameters: NoiseParameters, setting: PublicParameters) -> float:
    """Return the mean error that is expected of fits to each analyst's own noisy answers.

    Where the universe cannot be enumerated, tables are told by their residuals (`own_tables`). Nothing is fitted
    to conditions, which err as their noise does.
    """
    deviation = deviation_of(parameters, setting)
    telling = sum(size > 1 for size in setting.attributes)

    def of_share(share: Share) -> float:
        if setting.enumerable:
            return fitted_error(deviation, share)
        if asks_tables(share):
            return told_by_residuals(deviation, share, telling)
        return min(1.0, gaussian_mean(deviation**2))

    return mean_over_queries(setting, of_share)


def asks_tables(share: Share) -> bool:
    """Return whether all statements of a share may be tables."""
    return not holds_conditions(share)


def tables_half_width(parameters: NoiseParameters, setting: PublicParameters) -> int:
    """Return the largest half-width where residuals of own tables are measured, in units of 2^-40.

    The best noise on the residuals of tables leaves no cell more variance than noise on their counts does: that
    noise is one way of telling them. The search for it ends within a thousandth of the best.
    """
    widest = deviation_of(parameters, setting) * reach_of(setting) * SEARCHED
    return min(1 << GRID_BITS, max(parameters.half_width, math.ceil(widest * 2.0**GRID_BITS) + 2))


def reach_of(setting: PublicParameters) -> float:
    """Return how many standard deviations an interval reaches where residuals are measured.

    A count that residuals tell errs like a sub-Gaussian number (`residuals.variances`), which is further off with
    probability at most `2 exp(-reach^2 / 2)`. So all declared queries together fail with at most `beta`.
    """
    return math.sqrt(2 * math.log(2 * setting.queries / setting.beta)) * UPWARD


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
