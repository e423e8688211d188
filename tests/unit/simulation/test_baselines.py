"""The baselines against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.queries import Marginal, attribute
from equipoise.schema import Schema
from equipoise.workload import compile_workload
from equipoise_server.mechanisms.interface import Budget
from equipoise_server.simulation.baselines import gaussian_deviation, largest_of_normals, uniform_guess

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
    one, four = (compile_workload([Marginal(("a",))] * tables, SCHEMA) for tables in (1, 4))
    assert gaussian_deviation(four, 100, budget) == pytest.approx(2 * gaussian_deviation(one, 100, budget))
    assert gaussian_deviation(one, 200, budget) == pytest.approx(gaussian_deviation(one, 100, budget) / 2)
