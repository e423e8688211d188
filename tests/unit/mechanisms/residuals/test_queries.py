"""The residuals as linear queries: against the exact integers of a measurement, and dense least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.record_list import RecordList
from equipoise.residuals.family import ResidualFamily
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.residuals.queries import ResidualQueries
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

SIZES, ORDERED = (3, 5, 2, 1, 6), (1, 4)
FAMILY = ResidualFamily.closed(SIZES, [(0, 1, 4), (1, 2)], ORDERED)
NOISE = least_summed(FAMILY, 0.5).noise


def histogram() -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, 9, math.prod(SIZES)).astype(np.int64)


def matrix(queries: ResidualQueries) -> NDArray[np.float64]:
    """All queries, a row each."""
    return np.array([queries.expectations(row) for row in np.eye(math.prod(SIZES))]).T


def test_without_noise_the_measured_numbers_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "draw", lambda _, count, __: np.zeros(count, dtype=np.int64))
    measured = measure(DenseCounts(histogram(), SIZES), NOISE, bytes(32), "test")
    queries = ResidualQueries(FAMILY)
    told = queries.measured(measured)
    assert told.shape == (queries.query_count,)
    assert told == pytest.approx(queries.expectations(histogram().astype(np.float64)), abs=1e-9)


def test_the_combination_is_the_transpose_of_the_expectations() -> None:
    queries = ResidualQueries(FAMILY)
    rows = matrix(queries)
    coefficients = np.random.default_rng(4).normal(size=queries.query_count)
    assert queries.combination(coefficients) == pytest.approx(coefficients @ rows)
    # No number is told twice, and none is of the sum of all records.
    assert np.linalg.matrix_rank(rows) == queries.query_count
    assert rows.sum(axis=1)[0] == pytest.approx(0)


@pytest.mark.nightly
def test_noise_has_the_variances_that_the_fit_weighs_by() -> None:
    queries, table = ResidualQueries(FAMILY), DenseCounts(histogram(), SIZES)
    exact = queries.expectations(histogram().astype(np.float64))
    measured = [measure(table, NOISE, bytes([number]) * 32, "test") for number in range(200)]
    errors = np.array([queries.measured(each) - exact for each in measured])
    scaled = errors / np.sqrt(queries.variances(measured[0]))
    # Means of 200 x k squares of Gaussian numbers: k is above 60, so one in 10^6 is above 0.08.
    assert (scaled**2).mean() == pytest.approx(1, abs=0.08)
    correlations = np.corrcoef(scaled.T) - np.eye(queries.query_count)
    assert np.abs(correlations).max() < 0.45


def test_a_fit_to_residuals_is_nearer_to_the_table_than_their_noise() -> None:
    queries, counts = ResidualQueries(FAMILY), histogram()
    records = int(counts.sum())
    measured = measure(DenseCounts(counts, SIZES), NOISE, bytes(32), "test")
    numbers, variances = queries.measured(measured) / records, queries.variances(measured) / records**2
    fitted = fit(queries, numbers, variances)
    truth = queries.expectations(counts / records)
    assert np.sum((fitted.answers - truth) ** 2 / variances) < np.sum((numbers - truth) ** 2 / variances)


def test_residuals_over_a_list_of_all_records_are_those_over_the_universe() -> None:
    every = np.unravel_index(np.arange(math.prod(SIZES)), SIZES)
    listed = ResidualQueries(FAMILY, RecordList(SIZES, np.array(every, dtype=np.uint8)))
    whole = ResidualQueries(FAMILY)
    weights = np.random.default_rng(6).random(whole.size)
    assert (listed.size, listed.query_count) == (whole.size, whole.query_count)
    assert listed.expectations(weights) == pytest.approx(whole.expectations(weights))
    coefficients = np.random.default_rng(7).normal(size=whole.query_count)
    assert listed.combination(coefficients) == pytest.approx(whole.combination(coefficients))
