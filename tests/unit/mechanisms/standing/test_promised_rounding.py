"""What a round promises of a standing measurement's sums, which are rounded to whole records."""

from __future__ import annotations

import numpy as np
from harness.answers import half_widths

from equipoise.queries.schema import Schema
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.reach import log_chance
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.answering import answers_of
from equipoise_server.mechanisms.standing.plan import half_width


def test_a_plan_promises_no_less_than_a_sum_s_rounding_to_whole_records() -> None:
    """There is so little noise that a sum of a whole table is told as far off as it is rounded, hardly further."""
    schema = Schema.from_json('{"a": 3}')
    family = ResidualFamily.closed(schema.sizes, [(0,)])
    noise = ResidualNoise.of(family, [1] * len(family.residuals))
    measured = measure(DenseCounts(np.array([300, 300, 400]), schema.sizes), noise, bytes(32), "test")
    log = log_chance(0.05)
    told = half_widths(answers_of(compile_workload([Sum("a")], schema), measured, log))
    assert told.max() <= half_width(noise, log, measured.records)
