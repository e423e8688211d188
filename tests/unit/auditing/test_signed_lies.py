"""Lies in what a custodian signs: steps out of order, times, charges and seeds. Each is one check's to find."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from fractions import Fraction

import pytest
from harness import custodian as custodian_module
from harness.audit_failures import failures
from harness.custodian import DATA_PARTS, GRID_SECONDS, Custodian

from equipoise.accounting import Cost, PrivacyEvent, ZcdpEvent, charge_of, events_to_json
from equipoise.auditing.verify import verify
from equipoise.records import envelopes
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.signed_notes import sign_note

FIRST, LATER = "aa", "cc"
MICROSECONDS = 1_000_000


def settled_for_other_parts(custodian: Custodian) -> None:
    """The same amount, but made of something else than was reserved."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    others = [replace(DATA_PARTS[0], name="another"), *DATA_PARTS[1:]]
    assert charge_of(others) == charge_of(DATA_PARTS)
    for entry in [each for each in custodian.journal if each.round_id == LATER and each.action == "reserve"]:
        events = events_to_json("equilibrium", others) if entry.account == "data/shop" else entry.events
        custodian.append("spend", entry.account, LATER, entry.cost, events)
    custodian.release(LATER)


def settled_for_less(custodian: Custodian) -> None:
    """The journal and the record of the release agree with each other."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    for entry in [each for each in custodian.journal if each.round_id == LATER and each.action == "reserve"]:
        less = replace(entry.cost, divergence=entry.cost.divergence // 2)
        custodian.append("spend", entry.account, LATER, less, entry.events)
    custodian.release(LATER)


def released_with_other_charges(custodian: Custodian) -> None:
    """The record of the release alone says less."""
    custodian.play(LATER)
    charges = [{"account": "data/shop", "cost": asdict(Cost(divergence=1))}]
    custodian.change_last("spending", charges=charges)


def one_charge_given_back(custodian: Custodian) -> None:
    """Before the round runs, and of one analyst alone; the record names it with the others."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    reserved = [each for each in custodian.journal if each.round_id == LATER and each.action == "reserve"]
    for entry in [each for each in reserved if each.account.endswith("/bob")]:
        custodian.append("release", entry.account, LATER, entry.cost, entry.events)
    custodian.run(LATER)
    for entry in [each for each in reserved if not each.account.endswith("/bob")]:
        custodian.append("spend", entry.account, LATER, entry.cost, entry.events)
    custodian.release(LATER)
    charges = [{"account": each.account, "cost": asdict(each.cost)} for each in reserved]
    custodian.change_last("spending", charges=charges)


def reserved_after_the_seal(custodian: Custodian) -> None:
    """The seal's record names all charges, but the journal had not got them when it was signed."""
    custodian.open(LATER)
    custodian.seal(LATER)
    custodian.reserve(LATER)
    charges = [
        {"account": each.account, "cost": asdict(each.cost)}
        for each in custodian.journal
        if each.round_id == LATER and each.action == "reserve"
    ]
    custodian.change_last("reservation", charges=charges)


def moved_release(custodian: Custodian, microseconds: int) -> None:
    custodian.play(LATER)
    released = custodian.listed[LATER].release_time
    assert released is not None
    custodian.change_last("release", release_time=released + microseconds)
    custodian.listed[LATER] = replace(custodian.listed[LATER], release_time=released + microseconds)


def released_off_the_grid(custodian: Custodian) -> None:
    moved_release(custodian, 1)


def released_before_its_end(custodian: Custodian) -> None:
    moved_release(custodian, -GRID_SECONDS * MICROSECONDS)


def open_a_moment_beyond_its_turns(custodian: Custodian) -> None:
    custodian.open_session(LATER, turn_seconds=5)
    opened = custodian.listed[LATER].open_time
    custodian.change_last("round", close_time=opened + 8 * 5 * MICROSECONDS + 1)


def open_without_an_end(custodian: Custodian) -> None:
    custodian.open_session(LATER, turn_seconds=5)
    custodian.change_last("round", close_time=None)


def computed_on_other_data(custodian: Custodian) -> None:
    custodian.play(LATER)
    custodian.change_last("spending", data_digest="ab" * 32)


def shown_another_charge(custodian: Custodian) -> None:
    custodian.play(LATER)
    less = charge_of(custodian_module.ANALYST_PARTS)
    custodian.change_last("result", charge=asdict(replace(less, rho=less.rho - 1)))


def shown_no_charge_of_what_was_spent(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    custodian.settle(LATER)
    custodian.abort(LATER, "spent")
    custodian.change_last("charge", state="none")


def an_empty_journal_of_another_beginning(custodian: Custodian) -> None:
    registered = next(place for place, each in enumerate(custodian.records) if each.kind == "dataset-registered")
    custodian.records = custodian.records[: registered + 1]
    custodian.change_last("data", journal={"sequence": 0, "digest": "ab" * 32})


def recorded_as_given_back(custodian: Custodian) -> None:
    """The same amounts; but the journal has spent them."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    custodian.settle(LATER)
    custodian.abort(LATER, "spent")
    spent = [each for each in custodian.journal if each.round_id == LATER and each.action == "spend"]
    charges = [{"account": each.account, "cost": asdict(each.cost), "state": "released"} for each in spent]
    custodian.change_last("settlement", charges=charges)


def one_seed_twice(custodian: Custodian) -> None:
    custodian.open(LATER)
    first, *_ = [each for each in custodian.records if each.kind == "round-opened"]
    commitment = json.loads(first.items[0].content)["seed_commitment"]
    custodian.change_last("round", seed_commitment=commitment)


def aborted_without_what_was_reserved(custodian: Custodian) -> None:
    """The round was never sealed, but the journal holds charges for it."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.abort(LATER, "none")
    custodian.change_last("settlement", charges=[])


def spent_before_it_ran(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.settle(LATER)
    custodian.run(LATER)
    custodian.release(LATER)


def aborted_before_its_charges_were_settled(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    custodian.abort(LATER, "spent")
    custodian.settle(LATER)


def released_before_its_charges_were_settled(custodian: Custodian) -> None:
    """The record names the charges, but the journal had not got them when it was signed."""
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.run(LATER)
    custodian.release(LATER)
    custodian.settle(LATER)
    spent = [each for each in custodian.journal if each.round_id == LATER and each.action == "spend"]
    custodian.change_last("spending", charges=[{"account": e.account, "cost": asdict(e.cost)} for e in spent])


@pytest.mark.parametrize(
    ("lie", "check", "words"),
    [
        (settled_for_other_parts, "A6", "cannot follow those before it: 'spend' on 'data/shop'"),
        (settled_for_less, "A6", "cannot follow those before it: 'spend' on 'data/shop'"),
        (released_with_other_charges, "A8", "what it spends differs from the budget journal"),
        (one_charge_given_back, "A8", "what it spends differs from the budget journal"),
        (reserved_after_the_seal, "A8", "comes before its reservation in the budget journal"),
        (released_off_the_grid, "A8", "is not a point of the round's release grid after its end"),
        (released_before_its_end, "A8", "is not a point of the round's release grid after its end"),
        (open_a_moment_beyond_its_turns, "A9", "the session is open for longer than its turns"),
        (open_without_an_end, "A9", "the session is open for longer than its turns"),
        (computed_on_other_data, "A9", "its data differ from those of entry 4 of the log"),
        (shown_another_charge, "A9", "'ann' is shown a charge that differs from the one made"),
        (shown_no_charge_of_what_was_spent, "A9", "'ann' is shown a charge that differs from the one made"),
        (an_empty_journal_of_another_beginning, "A5", "is not the one that entry 4 of the log"),
        (recorded_as_given_back, "A8", "what it settles differs from the budget journal"),
        (aborted_without_what_was_reserved, "A8", "what it settles differs from the budget journal"),
        (spent_before_it_ran, "A8", "charges were spent, but the journal does not say that it ran"),
        (aborted_before_its_charges_were_settled, "A8", "comes before its charges are settled"),
        (released_before_its_charges_were_settled, "A8", "comes before its charges are settled"),
        (one_seed_twice, "A10", "two rounds have the same seed commitment"),
    ],
)
def test_a_signed_lie_is_found(
    custodian: Custodian, lie: Callable[[Custodian], None], check: str, words: str
) -> None:
    lie(custodian)
    assert words in failures(custodian)[check]


@pytest.mark.parametrize(("rho", "holds"), [(Fraction(1, 10), True), (Fraction(1, 4), False)])
def test_a_statement_s_reservation_is_within_its_account_s_cap(
    monkeypatch: pytest.MonkeyPatch, rho: Fraction, holds: bool
) -> None:
    """Where the worst round counts nothing adds, so each reservation is held to the cap of epsilon 3 by itself."""
    parts: tuple[PrivacyEvent, ...] = (ZcdpEvent("game", rho),)
    monkeypatch.setattr(custodian_module, "ANALYST_PARTS", parts)
    custodian = Custodian()
    custodian.register()
    custodian.open(FIRST)
    custodian.reserve(FIRST)
    problem = failures(custodian).get("A7", "")
    assert ("takes analyst/shop/query/ann to epsilon" in problem) is not holds
    assert custodian.journal[-1].cost != Cost()


def test_a_receipt_of_another_deployment_is_not_compared(custodian: Custodian) -> None:
    """One key may sign for several deployments, which may have rounds of the same name."""
    own = custodian.receipt(FIRST, "ann", custodian.commitment(FIRST, "ann"))
    payload = ReceiptPayload.from_bytes(envelopes.open_envelope(own, RECEIPT_TYPE, custodian.trusted))
    foreign = replace(payload, deployment="other").to_bytes()
    others = envelopes.sign(RECEIPT_TYPE, foreign, custodian.keys)
    checks = verify(custodian.archive(), custodian.trusted, (), [others]).checks
    assert (
        next(each.detail for each in checks if each.number == "A11")
        == "a receipt is of another deployment: 'other'"
    )


def test_a_checkpoint_of_another_log_is_not_compared(custodian: Custodian) -> None:
    """Signed by the same key over the same root, but under another name."""
    size, root = custodian.checkpoint().decode().split("\n")[1:3]
    other = sign_note(f"equipoise/other\n{size}\n{root}\n", custodian.keys)
    checks = verify(custodian.archive(), custodian.trusted, [other]).checks
    found = next(each.detail for each in checks if each.number == "A3")
    assert found == "a checkpoint's origin is not the name of the keys that signed it"
