"""The plan of repair where the protected unit is a whole analyst: places, noise, half-widths and costs."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise_server.conversion import epsilon_for
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_delta, usable_rho
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.options import real, whole
from equipoise_server.mechanisms.repair.analyst_repair import MAX_HALF_WIDTH, AnalystRepairParameters
from equipoise_server.mechanisms.repair.private_weights import (
    SCORE_ROUNDING,
    PrivateWeights,
    measurement_error,
    weights_error,
)
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid
from equipoise_server.mechanisms.repair.weights_hypothesis import PASSES
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

PLACES = Fraction(1, 20)  # of the analysts, may be answered afresh
PLACES_SHARE = Fraction(1, 4)  # of the analysts' budget, for hiding who gets a place
FEW_PLACES = Fraction(1, 4)  # of the analysts: beyond it, places for all cost the data little more
DETECTION_SHARE = Fraction(1, 2)  # of the data's budget for repair
CERTIFY_SHARE = Fraction(1, 4)  # of one analyst's answers, for their final test
ROUNDS = 16
NO_WEIGHTS = PrivateWeights(0, Fraction(0), Fraction(0), Fraction(0), 0)


def plan_places(setting: PublicParameters) -> RepairPlaces:
    """Return how many analysts may be answered afresh, and what hiding who it is costs.

    Places for everybody need no hiding; otherwise the cap lies so far above the target that its delta is a part
    of the analysts' own. All from public things.
    """
    analysts, budget = len(setting.shares), setting.analyst_budget
    if not setting.protects_analysts:
        return RepairPlaces(analysts, Fraction(0), analysts)
    forced = "cut_off" in setting.options
    target = whole(setting.options, "cut_off", max(1, math.ceil(PLACES * analysts)))
    if target == 0:
        return RepairPlaces(0, Fraction(0), 0)
    delta = float(PLACES_SHARE) * usable_delta(budget)
    rho = PLACES_SHARE * Fraction(usable_rho(Budget(budget.epsilon, budget.delta - delta)), RHO_UNIT)
    epsilon = epsilon_within(rho)
    if epsilon < MIN_EPSILON or delta <= 0:
        raise BudgetExhausted("analyst_budget: is too small to hide which analysts get fresh noise; raise it")

    def costs(beyond: int) -> float:
        return accounting.repair_places_delta(epsilon, beyond, budget.epsilon)

    low, high = -1, 1
    while costs(high) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if costs(middle) > delta else (low, middle)
    cap = target + high
    if cap >= (analysts if forced else FEW_PLACES * analysts):
        return RepairPlaces(analysts, Fraction(0), analysts)
    return RepairPlaces(target, epsilon, cap)


def places_delta(places: RepairPlaces, setting: PublicParameters) -> Fraction:
    """Return the delta of the cap on places."""
    if places.epsilon == 0:
        return Fraction(0)
    beyond = places.cap - places.target
    return Fraction(accounting.repair_places_delta(places.epsilon, beyond, setting.analyst_budget.epsilon))


def game_setting(setting: PublicParameters, places: RepairPlaces) -> PublicParameters:
    """Return the setting with what is left of the analysts' budget for the game, once the places are paid."""
    if places.epsilon == 0:
        return setting
    budget = setting.analyst_budget
    delta = budget.delta - float(PLACES_SHARE) * usable_delta(budget)
    if setting.options.get("play") in ("sampled", "hru"):
        epsilon = budget.epsilon - float(places.epsilon) - 1e-11  # room for rounding
    else:
        usable = Budget(budget.epsilon, delta)
        paid = accounting.rounded_up(accounting.repair_places_rho(places.epsilon), RHO_UNIT)
        left = max(0, usable_rho(usable) - paid)
        epsilon = epsilon_for(Cost(rho=left), usable_delta(usable))
    return replace(setting, analyst_budget=Budget(max(0.0, epsilon), delta))


def plan_analyst_repair(
    setting: PublicParameters, threshold_error: float, places: RepairPlaces, rho: Fraction
) -> AnalystRepairParameters:
    """Noise and half-widths within `rho`.

    `threshold_error`: the synopsis error, as a fraction of the records, from which an analyst is worth a place.
    """
    size, beta, records = Size.of(setting), setting.beta, setting.records
    weights = plan_weights(setting, places, (1 - DETECTION_SHARE) * rho)
    test_epsilon = epsilon_within((DETECTION_SHARE if places.cap else Fraction(1)) * rho / size.units)
    if test_epsilon < MIN_EPSILON:
        raise BudgetExhausted("data_budget: leaves too little for repair; raise it or ask for less")
    scale = records << SCORE_BITS
    threshold = math.ceil(real(setting.options, "threshold", threshold_error) * scale)
    # beta is shared out: half to the tests, a quarter to the final tests, a quarter to the proven error.
    noise = DiscreteLaplace(test_epsilon / (1 << SCORE_BITS))
    certified = half_width_on_grid(threshold + noise.quantile(beta / 2 / size.units) + 1, scale)
    proven, limit, margin, chance = certified, certified, 0, beta / 4 / max(1, places.cap)
    if places.cap:
        margin = weights.certify_noise.quantile(chance)
        # Answers are certified up to what their noise alone could cost, or what such answers usually reach.
        noise_alone = 2 * margin + SCORE_ROUNDING + weights.measure_noise.quantile(beta / 8) * (1 << SCORE_BITS)
        usual = math.ceil(math.sqrt(math.log(2 * size.universe) / weights.rounds) / 4 * scale)
        limit = max(certified, half_width_on_grid(max(noise_alone, usual), scale))
        error = weights_error(weights, records, size.universe, size.largest_unit, chance)
        proven = min(MAX_HALF_WIDTH, math.ceil(min(1.0, error) * MAX_HALF_WIDTH) + 1)
        if proven > limit:
            # The proof certifies nothing, so nothing is lost without it: the final test certifies, and the answers
            # come much closer where earlier measurements are used again down to the noise they usually carry.
            weights, proven = replace(weights, guard=usual_guard(weights, records)), MAX_HALF_WIDTH
        limit = min(limit, proven)
    return AnalystRepairParameters(
        threshold=threshold,
        test_epsilon=test_epsilon,
        places=places,
        weights=weights,
        certified_half_width=certified,
        weights_half_width=proven,
        weights_limit=limit,
        certify_margin=margin,
    )


def plan_weights(setting: PublicParameters, places: RepairPlaces, rho: Fraction) -> PrivateWeights:
    """Return how one analyst is answered afresh, within an equal part of `rho` for each place."""
    if places.cap == 0:
        return NO_WEIGHTS
    rounds = whole(setting.options, "repair_rounds", ROUNDS)
    rho_of_place = rho / places.cap
    half = (1 - CERTIFY_SHARE) * rho_of_place / 2 / rounds
    unguarded = PrivateWeights(
        rounds=rounds,
        select_epsilon=epsilon_within(4 * half),  # a selection costs epsilon^2 / 8, not / 2
        measure_epsilon=epsilon_within(half),
        certify_epsilon=epsilon_within(CERTIFY_SHARE * rho_of_place),
        guard=0,
    )
    least = min(unguarded.select_epsilon, unguarded.measure_epsilon, unguarded.certify_epsilon)
    if least < MIN_EPSILON:
        raise BudgetExhausted("data_budget: leaves too little for repair; raise it or ask for less")
    chance = setting.beta / 8 / places.cap  # as in the proven error
    noise = measurement_error(unguarded, setting.records, setting.universe_size, chance)
    return replace(unguarded, guard=math.ceil(2 * noise * 2**GRID_BITS))


def usual_guard(weights: PrivateWeights, records: int) -> int:
    """Twice the scale of one measurement's noise, in units of 2^-40."""
    return math.ceil(2 * (1 << GRID_BITS) / (weights.measure_epsilon * records))


def repair_data_cost(repairs: AnalystRepairParameters, size: Size) -> tuple[Fraction, Fraction]:
    """Return the rho of detection and of answers at the cap, and the total variation of all their samplers."""
    weights, places = repairs.weights, repairs.places.cap
    rho = accounting.analyst_tests_rho(repairs.test_epsilon, size.units)
    rho += accounting.private_weights_rho(
        weights.select_epsilon, weights.measure_epsilon, weights.certify_epsilon, weights.rounds, places
    )
    truncated = size.units * repairs.test_noise.truncation_delta()
    if places:
        run = weights.rounds * (weights.measure_noise.truncation_delta() + Fraction(1, 2**128))
        truncated += places * (run + weights.certify_noise.truncation_delta())
    return rho, truncated


def places_truncation(places: RepairPlaces, size: Size) -> Fraction:
    """Return the total variation of the count test's samplers."""
    if places.epsilon == 0:
        return Fraction(0)
    return (1 + size.units) * DiscreteLaplace(places.epsilon).truncation_delta()


def uncertified_queries(
    setting: PublicParameters, repairs: AnalystRepairParameters, game: GameParameters, size: Size
) -> int:
    """At most how many queries can end uncertified after a game, with the confidence of the intervals.

    Fewer than `s` analysts need a place where the threshold lies above the game's bound and the tests' noise.
    """
    reach = cost_model.game_bound(game, size, setting.beta / 4) * (setting.records << SCORE_BITS)
    noise = repairs.test_noise.quantile(setting.beta / 4 / size.units)
    # A score is rounded, which may add one unit to what the game promises of the error.
    needing = math.ceil(game.density) - 1 if repairs.threshold > reach + noise + 1 else size.units
    return queries_without_places(setting, repairs, needing)


def queries_without_places(setting: PublicParameters, repairs: AnalystRepairParameters, needing: int) -> int:
    """At most how many queries can end uncertified where at most `needing` analysts need a place.

    An analyst ends uncertified without a place, or with answers whose final test is beyond the limit. The first
    places are safe from the count test's noise.
    """
    queries = sorted((share.queries for share in setting.shares), reverse=True)
    places = repairs.places
    if repairs.weights_limit < repairs.weights_half_width:
        safe = 0  # no place is sure to end in a certified answer
    elif places.epsilon == 0:
        safe = places.cap
    else:
        law = DiscreteLaplace(places.epsilon)
        early = law.quantile(setting.beta / 8) + law.quantile(setting.beta / 8 / len(setting.shares))
        safe = max(0, places.target - early)
    return sum(queries[: max(0, needing - safe)])


def repair_seconds(repairs: AnalystRepairParameters, size: Size) -> float:
    """Return a rough prediction for one ordinary core, where some earlier measurements are used again."""
    rounds = repairs.weights.rounds
    steps = rounds + PASSES * rounds * (rounds + 1) / 4
    return repairs.places.cap * (steps * (size.universe * 3e-8 + 3e-4) + rounds * size.largest_unit * 1e-6)


def promised(repairs: AnalystRepairParameters) -> float:
    """Return the largest half-width of a certified answer."""
    return (
        max(repairs.certified_half_width, min(repairs.weights_limit, repairs.weights_half_width)) / 2.0**GRID_BITS
    )
