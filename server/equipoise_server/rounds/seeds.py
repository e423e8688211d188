"""The seeds of rounds: kept for auditors, and destroyed when the audit window is over.

When a round is opened, its seed is committed to and sealed to the auditors' keys in force
(`transparency.seed_encryption`). An auditor may add randomness of its own until the round is sealed. When the round
has ended, the server deletes its own copy. Auditors may read theirs until the audit window is over, and every
reading is put on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise.records.sealed_seeds import NONCE_BYTES
from equipoise_server.rounds.state_machine import closed, streams_open
from equipoise_server.rounds.store.rounds import has_answered, read_audit_nonce, read_round
from equipoise_server.rounds.store.step_records import seed_destroyed, seed_read
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations, committing, no_answer
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.transparency import records, sealed_seeds
from equipoise_server.transparency.sequencing import Sequencer

ENDINGS = (Kind.ROUND_RELEASED.value, Kind.ROUND_ABORTED.value)


@dataclass(frozen=True)
class Seeds:
    """The auditors' operations on the seeds of one store."""

    operations: Operations
    sequencer: Sequencer

    def set_nonce(self, round_id: str, nonce: bytes, request_id: str, caller: str = "") -> None:
        """Add an auditor's random bytes to an open round's randomness. A round takes one nonce from all auditors.

        A session takes a nonce only until its first answer, which fixes its randomness.

        Args:
            round_id: the round's id.
            nonce: 32 random bytes.
            request_id: makes the call safe to repeat.
            caller: the auditor's name.

        Raises:
            NotFound: there is no such round.
            InvalidArgument: the nonce has another length.
            WrongState: the round is sealed or closed, or the session has answered.
            AlreadyExists: the round has another nonce.
        """
        if len(nonce) != NONCE_BYTES:
            raise InvalidArgument("nonce", f"must have {NONCE_BYTES} random bytes")

        def work(connection: Connection, now: datetime) -> str:
            record = read_round(connection, round_id, locked=True)
            known = read_audit_nonce(connection, round_id)
            if known is not None and known != nonce:
                raise AlreadyExists("the round has an auditor's nonce already")
            if known is None and record.terms.session is not None and has_answered(connection, round_id):
                raise WrongState("the session takes an auditor's nonce only until its first answer")
            if known is None:
                if record.state is not RoundState.OPEN or closed(record.terms.close_time, now):
                    raise WrongState("the round takes an auditor's nonce only until it is sealed")
                changed = rounds.update().where(rounds.c.id == round_id)
                connection.execute(changed.values(audit_nonce=nonce))
            return ""

        request = make_request(f"auditor/{caller}", request_id, "set_audit_nonce", round_id, nonce)
        self.operations.carry_out(request, work, no_answer)

    def read(self, round_id: str, auditor: str) -> Mapping[str, bytes]:
        """Return an ended round's seed as it was sealed to each auditor's key, by the key's id.

        The log and the guard record the reading before the seed is returned.

        Raises:
            NotFound: there is no such round.
            WrongState: the round has not ended, or its seed was destroyed or sealed to no auditor. An auditor who
                knew the seed of an open round could choose a nonce by it.
            Unavailable: the clock is not trusted now.
        """
        with committing(self.operations.store, "seed read") as connection:
            record, now = read_round(connection, round_id), self.operations.time(connection, "")
            ended = record.state is RoundState.ABORTED or streams_open(record.state, record.release_time, now)
            if not ended:
                raise WrongState("the round has not ended yet")
            query = select(sealed_seeds).where(sealed_seeds.c.round_id == round_id).order_by(sealed_seeds.c.key_id)
            sealed = {row.key_id: row.sealed for row in connection.execute(query)}
            if not sealed:
                raise WrongState("the round's seed was destroyed, or there was no auditor's key when it was opened")
            seed_read(connection, round_id, auditor, now)
        self.sequencer.sequence(now)
        return sealed

    def destroy(self, round_id: str) -> None:
        """Remove the sealed copies of a round's seed and put the removal on record, in one transaction.

        Raises `Unavailable` while the clock is not trusted.
        """
        with self.operations.store.write() as connection:
            remove_seeds(connection, round_id, self.operations.time(connection, ""))


def remove_seeds(connection: Connection, round_id: str, now: datetime) -> None:
    """Remove the sealed copies of a round's seed, and put the removal on record; nothing where none are left."""
    of_round = sealed_seeds.c.round_id == round_id
    # Another server may have removed them already.
    if connection.execute(sealed_seeds.delete().where(of_round)).rowcount:
        seed_destroyed(connection, round_id, now)


def kept_too_long(connection: Connection, now: datetime, window: timedelta) -> list[str]:
    """Return the rounds whose audit window is over and whose seeds are still stored; none for a window of 0."""
    if not window:
        return []
    ended = records.c.kind.in_(ENDINGS) & (records.c.publish_time <= to_microseconds(now - window))
    query = select(records.c.round_id).where(ended)
    return list(connection.execute(query.where(records.c.round_id.in_(select(sealed_seeds.c.round_id)))).scalars())
