"""Compares a store with what the rollback guard knows of it, and explains the difference in words."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, func, select

from equipoise_server.ledger import journal
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.journal import Head
from equipoise_server.ledger.seen_digests import SeenDigests
from equipoise_server.storage import tree_heads
from equipoise_server.storage.idempotency import count_requests
from equipoise_server.storage.tables.session import sessions
from equipoise_server.storage.tree_heads import TreeHead

_ANSWERED = select(func.coalesce(func.sum(sessions.c.answered), 0))  # made once, as each answer needs it


class Finding(StrEnum):
    """How a store compares to its guard; the journal contains these words."""

    CONTAINED = "contained"  # journal and log contain the snapshot: all is well
    MISSING = "missing"  # there is no guard though there is a journal or a log
    BEHIND = "behind"  # entries of the journal or the log, requests or answers are missing: an older copy
    FORKED = "forked"  # the journal has other entries than the guard saw


def compare(connection: Connection, snapshot: Snapshot | None, seen: SeenDigests) -> Finding:
    """Compare the store's journal, log and counters with what the guard knows.

    A snapshot that was written off already counts as contained.

    Args:
        connection: to the store.
        snapshot: the guard's snapshot; None where there is no guard.
        seen: the digests of all journal entries that the guard has seen.

    Raises:
        OSError: the file of the digests cannot be read.
    """
    head = journal.head(connection)
    if snapshot is None:
        return Finding.MISSING if head.sequence or tree_heads.newest(connection).size else Finding.CONTAINED
    contained = journal.digest_at(connection, snapshot.sequence) == snapshot.digest
    counted = count_requests(connection) >= snapshot.requests and count_answers(connection) >= snapshot.answered
    if contained and counted and _in_log(connection, snapshot.log):
        return Finding.CONTAINED
    # A crash separated the write-off from setting the guard. Nothing else happened in between.
    if resolved(connection, snapshot):
        return Finding.CONTAINED
    return Finding.BEHIND if contained or _is_prefix(head, snapshot, seen) else Finding.FORKED


def _is_prefix(head: Head, snapshot: Snapshot, seen: SeenDigests) -> bool:
    """Return whether the guard saw this journal's head before it saw the snapshot's entry; False in doubt."""
    if head.sequence >= snapshot.sequence or seen.at(snapshot.sequence) != snapshot.digest:
        return False
    return seen.at(head.sequence) == head.digest


def problem(connection: Connection, snapshot: Snapshot | None, finding: Finding, guard: Path) -> str:
    """Say in one sentence why a store that is not `CONTAINED` is refused. `guard`: the path of the guard's file."""
    head, log = journal.head(connection), tree_heads.newest(connection)
    if snapshot is None:
        return (
            f"the guard {guard} is missing, though the budget journal has {head.sequence} entries and the "
            f"log {log.size}"
        )
    if finding is Finding.FORKED:
        differing = min(head.sequence, snapshot.sequence)
        return (
            f"entry {differing} of the budget journal is not the one that had been written (see the "
            "guard): the store is a copy that went another way, and budget may be missing"
        )
    if head.sequence < snapshot.sequence:
        return (
            f"the budget journal ends at entry {head.sequence}, but entry {snapshot.sequence} had been written "
            "(see the guard): the store was restored from an older copy, and budget may be missing"
        )
    if log.size < snapshot.log.size:
        return (
            f"the log has {log.size} entries, but had {snapshot.log.size} when it was shown last (see the guard): "
            "the store was restored from an older copy, and records may be missing"
        )
    if not _in_log(connection, snapshot.log):
        return (
            f"the log's first {snapshot.log.size} entries are not those that had been shown (see the guard): the "
            "store is a copy that went another way, and records may be missing"
        )
    if (answers := count_answers(connection)) < snapshot.answered:
        return (
            f"the store has {answers} answers of sessions, but {snapshot.answered} had been given (see the guard): "
            "it was restored from an older copy, and randomness would be used again"
        )
    return (
        f"the store counts {count_requests(connection)} requests, but {snapshot.requests} had been answered "
        "(see the guard): it was restored from an older copy, and workloads or revocations may be missing"
    )


def count_answers(connection: Connection) -> int:
    """Return how many statements sessions have answered. This count never falls, even if sessions are removed."""
    return int(connection.execute(_ANSWERED).scalar_one())


def _in_log(connection: Connection, log: TreeHead) -> bool:
    return tree_heads.root_at(connection, log.size) == log.root


def resolved(connection: Connection, snapshot: Snapshot) -> bool:
    """Return whether the journal says that the loss which this snapshot shows was written off."""
    known = [json.loads(entry.events) for entry in journal.of_account(connection, "", 0, None)]
    return any((loss["sequence"], loss["digest"]) == (snapshot.sequence, snapshot.digest.hex()) for loss in known)
