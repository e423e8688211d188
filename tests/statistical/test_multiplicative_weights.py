"""`multiplicative_weights`: the exact law of what is selected and measured, its proof step by step, and faults."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from harness.answers import half_widths
from harness.exact_game import Law, masks_workload, renyi, schema, table_workload
from harness.exponential_law import exponential_law
from numpy.typing import NDArray

from equipoise.accounting import charge_of, exponential_mechanism_rho
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms import hypothesis as hypothesis_module
from equipoise_server.mechanisms.hypothesis import Hypothesis, gain_slack
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.mechanism import MultiplicativeWeights, learn
from equipoise_server.mechanisms.multiplicative_weights.plan import WeightsParameters, data_parts
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.repair.private_weights import (
    answer_scores,
    rounding_error,
    selection_exponents,
    selection_step,
)
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

ORDERS = (1.25, 2.0, 4.0, 16.0)
TWO_ROUNDS = WeightsParameters(2, Fraction(1), GaussianNoise(Fraction(2)), Fraction(1), 1 << 38, 1 << 40, 0)
WORKLOAD = table_workload([1, 5], 3)
LOWEST, HIGHEST = -1, 3  # noisy counts beyond are taken together, which shows no more


def noisy_law(count: int, law: DiscreteGaussian) -> dict[int, float]:
    """The law of a count with noise."""
    cut: dict[int, float] = defaultdict(float)
    for noise, mass in law.law(96).items():
        cut[max(LOWEST, min(HIGHEST, count + noise))] += float(mass)
    return cut


def transcript_law(parameters: WeightsParameters, workload: CompiledWorkload, histogram: NDArray[np.int64]) -> Law:
    """The law of what is selected and measured: statement and noisy counts of every round."""
    counts, records = workload.counts(histogram), int(histogram.sum())
    starts = workload.statement_offsets
    measured: list[dict[tuple[int, ...], float]] = []
    for statement in range(workload.statement_count):
        law = DiscreteGaussian(parameters.noise.variance * workload.statement_sensitivity(statement))
        cells = counts[starts[statement] : starts[statement + 1]].tolist()
        outcomes = {}
        for drawn in product(*(noisy_law(cell, law).items() for cell in cells)):
            outcomes[tuple(noisy for noisy, _ in drawn)] = math.prod(mass for _, mass in drawn)
        measured.append(outcomes)
    laws: dict[tuple[tuple[int, ...], ...], float] = {(): 1.0}
    for _ in range(parameters.rounds):
        longer: dict[tuple[tuple[int, ...], ...], float] = defaultdict(float)
        for past, chance in laws.items():
            hypothesis = Hypothesis(np.zeros(histogram.size, dtype=np.int64), 1e-9)
            for seen in past:
                hypothesis.measured(
                    workload, seen[0], np.array(seen[1:]) / records, parameters.reach / 2.0**GRID_BITS
                )
            scores = np.maximum.reduceat(answer_scores(counts, records, hypothesis.answers(workload)), starts[:-1])
            chosen = exponential_law(selection_exponents(scores, selection_step(parameters.select_epsilon)))
            for statement, part in enumerate(chosen):
                for noisy_counts, mass in measured[statement].items():
                    longer[(*past, (statement, *noisy_counts))] += chance * float(part) * mass
        laws = dict(longer)
    return {tuple(number for each in past for number in each): chance for past, chance in laws.items()}


@cache
def worst_rho(parameters: WeightsParameters, workload: CompiledWorkload = WORKLOAD) -> float:
    """The largest divergence over neighbouring tables of two records, as a part of its order."""
    worst = 0.0
    for data, other in (([2, 0, 0], [1, 1, 0]), ([1, 1, 0], [0, 1, 1])):
        law = transcript_law(parameters, workload, np.array(data, dtype=np.int64))
        near = transcript_law(parameters, workload, np.array(other, dtype=np.int64))
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
        for order in ORDERS:
            worst = max(worst, renyi(law, near, order) / order, renyi(near, law, order) / order)
    return worst


def charged(parameters: WeightsParameters) -> float:
    """What one analyst's selections and measurements are charged, without the test."""
    setting = PublicParameters(2, 3, (Share("a", 3, 5),), "query", Budget(1, 0.01), Budget(1, 0.01), 0.1, {})
    parts = [part for part in data_parts(setting, parameters) if part.name in ("selections", "answers")]
    return charge_of(parts).rho / 1e12


@pytest.mark.full
def test_a_record_shows_what_is_charged_and_no_more() -> None:
    assert 0.3 <= worst_rho(TWO_ROUNDS) / charged(TWO_ROUNDS) <= 1


@pytest.mark.full
def test_a_record_shows_of_sums_no_more_than_is_charged() -> None:
    """Records weigh 0, a half and 1, so that sums are rounded down on every second table."""
    sums = compile_workload([Sum("x"), Sum("x", where=attribute("x") != "2"), attribute("x") == "0"], schema(3))
    assert 0.2 <= worst_rho(TWO_ROUNDS, sums) / charged(TWO_ROUNDS) <= 1


def uncharged_selections() -> float:
    eager = replace(TWO_ROUNDS, select_epsilon=Fraction(6), noise=GaussianNoise(Fraction(40)))
    used = worst_rho(eager, masks_workload([1, 2, 4], 3))
    assert used <= charged(eager)
    without = charged(eager) - float(exponential_mechanism_rho(eager.select_epsilon, eager.rounds))
    return used / without


def one_round_charged() -> float:
    return worst_rho(TWO_ROUNDS) / (charged(TWO_ROUNDS) / 2)


def tables_measured_as_predicates() -> float:
    """A column's norm: a table's noise that of one count."""
    only = replace(TWO_ROUNDS, rounds=1)
    finer = replace(only, noise=GaussianNoise(only.noise.variance / 2))
    return worst_rho(finer, table_workload([], 3)) / charged(only)


@pytest.mark.thin(2)
@pytest.mark.parametrize("fault", [uncharged_selections, one_round_charged, tables_measured_as_predicates])
def test_a_fault_in_the_charge_is_caught(fault: Callable[[], float]) -> None:
    assert fault() > 1


def divergence(histogram: NDArray[np.int64], held: NDArray[np.int64]) -> float:
    """KL(data || distribution), from what the distribution answers to every record."""
    share, seen = histogram / histogram.sum(), histogram > 0
    return float(np.sum(share[seen] * np.log(share[seen] / (held[seen] / 2.0**GRID_BITS))))


def every_round_gains_what_is_proven() -> bool:
    """The divergence from the data falls by at least twice the square of the distance, in each of 60 rounds."""
    choose = np.random.default_rng(8)
    every = table_workload([], 8)
    slack = gain_slack(rounding_error(1000, 8))
    for _ in range(6):
        histogram = choose.multinomial(1000, choose.dirichlet(np.full(8, 0.4))).astype(np.int64)
        truth = histogram / 1000
        hypothesis = Hypothesis(np.zeros(8, dtype=np.int64), slack)
        for _ in range(10):
            before = hypothesis.answers(every)
            noisy = truth + choose.uniform(-0.02, 0.02, 8)
            distance = float(np.max(np.abs(noisy - before / 2.0**GRID_BITS))) - 0.02
            hypothesis.measured(every, 0, noisy, 0.02)
            gain = divergence(histogram, before) - divergence(histogram, hypothesis.answers(every))
            if gain < 2 * max(0.0, distance - 1e-9) ** 2 - 10 * slack - 1e-6:
                return False
    return True


def test_every_round_gains_what_is_proven() -> None:
    assert every_round_gains_what_is_proven()


def test_a_hypothesis_that_moves_the_wrong_way_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    units = hypothesis_module._units
    monkeypatch.setattr(hypothesis_module, "_units", lambda nats: units(-nats))
    monkeypatch.setattr(hypothesis_module, "_gains", lambda tilts, *_: [1.0] * len(tilts))
    assert not every_round_gains_what_is_proven()


def many_conditions() -> tuple[PublicParameters, CompiledWorkload, NDArray[np.int64]]:
    """120 conditions on half of 16 possible records, of a million."""
    choose = np.random.default_rng(9)
    workload = masks_workload(choose.integers(1, 2**16 - 1, 120).tolist(), 16)
    histogram = choose.multinomial(10**6, choose.dirichlet(np.full(16, 0.3))).astype(np.int64)
    share = Share("a", 120, 120, 120)
    budgets = Budget(1.0, 1e-12), Budget(1.0, 1e-6)
    return PublicParameters(10**6, 16, (share,), "query", *budgets, 0.05, {"rounds": 24}), workload, histogram


def test_the_proven_error_is_useful_for_many_records_and_holds() -> None:
    setting, workload, histogram = many_conditions()
    plan = MultiplicativeWeights().plan(setting)
    assert plan.max_half_width < 0.27
    unforced = WeightsParameters.from_json(MultiplicativeWeights().plan(replace(setting, options={})).parameters)
    assert unforced.proven < 0.2 * 2**GRID_BITS
    assert unforced.rounds > 24
    outcome = MultiplicativeWeights().run(
        setting, plan, DenseCounts(histogram), {"a": workload}, bytes(32), lambda *_: None
    )
    answers = outcome.answers["a"]
    errors = np.abs(answers.values / 2.0**GRID_BITS - workload.counts(histogram) / 10**6)
    assert errors.max() <= half_widths(answers).max() <= plan.max_half_width
    assert errors.max() < 0.01


def test_where_the_test_certifies_too_little_the_mean_hypothesis_is_delivered_with_what_is_proven() -> None:
    setting, workload, histogram = many_conditions()
    parameters = WeightsParameters.from_json(MultiplicativeWeights().plan(setting).parameters)
    stream = KeyedStream.derive(bytes(32), "test")
    answers = learn(replace(parameters, margin=10**6 << 16), workload, DenseCounts(histogram), 10**6, stream)
    assert half_widths(answers).max() == parameters.proven / 2**GRID_BITS
    errors = np.abs(answers.values / 2.0**GRID_BITS - workload.counts(histogram) / 10**6)
    assert errors.max() <= parameters.proven / 2.0**GRID_BITS


@pytest.mark.parametrize("rounds", [0, 513, 2.5, True, "many"])
def test_a_forced_number_of_rounds_is_checked(rounds: object) -> None:
    setting, _, _ = many_conditions()
    with pytest.raises(Exception, match=r"options\.rounds|whole number") as refused:
        MultiplicativeWeights().plan(replace(setting, options={"rounds": rounds}))
    assert getattr(refused.value, "field", "") == "options.rounds"
