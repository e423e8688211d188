"""What an auditor does: read every record; add to a round's randomness, and be recorded as reading a seed."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from equipoise.clients.connection import Connection, ServerClient
from equipoise.model.accounts import JournalEntry
from equipoise.model.log import RecordOpening, SealedSeed
from equipoise.model.rounds import RoundDetail
from equipoise.v1 import auditor_pb2, auditor_pb2_grpc
from equipoise.wire.accounts import journal_entry_from_message
from equipoise.wire.log import record_opening_from_message, sealed_seed_from_message
from equipoise.wire.rounds import round_detail_from_message

MAX_PAGE = 1000


class Auditor(ServerClient):
    """An auditor's client of a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._service = auditor_pb2_grpc.AuditorServiceStub(connection.channel)

    def rounds(self, after: str = "", page: int = MAX_PAGE) -> Iterator[RoundDetail]:
        """Yields all rounds, newest first.

        Args:
            after: only those that were opened before this round; empty: all.
            page: how many are asked for at a time.
        """
        for found in self._connection.pages(
            self._service.ListAuditRounds,
            lambda token: auditor_pb2.ListAuditRoundsRequest(page_size=page, page_token=token),
            after,
        ):
            yield from map(round_detail_from_message, found.details)

    def journal(self) -> Iterator[JournalEntry]:
        """Yields the budget journal from its first entry on."""
        for page in self._connection.pages(
            self._service.ListJournal,
            lambda token: auditor_pb2.ListJournalRequest(page_size=MAX_PAGE, page_token=token),
        ):
            yield from map(journal_entry_from_message, page.entries)

    def checkpoint(self) -> bytes:
        """Returns the log's newest signed checkpoint, a note. Raises `NotFound` before the first."""
        request = auditor_pb2.GetCheckpointRequest()
        return self._connection.call(self._service.GetCheckpoint, request).checkpoint

    def leaves(self) -> Iterator[bytes]:
        """Yields the leaves of the log from the beginning, as far as it is signed (`records.record.read_leaf`)."""
        for page in self._connection.pages(
            self._service.ListLogEntries,
            lambda token: auditor_pb2.ListLogEntriesRequest(page_size=MAX_PAGE, page_token=token),
        ):
            yield from page.entries

    def records(self) -> Iterator[RecordOpening]:
        """Yields the opened records of the leaves, in the order of the log."""
        for page in self._connection.pages(
            self._service.ListRecords,
            lambda token: auditor_pb2.ListRecordsRequest(page_size=MAX_PAGE, page_token=token),
        ):
            yield from map(record_opening_from_message, page.records)

    def inclusion_proof(self, leaf_index: int, tree_size: int) -> list[bytes]:
        """Returns the hashes for `merkle.verify_inclusion`. Raises `OutOfRange`.

        Args:
            leaf_index: the leaf, counted from 0.
            tree_size: how many leaves the tree has.
        """
        request = auditor_pb2.GetInclusionProofRequest(leaf_index=leaf_index, tree_size=tree_size)
        return list(self._connection.call(self._service.GetInclusionProof, request).hashes)

    def consistency_proof(self, old_size: int, new_size: int) -> list[bytes]:
        """Returns the hashes for `merkle.verify_consistency`, for two sizes in leaves. Raises `OutOfRange`.

        Args:
            old_size: how many leaves the old tree has.
            new_size: how many the new one has.
        """
        request = auditor_pb2.GetConsistencyProofRequest(old_size=old_size, new_size=new_size)
        return list(self._connection.call(self._service.GetConsistencyProof, request).hashes)

    def set_nonce(self, round_id: str, nonce: bytes, request_id: str | None = None) -> None:
        """Adds 32 random bytes of the auditor to a round's randomness.

        Args:
            round_id: the round.
            nonce: 32 bytes.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            WrongState: the round is sealed.
        """
        request = auditor_pb2.SetAuditNonceRequest(
            round_id=round_id, nonce=nonce, request_id=request_id or secrets.token_hex(16)
        )
        self._connection.call(self._service.SetAuditNonce, request)

    def sealed_seeds(self, round_id: str) -> list[SealedSeed]:
        """Returns a round's seed, encrypted to each auditor's key that was in force.

        That it was read enters the log first.
        """
        request = auditor_pb2.GetSealedSeedRequest(round_id=round_id)
        seeds = self._connection.call(self._service.GetSealedSeed, request).seeds
        return [sealed_seed_from_message(seed) for seed in seeds]
