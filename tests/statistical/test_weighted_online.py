"""`online` that is asked sums: the exact law of all that is told on neighbouring tables, against what is charged.

The universe has three records, which weigh 0, a half and 1, so that sums are rounded down on every second table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from harness.exact_game import schema
from numpy.typing import NDArray
from statistical.exact_pipeline import Pair
from statistical.mutants_online import CLEAR, DELTA, ONLINE, Case, true_answer_learnt, used

from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Statement, Sum
from equipoise.queries.workload_compiler import CompiledStatement, CompiledWorkload, compile_single
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

TOTAL = Sum("x")
LOW = Sum("x", where=attribute("x") != "2")
MANY = ([60, 0, 0], [59, 0, 1])


@dataclass(frozen=True)
class SumCase(Case):
    """Sums, and counts beside them, on neighbouring tables."""

    asked: tuple[Statement, ...] = ()

    @property
    def statements(self) -> list[CompiledStatement]:
        """Compiled one by one."""
        return [compile_single(each, schema(3)) for each in self.asked]


def case(data: tuple[list[int], list[int]], asked: Sequence[Statement], epsilon: float, **options: Any) -> SumCase:
    setting = replace(
        CLEAR.setting,
        records=sum(data[0]),
        shares=(Share("a", len(asked), len(asked)),),
        data_budget=replace(CLEAR.setting.data_budget, epsilon=epsilon),
        options={"length": len(asked), "answers": "gaussian", **options},
    )
    return SumCase(data, (), setting, tuple(asked))


ANSWERED = case(([2, 1, 1], [1, 1, 2]), (TOTAL,), 8.0)
CASES = {
    "a sum": ANSWERED,
    "a sum and a count": case(ANSWERED.data, (TOTAL, attribute("x") == "0"), 8.0),
    "of some records": case(([2, 1, 1], [3, 0, 1]), (LOW, TOTAL), 8.0, updates=2, threshold=0),
    "a sum is learnt from": case(MANY, (TOTAL, LOW), 20.0, updates=1, threshold=0.1),
}


def share_used(each: SumCase) -> float:
    plan = ONLINE.plan(each.setting)
    return used(each.laws(plan), plan)


@pytest.mark.sparse(3)
@pytest.mark.thin(4)
@pytest.mark.parametrize("name", CASES)
def test_a_moved_record_shows_no_more_of_sums_than_is_charged(name: str) -> None:
    plan = ONLINE.plan(CASES[name].setting)
    laws = CASES[name].laws(plan)
    assert all(math.fsum(law.values()) == pytest.approx(1, abs=1e-9) for law in laws)
    assert used(laws, plan) <= 1 + 1e-9
    assert name not in ("a sum", "a sum and a count") or used(laws, plan) > 0.9
    pair = Pair.of(*laws)
    for delta in (0.1, DELTA, 1e-4):
        assert pair.delta(epsilon_for(plan.data_cost, delta)) <= delta


@pytest.mark.full
def test_a_sum_that_is_not_rounded_to_whole_records_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts half records, and takes it that a record moves a sum by 1."""

    def in_halves(data: DenseCounts, workload: CompiledWorkload) -> NDArray[np.int64]:
        if not workload.weighted.any():
            return workload.counts(data.dense())
        return np.array([workload.unit_transpose(np.ones(1, np.int64)) @ data.dense() * 2 // WHOLE])

    monkeypatch.setattr(DenseCounts, "count", in_halves)
    assert share_used(ANSWERED) > 1


@pytest.mark.nightly
def test_a_hypothesis_that_is_told_the_true_sum_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    each = CASES["a sum is learnt from"]
    plan = ONLINE.plan(each.setting)
    # What the hypothesis holds after it has learnt is told, and takes more than one value.
    held = {key[5] for key in each.laws(plan)[0] if key[0] == GaussianNoise.method}
    assert len(held) > 1
    assert AnswerMethod.UNCERTIFIED in {key[3] for key in each.laws(plan)[0]}
    true_answer_learnt(monkeypatch)
    assert share_used(each) > 1
