"""The demo's honest line: the largest of many Gaussian errors, against simulation."""

from __future__ import annotations

import math

import numpy as np

from equipoise.queries.predicates import attribute
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.demo.measure import gaussian_error
from equipoise_lab.demo.play import DATA_BUDGET
from equipoise_lab.demo.table import SCHEMA
from equipoise_server.conversion import largest_rho


def test_independent_noise_is_what_simulation_says() -> None:
    queries, records = 50, 1000
    workload = compile_workload([attribute("origin") == "JFK"] * queries, SCHEMA)
    rho = largest_rho(DATA_BUDGET.epsilon, DATA_BUDGET.delta) / 1e12
    deviation = math.sqrt(queries) / math.sqrt(2 * rho) / records
    drawn = np.abs(np.random.default_rng(1).normal(0, deviation, (20_000, queries))).max(axis=1)
    # The mean of 20,000 maxima has a relative standard error of about 0.15 %; 1 % is more than six of them.
    assert abs(gaussian_error(workload, records) / drawn.mean() - 1) < 0.01
