"""Rounds as a server shows them to an analyst."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Grant, Plan, Round, RoundState, Share, Terms
from equipoise.records.promises import Promise
from equipoise.v1 import types_pb2
from equipoise.wire.rounds import round_to_message

BUDGET = Budget(1.0, 1e-6)
ROUND = Round(
    id="a",
    terms=Terms("shop", (Share("ann", 2, 4),), BUDGET, BUDGET, mechanism="gaussian"),
    dataset_version=1,
    records=1000,
    state=RoundState.OPEN,
    mechanism="gaussian",
    open_time=datetime(2026, 1, 2, tzinfo=UTC),
    release_time=None,
    abort_reason="",
    seed_commitment=bytes(32),
)
PLAN = Plan(
    mechanism=ROUND.mechanism,
    parameters="{}",
    data_cost=Cost(),
    analyst_cost=Cost(),
    max_half_width=1.0,
    max_uncertified=0,
    seconds=0.0,
    memory_bytes=0,
    expected_error=0.1,
    data_budget=BUDGET,
    analyst_budget=None,
)
# What receipts of the round promise.
PROMISE = Promise(
    opened_root=bytes(32),
    dataset="shop",
    dataset_version=1,
    records=ROUND.records,
    mechanism="gaussian",
    unit="query",
    data_budget=BUDGET,
    analyst_budget=BUDGET,
    analyst_cost=Cost(),
    beta=ROUND.terms.beta,
    max_half_width=0.1,
    max_uncertified=0,
    seed_commitment=ROUND.seed_commitment,
    close_time=None,
    release_grid_seconds=ROUND.terms.release_grid_seconds,
    session=None,
    accepted=(),
)


def shown_round(round_id: str, state: RoundState, grant: Grant | None = None, **terms: Any) -> types_pb2.Round:
    """The message of a round in a state; `terms`: what its terms say besides those of `ROUND`."""
    own = replace(ROUND.terms, **terms)
    return round_to_message(replace(ROUND, id=round_id, state=state, grant=grant, terms=own))
