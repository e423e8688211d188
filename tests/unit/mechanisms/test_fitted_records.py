"""Distributions over a support against the tables that they are fitted to, and how far they may move answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness.wide_tables import SCHEMA, SIZES, small_supports, wide_table

from equipoise.model.results import AnswerMethod
from equipoise.queries.record_list import RecordList
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.fitted_records import NEAR, FittedRecords, moved_near
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.estimates import estimates_of
from equipoise_server.mechanisms.residuals.measurement import measure

PAIRS = list(itertools.combinations(range(len(SIZES)), 2))
RECORDS = 4_000


@pytest.mark.full
def test_a_fit_is_nearer_to_the_table_than_what_it_is_fitted_to() -> None:
    table = wide_table(RECORDS)
    measured = measure(table, least_summed(ResidualFamily.closed(SIZES, PAIRS), 0.05).noise, bytes(32), "test")
    workload = compile_workload([Marginal(names) for names in itertools.combinations(SCHEMA.names, 2)], SCHEMA)
    truth = table.count(workload) / RECORDS
    with small_supports(4_000):
        values = FittedRecords.of(measured).answers(workload) * 2.0**-40
    measured_error = float(np.abs(estimates_of(workload, measured).counts / RECORDS - truth).mean())
    assert values.min() >= 0
    assert float(np.abs(values - truth).mean()) < 0.85 * measured_error
    for marginal in np.split(values, workload.statement_offsets[1:-1]):
        assert abs(float(marginal.sum()) - 1) < 1e-6


def test_synthetic_records_hold_every_run_of_neighbours_to_a_record() -> None:
    """Whatever the order of the support is: records are laid out by their categories, the first counting most."""
    choose = np.random.default_rng(5)
    support = RecordList(SIZES, np.stack([choose.integers(0, size, 300, dtype=np.uint8) for size in SIZES]))
    weights = choose.integers(1, 1 << 20, 300)
    synopsis = FittedRecords(support, weights).synopsis(1_000)
    assert synopsis.sizes == SIZES
    rows = [tuple(row) for row in synopsis.categories.tolist()]
    assert len(rows) == 1_000
    assert all(row <= later for row, later in itertools.pairwise(rows))
    own = [tuple(row) for row in support.codes.T.tolist()]
    for bound in (tuple(size // part for size in SIZES) for part in (2, 3, 4)):
        share = sum(weight for row, weight in zip(own, weights.tolist(), strict=True) if row < bound)
        assert abs(sum(row < bound for row in rows) - 1_000 * share / int(weights.sum())) < 1


def test_a_fit_may_move_an_answer_by_two_standard_errors_within_its_interval() -> None:
    told = answers_within(np.array([1000] * 5 + [-900]), AnswerMethod.GAUSSIAN, 500, 100)
    values = np.array([0, 990, 1000, 1050, 5000, -910])
    near = moved_near(told, values, np.array([0, 6]), AnswerMethod.MEASURED)
    assert NEAR == 2
    assert near.values.tolist() == [800, 990, 1000, 1050, 1200, 0]
    assert (near.lows == told.lows).all()
    assert (near.highs == told.highs).all()
    assert set(near.methods.tolist()) == {AnswerMethod.MEASURED}


def test_a_fit_that_the_measurement_does_not_bear_out_counts_as_much_less() -> None:
    """Statement by statement: fitted values are mixed with measured ones as their errors are, here 0, 2 and 30."""
    choose, cells, deviation = np.random.default_rng(6), 20_000, 1000
    truth = np.full(3 * cells, 10**8)
    told = answers_within(
        truth + np.rint(choose.normal(0, deviation, 3 * cells)).astype(np.int64),
        AnswerMethod.GAUSSIAN,
        10**6,
        deviation,
    )
    errors = np.repeat([0, 2, 30], cells) * choose.normal(0, deviation, 3 * cells)
    fitted = truth + np.rint(errors).astype(np.int64)
    near = moved_near(told, fitted, np.arange(4) * cells, AnswerMethod.MEASURED).values
    of_noise, of_both, of_almost_noise = np.sqrt(np.mean(((near - truth) / deviation).reshape(3, -1) ** 2, axis=1))
    assert of_noise < 0.15  # as it is moved by two standard errors at most
    assert 0.85 < of_both < 0.91  # 0.894 is the best
    assert 0.97 < of_almost_noise < 1.02
    alone = moved_near(told[:cells], fitted[:cells], np.array([0, cells]), AnswerMethod.MEASURED)
    assert (alone.values == near[:cells]).all()


def test_no_statement_has_no_values() -> None:
    told = answers_within(np.zeros(0, np.int64), AnswerMethod.GAUSSIAN, 500, 100)
    assert len(moved_near(told, np.zeros(0, np.int64), np.zeros(1, np.int64), AnswerMethod.MEASURED)) == 0
