"""The baselines against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors, uniform_guess
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.registry import mechanism

SCHEMA = Schema.from_json('{"a": 4, "b": 2}')


def test_the_uniform_guess_is_the_covered_part_of_the_universe() -> None:
    workload = compile_workload([attribute("a") == "0", Marginal(("b",))], SCHEMA)
    assert uniform_guess(workload).tolist() == [0.25, 0.5, 0.5]


@pytest.mark.parametrize("deviation", [0.003, 0.1, 0.7])
@pytest.mark.parametrize("queries", [1, 2, 300])
def test_errors_are_those_of_the_noise(deviation: float, queries: int) -> None:
    errors = gaussian_errors(deviation, queries)
    wrong = np.abs(np.random.default_rng(1).standard_normal((4000, queries)) * deviation)
    for found, seen in ((errors.max, wrong.max(axis=1)), (errors.mean, wrong.mean(axis=1))):
        assert abs(found - seen.mean()) < 6 * seen.std() / math.sqrt(4000) + 1e-3 * deviation
    if queries < 100:
        assert errors.p99 == errors.max
        return
    assert np.mean(wrong > errors.p99 + 0.02 * deviation) < 0.0125
    assert np.mean(wrong > errors.p99 - 0.02 * deviation) > 0.0075


@pytest.mark.slow
def test_the_mechanism_errs_as_expected() -> None:
    """`gaussian` itself, with a declared sensitivity and an analyst who asks for less than its share."""
    budget = Budget(1.0, 1e-6)
    histogram = np.array([300, 0, 40, 1, 500, 3, 9, 147], dtype=np.int64)
    shares = (Share("a", 4, 20, 5), Share("b", 9, 30))
    setting = PublicParameters(1000, 8, shares, "query", budget, budget, 0.05, {})
    asked = {"a": compile_workload([Marginal(("a", "b")), attribute("a") == "0"], SCHEMA)}
    truth = asked["a"].counts(histogram) / 1000
    gaussian = mechanism("gaussian")
    plan = gaussian.plan(setting)
    wrong = []
    for seed in range(400):
        outcome = gaussian.run(
            setting,
            plan,
            DenseCounts(histogram, setting.attributes),
            asked,
            seed.to_bytes(32, "big"),
            lambda *_: None,
        )
        wrong.append(np.abs(outcome.answers["a"].values / 2**GRID_BITS - truth))
    errors = gaussian_errors(gaussian_deviation(5 + 18, 1000, budget), len(truth))
    for found, seen in ((errors.max, np.max(wrong, axis=1)), (errors.mean, np.mean(wrong, axis=1))):
        assert abs(found - seen.mean()) < 6 * seen.std() / math.sqrt(len(seen))


def test_noise_grows_with_the_root_of_the_tables_and_falls_with_the_records() -> None:
    budget = Budget(1.0, 1e-9)
    one, four = (gaussian_deviation(2 * tables, 100, budget) for tables in (1, 4))
    assert four == pytest.approx(2 * one)
    assert gaussian_deviation(2, 200, budget) == pytest.approx(one / 2)
