"""The rollback guard: a small file outside the store that remembers the state of the journal and the log.

A copy of yesterday's database is consistent in itself, and would let today's budget be spent again. So the guard
keeps the newest journal entry that the server acted upon, and the amount that was committed on every account then.
The server refuses a store whose journal does not contain that entry.

The order of the steps makes a crash at any point harmless:

1. the journal is committed in the store;
2. the digests of its new entries are kept beside the guard (`seen_digests`), and the guard is advanced to the head;
3. only then are data read, or results sent.

The guard also keeps the size and the root of the log. A checkpoint is signed only for a size that the guard knows.
So a copy of the store from before a published checkpoint is refused, and no size of the log ever has two roots.

The guard also counts the requests that were carried out, a number that never falls in a store. So a copy from
before a workload was accepted is refused as well, from about a second after that (`rounds.schedule`), although no
budget is missing from it. The guard also counts the statements that sessions have answered: a copy from before an
answer would let another statement be answered with the same randomness. An answer is sent only after the guard has
counted it.

A crash between 1 and 2 leaves a guard that the journal extends: the next start accepts the store and advances the
guard. If a copy from before 1 is restored instead, the reservation is lost, but nothing was done upon it. After 2
the copy is refused.

Servers that share a store must share the guard's directory: advancing the guard reads the whole store under a lock.
Trust: whoever can write this file can hide a rollback, and restoring store and guard together is not detected.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection

from equipoise.errors import DataLoss, Unavailable, VerificationFailed
from equipoise.records.canonical import parse_canonical_json
from equipoise_server.ledger import journal
from equipoise_server.ledger.guard_comparison import Finding, compare, count_answers, problem
from equipoise_server.ledger.guard_counter import AnswerCount, split, with_places
from equipoise_server.ledger.guard_snapshot import SNAPSHOT, VERSION, Snapshot
from equipoise_server.ledger.losses import all_known, shared_accounts
from equipoise_server.ledger.seen_digests import SeenDigests
from equipoise_server.storage import tree_heads
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.durable import sync_directory, sync_file
from equipoise_server.storage.idempotency import count_requests
from equipoise_server.storage.store import Store

GUARD_FILE = "guard"
LOCK_SECONDS = 30.0  # more than a commit and a sync ever take; a process that holds the lock longer is stuck
LOCK_PAUSE_SECONDS = 0.01
REPAIR = "the runbook says what to do; equipoise-server ledger write-off repairs it"


@dataclass(frozen=True)
class Guard:
    """The guard file of one deployment. Safe to use from several threads and processes."""

    path: Path
    _count: AnswerCount = field(default_factory=AnswerCount, repr=False, compare=False)

    @property
    def seen(self) -> SeenDigests:
        """The digests of all journal entries that the guard has seen, in a file beside the guard."""
        return SeenDigests(self.path.with_name(f"{self.path.name}.digests"))

    def compare(self, connection: Connection, snapshot: Snapshot | None) -> Finding:
        """Compare a store with a snapshot that `read` returned. Raises `Unavailable`."""
        try:
            return compare(connection, snapshot, self.seen)
        except OSError as error:
            raise Unavailable(f"the guard's {self.seen.path} cannot be read: {error.strerror}") from None

    def check(self, connection: Connection) -> None:
        """Raise `DataLoss` with the reason, unless the store contains what the guard knows."""
        snapshot = self.read()
        finding = self.compare(connection, snapshot)
        if finding is not Finding.CONTAINED:
            raise DataLoss(f"{problem(connection, snapshot, finding, self.path)}; {REPAIR}")

    def advance(self, store: Store) -> None:
        """Move the guard forward to the journal's head, unless it is there already.

        After a crash before the file is replaced the guard is behind the journal, which extends it. Raises
        `DataLoss` as `check` does, `Unavailable` where the file cannot be written or stays locked.
        """
        with self._locked(), store.read() as connection:
            self.check(connection)
            self._move(connection)

    def count(self, answered: int) -> None:
        """Write the number of session answers of a store that the guard has accepted before.

        Faster than `advance`, which reads the whole store: an analyst waits for each answer. Raises `DataLoss`
        where the guard is missing or damaged, `Unavailable`.
        """
        with self._locked():
            try:
                if not self._count.follows(self.path):
                    snapshot = self.read()
                    if snapshot is None:
                        raise DataLoss(f"the guard {self.path} is missing; {REPAIR}")
                    # Write a new file: after an error it is unknown which part of the old one is on the disk.
                    self._write(replace(snapshot, answered=max(answered, snapshot.answered)))
                    self._settle()
                    self._count.follow(self.path)
                self._count.put(answered)
            except OSError as error:
                raise Unavailable(f"the guard {self.path} cannot be written: {error.strerror}") from None
            reached(CrashPoint.GUARD_ADVANCED)

    def set(self, store: Store) -> None:
        """Set the guard to the journal's head without a check; only after every loss was written off."""
        with self._locked(), store.read() as connection:
            self._move(connection)

    def read(self) -> Snapshot | None:
        """Return the file's snapshot; None where there is no file. Raises `DataLoss` for one that is damaged."""
        try:
            document, counted = split(self.path.read_bytes())
            version = self._version(document)
            if version != VERSION:
                raise DataLoss(f"the guard {self.path} has version {version}, this server knows {VERSION}")
            snapshot = SNAPSHOT.from_bytes(document, "it")
            return replace(snapshot, answered=max(snapshot.answered, counted))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"the guard {self.path} cannot be read: {error.strerror}") from None
        except VerificationFailed as error:
            raise DataLoss(f"the guard {self.path} is damaged: {error.message}; {REPAIR}") from None

    def _version(self, document: bytes) -> int:
        """Return a document's version; this server's version where the document, damaged, does not give one."""
        fields = parse_canonical_json(document, "it")
        version = fields.get("version") if isinstance(fields, dict) else None
        return version if type(version) is int else VERSION

    def _move(self, connection: Connection) -> None:
        # The head is read first: amounts that are newer than the head can only count more.
        head, kept, log = journal.head(connection), count_requests(connection), tree_heads.newest(connection)
        snapshot, now = self.read(), (head.sequence, head.digest, kept, log, count_answers(connection))
        if (
            snapshot is None
            or (snapshot.sequence, snapshot.digest, snapshot.requests, snapshot.log, snapshot.answered) != now
        ):
            committed, orders = all_known(connection)
            self._see(connection, snapshot, head)
            shared = shared_accounts(connection)
            self._write(Snapshot(head.sequence, head.digest, committed, orders, *now[2:], shared))
        self._settle()

    def _see(self, connection: Connection, snapshot: Snapshot | None, head: journal.Head) -> None:
        """Keep the digests of the entries up to `head`; rewrite all where the kept ones are of another chain."""
        try:
            after = 0
            if snapshot is not None and self.seen.at(snapshot.sequence) == snapshot.digest:
                after = (
                    snapshot.sequence if journal.digest_at(connection, snapshot.sequence) == snapshot.digest else 0
                )
            if after == head.sequence:
                return
            self.seen.extend(after, journal.digests(connection, after, head.sequence))
        except OSError as error:
            raise Unavailable(f"the guard's {self.seen.path} cannot be written: {error.strerror}") from None
        reached(CrashPoint.GUARD_DIGESTS_KEPT)

    def _write(self, snapshot: Snapshot) -> None:
        prepared = self.path.with_name(f"{self.path.name}.new")
        try:
            descriptor = os.open(prepared, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(with_places(SNAPSHOT.to_bytes(snapshot)))
                file.flush()
                os.fsync(file.fileno())
            reached(CrashPoint.GUARD_PREPARED)
            prepared.replace(self.path)
        except OSError as error:
            raise Unavailable(f"the guard {self.path} cannot be written: {error.strerror}") from None

    def _settle(self) -> None:
        """Sync even if nothing was written: the content just read may stem from a write that was never synced."""
        try:
            sync_file(self.path)
            sync_directory(self.path.parent)
        except OSError as error:
            raise Unavailable(f"the guard {self.path} cannot be synced: {error.strerror}") from None
        reached(CrashPoint.GUARD_ADVANCED)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the guard's lock over all threads and processes; the operating system frees it after a crash.

        Raises `Unavailable` after `LOCK_SECONDS`: an operation that waits for the lock holds up all others.
        """
        try:
            descriptor = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise Unavailable(f"the guard {self.path} cannot be locked: {error.strerror}") from None
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise Unavailable(
                        f"the guard {self.path} has been locked by another for {LOCK_SECONDS:g} seconds"
                    ) from None
                time.sleep(LOCK_PAUSE_SECONDS)
