"""The plan of `multiplicative_weights` from a prior: one measurement for all, then turns and a test for each.

The measurement is shared, so that it is worth the more the more analysts there are; turns are each analyst's own.
"""

from __future__ import annotations

from fractions import Fraction

from equipoise.accounting import RHO_UNIT, PrivacyEvent, ZcdpEvent, exponential_mechanism_rho, rounded_up
from equipoise.errors import BudgetExhausted
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho, with_samplers
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.plan import on_the_grid, reach_of, usual_rounds
from equipoise_server.mechanisms.noise_calibration import GAUSSIAN_NOISE, GaussianNoise
from equipoise_server.mechanisms.options import whole
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.prior.choice import STANDING
from equipoise_server.mechanisms.prior.forecast import expected_largest
from equipoise_server.mechanisms.prior.plan import PriorParameters, plan_prior, standing_prior
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters, plan_final_tests

PRIOR_SHARE = Fraction(3, 4)  # of the budget: on Adult it errs less than a half, and than a quarter
TEST_SHARE = Fraction(1, 2)  # of what the measurement leaves, for the tests of all analysts
SELECT_SHARE = Fraction(1, 6)  # of what turns have


@canonical_object
class PriorWeightsParameters(Parameters):
    """Public parameters of a round that starts from a prior, the same for every analyst.

    `prior`: what is measured. `rounds`: turns of each analyst. `select_epsilon`: of one selection; `noise`: of one
    measured statement. `reach`: in units of 2^-40, how far measured fractions may be from the truth. `tests`: what
    gives the intervals.
    """

    prior: PriorParameters = key("prior", codec_of(PriorParameters))
    rounds: int = key("rounds", COUNT)
    select_epsilon: Fraction = key("select_epsilon", FRACTION)
    noise: GaussianNoise = key("noise", GAUSSIAN_NOISE)
    reach: int = key("reach", COUNT)
    tests: FinalTestParameters = key("tests", codec_of(FinalTestParameters))


def plan_from_prior(setting: PublicParameters, start: str) -> PriorWeightsParameters:
    """Plan the measurement, the turns and the tests.

    Args:
        setting: the public parameters.
        start: `OWN`, measured with a part of the budget, or `STANDING`, which leaves all of it to turns and tests.

    Raises:
        InvalidArgument: there is nothing that a prior could be made of (`plan_prior`, `standing_prior`).
        BudgetExhausted: the budget is too small for the measurement, or for so many analysts and turns.
    """
    rounds = whole(setting.options, "rounds", usual_rounds(setting))
    rho = Fraction(usable_rho(setting.data_budget), RHO_UNIT)
    prior = standing_prior(setting) if start == STANDING else plan_prior(setting, PRIOR_SHARE * rho)
    left = rho - rounded_up(prior.rho, RHO_UNIT) / Fraction(RHO_UNIT)
    one_turn = (1 - TEST_SHARE) * left / (len(setting.shares) * rounds)
    select = epsilon_within(4 * SELECT_SHARE * one_turn)  # a selection costs epsilon^2 / 8, not / 2
    measure_rho = (1 - SELECT_SHARE) * one_turn
    if min(select, epsilon_within(measure_rho)) < MIN_EPSILON:
        problem = "data_budget: is too small for a prior and so many analysts and rounds; raise it or ask for less"
        raise BudgetExhausted(problem)
    noise, largest = GaussianNoise.within(measure_rho), expected_largest(prior, setting)
    return PriorWeightsParameters(
        prior=prior,
        rounds=rounds,
        select_epsilon=select,
        noise=noise,
        reach=on_the_grid(reach_of(setting, noise, rounds)),
        tests=plan_final_tests(setting, largest, TEST_SHARE * left, released=prior.released is not None),
    )


def prior_events(setting: PublicParameters, parameters: PriorWeightsParameters) -> list[PrivacyEvent]:
    """Return what a round costs the people in the table: the measurement, and all analysts' turns and tests."""
    analysts, turns = len(setting.shares), len(setting.shares) * parameters.rounds
    parts = [
        *parameters.prior.events(),
        ZcdpEvent("selections", exponential_mechanism_rho(parameters.select_epsilon, 1), turns),
        parameters.noise.part(turns),
        *parameters.tests.events(analysts),
    ]
    truncated = parameters.prior.truncation() + parameters.tests.truncation(analysts)
    return with_samplers(parts, truncated, setting.data_budget.epsilon)
