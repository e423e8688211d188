"""What sums told by residuals are expected to err by, against what answers from a measurement err by."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.residuals.sum_error import sum_error
from equipoise_server.mechanisms.standing.family import planned_noise
from equipoise_server.mechanisms.standing.measurement import MeasurementParameters, as_options

SCHEMA = Schema.from_json(json.dumps({"a": 8, "b": 6}))
RECORDS, DATA, NOBODY = 20_000, Budget(1.0, 1e-9), Budget(math.inf, 0.0)
ASKED: list[Statement] = [Sum("a", ("b",)), Sum("b", ("a",))]


def test_a_sum_of_all_weights_alike_errs_by_the_noise_of_their_tables() -> None:
    """By hand: of two categories, whose weights are 0 and 1, a sum is the count of the second."""
    family = ResidualFamily.closed((2,), [(0,)])
    noise = ResidualNoise.of(family, [1 << 12] * len(family.residuals))
    cell = float(cell_variances(noise, (0,)).max())
    assert sum_error(noise, [(0,)]) == pytest.approx(math.sqrt(2 / math.pi * cell))


@pytest.mark.slow
def test_standing_expects_of_sums_what_they_err_by() -> None:
    workload = compile_workload(ASKED, SCHEMA)
    cells = np.random.default_rng(5).multinomial(RECORDS, np.full(SCHEMA.universe_size, 1 / SCHEMA.universe_size))
    options = as_options(planned_noise({}, SCHEMA, DATA))
    plain = PublicParameters(RECORDS, SCHEMA.universe_size, (), "query", DATA, NOBODY, 0.05, options, SCHEMA.sizes)
    planned, truths = mechanism("measurement").plan(plain), workload.counts(cells)
    noise = MeasurementParameters.from_json(planned.parameters).noise
    errors: list[float] = []
    expected = counted = 0.0
    for seed in range(12):
        table = DenseCounts(cells, SCHEMA.sizes)
        measured = (
            mechanism("measurement").run(plain, planned, table, {}, bytes([seed] * 32), lambda *_: None).measured
        )
        named = ReleasedMeasurement("f" * 32, sha256(measured).digest(), noise)
        asking = replace(
            plain,
            shares=(Share("AA", workload.statement_count, workload.query_count),),
            options={STANDING_OPTION: named.as_option()},
            measured=measured,
            sums=True,
        )
        plan = mechanism("standing").plan(asking)
        expected, counted = (
            plan.expected_error,
            mechanism("standing").plan(replace(asking, sums=False)).expected_error,
        )
        told = mechanism("standing").run(asking, plan, table, {"AA": workload}, bytes(32), lambda *_: None)
        errors += np.abs(told.answers["AA"].values / 2.0**40 * RECORDS - truths).tolist()
    assert expected * RECORDS == pytest.approx(float(np.mean(errors)), rel=0.25)
    assert expected != counted
