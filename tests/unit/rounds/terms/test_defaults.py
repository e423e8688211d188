"""Turns are long enough for the hardest statements, or no session is opened."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.mechanisms.epochs.prior_plan import beginning_seconds
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.terms.defaults import make_plan
from equipoise_server.rounds.terms.turns import turns_before_answers

SIZE = 1 << 10
SCHEMA = Schema(tuple(Attribute(name, tuple(map(str, range(SIZE)))) for name in "ab"))
DATASET = DatasetRecord(
    name="shop",
    version=1,
    source="shop.csv",
    schema=SCHEMA,
    records=50_000,
    create_time=datetime(2024, 1, 1, tzinfo=UTC),
)
BY_TURNS = Terms(
    dataset="shop",
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    mechanism="online_private",
    shares=tuple(Share(name, 200, 200) for name in ("ann", "bob")),
    options={},
    session=SessionTerms(length=200, turn_seconds=1),
)


@pytest.mark.slow
def test_the_fit_of_a_prior_lengthens_no_turn_but_must_end_before_the_session() -> None:
    wide = replace(DATASET, schema=Schema(tuple(Attribute(f"a{place}", tuple("abcdefgh")) for place in range(13))))
    few = tuple(Share(name, 6, 500) for name in ("ann", "bob"))
    plan = make_plan(replace(BY_TURNS, shares=few, session=SessionTerms(12, 60)), wide)
    fitted = beginning_seconds(plan)
    assert 0 < fitted < plan.seconds
    # Of what is not the fit a share of each turn is kept, 32 times over.
    least = math.ceil(32 * (plan.seconds - fitted) / 12 * 2)
    assert make_plan(replace(BY_TURNS, shares=few, session=SessionTerms(1000, least)), wide).seconds > 0
    with pytest.raises(InvalidArgument, match=rf"^session\.turn_seconds: must be at least {least},"):
        make_plan(replace(BY_TURNS, shares=few, session=SessionTerms(1000, least - 1)), wide)
    passed = int(4 * fitted // least)
    assert turns_before_answers(SessionTerms(1000, least), plan) == passed > 0
    with pytest.raises(InvalidArgument, match=rf"^session\.length: must be above {passed}:"):
        make_plan(replace(BY_TURNS, shares=few, session=SessionTerms(passed, least)), wide)
    assert beginning_seconds(make_plan(replace(BY_TURNS, session=SessionTerms(200, 2)), DATASET)) == 0


def test_turns_too_short_for_hard_statements_are_refused_before_anything_is_charged() -> None:
    with pytest.raises(InvalidArgument, match=r"^session\.turn_seconds: must be at least 2,"):
        make_plan(BY_TURNS, DATASET)
    assert make_plan(replace(BY_TURNS, session=SessionTerms(length=200, turn_seconds=2)), DATASET).seconds > 1
    more = replace(BY_TURNS, shares=tuple(Share(str(number), 200, 200) for number in range(20)))
    with pytest.raises(InvalidArgument, match=r"^session\.turn_seconds: must be at least 13,"):
        make_plan(more, DATASET)
