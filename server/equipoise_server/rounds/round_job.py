"""Reads the job of a round's worker from the store. The live path and recovery start a round from the same job."""

from __future__ import annotations

from sqlalchemy import Connection, select

from equipoise.model.rounds import RoundState
from equipoise_server.computation.round import Job
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.session_sealing import read_answer_chains
from equipoise_server.rounds.store.committed_content import check_workloads
from equipoise_server.rounds.store.dataset_records import registered_digest
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.measurements import run_setting
from equipoise_server.rounds.store.opened_terms import check_opened
from equipoise_server.rounds.store.results import completed
from equipoise_server.rounds.store.rounds import read_audit_nonce, read_round, read_workloads
from equipoise_server.storage.tables.round import rounds
from equipoise_server.transparency.seed_encryption import SealedSeed, open_seed


def read_job(connection: Connection, context: Context, round_id: str) -> Job | None:
    """Return the job of a round that is running and not yet computed, else None: only such rounds may read data.

    Raises:
        DataLoss: the seed does not open, or the stored terms or workloads are not those on record.
        InvalidArgument: the table is gone; the field is `source`.
    """
    record = read_round(connection, round_id)
    if record.state is not RoundState.RUNNING or completed(connection, round_id) is not None:
        return None
    check_opened(connection, record)
    dataset = dataset_of(connection, record)
    check_workloads(connection, round_id)
    return Job(
        round_id=round_id,
        source=context.tables.table(dataset),
        schema=dataset.schema.to_json(),
        setting=run_setting(connection, record, dataset),
        plan=record.plan,
        workloads=read_workloads(connection, round_id),
        seed=read_seed(connection, record, context.storage_key),
        audit_nonce=read_audit_nonce(connection, round_id),
        data_digest=registered_digest(connection, dataset.name, dataset.version),
        answer_chains=read_answer_chains(connection, context.deployment, round_id),
    )


def read_seed(connection: Connection, record: RoundRecord, storage_key: bytes) -> bytes:
    """Return the 32-byte seed that a round is committed to. Raises `DataLoss` if it does not open."""
    sealed = connection.execute(select(rounds.c.sealed_seed).where(rounds.c.id == record.id)).scalar_one()
    return open_seed(record.id, SealedSeed(record.seed_commitment, sealed), storage_key)


def check_seeds(connection: Connection, storage_key: bytes) -> None:
    """Raise `DataLoss` unless every seed that the store keeps opens with this key: another key can run no round."""
    query = select(rounds.c.id, rounds.c.seed_commitment, rounds.c.sealed_seed).where(rounds.c.sealed_seed != b"")
    for row in connection.execute(query):
        open_seed(row.id, SealedSeed(row.seed_commitment, row.sealed_seed), storage_key)
