"""Half-widths by the noise's own tails: what all statements, cells, thresholds and analysts may fail is beta."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.epochs.plan import plan_epochs
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import AnswerNoise, NoiseDistribution
from equipoise_server.mechanisms.online.plan import plan_online
from equipoise_server.mechanisms.online.prior_plan import plan_from_prior
from equipoise_server.mechanisms.online_private.mechanism import sizes
from equipoise_server.mechanisms.pooled.family import table_cells
from equipoise_server.mechanisms.pooled.mechanism import Pooled
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.prior.choice import OWN
from equipoise_server.mechanisms.projection.plan import reach_of
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.analyst_repair_plan import plan_analyst_repair, plan_places
from equipoise_server.mechanisms.repair.parameters import Repair
from equipoise_server.mechanisms.repair.private_weights import SCORE_ROUNDING
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.mechanisms.repair.statement_repair_plan import plan_statement_repair
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.mechanisms.weighted_noise_tail import sum_reach
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

RECORDS, BETA, ONE = 50_000, 0.05, 1 << GRID_BITS
SCALE = RECORDS << SCORE_BITS
CELLS = 12  # of each statement
NEARLY = 1 + 1e-3  # what is lost where a law is approximated, or its quantile rounded
UNUSED = 50  # a bound that leaves more of beta is no interval's


def setting(analysts: int, statements: int, unit: str = "query", **options: object) -> PublicParameters:
    """Analysts with tables of several cells each, over a table of four attributes."""
    shares = tuple(Share(f"analyst-{place}", statements, CELLS * statements) for place in range(analysts))
    budgets = Budget(8.0, 1e-9), Budget(4.0, 1e-6)
    return PublicParameters(RECORDS, 36, shares, unit, *budgets, BETA, options, (3, 3, 2, 2))


def beyond(law: NoiseDistribution, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z > size), on one side, of the discrete Laplace law."""
    assert isinstance(law, DiscreteLaplace)
    rate = float(law.rate)
    tail: NDArray[np.float64] = np.exp(-rate * (size + 1)) / (1 + math.exp(-rate))
    return tail


def failing(law: NoiseDistribution, size: int, draws: int) -> float:
    """How probably any of so many draws is beyond `size` on one side, at most: as many times the exact tail."""
    if isinstance(law, DiscreteLaplace):
        return draws * float(beyond(law, np.array([size]))[0])
    variance = float(law.variance)
    reach = size + math.ceil(40 * math.sqrt(variance))
    masses = np.exp(-np.square(np.arange(-reach, reach + 1.0)) / (2 * variance))
    return draws * float(masses[reach + size + 1 :].sum() / masses.sum())


def deceived(
    reach: int, tests: NoiseDistribution, tested: int, thresholds: NoiseDistribution, places: int
) -> float:
    """How probably any test's noise and its threshold's add up to more than `reach` on one side, at most.

    However `reach` is split between the two: by the split that proves most.
    """
    parts = np.linspace(0, reach, 20_000)
    return float((tested * beyond(tests, parts) + places * beyond(thresholds, reach - parts)).min())


def amount_of(half_width: int, scale: int) -> int:
    """Return how large an error may be, in units of which `scale` are all records, to keep within a half-width."""
    assert 1 < half_width < ONE
    return (half_width - 1) * scale >> GRID_BITS


def answers_fail(noise: AnswerNoise, half_widths: tuple[int, ...], cells: int) -> float:
    """How probably any of so many cells errs by more than its half-width, on either side, at most."""
    return max(
        2 * failing(noise.law(moved), amount_of(half_width, RECORDS), cells)
        for moved, half_width in enumerate(half_widths, 1)
    )


def shares_beta(spent: float, beta: float = BETA) -> bool:
    """Whether no more than beta is spent, and not so little that intervals are wide for nothing."""
    return beta / UNUSED <= spent <= beta * NEARLY


def repairs_fail(repairs: Repair, case: PublicParameters) -> float:
    """How probably any interval of a repair fails, at most."""
    if isinstance(repairs, AnalystRepairParameters):
        assert repairs.places.cap > 1
        reach = amount_of(repairs.certified_half_width, SCALE) - repairs.threshold - 1
        tests = failing(repairs.test_noise, reach, len(case.shares))
        return tests + failing(repairs.weights.certify_noise, repairs.certify_margin, repairs.places.cap)
    places = sum(repairs.cut_offs.values())
    assert places > 1
    vector = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, places)
    reach = amount_of(repairs.certified_half_width, SCALE) - repairs.threshold - 1
    tests = deceived(reach, vector.test_noise, case.statements, vector.threshold_noise, places)
    return tests + answers_fail(repairs.noise, repairs.noise_half_widths, case.queries)


def test_all_tests_of_a_session_in_epochs_share_half_of_beta() -> None:
    """Each statement has a test of its own, whose noise can hide an error on one side only."""
    case = setting(5, 12, length=12)
    session = sizes(case)
    assert (session.statements, session.cells) == (60, 60 * CELLS)
    parameters = plan_epochs(case, session)
    reach = amount_of(parameters.certified_half_width, SCALE) - parameters.threshold - SCORE_ROUNDING
    assert shares_beta(failing(parameters.test_noise, reach, session.statements), BETA / 2)


def test_all_cells_of_a_session_in_epochs_share_a_quarter_of_beta() -> None:
    """However many cells a statement has, each may err by its own noise, on either side."""
    case = setting(5, 12, length=12)
    parameters = plan_epochs(case, sizes(case))
    assert shares_beta(answers_fail(parameters.noise, parameters.noise_half_widths, case.queries), BETA / 4)


@pytest.mark.parametrize("updates", [8, 60])
def test_tests_thresholds_and_answers_of_a_session_share_beta(updates: int) -> None:
    """All may fail on either side: the proof that updates suffice needs that no positive test is deceived."""
    case = setting(3, 40, length=120, updates=updates)
    parameters = plan_online(case)
    assert parameters.updates == updates
    vector = SparseVector(parameters.test_epsilon, 1 << SCORE_BITS, parameters.threshold, updates)
    reach = amount_of(parameters.certified_half_width, SCALE) - parameters.threshold - SCORE_ROUNDING
    tests = 2 * deceived(reach, vector.test_noise, case.statements, vector.threshold_noise, updates)
    answers = answers_fail(parameters.noise, parameters.noise_half_widths, case.queries)
    assert shares_beta(tests, BETA * 2 / 3)
    assert shares_beta(answers, BETA / 3)


def test_all_cells_of_a_session_from_a_prior_share_what_its_tests_leave() -> None:
    """A quarter of beta is the measurement's, and two the tests' and the thresholds'."""
    case = setting(3, 20, length=60, updates=6)
    parameters = plan_from_prior(case, OWN)
    assert len(parameters.stages) == 6
    for stage in parameters.stages:
        assert shares_beta(answers_fail(stage.noise, stage.noise_half_widths, case.queries), BETA / 4)


@pytest.mark.parametrize("places", [1, 20])
def test_tests_places_and_cells_of_repaired_statements_share_beta(places: int) -> None:
    case = setting(3, 20, cut_off=places)
    assert shares_beta(repairs_fail(plan_statement_repair(case, 0.01, Fraction(1, 20)), case))


def test_tests_and_places_of_repaired_analysts_leave_a_quarter_of_beta_to_the_proven_error() -> None:
    case = setting(40, 5, "analyst")
    repairs = plan_analyst_repair(case, 0.01, plan_places(case), Fraction(1, 2))
    assert shares_beta(repairs_fail(repairs, case), BETA * 3 / 4)


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_what_is_outside_the_family_shares_beta_with_its_tables(unit: str) -> None:
    """All cells of all tables and a predicate of each statement may fail, and so may all of repair."""
    case = setting(4, 5, unit, ways=2, residuals=0, repair_share=0.5)
    parameters = PooledParameters.from_json(Pooled().plan(case).parameters)
    assert parameters.repair is not None
    family = parameters.family
    estimates = sum(table_cells(family.sizes, axes) for axes in family.sets) + case.statements
    proven = BETA / 8 if unit == "analyst" else 0.0  # of the answers that analysts get afresh
    spent = parameters.chance * estimates + repairs_fail(parameters.repair, case) + proven
    assert shares_beta(spent)


def test_all_cells_that_residuals_tell_share_beta_on_either_side() -> None:
    """By Chernoff's bound, as what they tell errs like a sub-Gaussian number."""
    case = setting(5, 12)
    assert shares_beta(case.queries * 2 * math.exp(-(reach_of(case) ** 2) / 2))


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(1, 7)), DiscreteGaussian(Fraction(500))])
@pytest.mark.parametrize("square", [1.0, 30.5, 1e4])
def test_sums_of_noise_fail_on_either_side_with_no_more_than_their_chance(
    law: DiscreteLaplace | DiscreteGaussian, square: float
) -> None:
    """By Chernoff's bound on each of the two sides, with whichever slope proves most."""
    chance = Fraction(1, 5000)
    reach = float(sum_reach(law, np.array([square]), chance)[0])
    if isinstance(law, DiscreteLaplace):
        rate = float(law.rate)
        slopes = np.linspace(0, rate, 100_000)[1:-1]
        odds = 4 * math.exp(-rate) * np.sinh(slopes / 2) ** 2 / (1 - math.exp(-rate)) ** 2
        cumulants = -np.log1p(-odds)
    else:
        slopes = np.array([reach / square / float(law.variance)])
        cumulants = float(law.variance) * slopes**2 / 2
    side = math.exp((square * cumulants - slopes * reach).min())
    assert shares_beta(2 * side, float(chance))
