"""Rounds that were charged off the record, that ran twice, or whose seeds nobody on record has read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.audit_failures import failures
from harness.custodian import ORDER, SESSION, Custodian
from harness.record_book import ORIGIN

from equipoise.accounting import Cost, ZcdpEvent, charge_at, charge_of, events_to_json
from equipoise.model.rounds import GRANT
from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind, key_id
from equipoise.records.signed_notes import SigningKey

ROUND, OTHER = "aa", "bb"


def ran_off_the_record(custodian: Custodian) -> None:
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    custodian.run(OTHER)
    custodian.settle(OTHER)


def given_back_off_the_record(custodian: Custodian) -> None:
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    custodian.settle(OTHER, "release")


def a_session_that_spent_off_the_record(custodian: Custodian) -> None:
    custodian.open_session(OTHER)
    custodian.settle(OTHER)


@pytest.mark.parametrize(
    ("lie", "action"),
    [
        (ran_off_the_record, "reserve"),
        (given_back_off_the_record, "reserve"),
        (a_session_that_spent_off_the_record, "spend"),
    ],
)
def test_a_round_that_was_charged_before_later_steps_is_sealed_on_record(
    custodian: Custodian, lie: Callable[[Custodian], None], action: str
) -> None:
    """The custodian lists it as open, so that nothing else contradicts the record."""
    lie(custodian)
    custodian.listed[OTHER] = replace(custodian.listed[OTHER], state="open")
    # Until later steps are on record, the seal may still be on its way.
    assert failures(custodian) == {}
    custodian.play("cc")
    entry = next(each for each in custodian.journal if (each.action, each.round_id) == (action, OTHER))
    assert failures(custodian)["A8"] == (
        f"the round {OTHER} has an entry {action!r} in the budget journal, entry {entry.sequence}, but it is not "
        "sealed on record, though later steps are on record"
    )
    # If a clock was set back by as much as is allowed, the seal may wait for its time.
    archive = custodian.archive()
    soon = replace(archive, time=min(each.time for each in custodian.journal if each.round_id == OTHER))
    assert failures(custodian, replace(archive, time=soon.time + timedelta(hours=3))) == {}


def test_a_session_that_is_open_is_in_order_and_a_round_that_waits_for_its_workloads(custodian: Custodian) -> None:
    custodian.open_session(OTHER)
    custodian.open("cc")
    custodian.play("dd")
    assert failures(custodian) == {}


def begun(custodian: Custodian, *accounts: str) -> None:
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    for account in accounts:
        custodian.append("run", account, OTHER, Cost(), "{}")
    custodian.settle(OTHER)
    custodian.release(OTHER)


@pytest.mark.parametrize(
    ("accounts", "words"),
    [
        (["data/shop"], ""),
        (["data/shop", "data/shop"], "but says it 2 times, on data/shop, data/shop"),
        (["analyst/shop/query/ann"], "but says it 1 times, on analyst/shop/query/ann"),
    ],
)
def test_a_round_is_begun_once_on_the_account_of_its_data(
    custodian: Custodian, accounts: list[str], words: str
) -> None:
    begun(custodian, *accounts)
    problem = failures(custodian).get("A8", "")
    assert words in problem
    assert bool(problem) is bool(words)


def read_by(custodian: Custodian, auditor: str, later: timedelta = timedelta()) -> None:
    """A reading of the first round's seed, so long after its release."""
    time = (custodian.listed[ROUND].release_time or 0) + later // timedelta(microseconds=1)
    custodian._record(Kind.SEED_READ, [("access", {"round": ROUND, "auditor": auditor, "time": time})])


def key_of_an_auditor(custodian: Custodian) -> str:
    key = SigningKey(ORIGIN, Ed25519PrivateKey.generate())
    custodian._record(Kind.KEY_ADDED, [("key", custodian.key_fields(key, "auditor"))])
    return key_id(key.verifier.public)


def test_a_seed_is_read_with_a_key_that_is_on_record_before_as_an_auditor_s(custodian: Custodian) -> None:
    read_by(custodian, f"replay by the key {key_of_an_auditor(custodian)}")
    assert failures(custodian) == {}
    of_the_log = key_id(custodian.keys[0].verifier.public)
    for unknown in ("nobody has", of_the_log):
        read_by(custodian, f"replay by the key {unknown}")
        assert failures(custodian)["A12"] == (
            f"entry {len(custodian.records) - 1} of the log (seed-read): the seed of the round {ROUND} was read by "
            f"a replay with the key {unknown!r}, which is not on record before as an auditor's"
        )
        custodian.records.pop()
    key_of_an_auditor(custodian)
    read_by(custodian, f"replay by the key {key_of_an_auditor(custodian)}")
    custodian.records[-2:] = reversed(custodian.records[-2:])
    assert "which is not on record before" in failures(custodian)["A12"]


@pytest.mark.parametrize("auditor", ["auditor", "a key"])
def test_a_seed_is_read_at_the_release_time_at_the_earliest(custodian: Custodian, auditor: str) -> None:
    reader = f"replay by the key {key_of_an_auditor(custodian)}" if auditor == "a key" else auditor
    read_by(custodian, reader)
    assert failures(custodian) == {}
    custodian.records.pop()
    read_by(custodian, reader, -timedelta(microseconds=1))
    assert failures(custodian)["A12"].endswith(f"the seed of the round {ROUND} was read before its release time")


def test_the_seed_of_an_aborted_round_is_read_at_any_time_after_it(custodian: Custodian) -> None:
    custodian.open(OTHER)
    custodian.abort(OTHER, "none")
    custodian.read_seed(OTHER)
    assert to_microseconds(custodian.time) > 0
    assert failures(custodian) == {}


def test_a_seed_is_read_by_an_auditor_and_no_one_else_who_was_admitted(custodian: Custodian) -> None:
    read_by(custodian, "ann")
    assert "its seed was read by 'ann', who had no auditor's certificate in force" in failures(custodian)["A12"]


def test_a_seed_is_not_read_while_its_round_is_sealed(custodian: Custodian) -> None:
    """Whoever knows it then can take the noise off what is computed, before anybody has the answers."""
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    assert failures(custodian) == {}
    custodian.read_seed(OTHER)
    problem = "comes while the round is sealed: it must be released or aborted"
    assert failures(custodian)["A8"].endswith(problem)


@pytest.mark.parametrize(
    ("reduced", "holds"),
    [
        (["data/shop"], True),
        (["analyst/shop/query/ann"], False),
        (["data/shop", "analyst/shop/query/ann"], False),
    ],
)
def test_a_grant_gives_back_on_its_data_account_alone(
    custodian: Custodian, reduced: list[str], holds: bool
) -> None:
    whole, some = (ZcdpEvent("answers", Fraction(1, each)) for each in (1000, 2000))
    custodian.unprotected.add(OTHER)
    orders = {"data/shop": ORDER, "analyst/shop/query/ann": None}

    def journal(action: str, account: str, part: ZcdpEvent) -> None:
        order = orders[account]
        cost = charge_of([part]) if order is None else charge_at([part], order)
        custodian.append(action, account, OTHER, cost, events_to_json(GRANT, [part]))

    for account in orders:
        journal("reserve", account, whole)
    custodian.append("run", "data/shop", OTHER, Cost(), "{}")
    custodian.open(OTHER, ("ann",), session={**SESSION, "turn_seconds": 0})
    custodian.change_last("round", mechanism=GRANT)
    custodian.seal(OTHER)
    for account in reduced:
        journal("reduce", account, some)
    for account in orders:
        journal("spend", account, some if account in reduced else whole)
    custodian.release(OTHER)
    problem = failures(custodian).get("A8", "")
    assert ("a charge was reduced, which only a grant's may be" in problem) is not holds
    assert bool(problem) is not holds
