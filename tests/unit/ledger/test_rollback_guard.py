"""The rollback guard: older and other copies of a store are refused, and nothing else is."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest
from harness.ledger_store import NOW, open_with, reserve
from harness.stores import allow_changes, back_up, change_directly, restore

from equipoise.accounting import Cost
from equipoise.errors import DataLoss, Unavailable
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_committed
from equipoise_server.ledger.adjustments import write_off
from equipoise_server.ledger.caps import MAX_AMOUNT, Cap, Composition, at_order
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.losses import of_lost_accounts
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.ledger.seen_digests import DIGEST_BYTES
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.idempotency import make_request, store_response
from equipoise_server.storage.store import Store

CAP = at_order("cap", Cap(1.0, 1e-6))
DATA = "data/t"


def test_a_store_that_goes_on_is_accepted(store: Store, guard: Guard) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    # A crash came before the guard was advanced: the journal extends it.
    with store.read() as connection:
        guard.check(connection)
    guard.advance(store)
    snapshot = guard.read()
    assert snapshot is not None
    with store.read() as connection:
        head = journal.head(connection)
    assert (snapshot.sequence, snapshot.digest, snapshot.committed) == (
        head.sequence,
        head.digest,
        {DATA: Cost(divergence=1)},
    )


def test_a_lock_that_nobody_lets_go_of_is_not_waited_for_for_ever(
    store: Store, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise_server.ledger.rollback_guard.LOCK_SECONDS", 0.05)
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    with guard.path.with_name("guard.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match=r"has been locked by another for 0\.05 seconds"):
            guard.advance(store)
    guard.advance(store)
    with store.read() as connection:
        assert guard.compare(connection, guard.read()) is Finding.CONTAINED


def test_yesterdays_copy_is_refused_with_the_reason(store: Store, guard: Guard, store_url: str) -> None:
    store.close()
    copy = back_up(store_url)
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    guard.advance(store)
    store.close()
    restore(store_url, copy)
    with store.read() as connection, pytest.raises(DataLoss, match=r"ends at entry 1, but entry 2 .* older copy"):
        guard.check(connection)
    # It goes on being refused when it has as many entries, but others.
    reserve(store, "r1", {DATA: Cost(divergence=5)})
    with pytest.raises(DataLoss, match="entry 2 of the budget journal is not the one"):
        guard.advance(store)


def gone_another_way(store: Store, guard: Guard, url: str) -> None:
    """Restore a copy from before two rounds that the guard knows, and let it go on with one of its own."""
    store.close()
    copy = back_up(url)
    for round_id in ("r0", "r1"):
        reserve(store, round_id, {DATA: Cost(divergence=40)})
        guard.advance(store)
    store.close()
    restore(url, copy)
    reserve(store, "r2", {DATA: Cost(divergence=30)})


def lost(store: Store, guard: Guard) -> Finding:
    """Write off what the store may have forgotten, and set the guard."""
    snapshot = guard.read()
    with store.write() as connection:
        finding = guard.compare(connection, snapshot)
        write_off(connection, snapshot, finding, NOW)
    guard.set(store)
    return finding


def spent(store: Store) -> int:
    """The divergence that is spent or reserved on the account."""
    with store.read() as connection:
        return all_committed(connection)[DATA].divergence


def test_of_a_shorter_copy_that_went_another_way_both_ways_are_counted(
    store: Store, guard: Guard, store_url: str
) -> None:
    gone_another_way(store, guard, store_url)
    with store.read() as connection, pytest.raises(DataLoss, match=r"entry 2 of the budget .* went another way"):
        guard.check(connection)
    assert lost(store, guard) is Finding.FORKED
    assert spent(store) >= 40 + 40 + 30


def test_of_an_older_copy_only_what_it_lacks_is_counted(store: Store, guard: Guard, store_url: str) -> None:
    reserve(store, "r3", {DATA: Cost(divergence=7)})
    guard.advance(store)
    store.close()
    copy, again = back_up(store_url), back_up(store_url)
    reserve(store, "r0", {DATA: Cost(divergence=40)})
    reserve(store, "r1", {DATA: Cost(divergence=2)})
    guard.advance(store)
    store.close()
    restore(store_url, copy)
    assert lost(store, guard) is Finding.BEHIND
    assert spent(store) == 7 + 40 + 2
    # The guard goes on from here: another copy of before is told from one that goes another way again.
    store.close()
    restore(store_url, again)
    assert lost(store, guard) is Finding.BEHIND
    assert spent(store) == 7 + 40 + 2


ANN, LATE = "analyst/t/query/ann", "analyst/t/analyst/late"


@pytest.mark.slow
def test_what_was_written_off_of_a_lost_account_is_known_when_the_copy_is_restored_again(
    store: Store, guard: Guard, store_url: str
) -> None:
    """It is on no account until that is opened again: the journal knows it, and so must the guard."""
    store.close()
    copies = [back_up(store_url) for _ in range(3)]
    open_with(store, LATE, Composition.SEQUENTIAL, CAP)
    open_with(store, ANN, Composition.PARALLEL, Cap(1.0, 1e-6))
    reserve(store, "r0", {LATE: Cost(divergence=40, delta=2), ANN: Cost(epsilon=9)})
    guard.advance(store)
    for copy in copies:
        store.close()
        restore(store_url, copy)
        assert lost(store, guard) is Finding.BEHIND
        snapshot = guard.read()
        assert snapshot is not None
        assert (snapshot.committed[LATE], snapshot.orders[LATE]) == (Cost(divergence=40, delta=2), CAP.order)
        assert snapshot.committed[ANN] == Cost(epsilon=9)
    # A copy from after a write-off lacks nothing of it.
    store.close()
    copy = back_up(store_url)
    with store.write() as connection:
        store_response(connection, make_request("ann", "1", "submit"), "accepted", NOW)
    guard.advance(store)
    store.close()
    restore(store_url, copy)
    assert lost(store, guard) is Finding.BEHIND
    open_with(store, LATE, Composition.SEQUENTIAL, CAP)
    open_with(store, ANN, Composition.PARALLEL, Cap(1.0, 1e-6))
    guard.advance(store)
    with store.read() as connection:
        assert all_committed(connection) == {
            DATA: Cost(),
            LATE: Cost(divergence=40, delta=2),
            ANN: Cost(epsilon=9),
        }
        check_accounts(connection)


def test_of_what_an_account_without_adding_has_lost_more_than_once_the_worst_counts(store: Store) -> None:
    """Each amount by itself, whichever copy went another way first."""
    losses = Cost(epsilon=9, delta=1), Cost(epsilon=4, delta=3)
    for number, cost in enumerate(losses):
        with store.write() as connection:
            write_off(connection, Snapshot(99 + number, b"\1" * 32, {ANN: cost}, {}), Finding.FORKED, NOW)
    with store.read() as connection:
        assert of_lost_accounts(connection)[ANN].cost == Cost(epsilon=9, delta=3)


def test_what_was_lost_at_several_orders_leaves_nothing(store: Store, guard: Guard) -> None:
    snapshot = guard.read()
    assert snapshot is not None
    with store.write() as connection:
        for order in (5.0, 8.0):
            known = replace(snapshot, committed={LATE: Cost(divergence=1)}, orders={LATE: order})
            write_off(connection, known, Finding.FORKED, NOW)
        (loss,) = of_lost_accounts(connection).values()
    assert (loss.cost.divergence, loss.order) == (MAX_AMOUNT, 8.0)


@pytest.mark.parametrize("damage", ["missing", "cut off", "another's", "changed"])
def test_where_the_digests_say_nothing_a_shorter_copy_is_taken_for_one_that_went_another_way(
    store: Store, guard: Guard, store_url: str, damage: str
) -> None:
    gone_another_way(store, guard, store_url)
    with store.read() as connection:
        others = b"".join(journal.digests(connection, 0, 9))
    content = guard.seen.path.read_bytes()
    match damage:
        case "missing":
            guard.seen.path.unlink()
        case "cut off":
            guard.seen.path.write_bytes(content[:-1])
        case "another's":
            guard.seen.path.write_bytes(others)
        case "changed":
            guard.seen.path.write_bytes(others + content[len(others) :][:-1] + b"x")
    with store.read() as connection:
        assert guard.compare(connection, guard.read()) is Finding.FORKED


def test_digests_that_were_lost_are_kept_again_when_the_guard_moves(store: Store, guard: Guard) -> None:
    guard.seen.path.unlink()
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    guard.advance(store)
    with store.read() as connection:
        head = journal.head(connection)
        assert guard.seen.path.read_bytes() == b"".join(journal.digests(connection, 0, head.sequence))
    assert guard.seen.path.stat().st_mode & 0o777 == 0o600


def test_digests_of_a_copy_that_the_guard_does_not_know_yet_say_nothing_of_it(
    store: Store, guard: Guard, store_url: str
) -> None:
    """The crash comes after the write-off, before the guard is replaced; then the copy is restored once more."""
    gone_another_way(store, guard, store_url)
    store.close()
    copy = back_up(store_url)

    def crash(point: CrashPoint) -> None:
        if point is CrashPoint.GUARD_DIGESTS_KEPT:
            raise KeyboardInterrupt

    with install_hook(crash), pytest.raises(KeyboardInterrupt):
        lost(store, guard)
    with store.read() as connection:
        assert guard.seen.path.read_bytes() == b"".join(
            journal.digests(connection, 0, journal.head(connection).sequence)
        )
    store.close()
    restore(store_url, copy)
    assert lost(store, guard) is Finding.FORKED
    assert spent(store) >= 40 + 40 + 30


def test_the_digests_are_written_before_the_guard_knows_of_them(
    store: Store, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "PAGE", 1)
    before = guard.path.read_bytes()
    seen = []

    def look(point: CrashPoint) -> None:
        seen.append((point, guard.path.read_bytes() == before, guard.seen.path.stat().st_size))

    reserve(store, "r0", {DATA: Cost(divergence=1)})
    reserve(store, "r1", {DATA: Cost(divergence=1)})
    with install_hook(look):
        guard.advance(store)
    assert seen == [
        (CrashPoint.GUARD_DIGESTS_KEPT, True, 3 * DIGEST_BYTES),
        (CrashPoint.GUARD_PREPARED, True, 3 * DIGEST_BYTES),
        (CrashPoint.GUARD_ADVANCED, False, 3 * DIGEST_BYTES),
    ]


def test_a_journal_with_a_gap_gives_no_digests(store: Store, guard: Guard, store_url: str) -> None:
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    reserve(store, "r1", {DATA: Cost(divergence=1)})
    with store.write() as connection:
        allow_changes(connection, "journal")
    store.close()
    change_directly(store_url, "DELETE FROM journal WHERE sequence = 2")
    before = guard.path.read_bytes()
    with pytest.raises(DataLoss, match="entry 2 of the budget journal is missing"):
        guard.advance(store)
    assert guard.path.read_bytes() == before


@pytest.mark.parametrize("own", ["link", "directory"])
def test_digests_that_are_not_a_file_are_said(store: Store, guard: Guard, tmp_path: Path, own: str) -> None:
    content = guard.seen.path.read_bytes()
    guard.seen.path.unlink()
    if own == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        guard.seen.path.symlink_to("elsewhere")
    else:
        guard.seen.path.mkdir()
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    with pytest.raises(Unavailable, match=r"guard\.digests cannot be written"):
        guard.advance(store)


def test_digests_ahead_of_the_guard_change_nothing(store: Store, guard: Guard, store_url: str) -> None:
    """The crash came before the guard was replaced: what the digests are ahead of, nothing was done upon."""
    store.close()
    copy = back_up(store_url)
    reserve(store, "r0", {DATA: Cost(divergence=40)})

    def crash(point: CrashPoint) -> None:
        if point is CrashPoint.GUARD_PREPARED:
            raise KeyboardInterrupt

    with install_hook(crash), pytest.raises(KeyboardInterrupt):
        guard.advance(store)
    store.close()
    restore(store_url, copy)
    reserve(store, "r1", {DATA: Cost(divergence=5)})
    guard.advance(store)
    with store.read() as connection:
        assert guard.seen.path.read_bytes() == b"".join(journal.digests(connection, 0, 9))


def test_a_copy_from_before_a_request_is_refused_until_that_is_written_off(
    store: Store, guard: Guard, store_url: str
) -> None:
    """No budget moved, but a workload that was accepted would be missing."""
    store.close()
    copy = back_up(store_url)
    with store.write() as connection:
        store_response(connection, make_request("ann", "1", "submit"), "accepted", NOW)
    guard.advance(store)
    store.close()
    restore(store_url, copy)
    with pytest.raises(DataLoss, match=r"counts 0 requests, but 1 had been answered .* older copy"):
        guard.advance(store)
    snapshot = guard.read()
    with store.write() as connection:
        assert guard.compare(connection, snapshot) is Finding.BEHIND
        assert write_off(connection, snapshot, Finding.BEHIND, NOW) == []
    # A crash may come here; what was written off is known, and the guard goes on from the store.
    guard.advance(store)
    snapshot = guard.read()
    assert snapshot is not None
    assert (snapshot.requests, snapshot.committed) == (0, {DATA: Cost()})


def test_a_lost_reservation_that_nothing_was_done_upon_is_no_loss(
    store: Store, guard: Guard, store_url: str
) -> None:
    """The copy is from before a commit, and the crash came before the guard was advanced to that commit."""
    store.close()
    copy = back_up(store_url)
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    store.close()
    restore(store_url, copy)
    guard.advance(store)
