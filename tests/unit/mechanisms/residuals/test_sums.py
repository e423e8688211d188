"""What a residual measurement says about sums: the weighted sum of what it says about bins, and its variance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.naive_residuals import restored_covariance
from numpy.typing import NDArray

from equipoise.queries.predicates import Interval, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

EDGES = (0.0, 1.0, 2.5, 3.0, 4.0, 9.0)
SCHEMA = Schema(
    (
        Attribute("a", ("0", "1", "2")),
        Attribute("b", (*bin_labels(EDGES), "missing"), EDGES, missing="missing"),
        Attribute("only", ("1",)),
        Attribute("e", tuple("012345")),
    )
)
FAMILY = ResidualFamily.closed(SCHEMA.sizes, [(0, 1, 3)], (1,))
a, e = attribute("a"), attribute("e")
ASKED: list[Statement] = [
    Sum("b"),
    Sum("b", ("e", "a"), low=1, high=4),
    Sum("e", ("only",), where=(a == "1") & Interval("b", 1, 4)),
    Sum("b", ("a",), where=(e == "1") | Interval("b", 0, 3)),
    Sum("b", where=(a == "0") & (a == "1")),
]


def table() -> NDArray[np.int64]:
    return np.random.default_rng(3).integers(0, 9, math.prod(SCHEMA.sizes))


def measured(parameter: int | None = None) -> Measured:
    drawn = np.random.default_rng(2).integers(1 << 10, 1 << 16, len(FAMILY.residuals)).tolist()
    noise = ResidualNoise.of(FAMILY, drawn if parameter is None else [parameter] * len(drawn))
    return measure(DenseCounts(table(), SCHEMA.sizes), noise, b"\x07" * 32, "test")


def test_without_noise_every_sum_is_the_truth_before_it_is_rounded() -> None:
    workload = compile_workload(ASKED, SCHEMA)
    found = estimates_of(workload, measured(1))  # a variance of 2^-10 draws 0
    exact = workload.expectations(table().astype(np.float64))
    assert np.abs(found.counts - exact).max() < 1e-6
    # The truth is rounded down to whole records, and the interval must hold it.
    assert (np.abs(found.counts - workload.counts(table())) <= found.slack).all()
    assert found.slack.max() < 1 + 1e-3


def test_of_many_records_sums_are_within_the_rounding_of_the_table_to_coarser_units() -> None:
    """Every cell is a whole number of units, of which the sums by weights are exact."""
    many = table() * (2**31) + np.arange(len(table())) % 7
    noise = ResidualNoise.of(FAMILY, [1] * len(FAMILY.residuals))
    found = estimates_of(
        compile_workload(ASKED, SCHEMA), measure(DenseCounts(many, SCHEMA.sizes), noise, bytes(32), "test")
    )
    truths = compile_workload(ASKED, SCHEMA).counts(many)
    away = np.abs(found.counts - truths)
    assert (away <= found.slack).all()
    assert away.max() > 2


def test_sums_are_those_of_the_restored_table_and_their_variances_the_reference_s() -> None:
    workload, told = compile_workload(ASKED, SCHEMA), measured()
    found = estimates_of(workload, told)
    covariance, cells = restored_covariance(told.noise, (0, 1, 3)), told.table((0, 1, 3)).counts().reshape(-1)
    for query in range(workload.query_count):
        weights = workload.combination(np.eye(workload.query_count)[query]).reshape(-1)
        assert found.counts[query] == pytest.approx(float(weights @ cells), abs=1e-4)
        assert found.variances[query] == pytest.approx(float(weights @ covariance @ weights), rel=1e-6, abs=1e-4)
