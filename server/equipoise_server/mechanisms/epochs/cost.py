"""The costs of a session in epochs, for the data and for the analysts, and the reach of its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, ApproximateDpEvent, PrivacyEvent, PureDpEvent, ThresholdTests, ZcdpEvent
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise_server.conversion import epsilon_of_curve, epsilon_of_rho, largest_rho
from equipoise_server.mechanisms.budget_rounding import (
    EPSILON_BITS,
    MIN_EPSILON,
    SAMPLERS,
    epsilon_within,
    sampler_delta,
    usable_delta,
    usable_rho,
)
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import DIRECTION_BITS, Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import UNIT_BITS

ANSWER_PART = Fraction(1, 4)  # of the square of a test's epsilon: the rho of an answer
CAP_PART = 1 / 4  # of the analysts' delta
NO_PROTECTION = Budget(50.0, 1e-6)  # what a session is planned for that protects no analysts


@dataclass(frozen=True)
class Session:
    """The public size of a session: universe, scale and sensitivity of answers, slots, statements and cells."""

    universe: int
    scale: Scale
    max_l1_sensitivity: int
    slots: int
    statements: int
    cells: int


def analyst_budget(setting: PublicParameters) -> Budget:
    """Return what hides the analysts' statements, or would."""
    return setting.analyst_budget if setting.protects_analysts else NO_PROTECTION


def records_rho(setting: PublicParameters, ending_epsilon: Fraction) -> Fraction:
    """Return the rho that is left for drawing hypotheses; 0 where none is left."""
    budget = analyst_budget(setting)
    left, delta = budget.epsilon - float(ending_epsilon), usable_delta(budget) * (1 - CAP_PART)
    return Fraction(largest_rho(left, delta), RHO_UNIT) if left > 0 and delta > 0 else Fraction(0)


def places_beyond(setting: PublicParameters, ending_epsilon: Fraction, epochs: int) -> int:
    """Return the fewest places beyond an epoch's target for which hard caps cost at most their part of delta.

    Args:
        setting: of the session.
        ending_epsilon: of the test that ends an epoch.
        epochs: how many there are.
    """
    budget = analyst_budget(setting)
    allowed = CAP_PART * usable_delta(budget) / epochs
    low, high = -1, 1
    while accounting.repair_places_delta(ending_epsilon, high, budget.epsilon) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = accounting.repair_places_delta(ending_epsilon, middle, budget.epsilon) <= allowed
        low, high = (low, middle) if enough else (middle, high)
    return high


def ends_early(ending_epsilon: Fraction, epochs: int, slots: int, chance: Fraction) -> int:
    """Return by how many positives an epoch ends before its target, at most.

    Args:
        ending_epsilon: The epsilon of the test that ends an epoch.
        epochs: How many epochs there are.
        slots: How many slots the session has.
        chance: The probability that any epoch ends earlier still.
    """
    noise = DiscreteLaplace(ending_epsilon)
    return noise.quantile(chance / 2 / slots) + noise.quantile(chance / 2 / epochs)


def drawing_rho(records: int, step: int) -> Fraction:
    """Return what one hypothesis costs: `records` draws, each of the range that one statement can change.

    `step`: of one unit of a direction, in the exponents' units. A statement's direction of range 1 may become
    another one, so exponents move by a range of at most `2 step` times the direction's unit. A draw of range r
    costs `r^2 / 8`; integer exponents are drawn from exactly.
    """
    moved = Fraction(2 * step << DIRECTION_BITS, 1 << UNIT_BITS)
    return records * moved**2 / 8


def tests_and_answers(
    setting: PublicParameters, session: Session, positives: int
) -> tuple[Fraction, GaussianNoise]:
    """Divide the data budget between tests and answers.

    Args:
        setting: The public parameters, with the data budget.
        session: The session's public size.
        positives: How many statements can be answered afresh, at most.

    Returns:
        The largest epsilon of one test that the budget allows, and the noise of answers beside it.

    Raises:
        BudgetExhausted: Tests would have a smaller epsilon than samplers can draw with.
    """
    rho = Fraction(usable_rho(setting.data_budget), RHO_UNIT)
    alone = epsilon_within(rho / (session.statements + 2 * ANSWER_PART * positives))
    low, high = 0, 1 << (EPSILON_BITS + 6)
    while high - low > max(1, low >> 12):
        middle = (low + high) // 2
        low, high = (middle, high) if _affordable(setting, middle, positives) else (low, middle)
    shared = Fraction(low, 1 << EPSILON_BITS)
    epsilon = max(alone, shared)
    if epsilon < MIN_EPSILON * session.scale.sensitivity:
        raise BudgetExhausted("data_budget: is too small for so many statements; raise it or ask for less")
    return epsilon, GaussianNoise.within(ANSWER_PART * epsilon**2)


def _affordable(setting: PublicParameters, units: int, positives: int) -> bool:
    if not units:
        return True
    epsilon = Fraction(units, 1 << EPSILON_BITS)
    rho = float(GaussianNoise.within(ANSWER_PART * epsilon**2).rho(1))
    curve = accounting.threshold_tests_curve(float(epsilon), positives, rho)
    budget = setting.data_budget
    return epsilon_of_curve(curve, usable_delta(budget)) <= budget.epsilon * (1 - 1e-9)


def data_parts(setting: PublicParameters, session: Session, parameters: EpochParameters) -> list[PrivacyEvent]:
    """Return what a session costs the people in the table, where one record is replaced by another.

    There are at most as many positives as statements, and as all epochs' caps. Either every test is counted for
    itself, or only the positive ones are (`accounting.threshold_tests`), whichever is cheaper.

    Args:
        setting: The public parameters, with the data budget.
        session: The session's public size.
        parameters: The epochs' parameters. Of them the data pay for tests and answers.
    """
    budget, noise = setting.data_budget, parameters.noise
    positives = min(session.statements, parameters.epochs * parameters.cap)
    truncated = session.statements * parameters.test_noise.truncation_delta()
    alone = [PureDpEvent("tests", parameters.test_epsilon, session.statements), noise.part(positives)]
    # Tests are cut alike however they are counted.
    slack = ApproximateDpEvent(SAMPLERS, Fraction(0), sampler_delta(truncated, budget.epsilon, alone))
    delta = usable_delta(budget)
    curve = accounting.threshold_tests_curve(float(parameters.test_epsilon), positives, float(noise.rho(1)))
    # A step up, for an auditor's arithmetic.
    epsilon = epsilon_of_curve(curve, delta) * (1 + 1e-12)
    if epsilon >= epsilon_of_rho(float(sum(part.amounts()[0] for part in alone)), delta):
        return [*alone, slack]
    pair = Fraction(math.ceil(Fraction(epsilon) * RHO_UNIT), RHO_UNIT), Fraction(delta)
    tests = ThresholdTests("tests and answers", positives, parameters.test_epsilon, noise.rho(1), *pair)
    return [tests, slack]


def analyst_parts(setting: PublicParameters, session: Session, parameters: EpochParameters) -> list[PrivacyEvent]:
    """Return what a session costs the analysts, where one statement is replaced by another, or by none.

    The analysts pay for the end of the one epoch it is in, every later hypothesis, and the hard caps.

    Args:
        setting: The public parameters, with the analysts' budget.
        session: The session's public size.
        parameters: The epochs' parameters.

    Let everything be seen but this statement's own answer. Until its slot nothing differs. The end of its epoch is
    one count test with one count moved (`accounting.repair_places_rho`): earlier epochs ended before it, and later
    ones count without it. Given the ends, later exponents differ by one direction, in every one of at most
    `epochs - 1` draws. What it does to its own answer is noise of its own, and a mixture over it. A hard cap may be
    met in whichever epoch the statement falls, so all epochs' chances of that are added up.
    """
    budget = analyst_budget(setting)
    drawn = (parameters.epochs - 1) * parameters.records
    truncated = (session.slots + parameters.epochs) * parameters.count_noise.truncation_delta()
    beyond = accounting.repair_places_delta(
        parameters.ending_epsilon, parameters.cap - parameters.target, budget.epsilon
    )
    parts: list[PrivacyEvent] = [
        ApproximateDpEvent("epoch ends", parameters.ending_epsilon, Fraction(0)),
        ZcdpEvent("records", drawing_rho(1, parameters.step), drawn),
    ]
    slack = sampler_delta(truncated, budget.epsilon, parts) + parameters.epochs * Fraction(beyond)
    return [*parts, ApproximateDpEvent("samplers and caps", Fraction(0), slack)]
