"""Records enter the log at their times, in order; every size has one root, signed after the guard knew it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from harness.log_bench import ORIGIN, LogBench, log_bench
from harness.stores import back_up, change_directly, restore
from sqlalchemy import select, text

from equipoise.errors import DataLoss, OutOfRange
from equipoise.records.merkle import EMPTY_ROOT, inclusion_path, leaf_hash, root_of, verify_consistency
from equipoise.records.record import MIN_RECORD, Kind, leaf_bytes
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.transparency import checkpoints, record_items, records
from equipoise_server.transparency import log
from equipoise_server.transparency.record_writer import find_root, record_root
from equipoise_server.transparency.sequencing import Sequencer, append_due

POINTS = (
    CrashPoint.LOG_WRITTEN,
    CrashPoint.LOG_COMMITTED,
    CrashPoint.GUARD_PREPARED,
    CrashPoint.GUARD_ADVANCED,
    CrashPoint.CHECKPOINT_WRITTEN,
    CrashPoint.CHECKPOINT_COMMITTED,
)


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[LogBench]:
    """A log with its first record, which is shown."""
    with log_bench(tmp_path, store_url) as bench:
        bench.start()
        bench.sequence()
        yield bench


def all_heads(store: Store) -> dict[int, bytes]:
    """Every size the log had, with its root."""
    with store.read() as connection:
        return {row.size: row.root for row in connection.execute(select(checkpoints))}


def test_a_record_is_shown_from_its_time_on_and_not_before(bench: LogBench) -> None:
    later = bench.record("later", after=60, round_id="r")
    first = bench.record("first")
    bench.sequence(59)
    assert bench.leaves()[1:] == [first.leaf]
    bench.sequence(1)
    assert bench.leaves()[1:] == [first.leaf, later.leaf]
    checkpoint = bench.checkpoint()
    assert (checkpoint.origin, checkpoint.size, checkpoint.root) == (ORIGIN, 3, root_of(bench.hashes()))
    # Nothing is due, so nothing changes.
    before = bench.guard.path.read_bytes(), all_heads(bench.store)
    bench.sequence(1000)
    assert (bench.guard.path.read_bytes(), all_heads(bench.store)) == before


def test_while_the_clock_is_not_trusted_what_is_about_rounds_and_datasets_waits_and_revocations_do_not(
    bench: LogBench,
) -> None:
    reached = bench.now + timedelta(seconds=30)
    come = bench.record("of a round whose time has come", after=30, round_id="s")
    bench.record("of a round", after=60, round_id="r")
    bench.record("of a dataset", after=90, dataset="d")
    bench.now += timedelta(days=365)  # as the clock says
    revoked = bench.record("a revocation")
    bench.sequencer.sequence(bench.now, reached)
    assert bench.leaves()[1:] == [come.leaf, revoked.leaf]
    bench.sequencer.sequence(bench.now)
    assert len(bench.leaves()) == 5


def test_what_is_due_enters_by_its_time_and_then_as_it_was_written(bench: LogBench) -> None:
    after = (30, 10, 20, 10)
    written = [bench.record(f"item {place}", after=each, round_id=f"r{place}") for place, each in enumerate(after)]
    bench.sequence(60)
    assert bench.leaves()[1:] == [written[place].leaf for place in (1, 3, 2, 0)]
    assert sorted(all_heads(bench.store)) == [1, 5]


def test_a_clock_that_is_set_back_does_not_put_a_round_s_step_before_the_one_it_follows(bench: LogBench) -> None:
    opened = bench.record("opened", round_id="r")
    bench.now -= timedelta(hours=1)
    sealed, other = bench.record("sealed", round_id="r"), bench.record("other", round_id="s")
    bench.sequence(3600)
    assert bench.leaves()[1:] == [other.leaf, opened.leaf, sealed.leaf]


def test_a_record_is_padded_and_its_items_are_kept(bench: LogBench) -> None:
    made = bench.record("one", "two", dataset="t")
    with bench.store.read() as connection:
        row = connection.execute(select(records).where(records.c.dataset == "t")).one()
        query = select(record_items).where(record_items.c.record == row.position).order_by(record_items.c.place)
        kept = connection.execute(query).all()
        assert record_root(connection, Kind.DATASET_REGISTERED, dataset="t") == made.root
        assert find_root(connection, Kind.DATASET_REGISTERED, dataset="u") is None
        with pytest.raises(DataLoss, match="no dataset-registered record of u"):
            record_root(connection, Kind.DATASET_REGISTERED, dataset="u")
    assert len(kept) == MIN_RECORD
    assert [item.content for item in kept[:2]] == [item.content for item in made.items]
    assert {item.content for item in kept[2:]} == {None}
    assert root_of([item.hash for item in kept]) == made.root
    assert row.leaf == leaf_bytes(Kind.DATASET_REGISTERED, made.root, MIN_RECORD)


def test_proofs_of_every_shown_size_verify_and_others_are_refused(bench: LogBench) -> None:
    for number in range(6):
        bench.record(f"item {number}")
        bench.sequence(1)
    hashes = bench.hashes()
    heads = all_heads(bench.store)
    with bench.store.read() as connection:
        for old in range(8):
            path = log.consistency(connection, old, 7)
            verify_consistency(old, heads.get(old, EMPTY_ROOT), 7, heads[7], path)
        for index in range(7):
            assert log.inclusion(connection, index, 7) == inclusion_path(hashes, index)
        assert [entry.index for entry in log.entries(connection, 3, 2)] == [3, 4]
        for wrong in ((7, 7), (0, 8), (-1, 7)):
            with pytest.raises(OutOfRange):
                log.inclusion(connection, *wrong)
        for wrong in ((8, 8), (3, 2), (-1, 2)):
            with pytest.raises(OutOfRange):
                log.consistency(connection, *wrong)


@pytest.mark.slow
def test_a_crash_at_every_point_is_made_good_by_the_next_look(bench: LogBench) -> None:
    for point in POINTS:
        shown = bench.checkpoint()
        bench.record("one")
        _crash_at(bench, point)
        # Nobody has seen anything yet, but where the last commit had been made.
        assert (bench.checkpoint() == shown) is (point is not CrashPoint.CHECKPOINT_COMMITTED), point
        assert len(bench.leaves()) == bench.checkpoint().size
        bench.record("two")
        bench.sequence()
        snapshot, checkpoint, heads = bench.guard.read(), bench.checkpoint(), all_heads(bench.store)
        assert snapshot is not None
        assert (snapshot.log.size, snapshot.log.root) == (checkpoint.size, checkpoint.root) == max(heads.items())
        assert all(root_of(bench.hashes()[:size]) == root for size, root in heads.items())
        assert len(bench.leaves()) == shown.size + 2
    with bench.store.read() as connection:
        log.check_log(connection)


def _crash_at(bench: LogBench, point: CrashPoint) -> None:
    def die(reached: CrashPoint) -> None:
        if reached is point:
            raise KeyboardInterrupt

    with install_hook(die), pytest.raises(KeyboardInterrupt):
        bench.sequence()


def test_a_checkpoint_is_never_signed_before_the_guard_knows_it(bench: LogBench) -> None:
    seen: list[tuple[CrashPoint, int, int]] = []

    def look(point: CrashPoint) -> None:
        snapshot = bench.guard.read()
        assert snapshot is not None
        seen.append((point, snapshot.log.size, bench.checkpoint().size))

    bench.record("one")
    with install_hook(look):
        bench.sequence()
    assert [each for each in seen if each[0] in POINTS] == [
        (CrashPoint.LOG_WRITTEN, 1, 1),
        (CrashPoint.LOG_COMMITTED, 1, 1),
        (CrashPoint.GUARD_PREPARED, 1, 1),
        (CrashPoint.GUARD_ADVANCED, 2, 1),
        (CrashPoint.CHECKPOINT_WRITTEN, 2, 1),
        (CrashPoint.CHECKPOINT_COMMITTED, 2, 2),
    ]


def test_a_size_that_another_server_reached_meanwhile_is_left_to_the_guard(bench: LogBench) -> None:
    """Before this server signs, another one's records have their places, which the guard does not know yet."""
    bench.record("one")

    def overtake(point: CrashPoint) -> None:
        if point is CrashPoint.GUARD_ADVANCED:
            bench.record("two")
            with bench.store.write() as connection:
                assert append_due(connection, bench.now)

    with install_hook(overtake):
        bench.sequence()
    assert bench.checkpoint().size == 2
    assert sorted(all_heads(bench.store)) == [1, 2, 3]
    bench.sequence()
    assert bench.checkpoint().size == 3


@pytest.mark.slow
def test_servers_that_race_give_every_size_one_root(bench: LogBench) -> None:
    shown: dict[int, set[bytes]] = {}

    def work(number: int) -> None:
        other = LogBench(bench.directory, bench.url)
        other.now = bench.now
        try:
            for turn in range(5):
                other.record(f"item {number} {turn}")
                Sequencer(other.store, other.guard, other.signer).sequence(other.now)
                checkpoint = other.checkpoint()
                shown.setdefault(checkpoint.size, set()).add(checkpoint.root)
        finally:
            other.store.close()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    bench.sequence()
    assert bench.checkpoint().size == 21
    hashes = bench.hashes()
    assert {size: {root_of(hashes[:size])} for size in shown} == shown


def test_a_copy_from_before_what_was_shown_is_refused(bench: LogBench) -> None:
    """Only the log has gone on: no budget moved, and no request was answered."""
    bench.store.close()
    copy = back_up(bench.url)
    bench.record("gone")
    bench.sequence()
    shown = bench.checkpoint()
    bench.store.close()
    restore(bench.url, copy)
    bench.open()
    with pytest.raises(DataLoss, match=r"the log has 1 entries, but had 2 when it was shown last .* older copy"):
        bench.guard.advance(bench.store)
    # Nothing is built upon it; and it goes on being refused when it is as long, and is not signed.
    bench.record("instead")
    with pytest.raises(DataLoss, match="the log has 1 entries"):
        bench.sequence()
    with bench.store.write() as connection:
        append_due(connection, bench.now)
    with pytest.raises(DataLoss, match=r"first 2 entries are not those that had been shown .* went another way"):
        bench.sequence()
    assert bench.checkpoint().size == 1
    with bench.store.read() as connection:
        assert bench.guard.compare(connection, bench.guard.read()) is Finding.BEHIND
    assert all_heads(bench.store)[2] != shown.root


def test_a_log_without_its_guard_is_refused(bench: LogBench) -> None:
    bench.guard.path.unlink()
    with pytest.raises(DataLoss, match="has 0 entries and the log 1"):
        bench.guard.advance(bench.store)


@pytest.mark.slow
def test_a_store_that_is_exchanged_before_the_signing_is_not_signed(bench: LogBench) -> None:
    bench.record("one")

    def exchange(point: CrashPoint) -> None:
        if point is CrashPoint.GUARD_ADVANCED:
            with bench.store.write() as connection:
                connection.execute(checkpoints.update().where(checkpoints.c.size == 2).values(root=bytes(32)))

    with install_hook(exchange), pytest.raises(DataLoss, match="not the one that the guard knows"):
        bench.sequence()
    assert bench.checkpoint().size == 1


def test_damage_is_named(bench: LogBench) -> None:
    for name in ("one", "two"):
        bench.record(name)
        bench.sequence()
    for damage, problem in {
        "UPDATE log_tiles SET hashes = substr(hashes, 1, 32)": "its tiles are not those of its leaves",
        "DELETE FROM log_tiles": "its tiles are not those of its leaves",
        "UPDATE records SET log_index = 9 WHERE log_index = 1": "leaf 0 or one soon after",
        "UPDATE records SET log_index = NULL WHERE log_index = 2": "it has 2 leaves, but had come to 3",
        "UPDATE records SET leaf = root WHERE log_index = 1": "its tiles are not those of its leaves",
        "UPDATE checkpoints SET root = (SELECT root FROM records WHERE log_index = 1) WHERE size = 2": "at size 2",
        "UPDATE checkpoints SET note = (SELECT note FROM checkpoints WHERE size = 1) WHERE size = 3": "of size 3",
        "UPDATE checkpoints SET note = root WHERE size = 2": "its checkpoint of size 2 says something else",
    }.items():
        with pytest.raises(DataLoss, match=problem):
            _check_with(bench.store, damage)
    with bench.store.read() as connection:
        log.check_log(connection)


def _check_with(store: Store, damage: str) -> None:
    """The failure rolls the damage back."""
    with store.write() as connection:
        connection.execute(text(damage))
        log.check_log(connection)


def test_a_damaged_tile_is_not_built_upon(bench: LogBench) -> None:
    bench.record("one")
    bench.sequence()
    change_directly(bench.url, "UPDATE log_tiles SET hashes = (SELECT root FROM records WHERE log_index = 1)")
    bench.record("two")
    with pytest.raises(DataLoss, match="the log is damaged"):
        bench.sequence()
    assert sorted(all_heads(bench.store)) == [1, 2]


@pytest.mark.slow
def test_many_entries_at_once_and_then_one(bench: LogBench) -> None:
    leaves = [b"leaf %d" % number for number in range(70_000)]
    with bench.store.write() as connection:
        log.append(connection, leaves)
        head = log.append(connection, [b"last"])
    first = bench.leaves()[:1]
    assert head.size == 70_002
    assert head.root == root_of([leaf_hash(leaf) for leaf in (*first, *leaves, b"last")])
