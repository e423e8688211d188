"""A measured prior's answers: its own intervals, and what its distribution says as far as it lies in them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.queries.fixed_point import ONE
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior, measured_half_width
from equipoise_server.mechanisms.prior.plan import plan_prior

SCHEMA = Schema.from_json('{"a": 3, "b": 4, "c": 2}')
RECORDS, CHANCE = 20_000, Fraction(1, 100)
SETTING = PublicParameters(
    RECORDS, 24, (), "query", Budget(1.0, 1e-9), Budget(1.0, 1e-6), 0.05, {}, attributes=SCHEMA.sizes
)
ASKED = compile_workload([Marginal(("a", "b"))], SCHEMA)


def known() -> MeasuredPrior:
    data = DenseCounts(np.diff(np.arange(25) ** 2 * RECORDS // 24**2), SCHEMA.sizes)
    return MeasuredPrior.of(plan_prior(SETTING, Fraction(1, 50)), CHANCE, SETTING, data, bytes(32))


@pytest.mark.parametrize("said", [0, ONE, ONE // 12])
def test_what_the_distribution_says_is_moved_into_the_measurement_s_interval(said: int) -> None:
    prior = known()
    answers = prior.answers(ASKED, np.full(12, said, dtype=np.int64))
    answers.check()
    assert (answers.values == np.clip(said, answers.lows, answers.highs)).all()
    assert set(answers.methods.tolist()) == {int(AnswerMethod.MEASURED)}
    # The interval is the measurement's, whatever the distribution says.
    other = prior.answers(ASKED, np.zeros(12, dtype=np.int64))
    assert (answers.lows.tolist(), answers.highs.tolist()) == (other.lows.tolist(), other.highs.tolist())
    assert (half_widths(answers) * ONE).max() <= measured_half_width(
        plan_prior(SETTING, Fraction(1, 50)), CHANCE, RECORDS
    )


def test_statements_that_no_measured_table_tells_are_not_answered() -> None:
    prior = known()
    assert prior.holds(ASKED)
    assert not prior.holds(compile_workload([Marginal(("a", "b", "c"))], SCHEMA))
