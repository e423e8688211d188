"""Errors that simulations report are those of each analyst's own queries, and misses are counted."""

from __future__ import annotations

import numpy as np
import pytest
from harness.answers import some_answers

from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.options import Guarantees
from equipoise_lab.simulation.measure import measure_run
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.simulate import simulate
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, Outcome
from equipoise_server.mechanisms.registry import mechanism

pytestmark = pytest.mark.slow

GAME = ("rounds=12", "batch=4", "draws=2", "density=1", "data_rate=0.01", "query_rate=0.1")


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_errors_are_those_of_each_analysts_own_queries(unit: str) -> None:
    """Analysts with workloads of different sizes: every reported error recomputed one analyst at a time."""
    schema = Schema.from_json('{"a": 4, "b": 3}')
    histogram = np.arange(12, dtype=np.int64) ** 2
    asked: dict[str, list[Statement]] = {
        "z": [Marginal(("a",)), attribute("b") == "1"],
        "a": [attribute("a") == "3"],
        "m": [Marginal(("b", "a"))],
    }
    task = Task.filling_shares(
        schema, DenseCounts(histogram), {name: compile_workload(own, schema) for name, own in asked.items()}
    )
    split = None if unit == "analyst" else "game=0.2"
    guarantees = Guarantees(eps_data=2.0, eps_analyst=8.0)
    request = Request(
        mechanism="equilibrium",
        play="mixed",
        unit=unit,
        guarantees=guarantees,
        seed=3,
        budget_split=split,
        forced=list(GAME),
    )
    (run,) = simulate(task, request, lambda _: lambda *_: None).runs
    setting = request.setting(task)
    plan = mechanism("equilibrium").plan(setting)
    outcome = mechanism("equilibrium").run(
        setting, plan, DenseCounts(histogram, setting.attributes), task.workloads, seed_bytes(3), lambda *_: None
    )
    drawn, delivered, outside = [], [], 0
    for name, own in task.workloads.items():
        truth = own.counts(histogram) / histogram.sum()
        answers = outcome.answers[name]
        drawn.append(np.abs(outcome.synopsis.counts(own) / len(outcome.synopsis) - truth))
        delivered.append(np.abs(answers.values / 2.0**GRID_BITS - truth))
        outside += int(answers.misses(truth).sum())
    assert run.synopsis is not None
    for errors, wrong in ((run.synopsis, np.concatenate(drawn)), (run.delivered, np.concatenate(delivered))):
        assert (errors.max, errors.mean) == pytest.approx((wrong.max(), wrong.mean()))
        assert errors.p99 == pytest.approx(np.quantile(wrong, 0.99))
    assert run.outside_interval == outside


def test_a_truth_outside_its_interval_is_counted() -> None:
    workload = compile_workload([attribute("a") == "0", attribute("a") == "1"], Schema.from_json('{"a": 2}'))
    half, half_width = 1 << (GRID_BITS - 1), 1 << (GRID_BITS - 4)
    answers = some_answers(np.array([half, half], np.int64), np.array([1, 5], np.uint8), half_width)
    outcome = Outcome({"one": answers}, Synopsis())
    for truth, outside in ((0.5625, 0), (0.5626, 1), (0.4375, 0), (0.4374, 1)):
        run = measure_run(workload, np.array([truth, 0.0]), outcome, seed=1, seconds=0.0)
        assert (run.outside_interval, run.uncertified) == (outside, 1)
        assert run.analysts_with == {"synopsis": 1, "uncertified": 1}
        assert run.synopsis is None
