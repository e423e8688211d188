"""What repair plans where the protected unit is a statement: a sparse vector and Laplace answers each."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise import accounting
from equipoise.errors import BudgetExhausted
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms import tuning
from equipoise_server.mechanisms.interface import Setting
from equipoise_server.mechanisms.options import SMALLEST_EPSILON, epsilon_within, real, whole
from equipoise_server.mechanisms.repair import SCORE_BITS, RepairParameters, bound_on_grid
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.mechanisms.tuning import Size
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

REPAIR_PLACES = Fraction(1, 50)  # of an analyst's statements, may be answered afresh
DETECTION_SHARE = Fraction(3, 4)  # of the budget for repair: every certified bound carries the tests' noise


def plan_statement_repair(setting: Setting, game: GameParameters, rho: Fraction) -> RepairParameters:
    """Thresholds, cut-offs and noise from what the game leaves of the data budget, and the bounds they give."""
    size, beta, records = Size.of(setting), setting.beta, setting.records
    cut_offs = {
        share.analyst: min(
            share.statements,
            whole(setting.options, "cut_off", max(1, math.ceil(REPAIR_PLACES * share.statements))),
        )
        for share in setting.shares
    }
    places = max(1, sum(cut_offs.values()))
    test_epsilon = epsilon_within(DETECTION_SHARE * rho / places)
    answer_epsilon = epsilon_within((1 - DETECTION_SHARE) * rho / places)
    if min(test_epsilon, answer_epsilon) < SMALLEST_EPSILON:
        raise BudgetExhausted("data_budget: too little is left for repair; allow more or ask for less")
    scale = records << SCORE_BITS
    threshold = math.ceil(real(setting.options, "threshold", tuning.sampling_error(game, size, beta / 4)) * scale)
    vector = SparseVector(test_epsilon, 1 << SCORE_BITS, threshold, 1)
    # beta is shared out: half to the tests, a quarter to the thresholds, a quarter to the answers' noise.
    certified = (
        threshold
        + vector.test_noise.quantile(beta / 2 / size.units)
        + vector.threshold_noise.quantile(beta / 4 / places)
        + 1  # the score's own rounding
    )
    laplace = [
        DiscreteLaplace(answer_epsilon / sensitivity).quantile(beta / 8 / size.queries) for sensitivity in (1, 2)
    ]
    return RepairParameters(
        threshold=threshold,
        test_epsilon=test_epsilon,
        answer_epsilon=answer_epsilon,
        cut_offs=cut_offs,
        certified_bound=bound_on_grid(certified, scale),
        laplace_bounds=(bound_on_grid(laplace[0], records), bound_on_grid(laplace[1], records)),
    )


def repair_data_cost(repairs: RepairParameters, size: Size) -> tuple[Fraction, Fraction]:
    """The rho of detection and of answers at their caps, and the total variation of all their samplers."""
    places = sum(repairs.cut_offs.values())
    rho = accounting.sparse_vector_rho(repairs.test_epsilon, places)
    rho += accounting.laplace_rho(repairs.answer_epsilon, places)
    vector = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1)
    truncated = (
        places * vector.threshold_noise.truncation_delta()
        + size.units * vector.test_noise.truncation_delta()
        + 2 * size.queries * DiscreteLaplace(repairs.answer_epsilon / 2).truncation_delta()
    )
    return rho, truncated


def uncertified_queries(setting: Setting, repairs: RepairParameters, game: GameParameters, size: Size) -> int:
    """At most how many queries can end uncertified.

    None where every analyst has one place more than the game may mishandle statements (once the last place is
    used, nothing more is tested) and the threshold lies above the game's bound and the tests' noise; otherwise
    nothing but the number of places limits it.
    """
    noise = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1).test_noise
    reach = tuning.game_bound(game, size, setting.beta / 4) * (setting.records << SCORE_BITS)
    enough = all(
        repairs.cut_offs[share.analyst] >= min(share.statements, math.ceil(game.density))
        for share in setting.shares
    )
    if enough and repairs.threshold > reach + 2 * noise.quantile(setting.beta / 4 / size.units):
        return 0
    return sum(
        share.queries - repairs.cut_offs[share.analyst]
        for share in setting.shares
        if repairs.cut_offs[share.analyst] < share.statements
    )
