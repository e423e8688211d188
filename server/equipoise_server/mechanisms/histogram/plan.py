"""The plan of `histogram`: the noise on every cell, its cost, and the error of sums of cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import PrivacyEvent
from equipoise.errors import BudgetExhausted
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.box_terms import EXACT
from equipoise.records.codec import FRACTION, canonical_object, key
from equipoise_server.mechanisms.answers import MAX_PARTS
from equipoise_server.mechanisms.budget_rounding import with_samplers
from equipoise_server.mechanisms.calibration import (
    Calibration,
    calibrate_laplace,
    least_gaussian,
    noise_distribution,
)
from equipoise_server.mechanisms.checking import check_enumerable, check_no_options, check_setting
from equipoise_server.mechanisms.expected_error import (
    cells_of_a_table,
    covered_by_predicate,
    gaussian_mean,
    mean_over_queries,
    mixed_error,
)
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, NOISE, AnswerNoise, NoiseDistribution
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds, drawing_seconds
from equipoise_server.mechanisms.weighted_noise_tail import sum_reach

BEYOND = Fraction(1, 2**160)  # probability that the noise of one cell is cut, so that sums of all stay exact


@canonical_object
class HistogramParameters(Parameters):
    """The public parameters of `histogram`.

    `noise`: for L1 sensitivity 1; the cells have L1 sensitivity 2. `chance`: the probability that one truth
    lies outside its interval.
    """

    noise: AnswerNoise = key("noise", NOISE)
    chance: Fraction = key("chance", FRACTION)


def plan_histogram(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a round from public facts, under the mechanism's own name."""
    check_setting(setting)
    check_no_options(name, setting)
    check_enumerable(name, setting)
    promises = [each for kind in (least_gaussian, calibrate_laplace) if (each := promise_of(kind, setting))]
    if not promises:
        raise BudgetExhausted("data_budget: is too small; sums of so much noise on each cell would not be exact")
    half_width, parameters, part = min(promises, key=lambda each: each[0])
    law = noise_distribution(parameters.noise, MAX_MOVED)
    return make_plan(
        name,
        setting,
        parameters,
        with_samplers([part], truncation(law, setting), setting.data_budget.epsilon),
        max_half_width=half_width / 2**GRID_BITS,
        expected_error=expected(law, setting),
        seconds=counting_seconds(setting) + drawing_seconds(law, setting.universe_size, 1),
        memory_bytes=counting_bytes(setting) + 8 * setting.universe_size,
    )


def expected(law: NoiseDistribution, setting: PublicParameters) -> float:
    """Return the mean error of sums of cells, as a fraction of the records: that of a Gaussian sum."""
    variance, size = float(law.variance) / setting.records**2, setting.universe_size

    def of_sum(covered: float) -> float:
        return min(1.0, gaussian_mean(variance * covered * (1 - covered / size)))

    def of_share(share: Share) -> float:
        return mixed_error(share, of_sum(covered_by_predicate(share, size)), of_sum(size / cells_of_a_table(share)))

    return mean_over_queries(setting, of_share)


def promise_of(
    calibrate: Calibration, setting: PublicParameters
) -> tuple[int, HistogramParameters, PrivacyEvent] | None:
    """Return the largest half-width of any query, in units of 2^-40, the parameters and the charge.

    Returns None where the budget allows no such noise.
    """
    try:
        noise, part = calibrate(setting.data_budget)
        law = noise_distribution(noise, MAX_MOVED)
    except BudgetExhausted:
        return None
    if law.quantile(BEYOND) >= cell_limit(setting):
        return None
    kept = Fraction(setting.beta) - truncation(law, setting)
    parameters = HistogramParameters(noise, kept / setting.queries)
    most = np.array([setting.largest_support])
    return int(half_widths_of(parameters, most, setting)[0]), parameters, part


def truncation(law: NoiseDistribution, setting: PublicParameters) -> Fraction:
    """Return the total variation of all cells' noise from the ideal law: that of its sampler, and what is cut.

    Noise is cut before a cell's records are added, so this is not post-processing and must be charged. It is cut at
    least one further out than `BEYOND` is reached, which is all that a record moves: so what is cut of either
    neighbour's law is at most as probable as `BEYOND` on each side under the other one's, also in Gaussian noise.
    """
    return setting.universe_size * (law.truncation_delta() + 2 * BEYOND)


def cell_limit(setting: PublicParameters) -> int:
    """Return the most noise on one cell with which all cells, noise and records, add up to at most 2^53."""
    return (EXACT - setting.records) // setting.universe_size


def half_widths_of(
    parameters: HistogramParameters, covered: NDArray[np.int64], setting: PublicParameters
) -> NDArray[np.int64]:
    """Return the half-widths of queries that cover so many cells, in units of 2^-40: int64[k].

    Half a record more than the noise reaches, as the answer is rounded to whole records; and a unit of the grid.

    Args:
        parameters: of the plan.
        covered: universe cells that each query covers, int64[k].
        setting: of the plan.
    """
    size = setting.universe_size
    law = noise_distribution(parameters.noise, MAX_MOVED)
    reach = sum_reach(law, (covered * (size - covered)) / size, parameters.chance)
    # No answer is further from the truth than all records are.
    records = np.minimum(reach + 0.5, setting.records)
    units = np.ceil(records * (2.0**GRID_BITS / setting.records)).astype(np.int64) + 1
    return np.minimum(units, 1 << GRID_BITS)


def standard_errors_of(
    parameters: HistogramParameters, covered: NDArray[np.int64], setting: PublicParameters
) -> NDArray[np.int64]:
    """Return the standard errors of queries that cover so many cells, in units of 2^-40, rounded up: int64[k].

    The noise of the cells, less the mean of all cells' noise. The nearest record, to which an answer is rounded,
    moves it by at most half a record.

    Args:
        parameters: of the plan.
        covered: universe cells that each query covers, int64[k].
        setting: of the plan.
    """
    size = setting.universe_size
    variance = float(noise_distribution(parameters.noise, MAX_MOVED).variance)
    deviations = np.sqrt(variance * ((covered * (size - covered)) / size))
    units = np.ceil(deviations * (2.0**GRID_BITS / setting.records))
    return np.minimum(units, float(MAX_PARTS << GRID_BITS)).astype(np.int64)
