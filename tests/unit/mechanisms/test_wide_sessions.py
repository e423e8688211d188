"""Sessions on tables whose possible records cannot be listed, from a prior's support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.wide_tables import SCHEMA, small_supports, wide_table

from equipoise.accounting import events_from_json
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import SessionMechanism
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate

RECORDS, SEED = 100_000, bytes(range(32))
FAR = AllOf((Among("x0", ("0",)), Among("x5", ("0", "1")), Among("x15", ("0", "1"))))
ASKED: list[Statement] = [Marginal(("x3", "x4")), FAR, Marginal(("x0", "x8", "x15")), Among("x9", ("2",)), FAR]
MECHANISMS: dict[str, SessionMechanism] = {"online": Online(), "online_private": OnlinePrivate()}
PUBLIC = PublicParameters(
    records=RECORDS,
    universe_size=SCHEMA.universe_size,
    shares=(Share("a", 8, 600),),
    unit="query",
    data_budget=Budget(1.0, 1e-9),
    analyst_budget=Budget(float("inf"), 0.0),
    beta=0.05,
    options={"prior": "own", "length": 8},
    attributes=SCHEMA.sizes,
)


def public(**options: object) -> PublicParameters:
    return replace(PUBLIC, options={**PUBLIC.options, **options})


def asked_in(name: str, statements: list[Statement], first: int = 0) -> list[Answers]:
    mechanism, setting = MECHANISMS[name], public()
    session = mechanism.start(setting, mechanism.plan(setting), wide_table(RECORDS), SEED)
    encoded = [str(each).encode() for each in statements]
    compiled = [compile_single(each, SCHEMA) for each in statements]
    return [session.answer(first + slot, *each) for slot, each in enumerate(zip(compiled, encoded, strict=True))]


@pytest.mark.nightly
@pytest.mark.parametrize("name", MECHANISMS)
def test_statements_are_answered_over_a_support_with_intervals_that_hold(name: str) -> None:
    data = wide_table(RECORDS)
    with small_supports(4_000):
        told, again = asked_in(name, ASKED), asked_in(name, ASKED)
    for statement, answers, same in zip(ASKED, told, again, strict=True):
        truth = data.count(compile_single(statement, SCHEMA)) / RECORDS
        assert answers.certified.all()
        assert not answers.misses(truth).any()
        assert float(np.abs(answers.values / ONE - truth).mean()) < 0.01
        assert (answers.values == same.values).all()
    assert (told[0].methods == AnswerMethod.MEASURED).all()
    # Far attributes are not measured together: the hypothesis or fresh noise answers them.
    assert AnswerMethod.MEASURED not in told[1].methods


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_plan_for_any_width_is_charged_as_one_for_a_table_that_can_be_listed(name: str) -> None:
    mechanism = MECHANISMS[name]
    plan = mechanism.plan(public())
    assert (plan.seconds, plan.memory_bytes) < (60, 2**30)
    names = {event.name for event in events_from_json(plan.data_events)}
    assert "prior" in names
    assert len(names) > 1
    with pytest.raises(InvalidArgument, match=f"{name} without a prior needs a list of all of them"):
        mechanism.plan(public(prior="none"))
