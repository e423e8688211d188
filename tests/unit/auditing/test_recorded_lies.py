"""Records, entries and lists that contradict each other: for each refusal of the audit a lie that only it finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.audit_failures import failures
from harness.custodian import ANALYST_PARTS, GRID_SECONDS, ORDER, Custodian
from harness.record_book import ORIGIN, rechained

from equipoise.accounting import Cost, ZcdpEvent, charge_at, events_to_json
from equipoise.auditing.archive import AuditorLog
from equipoise.auditing.verify import verify
from equipoise.model.times import to_microseconds
from equipoise.records.record import make_record
from equipoise.records.signed_notes import SigningKey

FIRST, LATER = "aa", "cc"
Lie = Callable[[Custodian], object]


def opened(item: str, **fields: object) -> Lie:
    """A round is opened, and one of its items says otherwise."""

    def lie(custodian: Custodian) -> None:
        custodian.open(LATER)
        custodian.change_last(item, **fields)

    return lie


def sealed(item: str, **fields: object) -> Lie:
    def lie(custodian: Custodian) -> None:
        custodian.open(LATER)
        custodian.reserve(LATER)
        custodian.seal(LATER)
        custodian.change_last(item, **fields)

    return lie


def journaled(action: str, events: str = "{}", cost: Cost | None = None, round_id: str = "") -> Lie:
    return lambda custodian: custodian.append(action, "data/shop", round_id, cost or Cost(), events)


def listed(name: str, **fields: object) -> Lie:
    def lie(custodian: Custodian) -> None:
        custodian.listed[name] = replace(custodian.listed[FIRST], **fields)  # type: ignore[arg-type]

    return lie


def repeated(place: int) -> Lie:
    return lambda custodian: custodian.records.append(custodian.records[place])


def begun_without_a_start(custodian: Custodian) -> None:
    del custodian.records[0]


def empty(custodian: Custodian) -> None:
    custodian.records.clear()


def registered_under_two_names(custodian: Custodian) -> None:
    custodian.register("more")
    custodian.change_last("data", dataset="less")


def one_item_left_out(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.records[-1] = make_record(custodian.records[-1].kind, custodian.records[-1].items[:-1])


def sealed_without_an_opening(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    del custodian.records[-2]


def charged_for_less_than_planned(custodian: Custodian) -> None:
    """The charge is what its parts come to, and the journal's; but the plan says other parts."""
    custodian.open(LATER)
    parts = (ZcdpEvent("game", Fraction(1, 10**6)),)
    custodian.append("reserve", "data/shop", LATER, charge_at(parts, ORDER), events_to_json("equilibrium", parts))
    custodian.reserve(LATER)
    del custodian.journal[-1]  # that of the data's account, which comes last
    custodian.seal(LATER)


def unprotected_and_yet_charged_for_it(custodian: Custodian) -> None:
    custodian.open_session(LATER, protected=False)
    events = events_to_json("equilibrium", ANALYST_PARTS)
    custodian.change_last("plan", plan={"analyst_events": events})
    custodian.change_last("round", analyst_events={"mechanism": "equilibrium"} | {"events": _parts(events)})


def _parts(events: str) -> object:
    return json.loads(events)["events"]


def charged_to_an_account_that_is_not_there(custodian: Custodian) -> None:
    custodian.open(LATER, ("zed",))
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.journal[:] = rechained([entry for entry in custodian.journal if not entry.account.endswith("/zed")])


def run_at_a_cost(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.append("run", "data/shop", LATER, Cost(divergence=1), "{}")


def a_key_that_did_not_sign(custodian: Custodian) -> None:
    first, _ = custodian.keys[0], custodian.add_key()
    custodian.keys = [first]


def a_key_retired_that_was_never_added(custodian: Custodian) -> None:
    stranger = SigningKey(ORIGIN, Ed25519PrivateKey.generate())
    custodian.keys.append(stranger)
    custodian.retire_key(stranger)


def a_nonce_for_a_round_that_is_hidden(custodian: Custodian) -> None:
    custodian.own = AuditorLog("auditor", {"dd": "ab" * 32}, {})


def released_as_if_it_had_ended_later(custodian: Custodian) -> None:
    """Results were held back for a point of the grid, and the record says that the run took so long."""
    custodian.play(LATER)
    ended, released = to_microseconds(custodian.time), custodian.listed[LATER].release_time
    assert released is not None
    later = GRID_SECONDS * 1_000_000
    custodian.change_last("spending", commit_time=released + 1)
    custodian.change_last("release", release_time=released + later)
    custodian.listed[LATER] = replace(custodian.listed[LATER], release_time=released + later)
    assert ended < released


def aborted_as_if_before(custodian: Custodian) -> None:
    custodian.open(LATER)
    custodian.reserve(LATER)
    custodian.seal(LATER)
    custodian.settle(LATER, "release")
    custodian.abort(LATER, "released")
    assert not failures(custodian)
    custodian.change_last("abort", abort_time=1)


TWICE = '{"cap":{"epsilon":3.0,"delta":1e-6},"cap":{"epsilon":9.0,"delta":1e-6}}'
NO_PARTS = events_to_json("equilibrium", ())
CANNOT_FOLLOW = "cannot follow those before it"
LIES: dict[str, tuple[Lie, str, str]] = {
    "not started": (begun_without_a_start, "A8", "only the first entry of a log may start it"),
    "started twice": (repeated(0), "A8", "only the first entry of a log may start it"),
    "empty": (empty, "A8", "the log is empty"),
    "a leaf twice": (repeated(-1), "A2", "a leaf is in the log twice"),
    "a dataset twice": (repeated(4), "A8", "is registered twice, or under two names"),
    "a dataset of two names": (registered_under_two_names, "A8", "is registered twice, or under two names"),
    "a round twice": (repeated(5), "A8", f"the round {FIRST} is opened twice, or under two ids"),
    "a round of two ids": (
        opened("plan", round="dd"),
        "A8",
        f"the round {LATER} is opened twice, or under two ids",
    ),
    "fewer records": (opened("round", records=399), "A8", "the number of records differs from the dataset's"),
    "another dataset's root": (opened("round", dataset_root="00" * 32), "A8", "does not name the root of entry 4"),
    "a larger share": (opened("share", statements=9), "A8", "the share of 'ann' differs from the plan's"),
    "an item left out": (one_item_left_out, "A8", "does not have one item for each share"),
    "two shares of one analyst": (
        lambda custodian: custodian.open(LATER, ("ann", "ann")),
        "A8",
        "does not have one item for each share",
    ),
    "never opened": (sealed_without_an_opening, "A8", f"the round {LATER} is not opened before"),
    "an item twice": (
        sealed("workload", analyst="ann"),
        "A8",
        "the item of 'bob' is missing, or in another's place",
    ),
    "two rounds sealed as one": (sealed("reservation", round=FIRST), "A8", "is not opened before"),
    "another opening sealed": (sealed("seal", opened_root="00" * 32), "A8", "does not name the root of"),
    "sealed as if before": (sealed("reservation", seal_time=1), "A8", "has another time than its charges"),
    "held back": (released_as_if_it_had_ended_later, "A8", "has another time than its charges in the budget"),
    "aborted as if before": (aborted_as_if_before, "A8", "has another time than its charges in the budget"),
    "listed twice": (listed("again"), "A8", "a round is listed twice"),
    "listed of another dataset": (
        listed(FIRST, dataset="other"),
        "A8",
        "under another dataset than the one on record",
    ),
    "another grid": (opened("plan", terms={"release_grid_seconds": 1}), "A9", "the terms differ from the public"),
    "another beta": (opened("plan", terms={"beta": 0.06}), "A9", "the terms differ from the public parameters"),
    "another data budget": (
        opened("round", data_budget={"epsilon": 2.0, "delta": 1e-6}),
        "A9",
        "the terms differ from the public parameters",
    ),
    "another promise": (opened("plan", plan={"max_half_width": 0.2}), "A9", "the plan differs from the public"),
    "another mechanism": (opened("plan", plan={"mechanism": "pooled"}), "A9", "the plan differs from the public"),
    "other parts": (
        opened("round", analyst_events={"mechanism": "equilibrium", "events": []}),
        "A9",
        "the plan differs from the public",
    ),
    "charged for less": (
        charged_for_less_than_planned,
        "A9",
        "what data/shop is charged differs from the plan's cost",
    ),
    "no account": (charged_to_an_account_that_is_not_there, "A9", "what analyst/shop/query/zed is charged differs"),
    "a cost without a budget": (unprotected_and_yet_charged_for_it, "A9", "analysts have a cost, but no budget"),
    "a hidden round": (a_nonce_for_a_round_that_is_hidden, "A10", "got a nonce of the auditor's, but is not"),
    "a key that did not sign": (a_key_that_did_not_sign, "A1", "which the log says is in force"),
    "a key added twice": (repeated(0), "A1", "is in force already"),
    "a key never added": (a_key_retired_that_was_never_added, "A1", "is not in force"),
    "run at a cost": (run_at_a_cost, "A6", CANNOT_FOLLOW),
    "run when it was over": (journaled("run", round_id=FIRST), "A6", CANNOT_FOLLOW),
    "an unknown action": (journaled("borrow"), "A6", CANNOT_FOLLOW),
    "reserved twice": (lambda custodian: custodian.reserve(FIRST), "A6", CANNOT_FOLLOW),
    "settled twice": (lambda custodian: custodian.settle(FIRST), "A6", CANNOT_FOLLOW),
    "another way of counting": (
        lambda custodian: custodian.open_account("data/new", "best", 3.0, ORDER),
        "A6",
        CANNOT_FOLLOW,
    ),
    "reserved for no round": (journaled("reserve", NO_PARTS), "A6", CANNOT_FOLLOW),
    "a cap of two values": (journaled("set-cap", TWICE), "A6", CANNOT_FOLLOW),
    "no cap": (journaled("set-cap", '{"cap":{"epsilon":true,"delta":1e-6}}'), "A6", CANNOT_FOLLOW),
    "an endless cap": (journaled("set-cap", '{"cap":{"epsilon":Infinity,"delta":1e-6}}'), "A6", CANNOT_FOLLOW),
}


@pytest.mark.parametrize(("lie", "check", "words"), LIES.values(), ids=LIES.keys())
def test_a_contradiction_on_record_is_found(custodian: Custodian, lie: Lie, check: str, words: str) -> None:
    lie(custodian)
    assert words in failures(custodian).get(check, "")


def test_a_log_has_a_record_for_each_leaf(custodian: Custodian) -> None:
    archive = custodian.archive()
    shorter = replace(archive, records=archive.records[:-1])
    assert "of the log has no record" in failures(custodian, shorter)["A4"]


def found(custodian: Custodian, receipt: bytes) -> str:
    checks = verify(custodian.archive(), custodian.trusted, (), [receipt]).checks
    return next(check.detail for check in checks if check.number == "A11")


def test_a_receipt_is_of_a_round_and_an_analyst_on_record(custodian: Custodian) -> None:
    held = custodian.commitment(FIRST, "ann")
    assert found(custodian, custodian.receipt(FIRST, "ann", held)) == ""
    for round_id, analyst in ((LATER, "ann"), (FIRST, "eve")):
        problem = found(custodian, custodian.receipt(round_id, analyst, held))
        assert problem == f"a receipt of {analyst!r} is of the round {round_id}, which is not recorded"
    custodian.open(LATER)
    assert found(custodian, custodian.receipt(LATER, "ann", held)) == ""  # it may still ask for something else
    assert asdict(custodian.listed[LATER])["state"] == "open"


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("last", ["held", "other"])
def test_of_two_receipts_the_newer_one_counts_in_whatever_order_they_are_given(
    custodian: Custodian, order: int, last: str
) -> None:
    commitments = {"held": custodian.commitment(FIRST, "ann"), "other": bytes(32)}
    receipts = []
    for commitment in sorted(commitments, key=lambda each: each == last):
        receipts.append(custodian.receipt(FIRST, "ann", commitments[commitment]))
        custodian.time += timedelta(seconds=1)
    checks = verify(custodian.archive(), custodian.trusted, (), receipts[::order]).checks
    (detail,) = (check.detail for check in checks if check.number == "A11")
    assert (detail == "") == (last == "held")


def test_a_reading_that_is_recorded_of_another_auditor_is_not_one_s_own(custodian: Custodian) -> None:
    custodian.admit("eve", "auditor")
    custodian.own = AuditorLog("eve", {}, {FIRST: 1})
    custodian.read_seed(FIRST)  # by the auditor "auditor"
    assert "was read 1 times, of which 0 are recorded" in failures(custodian)["A10"]
    custodian.own = AuditorLog("auditor", {}, {FIRST: 1})
    assert failures(custodian) == {}
