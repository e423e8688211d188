"""Noise that is drawn is the noise that was proven: its rate, its streams, and chances that intervals rest on."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness import mechanism_cases as cases
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT, ApproximateDpEvent, PrivacyEvent, PureDpEvent, charge_of
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.costs import analyst_parts
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.mechanism import learn
from equipoise_server.mechanisms.multiplicative_weights.plan import WeightsParameters, with_rounds
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.repair.analyst_repair_plan import plan_analyst_repair, repair_data_cost
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights, answer_scores, selection_step
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, RepairParameters, SynopsisCounts, repair
from equipoise_server.mechanisms.repair.statement_repair_plan import plan_statement_repair
from equipoise_server.mechanisms.small_db.plan import (
    SmallDatabaseParameters,
    nearest,
    plan_small_database,
    units_of_score,
)
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.exponential import UNIT_BITS
from equipoise_server.randomness.stream import KeyedStream

SEED = bytes(range(32))
TABLE = cases.CASES["a table"]


def crowd(analysts: int, statements: int = 4, unit: str = "query") -> PublicParameters:
    """Many analysts with equal shares."""
    shares = tuple(Share(f"analyst-{place}", statements, statements) for place in range(analysts))
    data, own = Budget(1.0, 1e-9), Budget(4.0, 1e-6)
    return PublicParameters(10**5, 64, shares, unit, data, own, 0.05, {}, (8, 8))


def beyond(rate: Fraction, size: int) -> float:
    """P(Z > size) of the discrete Laplace law of this rate."""
    return math.exp(-float(rate) * (size + 1)) / (1 + math.exp(-float(rate)))


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The labels of every stream that is derived while a test runs."""
    seen: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def spy(seed: bytes, *labels: str) -> KeyedStream:
        seen.append(labels)
        return derive(seed, *labels)

    monkeypatch.setattr(KeyedStream, "derive", spy)
    return seen


@pytest.fixture
def laws(monkeypatch: pytest.MonkeyPatch) -> list[DiscreteLaplace]:
    """The discrete Laplace laws that are drawn from while a test runs, one after another."""
    seen: list[DiscreteLaplace] = []
    draw = DiscreteLaplace.draw

    def spy(self: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        seen.append(self)
        return draw(self, count, stream)

    monkeypatch.setattr(DiscreteLaplace, "draw", spy)
    return seen


def test_no_two_analysts_tests_read_one_stream(streams: list[tuple[str, ...]]) -> None:
    noise = GaussianNoise(Fraction(100))
    parameters = RepairParameters(0, Fraction(1), noise, {"ana": 1, "ben": 1}, 1, (1, 1))
    for name in parameters.cut_offs:
        workload = TABLE.workloads[name]
        counts = workload.counts(TABLE.histogram)
        repair(parameters, name, workload, counts, 2000, SynopsisCounts(counts // 2, 1000), SEED)
    assert len(streams) == len(set(streams)) >= 6


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7, 10**6), Fraction(355, 113), Fraction(1, 10**8)])
def test_a_record_moves_a_selection_s_exponents_by_half_of_its_epsilon_at_most(epsilon: Fraction) -> None:
    """In nats, exactly: one record moves a score by `2^16` units, and so many databases' scores by their size."""
    nat = 1 << UNIT_BITS
    assert Fraction(selection_step(epsilon) * (1 << SCORE_BITS), nat) <= epsilon / 2
    for size in (1, 3, 256):
        assert Fraction(units_of_score(epsilon, size) * size, nat) <= epsilon / 2


def largest_move(counts: NDArray[np.int64], answers: NDArray[np.int64]) -> int:
    """By how much the largest score may grow where a record adds one to a count, or takes one from it."""
    scores = [
        int(answer_scores(counts + np.eye(len(counts), dtype=np.int64)[place] * sign, 2000, answers).max())
        for place in range(len(counts))
        for sign in (1, 0, -1)
    ]
    return max(scores) - int(answer_scores(counts, 2000, answers).max())


def test_the_final_test_of_private_weights_hides_a_record(laws: list[DiscreteLaplace]) -> None:
    weights = PrivateWeights(3, Fraction(1), Fraction(1, 2), Fraction(1, 3), 1 << GRID_BITS)
    workload = TABLE.workloads["ana"]
    counts = workload.counts(TABLE.histogram)
    stream = KeyedStream.derive(SEED, "a test")
    values, _ = weights.answer(workload, counts, 2000, np.ones(12), stream)
    moved = largest_move(counts, values)
    assert moved == 1 << SCORE_BITS
    assert laws[-1].rate * moved <= weights.certify_epsilon
    assert laws[0].rate <= weights.measure_epsilon


def test_the_certificates_of_multiplicative_weights_hide_a_record(laws: list[DiscreteLaplace]) -> None:
    parameters = with_rounds(replace(TABLE.setting, beta=0.05), 2)
    workload = TABLE.workloads["ana"]
    data = DenseCounts(TABLE.histogram, TABLE.setting.attributes)
    answers = learn(parameters, workload, data, 2000, KeyedStream.derive(SEED, "a test"))
    moved = largest_move(workload.counts(TABLE.histogram), answers.values)
    assert moved == 1 << SCORE_BITS
    (law,) = laws
    assert law.rate * moved <= parameters.certify_epsilon


def weights_of(setting: PublicParameters) -> WeightsParameters:
    return with_rounds(setting, 8)


def test_all_analysts_certificates_hold_at_once() -> None:
    """A third of beta, for the noise of each analyst's test beyond its margin."""
    setting = crowd(50)
    parameters = weights_of(setting)
    rate = parameters.certify_epsilon / (1 << SCORE_BITS)
    assert 50 * beyond(rate, parameters.margin) <= setting.beta / 3 * (1 + 1e-9)


def test_all_measurements_of_all_rounds_and_analysts_are_within_reach() -> None:
    """A third of beta, for the noise of every cell that anybody may measure in any round: summed exactly."""
    setting = crowd(50)
    parameters = weights_of(setting)
    reached = math.floor(parameters.reach / 2**GRID_BITS * setting.records)
    variance = float(2 * parameters.noise.variance)  # of a marginal's cell
    far = math.ceil(12 * math.sqrt(variance)) + reached
    masses = np.exp(-(np.arange(far + 1.0) ** 2) / (2 * variance))
    outside = 2 * float(masses[reached + 1 :].sum()) / (2 * float(masses.sum()) - 1)
    assert 50 * 8 * setting.largest_share * outside <= setting.beta / 3


@pytest.mark.parametrize("analysts", [1, 3, 40])
def test_small_databases_keep_their_promise_to_all_analysts_at_once(analysts: int) -> None:
    """In the worst case: all databases but the best one err by just more than what is promised."""
    setting = replace(crowd(analysts), options={"database_size": 2})
    parameters = SmallDatabaseParameters.from_json(plan_small_database("small_db", setting).parameters)
    assert parameters.half_width < 1 << GRID_BITS
    others = math.comb(64 + 1, 2) - 1
    further = parameters.half_width / 2**GRID_BITS - nearest(setting, 2)
    # A score is an error in units of 1 / (2 n), and drawn with e^(-epsilon score / 4).
    odds = others * math.exp(-float(parameters.epsilon) * further * setting.records / 2)
    assert analysts * odds / (1 + odds) <= setting.beta


@pytest.mark.parametrize("analysts", [2, 30])
def test_a_certified_half_width_holds_for_the_tests_of_all_statements_at_once(analysts: int) -> None:
    """However what is between threshold and bound is split between a test's noise and its threshold's."""
    setting = crowd(analysts, 100)
    parameters = plan_statement_repair(setting, 0.05, Fraction(1, 10))
    between = (
        parameters.certified_half_width * (setting.records << SCORE_BITS) // 2**GRID_BITS - parameters.threshold
    )
    places = sum(parameters.cut_offs.values())
    part = np.linspace(0, between, 100_000)
    tests, thresholds = (
        np.exp(-rate * records * parts) / 2
        for rate, records, parts in (
            (float(parameters.test_epsilon) / 4, 2.0**-SCORE_BITS, part),
            (float(parameters.test_epsilon) / 2, 2.0**-SCORE_BITS, between - part),
        )
    )
    failing = 100 * analysts * tests + places * thresholds
    assert failing.min() <= setting.beta * 3 / 4 * (1 + 1e-3)


def test_every_analyst_is_tested_and_charged_and_each_place_is_answered() -> None:
    """Two hundred tests, ten places: pure costs at half of their epsilon's square, selections at an eighth."""
    setting, rho = crowd(200, unit="analyst"), Fraction(1, 10)
    places = RepairPlaces(5, Fraction(1), 10)
    planned = plan_analyst_repair(setting, 0.05, places, rho)
    weights = planned.weights
    run = weights.rounds * (weights.select_epsilon**2 / 8 + weights.measure_epsilon**2 / 2)
    least = 200 * planned.test_epsilon**2 / 2 + 10 * (run + weights.certify_epsilon**2 / 2)
    charged, cut = repair_data_cost(planned, Size.of(setting))
    assert least <= charged <= rho
    assert cut >= 200 * Fraction(2 * planned.test_noise.digits + 2, 2**128)


@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_hiding_who_gets_a_place_is_charged_beside_the_game(play: str) -> None:
    setting = crowd(200, unit="analyst")
    game = GameParameters(play="mixed", rounds=4, batch=2, draws=3, density=8.0, query_step=2**20, data_step=2**8)
    game = replace(game, play="sampled", data_step=2**40) if play == "sampled" else game
    places = RepairPlaces(5, Fraction(1, 3), 60)
    planned = plan_analyst_repair(setting, 0.05, places, Fraction(1, 10))

    def parts(places: RepairPlaces) -> list[PrivacyEvent]:
        parameters = EquilibriumParameters(game, replace(planned, places=places), None)
        return analyst_parts(parameters, Size.of(setting), setting, 2.0)

    with_hiding, without = parts(places), parts(RepairPlaces(200, Fraction(0), 200))
    more = [sum(part.amounts()[kind] for part in with_hiding) for kind in range(3)]
    less = [sum(part.amounts()[kind] for part in without) for kind in range(3)]
    if play == "mixed":
        assert more[0] - less[0] == places.epsilon**2 / 2
        assert PureDpEvent("repair places", places.epsilon) in with_hiding
    else:
        assert more[1] - less[1] == places.epsilon
        assert ApproximateDpEvent("repair places", places.epsilon, Fraction(0)) in with_hiding
    assert more[2] > less[2]


@pytest.mark.parametrize("analysts", [1, 7])
def test_the_final_tests_of_all_places_are_charged(analysts: int) -> None:
    """Each adds Gaussian noise to a score that one record moves by 2^16, and every place is tested."""
    variance = 1 << 40
    (event,) = FinalTestParameters(variance, 0, 0, 0, 0, None).events(analysts)
    assert charge_of([event]).rho == math.ceil(Fraction(analysts * (1 << 2 * SCORE_BITS), 2 * variance) * RHO_UNIT)
