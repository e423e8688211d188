"""Tables of more possible records than can be listed: every analyst's own noise, and room for rounding."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from harness.wide_tables import SCHEMA, SIZES, small_supports, wide_table

from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.projection import own_tables
from equipoise_server.mechanisms.projection.mechanism import Projection
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured

RECORDS = 2_000
WORKLOAD = compile_workload([Marginal(("x2", "x3"))], SCHEMA)
SETTING = PublicParameters(
    records=RECORDS,
    universe_size=math.prod(SIZES),
    shares=tuple(Share(name, WORKLOAD.statement_count, WORKLOAD.query_count) for name in ("ana", "ben")),
    unit="analyst",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    options={},
    attributes=SIZES,
)


def run() -> tuple[Answers, Answers]:
    """What two analysts are told who ask the same."""
    asked = {"ana": WORKLOAD, "ben": WORKLOAD}
    with small_supports(200):
        plan = Projection().plan(SETTING)
        told = Projection().run(SETTING, plan, wide_table(RECORDS), asked, bytes(32), lambda *_: None).answers
    return told["ana"], told["ben"]


def test_two_analysts_who_ask_the_same_get_noise_of_their_own() -> None:
    ana, ben = run()
    assert (ana.highs != ben.highs).mean() > 0.9  # of where the noise puts the intervals, whatever was fitted


def test_intervals_reach_as_much_further_as_rounding_may_have_moved_a_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_a_record_of_slack(workload: CompiledWorkload, measured: Measured) -> Estimates:
        told = estimates_of(workload, measured)
        return replace(told, slack=told.slack + 1)

    plain, _ = run()
    monkeypatch.setattr(own_tables, "estimates_of", with_a_record_of_slack)
    wider, _ = run()
    assert np.abs(wider.highs - plain.highs - ONE / RECORDS).max() <= 1
