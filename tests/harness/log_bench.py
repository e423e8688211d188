"""A store with a log, its guard and its keys, for tests of the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from equipoise.records.merkle import leaf_hash
from equipoise.records.record import Audience, Kind, Record
from equipoise.records.signed_notes import Checkpoint, open_checkpoint
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.storage.store import Store
from equipoise_server.transparency import keys, log
from equipoise_server.transparency.record_writer import record
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.transparency.signing import Signer
from harness.record_items import forge_item
from harness.stores import open_empty

ORIGIN = "equipoise/test"
NOW = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass
class LogBench:
    """The log of one store; `directory` holds guard and keys."""

    directory: Path
    url: str
    now: datetime = NOW
    store: Store = field(init=False)
    signer: Signer = field(init=False)

    def __post_init__(self) -> None:
        self.signer = Signer(self.directory, ORIGIN)
        self.open()

    @property
    def guard(self) -> Guard:
        """Beside the keys."""
        return Guard(self.directory / "guard")

    @property
    def sequencer(self) -> Sequencer:
        """As a server has it."""
        return Sequencer(self.store, self.guard, self.signer)

    def open(self) -> None:
        """Open the store, which may be another one by now."""
        self.store = open_empty(self.url)

    def start(self) -> None:
        """Begin the log with a key, which is not sequenced yet, as a deployment that is made new."""
        first = self.signer.make_key(self.now)
        with self.store.write() as connection:
            keys.start_log(connection, [first], self.now)
        self.guard.set(self.store)

    def record(self, *names: str, after: float = 0, **about: str) -> Record:
        """A record of some items in a transaction of its own, to be shown after some seconds."""
        items = [forge_item(name, Audience.AUDITOR, {}) for name in names]
        later = self.now + timedelta(seconds=after)
        with self.store.write() as connection:
            return record(
                connection,
                Kind.DATASET_REGISTERED,
                items,
                now=self.now,
                publish_time=later if after else None,
                **about,
            )

    def sequence(self, seconds: float = 0) -> None:
        """What the schedule does, after some seconds."""
        self.now += timedelta(seconds=seconds)
        self.sequencer.sequence(self.now)

    def checkpoint(self) -> Checkpoint:
        """The newest signed checkpoint, verified by the keys in force."""
        with self.store.read() as connection:
            note = log.checkpoint(connection)
            assert note is not None
            return open_checkpoint(note, self.signer.verifier_keys(connection))

    def leaves(self) -> list[bytes]:
        """All that is shown."""
        with self.store.read() as connection:
            return [entry.leaf for entry in log.entries(connection, 0, 1_000_000)]

    def hashes(self) -> list[bytes]:
        """Of the leaves."""
        return [leaf_hash(leaf) for leaf in self.leaves()]


@contextmanager
def log_bench(directory: Path, url: str) -> Iterator[LogBench]:
    """A bench whose store is closed at the end."""
    bench = LogBench(directory, url)
    yield bench
    bench.store.close()
