"""How often a round breaks its promise: over fixed seeds, no more often than `beta` allows.

A round fails if any truth lies outside its answer's interval. If it fails with probability at
most `beta`, a sample of rounds exceeds what is allowed here with probability at most `FALSE_ALARM`.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness.answers import misses_shortened
from scipy.stats import binom

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism

FALSE_ALARM = 1e-9  # of each test
RECORDS, BETA, RUNS = 5000, 0.2, 120
SCHEMA = Schema.from_json('{"c": 2, "x": 2}')
HISTOGRAM = np.array([900, 100, 3950, 50], dtype=np.int64)
GAME = {"rounds": 16, "batch": 4, "draws": 2, "density": 1, "data_rate": 0.01, "query_rate": 0.1}
ASKED = {
    "one": compile_workload([Marginal(("c",)), attribute("c") == "0"], SCHEMA),
    "two": compile_workload([Marginal(("x",)), attribute("x") == "1"], SCHEMA),
}


def failures(unit: str, epsilon: float, part: float, **options: object) -> tuple[int, int]:
    """Rounds that fail with every interval cut to a part of itself, and answers afresh, of all runs."""
    setting = PublicParameters(
        records=RECORDS,
        universe_size=4,
        shares=tuple(Share(name, each.statement_count, each.query_count) for name, each in ASKED.items()),
        unit=unit,
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(epsilon, 1e-6),
        beta=BETA,
        options=options,
    )
    equilibrium = mechanism("equilibrium")
    plan = equilibrium.plan(setting)
    failed = afresh = 0
    for number in range(RUNS):
        seed = number.to_bytes(32)
        outcome = equilibrium.run(
            setting, plan, DenseCounts(HISTOGRAM, setting.attributes), ASKED, seed, lambda *_: None
        )
        broken = False
        for name, answers in outcome.answers.items():
            truth = ASKED[name].counts(HISTOGRAM) / RECORDS
            broken |= bool(misses_shortened(answers, truth, part).any())
            afresh += int(np.count_nonzero(np.isin(answers.methods, (2, 3, 4))))
        failed += broken
    return failed, afresh


@pytest.mark.sparse(3)
@pytest.mark.full
@pytest.mark.parametrize(
    ("unit", "epsilon", "options"),
    [
        ("query", 6.0, GAME | {"threshold": 0.01}),
        ("analyst", 6.0, GAME | {"threshold": 0.1}),
        ("analyst", float("inf"), GAME | {"play": "sampled"}),
    ],
)
def test_rounds_fail_no_more_often_than_beta(unit: str, epsilon: float, options: dict[str, object]) -> None:
    allowed = binom.isf(FALSE_ALARM, RUNS, BETA)
    failed, afresh = failures(unit, epsilon, 1.0, **options)
    assert failed <= allowed
    assert afresh >= RUNS / 4
    # Intervals a third as wide would be none: this test has the power to tell.
    assert failures(unit, epsilon, 1 / 3, **options)[0] > allowed
