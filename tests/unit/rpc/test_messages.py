"""Records become messages whole, and an analyst's message speaks of that analyst only."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from equipoise.accounting import Cost
from equipoise.model.accounts import Account, AccountCharge, Budget, JournalEntry
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.rounds import MechanismPlan, Progress, RoundState, SessionTerms, Share, Terms
from equipoise.model.submissions import Receipt
from equipoise.queries.schema import Attribute, Schema
from equipoise.v1 import types_pb2
from equipoise.wire.accounts import CHARGE as CHARGES
from equipoise.wire.accounts import account_to_message, journal_entry_to_message
from equipoise.wire.datasets import dataset_to_message
from equipoise.wire.rounds import PLAN as PLANS
from equipoise.wire.rounds import STATES, plan_choice_to_message, round_detail_to_message, round_to_message
from equipoise.wire.submissions import receipt_to_message
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.planner import compare, without_choice
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.terms.checks import setting_of
from equipoise_server.rpc.shown_rounds import shown_choice, shown_plan, shown_to_analyst, shown_to_operator

PERSONS = Persons(PersonMode.AVERAGE, 4)
TIME = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
PLAN = MechanismPlan(
    "equilibrium", '{"s":3}', Cost(rho=10**10), Cost(epsilon=10**12, delta=5), 0.1, 2, 3.5, 10**9, 0.01
)
TERMS = Terms(
    "flights",
    (Share("alice", 1, 2), Share("bob", 3, 4, 5, 6, 7)),
    Budget(1.0, 1e-9),
    Budget(2.0, 1e-6),
    options={"play": "sampled"},
)
ROUND = RoundRecord(
    account="flights",
    id="r1",
    terms=TERMS,
    dataset_version=3,
    state=RoundState.RELEASED,
    mechanism="equilibrium",
    plan=PLAN,
    records=100,
    universe_size=8,
    open_time=TIME,
    release_time=TIME,
    abort_reason="",
    seed_commitment=b"commitment",
)
CHARGE = AccountCharge(
    "data/flights",
    Budget(3.0, 1e-9),
    Budget(1.0, 1e-9),
    order=9.0,
    divergence=0.1,
    max_divergence=1.5,
    max_delta=1e-10,
)
PROGRESS = Progress("game", 3, 10, 1.5, True, 77)


def test_an_operator_sees_everything() -> None:
    detail = round_detail_to_message(shown_to_operator(ROUND, PROGRESS, (CHARGE,)))
    assert [share.analyst for share in detail.round.terms.shares] == ["alice", "bob"]
    assert detail.plan.data_budget.delta == 1e-9
    assert [CHARGES.read(each) for each in detail.plan.charges] == [CHARGE]
    assert detail.plan.data_budget.epsilon == epsilon_for(PLAN.data_cost, 1e-9)
    assert detail.plan.analyst_cost == types_pb2.Cost(epsilon=10**12, delta=5)
    assert detail.progress == types_pb2.Progress(
        phase="game", done=3, total=10, seconds_left=1.5, complete=True, peak_memory_bytes=77
    )
    assert (detail.round.mechanism, detail.round.terms.mechanism) == ("equilibrium", "auto")
    assert detail.round.release_time.ToDatetime(UTC) == TIME


def test_an_unprotected_plan_shows_no_cost_of_the_analysts() -> None:
    terms = replace(TERMS, analyst_budget=None, session=SessionTerms(4))
    message = PLANS.write(shown_plan(PLAN, terms, (CHARGE,)))
    assert not message.HasField("analyst_cost")
    assert not message.HasField("analyst_budget")


@pytest.mark.slow
def test_what_auto_compared_is_shown_with_the_reason() -> None:
    """Every mechanism's expectation beside its promise and its pairs; why another cannot; and why one won."""
    terms = replace(TERMS, options={})
    found = compare(setting_of(terms, 100, 12, Schema.from_json('{"a": 3, "b": 4}')), MECHANISMS)
    message = plan_choice_to_message(shown_choice(found, terms, (CHARGE,), PERSONS))
    assert message.because == why(found)
    assert message.persons == types_pb2.Persons(mode=types_pb2.PERSON_MODE_AVERAGE, records=4)
    assert [each.mechanism for each in message.candidates] == list(MECHANISMS)
    for shown, candidate in zip(message.candidates, found.candidates, strict=True):
        assert shown.HasField("forecast") is (candidate.plan is not None)
        assert shown.refusal == ("" if candidate.refusal is None else candidate.refusal.message)
        if candidate.plan is not None:
            told = shown.forecast
            assert told.expected_error == candidate.plan.expected_error
            assert told.max_half_width == candidate.plan.max_half_width
            assert told.data_budget.epsilon == epsilon_for(candidate.plan.data_cost, TERMS.data_budget.delta)


def test_a_mechanism_that_the_terms_name_was_compared_with_none() -> None:
    terms = replace(TERMS, options={})
    found = without_choice(MECHANISMS["gaussian"], setting_of(terms, 100, 12, Schema.from_json('{"a": 3, "b": 4}')))
    message = plan_choice_to_message(shown_choice(found, terms, (CHARGE,), PERSONS))
    assert (message.plan.mechanism, message.because, len(message.candidates)) == ("gaussian", "", 0)


def test_a_shown_round_leaves_out_the_options() -> None:
    assert not round_to_message(ROUND).terms.options


def test_an_analyst_sees_its_own_share_and_no_other_name() -> None:
    message = round_to_message(shown_to_analyst(ROUND, "bob"))
    assert list(message.terms.shares) == [
        types_pb2.Share(analyst="bob", statements=3, queries=4, sensitivity=5, support=6, ways=7)
    ]
    assert b"alice" not in message.SerializeToString()
    assert message.state == types_pb2.ROUND_STATE_RELEASED


@pytest.mark.parametrize("state", list(RoundState))
def test_every_state_has_a_number(state: RoundState) -> None:
    assert types_pb2.RoundState.Name(STATES.write(state, "state")) == f"ROUND_STATE_{state.name}"


def test_a_round_that_is_not_released_has_no_release_time() -> None:
    unreleased = replace(ROUND, state=RoundState.OPEN, release_time=None)
    assert not round_to_message(unreleased).HasField("release_time")


def test_a_dataset_does_not_tell_where_its_file_lies() -> None:
    schema = Schema((Attribute("carrier", ("AA", "UA")),))
    record = DatasetRecord(
        name="flights", version=1, source="secret/place.csv", schema=schema, records=7, create_time=TIME
    )
    message = dataset_to_message(record)
    assert (message.name, message.records, message.schema.attributes[0].name) == ("flights", 7, "carrier")
    assert b"secret" not in message.SerializeToString()


def test_receipts_accounts_and_journal_entries() -> None:
    receipt = receipt_to_message(Receipt("r1", b"digest", 2, 9, TIME, b"signed", b"salt"))
    assert (receipt.workload_digest, receipt.statements, receipt.queries) == (b"digest", 2, 9)
    assert (receipt.envelope, receipt.commitment_salt) == (b"signed", b"salt")
    account = account_to_message(Account("data/x", Budget(1, 0.1), Budget(0.5, 0.1), Budget(0.7, 0.1)))
    assert (account.cap.epsilon, account.spent.epsilon, account.committed.epsilon) == (1, 0.5, 0.7)
    entry = journal_entry_to_message(JournalEntry(4, TIME, "spend", "data/x", "r1", Cost(rho=1), "{}", b"hash"))
    assert (entry.sequence, entry.action, entry.cost.rho, entry.digest) == (4, "spend", 1, b"hash")
    assert entry.time.ToDatetime(UTC) == TIME
