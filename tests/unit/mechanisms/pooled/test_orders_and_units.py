"""What `pooled` tells of three attributes in any order, of sums of whole records, and each table's own noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled.direct import direct_answers
from equipoise_server.mechanisms.pooled.measured import MeasuredTable, estimate, measure
from equipoise_server.mechanisms.pooled.mechanism import Pooled

SCHEMA = Schema.from_json('{"a": 3, "b": 4, "c": 2}')
TABLE = np.arange(24, dtype=np.int64) * 100
CHANCE = 1e-6


def test_counts_of_three_attributes_are_in_the_order_in_which_they_are_asked() -> None:
    axes: Axes = (0, 1, 2)
    table = MeasuredTable(axes, TABLE.reshape(SCHEMA.sizes), Fraction(1, 1 << 40))
    estimates = {axes: estimate(SCHEMA.sizes, axes, [table], int(TABLE.sum()))}
    for names in (("c", "a", "b"), ("b", "c", "a")):
        workload = compile_workload([Marginal(names)], SCHEMA)
        assert direct_answers(workload, estimates, CHANCE).counts == pytest.approx(workload.counts(TABLE))


def test_a_plan_promises_no_less_than_a_sum_s_rounding_to_whole_records() -> None:
    """There is so little noise that it makes up less than half of how far off a sum is told."""
    schema, table = Schema.from_json('{"a": 3}'), np.array([300, 300, 400])
    asked = {"ana": compile_workload([Sum("a")], schema)}
    setting = PublicParameters(
        records=1000,
        universe_size=3,
        shares=(Share("ana", 1, 1),),
        unit="query",
        data_budget=Budget(50.0, 1e-6),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={"residuals": 1, "repair_share": 0, "synopsis": 100},
        attributes=schema.sizes,
    )
    plan = Pooled().plan(setting)
    told = Pooled().run(setting, plan, DenseCounts(table, schema.sizes), asked, bytes(32), lambda *_: None)
    assert told.answers["ana"].certified.all()
    assert half_widths(told.answers["ana"]).max() <= plan.max_half_width < 2 / 1000


def test_tables_of_one_size_have_noise_of_their_own() -> None:
    """Correlations of 1,024 independent numbers are below 0.2, but for one in a billion."""
    sizes = (32, 32, 32)
    pairs: list[Axes] = [(0, 1), (0, 2), (1, 2)]
    rhos = dict.fromkeys(pairs, Fraction(1, 1000))
    tables = measure(DenseCounts(np.zeros(32**3, dtype=np.int64), sizes), rhos, bytes(32))
    correlations = np.corrcoef([table.counts.reshape(-1) for table in tables])
    assert np.abs(correlations - np.eye(3)).max() < 0.2
