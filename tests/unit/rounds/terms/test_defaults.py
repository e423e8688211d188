"""Turns are long enough for the hardest statements, or no session is opened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms, Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.terms.defaults import make_plan

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


def test_turns_too_short_for_hard_statements_are_refused_before_anything_is_charged() -> None:
    with pytest.raises(InvalidArgument, match=r"^session\.turn_seconds: must be at least 2,"):
        make_plan(BY_TURNS, DATASET)
    assert make_plan(replace(BY_TURNS, session=SessionTerms(length=200, turn_seconds=2)), DATASET).seconds > 1
    more = replace(BY_TURNS, shares=tuple(Share(str(number), 200, 200) for number in range(20)))
    with pytest.raises(InvalidArgument, match=r"^session\.turn_seconds: must be at least 13,"):
        make_plan(more, DATASET)
