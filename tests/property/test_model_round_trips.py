"""Every public fact comes back from its message as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.message import Message
from harness.schema_strategies import schemas
from hypothesis import given
from hypothesis import strategies as st

from equipoise.accounting import Cost
from equipoise.model.accounts import Account, AccountCharge, Budget, JournalEntry
from equipoise.model.datasets import Dataset
from equipoise.model.identities import Caller, Identity, Role
from equipoise.model.log import ItemOpening, RecordOpening, SealedSeed
from equipoise.model.plan_choices import Forecast, PlanCandidate, PlanChoice
from equipoise.model.rounds import (
    Ending,
    Plan,
    Progress,
    Round,
    RoundDetail,
    RoundState,
    SessionTerms,
    Share,
    Terms,
)
from equipoise.model.submissions import DryRun, Receipt
from equipoise.model.terms_checks import MAX_COUNT
from equipoise.wire import accounts, datasets, identities, log, rounds, submissions, terms

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
data = st.binary(max_size=8)
number = st.integers(0, 2**64 - 1)
real = st.floats(allow_nan=False)
time = st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC))
budget = st.builds(Budget, real, real)
cost = st.builds(Cost, number, number, number, number)
count = st.integers(1, MAX_COUNT)
share = count.flatmap(
    lambda statements: st.builds(
        Share,
        text,
        st.just(statements),
        count,
        st.integers(0, 2 * statements),
        st.integers(0, MAX_COUNT),
    )
)
asked_budget = st.builds(Budget, st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
session = st.builds(SessionTerms, st.integers(0, MAX_COUNT), st.integers(0, 2**32 - 1), st.sampled_from(Ending))
named = text.filter(bool)
terms_without_options = st.builds(
    Terms,
    dataset=named,
    shares=st.lists(share, max_size=3).map(tuple),
    data_budget=asked_budget,
    analyst_budget=st.none() | asked_budget,
    unit=st.sampled_from(["query", "analyst"]),
    beta=st.floats(0, 1, exclude_min=True, exclude_max=True),
    mechanism=named,
    close_time=st.none() | time,
    release_grid_seconds=st.integers(0, 2**32 - 1),
    session=st.none() | session,
)
options = st.dictionaries(
    text,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
version = st.integers(0, 2**32 - 1)
round_ = st.builds(
    Round,
    id=text,
    terms=terms_without_options,
    state=st.sampled_from(RoundState),
    mechanism=text,
    open_time=time,
    release_time=st.none() | time,
    abort_reason=text,
    seed_commitment=data,
    answered=number,
    dataset_version=version,
    records=number,
)
counted = {"order": st.none() | real} | dict.fromkeys(("divergence", "max_divergence", "delta", "max_delta"), real)
charge = st.builds(AccountCharge, text, budget, budget, text, **counted)
plan = st.builds(
    Plan,
    text,
    text,
    cost,
    st.none() | cost,
    real,
    number,
    real,
    number,
    real,
    data_budget=budget,
    analyst_budget=st.none() | budget,
    charges=st.tuples(charge) | st.tuples(charge, charge),
)
forecast = st.builds(
    Forecast,
    expected_error=real,
    max_half_width=real,
    max_uncertified=number,
    data_budget=budget,
    analyst_budget=st.none() | budget,
    seconds=real,
    memory_bytes=number,
)
candidate = st.builds(
    PlanCandidate, mechanism=text, refusal=text, beyond_limits=text, forecast=st.none() | forecast
)
progress = st.builds(Progress, text, number, number, real, st.booleans(), number)

account = st.builds(Account, text, budget, budget, budget, **counted)

PAIRS: dict[str, tuple[Any, Callable[[Any], Message], Callable[[Any], object]]] = {
    "budget": (budget, accounts.budget_to_message, accounts.budget_from_message),
    "cost": (cost, accounts.COST.write, accounts.COST.read),
    "account": (
        account,
        accounts.account_to_message,
        accounts.account_from_message,
    ),
    "journal entry": (
        st.builds(JournalEntry, number, time, text, text, text, cost, text, data),
        accounts.journal_entry_to_message,
        accounts.journal_entry_from_message,
    ),
    "terms": (
        st.builds(replace, terms_without_options, options=options),
        terms.terms_to_message,
        terms.TERMS.read,
    ),
    "round": (round_, rounds.round_to_message, rounds.round_from_message),
    "plan": (plan, rounds.PLAN.write, rounds.PLAN.read),
    "plan choice": (
        st.builds(
            PlanChoice,
            plan=plan,
            because=text,
            candidates=st.lists(candidate, max_size=3).map(tuple),
            records=number,
        ),
        rounds.plan_choice_to_message,
        rounds.plan_choice_from_message,
    ),
    "progress": (progress, rounds.PROGRESS.write, rounds.PROGRESS.read),
    "round detail": (
        st.builds(RoundDetail, round_, plan, progress),
        rounds.round_detail_to_message,
        rounds.round_detail_from_message,
    ),
    "dataset": (
        st.builds(
            Dataset,
            name=text,
            schema=schemas,
            records=number,
            create_time=time,
            retire_time=st.none() | time,
            version=version,
        ),
        datasets.dataset_to_message,
        datasets.dataset_from_message,
    ),
    "caller": (
        st.builds(Caller, text, st.sampled_from(Role)),
        identities.caller_to_message,
        identities.caller_from_message,
    ),
    "analyst": (
        st.builds(Identity, text, st.just(Role.ANALYST), time, st.none() | time),
        identities.analyst_to_message,
        identities.analyst_from_message,
    ),
    "record opening": (
        st.builds(
            RecordOpening,
            number,
            data,
            st.lists(st.builds(ItemOpening, data, data, data), max_size=3).map(tuple),
            st.lists(data, max_size=3).map(tuple),
        ),
        log.record_opening_to_message,
        log.record_opening_from_message,
    ),
    "sealed seed": (
        st.builds(SealedSeed, text, data),
        log.sealed_seed_to_message,
        log.sealed_seed_from_message,
    ),
    "receipt": (
        st.builds(Receipt, text, data, number, number, time, data, data),
        submissions.receipt_to_message,
        submissions.receipt_from_message,
    ),
    "dry run": (
        st.builds(DryRun, number, number, real, number, number, number),
        submissions.dry_run_to_message,
        submissions.dry_run_from_message,
    ),
}


@pytest.mark.parametrize("kind", PAIRS)
@given(drawn=st.data())
def test_what_is_written_to_a_message_is_read_from_it(kind: str, drawn: st.DataObject) -> None:
    values, write, read = PAIRS[kind]
    value = drawn.draw(values)
    message = write(value)
    assert read(type(message).FromString(message.SerializeToString())) == value
