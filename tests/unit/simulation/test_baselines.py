"""The baselines against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.queries import Marginal, attribute
from equipoise.schema import Schema
from equipoise.workload import compile_workload
from equipoise_server.mechanisms.interface import Budget, Setting, Share
from equipoise_server.simulation.baselines import (
    gaussian_deviation,
    gaussian_errors,
    largest_of_normals,
    uniform_guess,
)

SCHEMA = Schema.from_json('{"a": 4, "b": 2}')


def test_the_uniform_guess_is_the_covered_part_of_the_universe() -> None:
    workload = compile_workload([attribute("a") == "0", Marginal(("b",))], SCHEMA)
    assert uniform_guess(workload).tolist() == [0.25, 0.5, 0.5]


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_the_largest_of_normals(count: int) -> None:
    drawn = np.abs(np.random.default_rng(1).standard_normal((4000, count))).max(axis=1)
    assert abs(largest_of_normals(count) - drawn.mean()) < 6 * drawn.std() / math.sqrt(4000)


def test_noise_grows_with_the_root_of_the_tables_and_falls_with_the_records() -> None:
    budget = Budget(1.0, 1e-9)
    one, four = (gaussian_deviation(2 * tables, 100, budget) for tables in (1, 4))
    assert four == pytest.approx(2 * one)
    assert gaussian_deviation(2, 200, budget) == pytest.approx(one / 2)


@pytest.mark.parametrize(("declared", "moved"), [((0, 0), 12), ((2, 3), 5)])
def test_all_that_the_shares_declare_is_paid_for(declared: tuple[int, int], moved: int) -> None:
    budget = Budget(1.0, 1e-9)
    shares = (Share("a", 2, 9, declared[0]), Share("b", 4, 9, declared[1]))
    errors = gaussian_errors(Setting(1000, 8, shares, "query", budget, budget, 0.05, {}), answers=40)
    assert errors is not None
    drawn = np.abs(np.random.default_rng(2).standard_normal((4000, 40)))
    drawn *= math.sqrt(moved) * gaussian_deviation(1, 1000, budget)
    for found, seen in ((errors.max, drawn.max(axis=1)), (errors.mean, drawn)):
        assert abs(found - seen.mean()) < 6 * seen.std() / math.sqrt(seen.size)
    assert 0.008 < np.mean(drawn > errors.p99) < 0.012
