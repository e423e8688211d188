"""What repair plans where the protected unit is a statement: a sparse vector and noisy answers each."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from equipoise.accounting import PrivacyEvent, PureDpEvent
from equipoise.errors import BudgetExhausted
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, NOISES, AnswerNoise, NoiseDistribution
from equipoise_server.mechanisms.options import real, whole
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, RepairParameters, half_width_on_grid
from equipoise_server.mechanisms.sparse_vector import SparseVector

REPAIR_PLACES = tuple(Fraction(1, parts) for parts in (50, 250, 1250, 10**12))  # of statements; at least 1
DETECTION_SHARE = Fraction(3, 4)  # of the budget for repair: every certified half-width carries the tests' noise
SAYS_NOTHING = 1 << (GRID_BITS - 1)  # a half-width of 1/2: the answer 1/2 keeps to it, whatever the truth


def plan_statement_repair(setting: PublicParameters, threshold_error: float, rho: Fraction) -> RepairParameters:
    """Cut-offs and noise within `rho`, and the half-widths they give.

    `threshold_error`: the synopsis error, as a fraction of the records, from which repair is worth its place.
    Fewer statements get places, at least one each analyst, only where the budget for more of them is spread so
    thinly that no interval says anything.
    """
    plans: list[RepairParameters] = []
    exhausted: BudgetExhausted | None = None
    for places in REPAIR_PLACES:
        try:
            plans.append(_with_places(setting, threshold_error, rho, _cut_offs(setting, places)))
        except BudgetExhausted as error:
            exhausted = error
            continue
        if largest_half_width(plans[-1]) < SAYS_NOTHING or "cut_off" in setting.options:
            return plans[-1]
    if not plans:
        raise exhausted or BudgetExhausted("data_budget: leaves nothing for repair")
    return min(plans, key=largest_half_width)


def largest_half_width(repairs: RepairParameters) -> int:
    """Return what certified answers are promised, in units of 2^-40."""
    return max(repairs.certified_half_width, *repairs.noise_half_widths)


def _cut_offs(setting: PublicParameters, places: Fraction) -> dict[str, int]:
    """How many statements of each analyst may be answered afresh. Worked out once for shares of equal size."""
    of_statements = {
        statements: min(statements, whole(setting.options, "cut_off", max(1, math.ceil(places * statements))))
        for statements in {share.statements for share in setting.shares}
    }
    return {share.analyst: of_statements[share.statements] for share in setting.shares}


def _with_places(
    setting: PublicParameters, threshold_error: float, rho: Fraction, cut_offs: dict[str, int]
) -> RepairParameters:
    """Return the repair of so many statements."""
    size, beta, records = Size.of(setting), setting.beta, setting.records
    places = max(1, sum(cut_offs.values()))
    test_epsilon = epsilon_within(DETECTION_SHARE * rho / places)
    answer_rho = (1 - DETECTION_SHARE) * rho / places
    if min(test_epsilon, epsilon_within(answer_rho)) < MIN_EPSILON:
        raise BudgetExhausted("data_budget: leaves too little for repair; raise it or ask for less")
    scale = records << SCORE_BITS
    threshold = math.ceil(real(setting.options, "threshold", threshold_error) * scale)
    vector = SparseVector(test_epsilon, 1 << SCORE_BITS, threshold, 1)
    # beta is shared out: half to the tests, a quarter to the thresholds, a quarter to the answers' noise.
    certified = (
        threshold
        + vector.test_noise.quantile(beta / 2 / size.units)
        + vector.threshold_noise.quantile(beta / 4 / places)
        + 1  # the score's own rounding
    )
    noise, noise_half_widths = choose_noise(setting, answer_rho, beta / 4 / size.queries)
    return RepairParameters(
        threshold=threshold,
        test_epsilon=test_epsilon,
        noise=noise,
        cut_offs=cut_offs,
        certified_half_width=half_width_on_grid(certified, scale),
        noise_half_widths=noise_half_widths,
    )


def choose_noise(setting: PublicParameters, rho: Fraction, chance: float) -> tuple[AnswerNoise, tuple[int, int]]:
    """Return the noise for statements that may cost `rho` each, and how far it reaches but for `chance` a count.

    The law that reaches less far for a marginal, unless one is forced: Laplace only where few counts need
    an interval, or a weak one. Predicates decide between equals.

    Args:
        setting: of the round.
        rho: of the answer to one statement.
        chance: of one count to be further off.

    Returns:
        The noise, and its reach for sensitivities 1 and 2, in units of 2^-40.
    """

    def reach(noise: AnswerNoise, l1_sensitivity: int) -> int:
        return half_width_on_grid(_quantile(noise.law(l1_sensitivity), chance / 2), setting.records)

    forced = setting.options.get("answers")
    noises = [kind.within(rho) for kind in NOISES if forced in (None, kind.name)]
    half_widths = [(reach(noise, 1), reach(noise, 2)) for noise in noises]
    best = min(range(len(noises)), key=lambda index: half_widths[index][::-1])
    return noises[best], half_widths[best]


@lru_cache(maxsize=4096)
def _quantile(law: NoiseDistribution, probability: float) -> int:
    """Return the law's quantile: the search for a game asks for the same one of every game that it weighs."""
    return law.quantile(probability)


def repair_data_cost(repairs: RepairParameters, size: Size) -> tuple[list[PrivacyEvent], Fraction]:
    """Detection and answers at their caps, and the total variation of all their samplers.

    Each place is one AboveThreshold (`accounting.sparse_vector_rho`) and one statement answered afresh.
    """
    places = sum(repairs.cut_offs.values())
    vector = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1)
    truncated = (
        places * vector.threshold_noise.truncation_delta()
        + size.units * vector.test_noise.truncation_delta()
        + size.queries * repairs.noise.law(MAX_MOVED).truncation_delta()
    )
    return [PureDpEvent("detection", repairs.test_epsilon, places), repairs.noise.part(places)], truncated


def uncertified_queries(
    setting: PublicParameters, repairs: RepairParameters, game: GameParameters, size: Size
) -> int:
    """At most how many queries can end uncertified.

    None where every analyst has one place more than the game may mishandle statements (once the last place is
    used, nothing more is tested) and the threshold lies above the game's bound and the tests' noise; otherwise
    nothing but the number of places limits it.
    """
    noise = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1).test_noise
    reach = cost_model.game_bound(game, size, setting.beta / 4) * (setting.records << SCORE_BITS)
    enough = all(
        repairs.cut_offs[share.analyst] >= min(share.statements, math.ceil(game.density))
        for share in setting.shares
    )
    if enough and repairs.threshold > reach + 2 * noise.quantile(setting.beta / 4 / size.units):
        return 0
    return queries_without_places(setting, repairs)


def queries_without_places(setting: PublicParameters, repairs: RepairParameters) -> int:
    """At most how many queries are left when all places are used, whatever the synopsis is like."""
    return sum(
        share.queries - repairs.cut_offs[share.analyst]
        for share in setting.shares
        if repairs.cut_offs[share.analyst] < share.statements
    )
