"""`multiplicative_weights` asked for sums: within their intervals, from nothing and from a prior."""

from __future__ import annotations

import numpy as np
import pytest
from harness.answers import half_widths
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.hypothesis import Hypothesis
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.mechanism import MultiplicativeWeights
from equipoise_server.mechanisms.multiplicative_weights.plan import WeightsParameters

SCHEMA = Schema(tuple(Attribute(name, tuple("01234"[:size])) for name, size in zip("abc", (5, 3, 4), strict=True)))
RECORDS, SEED = 100_000, bytes(range(32))
MECHANISM = MultiplicativeWeights()
ASKED: list[Statement] = [
    Sum("a"),
    Marginal(("b",)),
    Sum("a", ("b", "c"), low=1, high=3),
    attribute("a") == "0",
    Sum("c", ("a",), where=attribute("b") != "0"),
]
WORKLOAD = compile_workload(ASKED, SCHEMA)


def table() -> NDArray[np.int64]:
    choose = np.random.default_rng(3)
    return choose.multinomial(RECORDS, choose.dirichlet(np.full(SCHEMA.universe_size, 0.5))).astype(np.int64)


def setting(**options: object) -> PublicParameters:
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=(Share("a", len(ASKED), WORKLOAD.query_count),),
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(1.0, 1e-6),
        beta=1e-6,
        options=options,
        attributes=SCHEMA.sizes,
    )


def answered(public: PublicParameters, plan: MechanismPlan, seed: bytes) -> Answers:
    data = DenseCounts(table(), SCHEMA.sizes)
    return MECHANISM.run(public, plan, data, {"a": WORKLOAD}, seed, lambda *_: None).answers["a"]


@pytest.mark.parametrize("prior", ["none", pytest.param("own", marks=pytest.mark.full)])
def test_every_sum_lies_in_its_interval(prior: str) -> None:
    """With probability 10^-6 a round fails, by fixed seeds."""
    public = setting(prior=prior, rounds=6)
    plan = MECHANISM.plan(public)
    for seed in (SEED, bytes(32)):
        answers = answered(public, plan, seed)
        answers.check()
        assert answers.certified.all()
        assert not answers.misses(WORKLOAD.counts(table()) / RECORDS).any()
        assert half_widths(answers).max() <= plan.max_half_width


def test_turns_learn_from_sums_a_record_less_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measured sum may be a record further from what is linear in the records than a count may."""
    reached: list[tuple[bool, float]] = []
    measured = Hypothesis.measured

    def noted(held: Hypothesis, *arguments: object) -> None:
        statement, reach = arguments[1], arguments[3]
        assert isinstance(statement, int)
        assert isinstance(reach, float)
        reached.append((isinstance(ASKED[statement], Sum), reach))
        measured(held, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Hypothesis, "measured", noted)
    public = setting(prior="none", rounds=12)
    plan = MECHANISM.plan(public)
    answered(public, plan, SEED)
    planned = WeightsParameters.from_json(plan.parameters).reach / 2.0**40
    assert {sums for sums, _ in reached} == {False, True}
    assert {reach for sums, reach in reached if not sums} == {planned}
    assert {reach for sums, reach in reached if sums} == {planned + 1 / RECORDS}
