"""Reads the stored parts of a released round as they are needed, because a round has many large messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Row, select

from equipoise.errors import WrongState
from equipoise.records.record import stream_start, stream_step
from equipoise_server.computation.streams import CHUNKS_IN_PART, StreamPart
from equipoise_server.ledger.accounts import account
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.replay.committed import Committed, read_committed
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.measurements import run_setting
from equipoise_server.rounds.store.results import read_measured, read_synopsis
from equipoise_server.rounds.store.rounds import read_audit_nonce, read_round, read_workloads
from equipoise_server.storage.store import ReadOnlyStore
from equipoise_server.storage.tables.round import result_chunks, rounds, submissions
from equipoise_server.storage.tables.session import asked


@dataclass
class StoredRound:
    """A stored round. Reading a part raises the store's errors, and `NotFound` if there is no such round."""

    store: ReadOnlyStore
    id: str

    @cached_property
    def round(self) -> RoundRecord:
        """The stored round."""
        with self.store.read() as connection:
            return read_round(connection, self.id)

    @cached_property
    def committed(self) -> Committed:
        """The records of the round."""
        with self.store.read() as connection:
            return read_committed(connection, self.round)

    @cached_property
    def dataset(self) -> DatasetRecord:
        """The stored version of the dataset that the round is about."""
        with self.store.read() as connection:
            return dataset_of(connection, self.round)

    @cached_property
    def setting(self) -> PublicParameters:
        """The public parameters of the round's plan, with what a measurement told it."""
        with self.store.read() as connection:
            return run_setting(connection, self.round, self.dataset)

    @cached_property
    def nonce(self) -> bytes | None:
        """The auditor's part of the randomness; None without one."""
        with self.store.read() as connection:
            return read_audit_nonce(connection, self.id)

    @cached_property
    def workloads(self) -> Mapping[str, bytes]:
        """The submitted workloads, by analyst, in the order of the shares."""
        with self.store.read() as connection:
            return read_workloads(connection, self.id)

    @cached_property
    def run_id(self) -> str:
        """The run whose messages were released. Raises `WrongState` where they are no longer kept."""
        with self.store.read() as connection:
            query = select(rounds.c.run_id).where(rounds.c.id == self.id)
            kept: str | None = connection.execute(query).scalar_one()
        if kept is None:
            raise WrongState("the round's results are no longer kept, so there is nothing to compare with")
        return kept

    @cached_property
    def salts(self) -> Mapping[str, bytes | None]:
        """The salts under which the workloads are committed to, by analyst."""
        with self.store.read() as connection:
            query = select(submissions.c.analyst, submissions.c.salt).where(submissions.c.round_id == self.id)
            return {row.analyst: row.salt for row in connection.execute(query)}

    @cached_property
    def receipts(self) -> Mapping[str, bytes | None]:
        """The receipt of each workload, by analyst."""
        with self.store.read() as connection:
            query = select(submissions.c.analyst, submissions.c.receipt).where(submissions.c.round_id == self.id)
            return {row.analyst: row.receipt for row in connection.execute(query)}

    @cached_property
    def live_answers(self) -> Mapping[str, list[Row[Any]]]:
        """The answers that a session gave while it was open, by analyst, in order; empty for any other round."""
        query = select(asked).where(asked.c.round_id == self.id).order_by(asked.c.analyst, asked.c.sequence)
        rows_of: dict[str, list[Row[Any]]] = {}
        with self.store.read() as connection:
            for row in connection.execute(query):
                rows_of.setdefault(row.analyst, []).append(row)
        return rows_of

    def order_of(self, name: str) -> float | None:
        """Return the Renyi order at which a budget account counts; None where only its worst round does."""
        with self.store.read() as connection:
            return account(connection, name).cap.order

    def synopsis(self) -> bytes:
        """Return the cells of the synopsis's records, as they are stored."""
        with self.store.read() as connection:
            return read_synopsis(connection, self.id)

    def measured(self) -> bytes:
        """Return the numbers of a measurement, as they are stored; empty of any other round."""
        with self.store.read() as connection:
            return read_measured(connection, self.id)

    def beside(self, part: StreamPart) -> list[tuple[bytes | None, bytes]]:
        """Return each message of a computed part together with the stored one, in the order (stored, computed)."""
        last = part.first_sequence + len(part.chunks) - 1
        with self.store.read() as connection:
            query = select(result_chunks.c.sequence, result_chunks.c.chunk).where(
                result_chunks.c.run_id == self.run_id,
                result_chunks.c.analyst == part.analyst,
                result_chunks.c.sequence.between(part.first_sequence, last),
            )
            stored = {row.sequence: row.chunk for row in connection.execute(query)}
        numbered = enumerate(part.chunks, start=part.first_sequence)
        return [(stored.get(sequence), chunk) for sequence, chunk in numbered]

    def messages(self, analyst: str) -> Iterator[bytes]:
        """Yield the messages of an analyst's stream as they are stored, in order."""
        query = (
            select(result_chunks.c.chunk)
            .where(result_chunks.c.run_id == self.run_id, result_chunks.c.analyst == analyst)
            .order_by(result_chunks.c.sequence)
        )
        with self.store.read() as connection:
            yield from connection.execution_options(yield_per=CHUNKS_IN_PART).execute(query).scalars()

    def stream(self, analyst: str) -> tuple[bytes, int]:
        """Return the digest of an analyst's stored stream, and the number of its messages."""
        digest, messages = stream_start(self.id), 0
        for chunk in self.messages(analyst):
            digest, messages = stream_step(digest, chunk), messages + 1
        return digest, messages
