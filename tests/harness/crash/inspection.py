"""The check, after each death, that the store keeps every word its clients were told."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from harness.crash.promises import Promises, stream_digest
from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost
from equipoise.model.rounds import RoundState
from equipoise.model.rounds import RoundState as Shown
from equipoise.profile.profile import SEED_KEY
from equipoise.records.sealed_seeds import open_sealed
from equipoise.wire.results import chunk_from_bytes, results_to_chunks
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.computation.round import Job, compute_round
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.source import source_at
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_accounts
from equipoise_server.ledger.caps import Composition, fits
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.session_sealing import read_answer_chains
from equipoise_server.rounds.store.dataset_records import registered_digest
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.rounds import read_audit_nonce, read_workloads, round_records
from equipoise_server.rounds.terms.checks import charges_of, setting_of
from equipoise_server.storage.tables.ledger import charges
from equipoise_server.storage.tables.round import result_chunks, rounds, submissions, synopses
from equipoise_server.storage.tables.session import asked
from equipoise_server.storage.tables.transparency import sealed_seeds

ORDER = [state.value for state in RoundState]


@dataclass
class Inspection:
    """Of the store of one state directory, time after time; `directory` is for a copy."""

    state: Path
    directory: Path
    entries: int = 0
    digest: str = ""
    delivered: dict[str, str] = field(default_factory=dict)  # by round, digests of all stored bytes

    def check(self, promises: Promises) -> None:
        """Everything that was told holds, and everything that was found before. No server may be alive."""
        told = promises.as_of_now()
        with self._copy() as (deployment, connection):
            found = verify(deployment.state)
            if self.entries:
                kept = journal.digest_at(connection, self.entries)
                assert kept is not None
                assert kept.hex() == self.digest
            self.entries, self.digest = found["entries"], found["digest"]
            query = select(rounds).order_by(rounds.c.position)
            rows = list(connection.execute(query))
            records = {record.id: record for record in round_records(connection, query)}
            assert len(records) <= told.opens
            for round_id, states in told.states.items():
                self._check_state(records[round_id], states, round_id in told.may_abort)
            _check_facts(connection, told, records)
            _check_answers(connection, told)
            _check_accounts(connection, told, records)
            for row in rows:
                if row.state == RoundState.RELEASED:
                    self._check_delivered(connection, row, told)

    def compare(self) -> int:
        """Every released round is what its computation gives undisturbed; how many there are."""
        with self._copy() as (deployment, connection):
            released = rounds.c.state == RoundState.RELEASED.value
            query = select(rounds).where(released).order_by(rounds.c.position)
            rows = list(connection.execute(query))
            for row, record in zip(rows, round_records(connection, query), strict=True):
                outcome = compute_round(_job(deployment, connection, row, record), lambda *_: None)
                expected = {
                    name: list(results_to_chunks(row.id, answers)) for name, answers in outcome.answers.items()
                }
                assert _chunks(connection, row.run_id) == expected
                kept = connection.execute(select(synopses.c.cells).where(synopses.c.run_id == row.run_id))
                assert kept.scalar_one() == outcome.synopsis.to_bytes()
        return len(rows)

    def _check_state(self, record: RoundRecord, told: set[Shown], may_abort: bool) -> None:
        """A round never goes back, and ends in one way."""
        if record.state is RoundState.ABORTED:
            assert may_abort
            assert Shown.RELEASED not in told
        else:
            assert ORDER.index(record.state.value) >= max(ORDER.index(state.value) for state in told)

    def _check_delivered(self, connection: Connection, row: Row[tuple[object, ...]], told: Promises) -> None:
        """What is delivered is what was delivered before, to the byte."""
        chunks = _chunks(connection, row.run_id)
        cells = connection.execute(select(synopses.c.cells).where(synopses.c.run_id == row.run_id)).scalar_one()
        digest = hashlib.sha256(repr((chunks, cells)).encode()).hexdigest()
        assert self.delivered.setdefault(row.id, digest) == digest
        for (round_id, analyst), read in told.streams.items():
            if round_id == row.id:
                assert stream_digest(map(chunk_from_bytes, chunks[analyst])) == read

    @contextmanager
    def _copy(self) -> Iterator[tuple[Deployment, Connection]]:
        """The store is looked at in a copy (PostgreSQL's is where it is): a server must recover it by itself."""
        copy = self.directory / "copy"
        shutil.copytree(self.state, copy)
        try:
            deployment = open_deployment(copy, datetime.now(UTC))
            store = deployment.open_store()
            try:
                with store.read() as connection:
                    yield deployment, connection
            finally:
                store.close()
        finally:
            shutil.rmtree(copy)


def _check_facts(connection: Connection, told: Promises, records: dict[str, RoundRecord]) -> None:
    """No accepted workload is lost or replaced by another one, and no cap. Sessions make workloads themselves."""
    found: dict[tuple[str, ...], object] = {
        ("workload", row.round_id, row.analyst): row.digest
        for row in connection.execute(select(submissions))
        if records[row.round_id].terms.session is None
    }
    assert set(found) <= set(told.facts)
    found |= {("cap", account.name): account.cap.epsilon for account in all_accounts(connection)}
    for fact, values in told.facts.items():
        assert found.get(fact) in values, fact


def _check_answers(connection: Connection, told: Promises) -> None:
    """Every answer that was given in a session is stored, with the receipt that came with it."""
    columns = (asked.c.round_id, asked.c.analyst, asked.c.sequence, asked.c.envelope)
    kept = {(row.round_id, row.analyst, row.sequence): row.envelope for row in connection.execute(select(*columns))}
    assert {key: kept.get(key) for key in told.receipts} == told.receipts


def _check_accounts(connection: Connection, told: Promises, records: dict[str, RoundRecord]) -> None:
    """Every charge that nothing can give back is there and counts, and no account is above its cap."""
    kept = {
        (row.round_id, row.account): (Cost(row.rho, row.epsilon, row.delta, row.divergence), row.state)
        for row in connection.execute(select(charges))
    }
    accounts = {account.name: account for account in all_accounts(connection)}
    owed: dict[str, list[Cost]] = {}
    for round_id in told.charged():
        record, released = records[round_id], Shown.RELEASED in told.states[round_id]
        for charge in charges_of(record.account, record.terms, record.plan):
            cost, state = kept[round_id, charge.account]
            assert cost == charge.counted(accounts[charge.account].cap.order)
            assert state in (("spent",) if released else ("spent", "reserved"))
            owed.setdefault(charge.account, []).append(cost)
    for name, account in accounts.items():
        costs, committed = owed.get(name, []), account.committed
        if account.composition is Composition.SEQUENTIAL:
            total = sum(costs, Cost())
            assert total.divergence <= committed.divergence
            assert total.delta <= committed.delta
        else:
            delta = account.cap.delta
            assert all(epsilon_for(cost, delta) <= epsilon_for(committed, delta) for cost in costs)
        assert fits(committed, account.cap, account.limit)


def _chunks(connection: Connection, run_id: str) -> dict[str, list[bytes]]:
    """Every stored message of a run, by analyst."""
    chunks: dict[str, list[bytes]] = {}
    query = select(result_chunks).where(result_chunks.c.run_id == run_id)
    for row in connection.execute(query.order_by(result_chunks.c.analyst, result_chunks.c.sequence)):
        chunks.setdefault(row.analyst, []).append(row.chunk)
    return chunks


def _job(deployment: Deployment, connection: Connection, row: Row[tuple[object, ...]], record: RoundRecord) -> Job:
    """The job of a released round, which a server would not read again."""
    dataset = dataset_of(connection, record)
    private = load_pem_private_key((deployment.state / "profiles" / "auditor" / SEED_KEY).read_bytes(), None)
    assert isinstance(private, X25519PrivateKey)
    sealed = connection.execute(select(sealed_seeds.c.sealed).where(sealed_seeds.c.round_id == row.id)).scalar_one()
    assert row.sealed_seed == b""
    return Job(
        round_id=row.id,
        source=source_at(deployment.state / "data" / dataset.source),
        schema=dataset.schema.to_json(),
        setting=setting_of(record.terms, record.records, record.universe_size, dataset.schema),
        plan=record.plan,
        workloads=read_workloads(connection, row.id),
        seed=open_sealed(private, row.id, sealed, record.seed_commitment),
        audit_nonce=read_audit_nonce(connection, row.id),
        data_digest=registered_digest(connection, dataset.name, dataset.version),
        answer_chains=read_answer_chains(connection, deployment.config.deployment, row.id),
    )
