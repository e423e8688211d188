"""`online` asked for sums: within their intervals, learnt from, and played again to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.hypothesis import Hypothesis
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.parameters import OnlineParameters

SCHEMA = Schema(tuple(Attribute(name, tuple("01234"[:size])) for name, size in zip("abc", (5, 3, 4), strict=True)))
RECORDS, SEED = 100_000, bytes(range(32))
ONLINE = Online()
ASKED: list[Statement] = [
    Sum("a"),
    Marginal(("b",)),
    Sum("a", ("b",)),
    Sum("a", ("b", "c"), low=1, high=3),
    Sum("a", where=attribute("c") == "2"),
    Sum("c", ("a",), where=attribute("b") != "0"),
] * 2


def table() -> NDArray[np.int64]:
    choose = np.random.default_rng(3)
    return choose.multinomial(RECORDS, choose.dirichlet(np.full(SCHEMA.universe_size, 0.5))).astype(np.int64)


def setting(asked: Sequence[Statement], **options: object) -> PublicParameters:
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=(Share("a", len(asked), 20 * len(asked)),),
        unit="query",
        data_budget=Budget(1.0, 1 / RECORDS**2),
        analyst_budget=Budget(float("inf"), 0.0),
        beta=1e-6,
        options={"length": len(asked), **options},
        attributes=SCHEMA.sizes,
    )


def played(public: PublicParameters, asked: Sequence[Statement], counts: NDArray[np.int64]) -> Answers:
    workload = SessionWorkload(np.arange(len(asked)), tuple(compile_single(each, SCHEMA) for each in asked))
    data = DenseCounts(counts, SCHEMA.sizes)
    return play(ONLINE, public, ONLINE.plan(public), data, {"a": workload}, SEED, lambda *_: None).answers["a"]


OPTIONS: dict[str, dict[str, object]] = {
    "learning": {"prior": "none", "updates": 8, "threshold": 0.02},
    "afresh": {"prior": "none"},
    "from a prior": {"prior": "own"},
}
METHODS = {
    "learning": {AnswerMethod.GAUSSIAN, AnswerMethod.HYPOTHESIS},
    "afresh": {AnswerMethod.GAUSSIAN},
    "from a prior": {AnswerMethod.MEASURED, AnswerMethod.GAUSSIAN},
}


@pytest.mark.sparse(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize("name", OPTIONS)
def test_every_sum_lies_in_its_interval_and_is_played_again_to_the_byte(name: str) -> None:
    """With probability 10^-6 a session fails, by a fixed seed."""
    public = setting(ASKED, **OPTIONS[name])
    answers = played(public, ASKED, table())
    assert to_bytes(played(public, ASKED, table())) == to_bytes(answers)
    assert answers.certified.all()
    assert not answers.misses(compile_workload(ASKED, SCHEMA).counts(table()) / RECORDS).any()
    assert half_widths(answers).max() <= ONLINE.plan(public).max_half_width
    assert set(answers.methods.tolist()) >= METHODS[name]


def test_what_a_prior_has_measured_answers_sums_about_its_pairs() -> None:
    both: list[Statement] = [Sum("a", ("b",)), Sum("a"), Sum("a", ("b",), where=attribute("c") == "1")]
    answers = played(setting(both, prior="own"), both, table())
    assert set(answers.methods.tolist()[:4]) == {AnswerMethod.MEASURED}
    assert AnswerMethod.MEASURED not in answers.methods.tolist()[4:]
    assert not answers.misses(compile_workload(both, SCHEMA).counts(table()) / RECORDS).any()


@pytest.mark.full
def test_a_proven_number_of_updates_is_not_exceeded_by_sums() -> None:
    asked: Sequence[Statement] = [
        Sum(one, (other,), where=attribute(third) == value)
        for one, other, third in ("abc", "acb", "cab", "cba", "bca")
        for value in "012"
    ] * 3
    public = setting(asked, prior="none", threshold=0.4, updates=40)
    plan = ONLINE.plan(public)
    assert OnlineParameters.from_json(plan.parameters).proven
    # One record holds everything: as far from uniform as data can be.
    histogram = np.zeros(SCHEMA.universe_size, np.int64)
    histogram[-1] = RECORDS
    assert AnswerMethod.UNCERTIFIED not in played(public, asked, histogram).methods.tolist()


def test_sums_are_learnt_from_as_far_from_their_truth_as_they_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record further than a count, and a hypothesis that has learnt holds the sum nearly as the table does."""
    reached: list[float] = []
    measured = Hypothesis.measured

    def noted(held: Hypothesis, *arguments: object) -> None:
        reached.append(float(arguments[-1]))  # type: ignore[arg-type]
        measured(held, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Hypothesis, "measured", noted)
    asked: list[Statement] = [attribute("a") == "0", Sum("a")]
    public = replace(setting(asked, prior="none", updates=2, threshold=0), beta=0.05)
    plan = ONLINE.plan(public)
    session = ONLINE.start(public, plan, DenseCounts(table(), SCHEMA.sizes), SEED)
    told = [session.answer(slot, compile_single(each, SCHEMA)) for slot, each in enumerate(asked)]
    assert {int(each.methods[0]) for each in told} == {AnswerMethod.GAUSSIAN}
    assert reached[1] - reached[0] == pytest.approx(1 / RECORDS, rel=1e-6)
    after = session.answer(2, compile_single(Sum("a"), SCHEMA))
    assert abs(int(after.values[0]) - int(told[1].values[0])) / 2**40 < 3 * reached[1]
