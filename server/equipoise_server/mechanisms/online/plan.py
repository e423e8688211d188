"""The plan of `online`: updates, threshold, noise, the proven errors, and the costs."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, PrivacyEvent
from equipoise.errors import BudgetExhausted
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho, with_samplers
from equipoise_server.mechanisms.equilibrium.options import WORDS
from equipoise_server.mechanisms.expected_error import (
    hypothesis_error,
    mean_over_queries,
    noisy_answers_error,
    only_predicates,
)
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, AnswerNoise
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.online.parameters import Division, OnlineParameters, proving_threshold
from equipoise_server.mechanisms.online.stages import stage_events, stage_truncation
from equipoise_server.mechanisms.options import Limit, real, whole
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.mechanisms.repair.statement_repair_plan import choose_noise
from equipoise_server.mechanisms.sparse_vector import SparseVector

MAX_UPDATES = 512
MIN_UPDATES = 8  # that teach anything worth the tests
USUAL_UPDATES = 128  # in sessions of very many statements
AIM = 2  # times the error that noise for every statement would promise
DETECTION_SHARES = tuple(Fraction(part, 16) for part in range(1, 16))  # of the budget
CHOICES = {"answers": WORDS["answers"]}
OPTIONS = {"updates": Limit(1, MAX_UPDATES, whole=True), "threshold": Limit(0, 1)}
EXPECTED_PART = 0.05  # of the promise that the mean error comes to, on the streams of docs/sessions-accuracy.md
FALSE_POSITIVES = Fraction(1, 4)  # of all updates, where the hypothesis is right


def plan_online(setting: PublicParameters) -> OnlineParameters:
    """Return what proves the least error, unless the usual parameters promise less."""
    length = session_length(setting, slotted=False)
    forced = min(length, whole(setting.options, "updates", 0))
    powers = [2**power for power in range(MAX_UPDATES.bit_length()) if 2**power < length]
    tried = [forced] if forced else [*powers, *([length] if length <= MAX_UPDATES else [])]
    divisions = [division for updates in tried for division in divided(setting, length, updates)]
    if not divisions:
        raise BudgetExhausted("data_budget: is too small for so many updates; raise it, or force fewer updates")
    if "threshold" in setting.options:
        threshold = math.floor(real(setting.options, "threshold", 0.0) * (setting.records << SCORE_BITS))
        return _forced(setting, length, divisions, threshold)
    plans = [
        division.with_threshold(setting, length, proving_threshold(setting, length, division))
        for division in divisions
    ]
    unproven = _usual(setting, length, divisions)
    return min([*(each for each in plans if each.proven), unproven], key=lambda each: each.promise)


def divided(setting: PublicParameters, length: int, updates: int) -> list[Division]:
    """Return the ways to divide the budget that leave each part what samplers can draw.

    Beta goes in equal parts to the tests, the thresholds, both on either side, and the answers.

    Args:
        setting: of the session.
        length: how many statements are tested at most.
        updates: how many of them are answered from the data at most.
    """
    rho_of_update, beta = Fraction(usable_rho(setting.data_budget), RHO_UNIT * updates), Fraction(setting.beta)
    divisions = []
    for share in DETECTION_SHARES:
        epsilon = epsilon_within(share * rho_of_update)
        if min(epsilon, epsilon_within((1 - share) * rho_of_update)) >= MIN_EPSILON:
            vector = SparseVector(epsilon, 1 << SCORE_BITS, 0, updates)
            tested = vector.test_noise.quantile(beta / (6 * length))
            tested += vector.threshold_noise.quantile(beta / (6 * updates))
            chance = float(beta / (3 * setting.queries))
            noise, half_widths = choose_noise(setting, (1 - share) * rho_of_update, chance)
            divisions.append(Division(updates, epsilon, noise, half_widths, tested))
    return divisions


def expected_error(setting: PublicParameters, parameters: OnlineParameters) -> float:
    """Return the mean error over all declared queries that is expected, as a fraction of the records.

    Where there are as many updates as statements, each may be answered afresh, and nearly all are.
    """
    if parameters.updates >= session_length(setting, slotted=False):
        return fresh_error(setting, parameters.noise)
    return hypothesis_error(setting, EXPECTED_PART * parameters.promise / 2**GRID_BITS)


def fresh_error(setting: PublicParameters, noise: AnswerNoise) -> float:
    """Return the mean error over all declared queries of answers with noise, as a fraction of the records."""
    return mean_over_queries(
        setting,
        lambda share: noisy_answers_error(noise.law(1 if only_predicates(share) else MAX_MOVED), setting.records),
    )


def _forced(setting: PublicParameters, length: int, divisions: list[Division], threshold: int) -> OnlineParameters:
    """Return what suits a forced threshold: enough updates, or else as many as keep the tests' noise below it."""
    plans = [division.with_threshold(setting, length, threshold) for division in divisions]
    proven = [plan for plan in plans if plan.proven]
    if proven:
        return min(proven, key=lambda each: each.promise)
    quiet = [plan for plan, division in zip(plans, divisions, strict=True) if division.tested <= threshold]
    if quiet:
        return min(quiet, key=lambda each: (-each.updates, each.promise))
    return min(plans, key=lambda each: each.promise)


def _usual(setting: PublicParameters, length: int, divisions: list[Division]) -> OnlineParameters:
    """Updates and a threshold that promise at most twice the error that noise for every statement would.

    Where the hypothesis learns, answers are far better than that. Of all such parameters those with the greatest
    `updates threshold^2` are taken, so that updates last: how many are needed falls with the threshold's square
    (`most_updates`), if far below what is proven. Where not even a few updates are to be had so, the session is
    short; then a few are made, and a greater error is promised. Where statements are so many that noise for all of
    them promises little, no more is aimed at than the usual number of updates can keep.
    """
    everything = Fraction(usable_rho(setting.data_budget), RHO_UNIT * length)
    _, half_widths = choose_noise(setting, everything, setting.beta / setting.queries)
    scale = setting.records << SCORE_BITS
    aim = AIM * max(half_widths) * scale >> GRID_BITS
    most = max((division.updates for division in divisions if division.updates <= USUAL_UPDATES), default=0)
    if most:
        aim = min(aim, 2 * min(division.tested for division in divisions if division.updates == most))
    loudest = min(max(half_widths), (aim << GRID_BITS) // scale)

    def least(division: Division) -> int:
        """Return the threshold below which a hypothesis that is right would cause too many updates."""
        tests = SparseVector(division.test_epsilon, 1 << SCORE_BITS, 0, division.updates).test_noise
        return tests.quantile(FALSE_POSITIVES * division.updates / length)

    def lasting(division: Division) -> int:
        return division.updates * (aim - division.tested) ** 2

    enough = [division for division in divisions if MIN_UPDATES <= division.updates < length]
    roomy = [
        division
        for division in enough
        if aim - division.tested >= least(division) and max(division.noise_half_widths) <= loudest
    ]
    if roomy:
        best = max(roomy, key=lasting)
        return best.with_threshold(setting, length, aim - best.tested)
    few = enough or divisions
    plans = [
        division.with_threshold(setting, length, least(division))
        for division in few
        if division.updates == few[0].updates
    ]
    return min(plans, key=lambda each: each.promise)


def max_uncertified(setting: PublicParameters, parameters: OnlineParameters) -> int:
    """Return the most cells that can be answered without an interval: all those asked after the last update."""
    return 0 if parameters.proven else setting.queries - parameters.updates


def data_parts(setting: PublicParameters, parameters: OnlineParameters) -> list[PrivacyEvent]:
    """Return what a session costs the people in the table: all updates, whether or not they are used."""
    truncated = stage_truncation(setting, parameters.stages)
    return with_samplers(stage_events(parameters.stages), truncated, setting.data_budget.epsilon)
