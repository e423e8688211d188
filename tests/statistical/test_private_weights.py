"""Private multiplicative weights: the exact law of what it selects and measures, on neighbouring data.

Every step calls what is shipped; only the draws are replaced by sums over all outcomes. The final test is one
discrete Laplace answer, whose law only shifts with its score.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import masks_workload
from statistical.exact_private_weights import charge, worst_use

from equipoise import accounting
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.repair import private_weights, weights_hypothesis
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.private_weights import (
    PrivateWeights,
    answer_scores,
    selection_exponents,
    weights_error,
)
from equipoise_server.mechanisms.repair.weights_hypothesis import Fit, rounded_weights, starting_weights
from equipoise_server.randomness.stream import KeyedStream

WEIGHTS = PrivateWeights(2, Fraction(2), Fraction(1), Fraction(1), 1 << 36)


@pytest.mark.parametrize("select", [Fraction(2), Fraction(1, 4), Fraction(6)])
def test_data_neighbours_leak_at_most_the_charge(select: Fraction) -> None:
    weights = PrivateWeights(2, select, Fraction(1), Fraction(1), 1 << 36)
    assert 0.02 <= worst_use(weights, charge(weights)) <= 1


@pytest.mark.nightly
def test_a_forgotten_coin_is_caught() -> None:
    """Charging the selections without the measurements, or a single round of two, is beaten."""
    weights = PrivateWeights(2, Fraction(1, 4), Fraction(1), Fraction(1), 1 << 36)
    without = float(accounting.exponential_mechanism_rho(weights.select_epsilon, weights.rounds))
    assert worst_use(weights, without) > 1
    eager = PrivateWeights(2, Fraction(8), Fraction(1, 8), Fraction(1), 1 << 36)
    only_measured = float(accounting.pure_rho(eager.measure_epsilon, eager.rounds))
    assert worst_use(eager, only_measured) > 1
    assert worst_use(eager, charge(eager)) <= 1


def test_scores_move_by_no_more_than_their_sensitivity() -> None:
    choose = np.random.default_rng(3)
    workload = masks_workload([1, 3, 6, 5], 3)
    for _ in range(50):
        data = np.bincount(choose.integers(0, 3, 9), minlength=3).astype(np.int64)
        other = data.copy()
        moved = int(choose.choice(np.flatnonzero(data)))
        other[moved] -= 1
        other[int(choose.integers(0, 3))] += 1
        answers = choose.integers(0, 2**40, 4)
        first, second = (answer_scores(workload.counts(each), 9, answers) for each in (data, other))
        assert int(np.abs(first - second).max()) <= 1 << 16


def test_a_cut_deficit_keeps_the_sensitivity_and_fits() -> None:
    weights = PrivateWeights(1, Fraction(50), Fraction(1), Fraction(1), 0)
    scores = np.array([0, 2**50, 2**56], dtype=np.int64)
    scored = (scores, scores + np.array([65536, -65536, -65536]))
    exponents, moved = (selection_exponents(each, weights.select_step) for each in scored)
    assert exponents.max() == 0
    assert exponents.min() >= -(2**62)
    assert int(np.abs(exponents - moved).max()) <= 2 * 65536 * weights.select_step


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1, 20)])
def test_the_proven_error_holds_and_the_answers_learn(epsilon: Fraction) -> None:
    choose = np.random.default_rng(4)
    records, size = 20_000, 16
    workload = masks_workload(choose.integers(1, 2**size - 1, 40).tolist(), size)
    histogram = np.bincount(np.minimum(size - 1, choose.geometric(0.3, records)), minlength=size).astype(np.int64)
    counts = workload.counts(histogram)
    weights = PrivateWeights(40, epsilon, epsilon, epsilon, 1 << 33)
    answers, noisy = weights.answer(workload, counts, records, np.ones(size), KeyedStream.derive(bytes(32), "test"))
    error = float(np.abs(answers / 2.0**40 - counts / records).max())
    start = float(np.abs(workload.counts(np.ones(size, np.int64)) / size - counts / records).max())
    assert error <= weights_error(weights, records, size, 40, 1e-6)
    assert error <= start / 4
    assert abs(noisy / (records << 16) - error) <= weights.certify_noise.quantile(1e-6) / (records << 16) + 1e-6


def test_nothing_is_proven_with_a_guard_that_noise_can_pass() -> None:
    weights = PrivateWeights(40, Fraction(1), Fraction(1), Fraction(1), 0)
    enough = math.ceil(2 * private_weights.measurement_error(weights, 10**6, 16, 0.005) * 2**40)
    assert weights_error(replace(weights, guard=enough), 10**6, 16, 40, 0.01) < 1
    assert weights_error(replace(weights, guard=enough - 2), 10**6, 16, 40, 0.01) == math.inf


def test_few_rounds_with_the_planned_guard_learn_small_tables() -> None:
    """Where nothing can be proven, noise of a usual size does not keep earlier measurements from being used."""
    records, schema = 5000, Schema.from_json('{"c": 2, "x": 2}')
    workload = compile_workload([Marginal(("c", "x"))], schema)
    histogram = np.array([222, 4518, 133, 127], dtype=np.int64)
    shares = (Share("one", 1, 4), Share("two", 1, 4))
    budgets = Budget(1.0, 1e-7), Budget(6.0, 1e-6)
    setting = PublicParameters(records, 4, shares, "analyst", *budgets, 0.05, {"threshold": 0.01})
    repair = EquilibriumParameters.from_json(mechanism("equilibrium").plan(setting).parameters).repair
    assert isinstance(repair, AnalystRepairParameters)
    assert repair.weights_half_width == 1 << 40
    for seed in range(8):
        stream = KeyedStream.derive(seed.to_bytes(32), "test")
        answers, _ = repair.weights.answer(workload, workload.counts(histogram), records, np.ones(4), stream)
        assert float(np.abs(answers / 2.0**40 - histogram / records).max()) <= 0.07  # the uniform guess: 0.65


def test_the_start_is_half_the_synopsis_and_half_uniform() -> None:
    start = starting_weights(Synopsis.of_cells(np.array([1, 1, 3]), (4,)), 4)
    assert start.tolist() == [3, 11, 3, 7]
    assert start.sum() == 2 * 3 * 4


def shares_moved(cells: int, total_bits: int, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """How far rounding moves the light cells' share, where one cell is as heavy as its scale allows."""
    monkeypatch.setattr(weights_hypothesis, "TOTAL_BITS", total_bits)
    heaviest = 1 << (total_bits - 1 - cells.bit_length())
    # On the last scale each light cell is worth just less than one unit, all of which is lost.
    light = 1 - 2.0**-20
    scale = 2.0 ** (total_bits - (heaviest + cells).bit_length())
    weights = np.full(cells, light / scale)
    weights[0] = heaviest
    integers, _ = rounded_weights(weights)
    assert int(integers.sum()) < 2**total_bits
    exact = Fraction(light) / Fraction(scale) * (cells - 1)
    rounded = Fraction(int(integers[1:].sum()), int(integers.sum()))
    return abs(exact / (exact + heaviest) - rounded)


def test_rounding_weights_costs_what_is_claimed_up_to_the_largest_universe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of 2^26 cells at 52 bits, on a scale that fits here: 2^13 cells at 26 bits."""
    moved = shares_moved(2**13, 26, monkeypatch)
    assert Fraction(2**13, 2**24) < moved <= Fraction(2**13, 2**23)  # half of the bound would be too little
    assert shares_moved(2**13 - 1, 26, monkeypatch) <= Fraction(2**13, 2**24)


def test_a_hypothesis_far_from_uniform_still_answers_finely() -> None:
    """One heavy cell: the rounded weights must not lose the light ones."""
    workload = masks_workload([1, 2], 1 << 10)
    start = np.ones(1 << 10)
    start[0] = 2.0**40
    answers = Fit(workload, start, 0).answers()
    total = 2**40 + 2**10 - 1
    assert abs(int(answers[0]) - 2**80 / total) <= 4
    assert int(answers[1]) in (0, 1, 2)
