"""What is on record after each step: items as their readers want them, roots where the next record names them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from harness.record_items import fields_of
from harness.rounds_bench import ANN, BOB, SALT, SCHEMA, TERMS, Bench, compute
from sqlalchemy import select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss, InvalidArgument, Unavailable, VerificationFailed
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.canonical import from_base64
from equipoise.records.envelopes import open_envelope
from equipoise.records.merkle import root_of
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.record import (
    Kind,
    item_hash,
    leaf_bytes,
    stream_digest,
    synopsis_digest,
    workload_commitment,
)
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger import charges
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.rounds.recovery import RESTORED, write_off_losses
from equipoise_server.rounds.store.step_records import recorded_promise
from equipoise_server.storage.tables.round import rounds, submissions
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency import keys
from equipoise_server.transparency.keys import PublicKey, Purpose
from equipoise_server.transparency.record_writer import check_records, record_root
from equipoise_server.transparency.signing import Signer

NAMES = {
    Kind.LOG_STARTED: ["start", "key", "key"],
    Kind.IDENTITY_CHANGED: ["identity"],
    Kind.DATASET_REGISTERED: ["dataset", "data"],
    Kind.ROUND_OPENED: ["round", "plan", "share", "share"],
    Kind.ROUND_SEALED: ["seal", "reservation", "workload", "workload"],
    Kind.ROUND_RELEASED: ["release", "spending", "result", "result"],
    Kind.ROUND_ABORTED: ["abort", "settlement", "charge", "charge"],
    Kind.SEED_READ: ["access"],
    Kind.SEED_DESTROYED: ["destruction"],
}
AUDIENCES = {
    **dict.fromkeys(("key", "dataset", "round", "seal", "release", "abort", "destruction"), ("round", False)),
    **dict.fromkeys(
        ("start", "identity", "data", "plan", "reservation", "spending", "settlement", "access"), ("auditor", False)
    ),
    **dict.fromkeys(("share", "workload", "result", "charge"), ("analyst", True)),
}


def recorded(bench: Bench) -> dict[Kind, list[dict[str, Any]]]:
    """The items of the newest record of each kind, read strictly and checked against root, leaf and audience."""
    found: dict[Kind, list[dict[str, Any]]] = {}
    with bench.store.read() as connection:
        for row in connection.execute(select(records).order_by(records.c.position)):
            kind = Kind(row.kind)
            query = select(record_items).where(record_items.c.record == row.position)
            held = connection.execute(query.order_by(record_items.c.place)).all()
            assert root_of([each.hash for each in held]) == row.root
            assert (row.leaf, len(held)) == (leaf_bytes(kind, row.root, len(held)), 8)
            opened = [each for each in held if each.content is not None]
            assert all(item_hash(each.salt, each.content) == each.hash for each in opened)
            found[kind] = [
                fields_of(each.content, name) for each, name in zip(opened, NAMES[kind], strict=True)
            ] + [{"root": row.root.hex(), "publish_time": row.publish_time}]
            for each, name in zip(opened, NAMES[kind], strict=True):
                assert (each.audience, bool(each.analyst)) == AUDIENCES[name]
    return found


def digest_of_table(bench: Bench) -> str:
    return data_digest(source_at(bench.directory / "data" / "shop.csv").counts(SCHEMA)).hex()


def test_a_released_round_can_be_followed_from_its_end_to_its_table(bench: Bench) -> None:
    """Cyd, who has the second share, submits nothing: its items are there like ann's."""
    opened = bench.rounds.opening.open(
        replace(TERMS, shares=(TERMS.shares[0], replace(TERMS.shares[1], analyst="cyd"))), "1"
    )
    asked = workload_to_bytes(ANN)
    bench.rounds.submissions.submit("ann", opened.id, "first", workload_to_bytes(BOB), bytes(32))
    bench.rounds.submissions.submit("ann", opened.id, "second", asked, SALT)
    bench.rounds.seeds.set_nonce(opened.id, b"n" * 32, "nonce", "auditor")
    bench.rounds.lifecycle.seal(opened.id, "seal")
    compute(bench, opened.id, ("ann",))
    released = bench.rounds.lifecycle.release(opened.id, "release")
    found = recorded(bench)

    dataset, data, registered = found[Kind.DATASET_REGISTERED]
    assert (dataset["dataset"], dataset["records"], data["digest"]) == ("shop", 400, digest_of_table(bench))
    public, plan, ann, cyd, opening = found[Kind.ROUND_OPENED]
    assert (public["dataset_root"], public["seed_commitment"]) == (registered["root"], opened.seed_commitment.hex())
    assert (ann["analyst"], ann["queries"], cyd["analyst"]) == ("ann", 12, "cyd")
    assert plan["round"] == opened.id
    seal, reservation, anns, cyds, sealing = found[Kind.ROUND_SEALED]
    assert (seal["opened_root"], seal["nonce"]) == (opening["root"], (b"n" * 32).hex())
    assert anns["commitment"] == workload_commitment(SALT, asked).hex()
    assert cyds["commitment"] is None
    release, spending, own, none, ending = found[Kind.ROUND_RELEASED]
    assert (release["sealed_root"], spending["data_digest"]) == (sealing["root"], data["digest"])
    categories = bytes(3 * len(SCHEMA.sizes))  # each fits into a byte
    assert release["synopsis"] == {"digest": synopsis_digest(categories).hex(), "records": 3}
    chunks = [b"the results of ann"]
    assert own["stream"] == {"digest": stream_digest(opened.id, chunks).hex(), "messages": 1, "queries": 1}
    assert none["stream"] is None

    # Every amount is what the plan charges, for who has submitted as for who has not.
    cost = opened.plan.charged_analyst_cost
    assert [Cost(**each["charge"]) for each in (own, none)] == [cost, cost]
    with bench.store.read() as connection:
        held = charges.of_round(connection, opened.id)
    assert {each.account for each in held} == {"data/shop", "analyst/shop/query/ann", "analyst/shop/query/cyd"}
    for listed in (reservation["charges"], spending["charges"]):
        assert {each["account"]: Cost(**each["cost"]) for each in listed} == {
            each.account: cost if each.account != "data/shop" else bench.due(opened.plan) for each in held
        }

    # It enters the log when the streams open, whenever it was computed; the rest at once.
    assert released.release_time is not None
    assert ending["publish_time"] == release["release_time"] == to_microseconds(released.release_time)
    assert sealing["publish_time"] == reservation["seal_time"] == to_microseconds(bench.clock())


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"analyst": "bob"}, "item 2 would be shown to another"),
        ({"audience": "round"}, "item 2 would be shown to another"),
        ({"salt": bytes(32)}, "the item share does not open to its hash"),
    ],
)
def test_an_item_that_would_be_shown_to_another_is_found(
    bench: Bench, damage: dict[str, object], problem: str
) -> None:
    bench.rounds.opening.open(TERMS, "1")
    with bench.store.write() as connection:
        check_records(connection)
        connection.execute(record_items.update().where(record_items.c.analyst == "ann").values(damage))
    with bench.store.read() as connection, pytest.raises(DataLoss, match=problem):
        check_records(connection)


def test_the_log_does_not_tell_which_round_was_computed_first(bench: Bench) -> None:
    """Of rounds that are released at the same time: that one took longer may be because of what was asked."""
    first, second = bench.sealed(), bench.sealed()
    for round_id in (second, first):
        compute(bench, round_id)
        bench.rounds.lifecycle.release(round_id, f"release {round_id}")
    bench.clock.move(60)
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        query = select(records.c.round_id).where(records.c.kind == Kind.ROUND_RELEASED.value)
        assert connection.execute(query.order_by(records.c.log_index)).scalars().all() == [first, second]


def test_aborted_rounds_say_what_became_of_their_charges(bench: Bench) -> None:
    opened = bench.opened()
    bench.rounds.lifecycle.abort(opened, "nobody came", "abort")
    abort, settlement, ann, _, _ = recorded(bench)[Kind.ROUND_ABORTED]
    opening = recorded(bench)[Kind.ROUND_OPENED][-1]
    assert (abort["previous_root"], abort["reason"]) == (opening["root"], "nobody came")
    assert (settlement["charges"], ann["state"], Cost(**ann["charge"])) == ([], "none", Cost())
    sealed = bench.sealed()
    bench.rounds.lifecycle.abort(sealed, "too late", "abort again")
    abort, settlement, ann, bob, _ = recorded(bench)[Kind.ROUND_ABORTED]
    assert abort["previous_root"] == recorded(bench)[Kind.ROUND_SEALED][-1]["root"]
    assert [each["state"] for each in settlement["charges"]] == ["released"] * 3
    cost = bench.rounds.views.get(sealed).plan.charged_analyst_cost
    assert [(each["state"], Cost(**each["charge"])) for each in (ann, bob)] == [("released", cost)] * 2


def test_rounds_that_end_in_a_repair_are_on_record(bench: Bench) -> None:
    sealed = bench.sealed()
    bench.guard.path.unlink()
    assert write_off_losses(bench.store, bench.guard, bench.signer, bench.clock()).aborted == [sealed]
    found = recorded_but_log(bench)
    assert found["reason"] == RESTORED
    assert kept_seed(bench, sealed) == b""


def recorded_but_log(bench: Bench) -> dict[str, Any]:
    """The abort; what a repair records of the log itself is not looked at here."""
    with bench.store.read() as connection:
        query = select(record_items.c.content).join(records, records.c.position == record_items.c.record)
        content = connection.execute(query.where(records.c.kind == Kind.ROUND_ABORTED.value)).scalars().first()
    return fields_of(content or b"", "abort")


QUESTIONS = bytes(range(32))


def test_receipts_are_signed_and_the_same_bytes_for_the_same_request(bench: Bench) -> None:
    round_id, asked = bench.opened(), workload_to_bytes(ANN)
    with pytest.raises(InvalidArgument, match=r"^commitment_salt: "):
        bench.rounds.submissions.submit("ann", round_id, "1", asked, SALT[:-1])
    with pytest.raises(InvalidArgument, match=r"^questions_commitment: must have 32 bytes"):
        bench.rounds.submissions.submit("ann", round_id, "1", asked, SALT, QUESTIONS[:-1])
    receipt = bench.rounds.submissions.submit("ann", round_id, "1", asked, SALT, QUESTIONS)
    signer = Signer(bench.directory, "equipoise/bench")
    with bench.store.read() as connection:
        trusted = signer.verifier_keys(connection)
    told = ReceiptPayload.from_bytes(open_envelope(receipt.envelope, RECEIPT_TYPE, trusted))
    time = to_microseconds(receipt.accept_time)
    commitment = workload_commitment(SALT, asked)
    with bench.store.read() as connection:
        promise = recorded_promise(connection, round_id)
        opened = record_root(connection, Kind.ROUND_OPENED, round_id=round_id)
    assert promise.opened_root == opened
    assert told == ReceiptPayload(
        "bench", round_id, "ann", commitment, 3, receipt.queries, time, promise, QUESTIONS
    )
    bench.clock.move(10)
    # Who asks again after a crash has drawn another salt, and is told the one that counts.
    assert bench.rounds.submissions.submit("ann", round_id, "1", asked, bytes(32), bytes(32)) == receipt
    envelope = bench.rounds.submissions.withdraw("ann", round_id, "2")
    gone = ReceiptPayload.from_bytes(open_envelope(envelope, RECEIPT_TYPE, trusted))
    assert gone == ReceiptPayload("bench", round_id, "ann", None, 0, 0, time + 10_000_000, promise, None)
    bench.clock.move(10)
    assert bench.rounds.submissions.withdraw("ann", round_id, "2") == envelope
    with pytest.raises(VerificationFailed):
        open_envelope(envelope.replace(b"receipt", b"receipT"), RECEIPT_TYPE, trusted)


def test_no_two_receipts_of_one_analyst_have_one_time(bench: Bench) -> None:
    """The newest counts: also where the clock stands still, or is set back."""
    round_id, asked = bench.opened(), workload_to_bytes(ANN)
    first = bench.rounds.submissions.submit("ann", round_id, "1", asked, SALT)
    second = bench.rounds.submissions.submit("ann", round_id, "2", workload_to_bytes(BOB), SALT)
    bench.clock.move(-3600)
    gone = ReceiptPayload.from_bytes(
        from_base64(json.loads(bench.rounds.submissions.withdraw("ann", round_id, "3"))["payload"], "")
    )
    last = bench.rounds.submissions.submit("ann", round_id, "4", asked, SALT)
    others = bench.rounds.submissions.submit("bob", round_id, "1", asked, SALT)
    times = [first.accept_time, second.accept_time, from_microseconds(gone.accept_time), last.accept_time]
    assert times == sorted(set(times))
    assert others.accept_time == bench.clock()


def test_a_receipt_that_cannot_be_signed_is_no_receipt(bench: Bench) -> None:
    """Where a server has no file of a key that was added: the analyst may try again, and sees no path."""
    round_id = bench.opened()
    with bench.store.write() as connection:
        keys.add(connection, PublicKey(Purpose.LOG, bytes(range(32)), bench.clock()))
    with pytest.raises(Unavailable, match="receipts cannot be signed now"):
        bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes(ANN), SALT)
    with bench.store.read() as connection:
        assert connection.execute(select(submissions)).first() is None


def test_only_hashes_stay_of_what_was_recorded_about_a_deleted_analyst(bench: Bench) -> None:
    sealed = bench.sealed()
    bench.rounds.lifecycle.abort(sealed, "enough", "abort")
    in_order = record_items.c.record, record_items.c.place
    with bench.store.read() as connection:
        before = connection.execute(select(record_items.c.hash).order_by(*in_order)).scalars().all()
    delete_analyst(bench.rounds.operations, "ann", "delete")
    with bench.store.read() as connection:
        rows = connection.execute(select(record_items).order_by(*in_order)).all()
        roots = connection.execute(select(records.c.position, records.c.root)).all()
    assert [row.hash for row in rows][: len(before)] == before
    own = [row for row in rows if row.analyst == "ann"]
    assert len(own) == 3
    assert all(row.content is None and row.salt is None for row in own)
    assert all(row.content is not None for row in rows if row.audience and row.analyst != "ann")
    for position, root in roots:
        held = sorted((row.place, row.hash) for row in rows if row.record == position)
        assert root_of([each for _, each in held]) == root


def kept_seed(bench: Bench, round_id: str) -> bytes:
    """The server's own copy of a round's seed."""
    with bench.store.read() as connection:
        return bytes(connection.execute(select(rounds.c.sealed_seed).where(rounds.c.id == round_id)).scalar_one())


def test_the_digest_of_a_table_is_for_auditors_only(bench: Bench) -> None:
    """It is not salted, so it could be guessed at; the item that has it is."""
    bench.opened()
    with bench.store.read() as connection:
        rows = connection.execute(select(record_items).where(record_items.c.content.is_not(None))).all()
    digest = digest_of_table(bench).encode()
    assert [row.audience for row in rows if digest in row.content] == ["auditor"]
