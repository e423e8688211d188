"""The plan of `multiplicative_weights`: rounds, noise, the proven error, and the costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, key
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho, with_samplers
from equipoise_server.mechanisms.hypothesis import gain_slack
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GAUSSIAN_NOISE, MAX_MOVED, GaussianNoise
from equipoise_server.mechanisms.options import whole
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.prior.choice import OF_PRIOR
from equipoise_server.mechanisms.prior.support import support_size
from equipoise_server.mechanisms.repair.private_weights import rounding_error, selection_step
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import UNIT_BITS

SELECT_SHARE = Fraction(1, 8)  # of one analyst's budget
CERTIFY_SHARE = Fraction(1, 8)
USUAL_ROUNDS = 24  # where no number of rounds proves anything useful
MAX_USEFUL_WIDTH = 0.25  # an error that is worth proving
MAX_ROUNDS = 512
UPWARD = 1 + 1e-9


@canonical_object
class WeightsParameters(Parameters):
    """Public parameters, the same for every analyst.

    `select_epsilon`: of one selection; `noise`: of one measured statement; `certify_epsilon`: of the final test.
    `reach`: in units of 2^-40, how far measured fractions may be from the truth. `proven`: the error of the mean
    hypothesis, 2^40 where it says nothing. `margin`: score units added to a tested error so that it is at least the
    true one.
    """

    rounds: int = key("rounds", COUNT)
    select_epsilon: Fraction = key("select_epsilon", FRACTION)
    noise: GaussianNoise = key("noise", GAUSSIAN_NOISE)
    certify_epsilon: Fraction = key("certify_epsilon", FRACTION)
    reach: int = key("reach", COUNT)
    proven: int = key("proven_half_width", COUNT)
    margin: int = key("margin", INTEGER)

    @property
    def certify_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on the largest score of the final answers."""
        return DiscreteLaplace(self.certify_epsilon / (1 << SCORE_BITS))


def plan_weights(setting: PublicParameters) -> WeightsParameters:
    """Plan the number of rounds with the least proven error, or the usual number where that proof says little."""
    forced = whole(setting.options, "rounds", 0)
    if forced:
        return with_rounds(setting, forced)
    doubled = [2**power for power in range(MAX_ROUNDS.bit_length())]
    tried = [with_rounds(setting, rounds) for rounds in doubled if affordable(setting, rounds)]
    best = min(tried, key=lambda parameters: parameters.proven, default=None)
    if best and best.proven <= MAX_USEFUL_WIDTH * 2**GRID_BITS:
        return best
    return with_rounds(setting, usual_rounds(setting))


def with_rounds(setting: PublicParameters, rounds: int) -> WeightsParameters:
    """Plan all other parameters for a number of rounds.

    Measurements, selections and tests get equal parts of beta.
    """
    rho_of_analyst = Fraction(usable_rho(setting.data_budget), RHO_UNIT * len(setting.shares))
    select = epsilon_within(4 * SELECT_SHARE * rho_of_analyst / rounds)  # a selection costs epsilon^2 / 8, not / 2
    certify = epsilon_within(CERTIFY_SHARE * rho_of_analyst)
    measure_rho = (1 - SELECT_SHARE - CERTIFY_SHARE) * rho_of_analyst / rounds
    if min(select, certify, epsilon_within(measure_rho)) < MIN_EPSILON:
        raise BudgetExhausted("data_budget: is too small for so many analysts and rounds; raise it or ask for less")
    noise, analysts, records = GaussianNoise.within(measure_rho), len(setting.shares), setting.records
    part = Fraction(setting.beta) / 3
    reach = reach_of(setting, noise, rounds)
    # McSherry & Talwar (2007): what is selected falls short of the largest score by at most this.
    nats_a_record = selection_step(select) * (1 << SCORE_BITS) / 2.0**UNIT_BITS
    slack = math.log(analysts * rounds * setting.largest_share / float(part)) / nats_a_record / records
    rounding = rounding_error(records, setting.universe_size)
    bulk = math.sqrt(math.log(setting.universe_size) / (2 * rounds) + gain_slack(rounding) / 2)
    proven = (bulk + 2 * reach + 1 / records + slack + 2 * rounding) * UPWARD
    parameters = WeightsParameters(
        rounds=rounds,
        select_epsilon=select,
        noise=noise,
        certify_epsilon=certify,
        reach=on_the_grid(reach),
        proven=min(1 << GRID_BITS, on_the_grid(proven)),
        margin=0,
    )
    margin = parameters.certify_noise.quantile(part / analysts)
    return replace(parameters, margin=margin)


def reach_of(setting: PublicParameters, noise: GaussianNoise, rounds: int) -> float:
    """Return how far any measured fraction is from the truth, but for a third of beta.

    Args:
        setting: public facts.
        noise: of one measurement.
        rounds: measurements for each analyst.

    Returns:
        A fraction of the records.
    """
    measured = len(setting.shares) * rounds * setting.largest_share
    largest = noise.law(MAX_MOVED).quantile(Fraction(setting.beta) / 3 / (2 * measured))
    return largest / setting.records + rounding_error(setting.records, support_size(setting.axes))


def on_the_grid(error: float) -> int:
    """Return an error of at most 1, rounded up, in units of 2^-40."""
    return math.ceil(min(1.0, error) * (1 << GRID_BITS)) + 1


def usual_rounds(setting: PublicParameters) -> int:
    """Return the number of rounds where no proof says more: no more than any share has statements."""
    return min(USUAL_ROUNDS, max(share.statements for share in setting.shares))


def affordable(setting: PublicParameters, rounds: int) -> bool:
    """Return whether each of so many rounds has an epsilon that samplers can draw."""
    rho_of_analyst = Fraction(usable_rho(setting.data_budget), RHO_UNIT * len(setting.shares))
    return epsilon_within(SELECT_SHARE * rho_of_analyst / rounds) >= MIN_EPSILON


def data_parts(setting: PublicParameters, parameters: WeightsParameters) -> list[PrivacyEvent]:
    """Return the privacy events of all analysts together for the data, whoever is present."""
    analysts, rounds = len(setting.shares), parameters.rounds
    truncated = analysts * parameters.certify_noise.truncation_delta()
    selection = accounting.exponential_mechanism_rho(parameters.select_epsilon, 1)
    parts = [
        ZcdpEvent("selections", selection, analysts * rounds),
        parameters.noise.part(analysts * rounds),
        PureDpEvent("certificates", parameters.certify_epsilon, analysts),
    ]
    return with_samplers(parts, truncated, setting.data_budget.epsilon)


def check_options(options: Mapping[str, object]) -> None:
    """Refuse options that are unknown or out of range, naming them."""
    for name in sorted(options.keys() - {*OF_PRIOR, "rounds"}):
        raise InvalidArgument(f"options.{name}", f"unknown; there are {', '.join((*OF_PRIOR, 'rounds'))}")
    value = options.get("rounds", 1)
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, MAX_ROUNDS + 1):
        raise InvalidArgument("options.rounds", f"must be a whole number between 1 and {MAX_ROUNDS}")
