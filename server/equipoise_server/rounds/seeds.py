"""The seeds of rounds: bound to what a round is, kept for auditors, and destroyed when their time is over.

At its opening a round's seed is committed to, and sealed to the auditors' keys in force (`custody`). An auditor may
add randomness of its own until the round is sealed. When the round has ended, the server forgets its own copy;
auditors may read theirs, which is put on record, until the time for audits is over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import Connection, select

from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import BUDGET, SHARE
from equipoise.records.record import Kind
from equipoise.records.sealed_seeds import NONCE_BYTES, SEED_BYTES
from equipoise_server.mechanisms.interface import Plan, PublicParameters
from equipoise_server.rounds.state_machine import closed, streams_open
from equipoise_server.rounds.store.rounds import PLAN, read_audit_nonce, read_round
from equipoise_server.rounds.store.step_records import seed_destroyed, seed_read
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations, committing, no_answer
from equipoise_server.storage.tables import records, rounds, sealed_seeds
from equipoise_server.transparency.sequencing import Sequencer

ENDINGS = (Kind.ROUND_RELEASED.value, Kind.ROUND_ABORTED.value)


def bound_seed(seed: bytes, nonce: bytes | None, digest: bytes, setting: PublicParameters, plan: Plan) -> bytes:
    """What the mechanism draws from, 32 bytes: the committed seed, under a nonce, for one table and plan.

    HKDF-SHA256 (RFC 5869) of the seed; salt: the nonce, or zeros; info: the data's `digest` and that of the public
    parameters. Assumption: HMAC-SHA256 is a pseudorandom function, also where its message is the secret (Krawczyk,
    Crypto 2010). Then, for a seed that is uniform and drawn without regard to the rest, the results for any nonces,
    tables and parameters cannot feasibly be told from uniform bytes drawn apart for each. So every guarantee of a
    mechanism is unchanged, and noise under one seed never cancels between two tables or two plans. Once seed, table
    and plan are committed to, nobody but the auditor has a choice left. The round's id, times and workloads have no
    part in it; `docs/decisions/0005-seed-binding.md` says why.
    """
    public = canonical_json({"plan": PLAN.encode(plan), "public_parameters": setting_fields(setting)})
    info = b"equipoise round v1\n" + digest + hashlib.sha256(public).digest()
    return HKDF(SHA256(), SEED_BYTES, salt=nonce or bytes(NONCE_BYTES), info=info).derive(seed)


def setting_fields(setting: PublicParameters) -> dict[str, Any]:
    """The public parameters of a round as they are bound to its seed, each under its own key."""
    return {
        "records": setting.records,
        "universe_size": setting.universe_size,
        "attributes": list(setting.attributes),
        "shares": [SHARE.encode(share) for share in setting.shares],
        "unit": setting.unit,
        "data_budget": BUDGET.encode(setting.data_budget),
        # There is no JSON of an infinite budget.
        "analyst_budget": BUDGET.encode(setting.analyst_budget) if setting.protects_analysts else None,
        "beta": float(setting.beta),
        "options": dict(setting.options),
    }


@dataclass(frozen=True)
class Seeds:
    """What auditors may do with the seeds of one store."""

    operations: Operations
    sequencer: Sequencer

    def set_nonce(self, round_id: str, nonce: bytes, request_id: str, caller: str = "") -> None:
        """Add 32 random bytes of an auditor's to an open round's randomness, once for all auditors.

        Raises `NotFound`, `InvalidArgument`, `WrongState` once it is sealed, `AlreadyExists` where it has others.
        """
        if len(nonce) != NONCE_BYTES:
            raise InvalidArgument("nonce", f"must have {NONCE_BYTES} random bytes")

        def work(connection: Connection, now: datetime) -> str:
            record = read_round(connection, round_id, locked=True)
            known = read_audit_nonce(connection, round_id)
            if known is not None and known != nonce:
                raise AlreadyExists("the round has an auditor's nonce already")
            if record.terms.session is not None:
                raise WrongState("a session answers from its opening on, so it takes no auditor's nonce")
            if known is None:
                if record.state is not RoundState.OPEN or closed(record.terms.close_time, now):
                    raise WrongState("the round takes an auditor's nonce only until it is sealed")
                changed = rounds.update().where(rounds.c.id == round_id)
                connection.execute(changed.values(audit_nonce=nonce))
            return ""

        request = make_request(f"auditor/{caller}", request_id, "set_audit_nonce", round_id, nonce)
        self.operations.carry_out(request, work, no_answer)

    def read(self, round_id: str, auditor: str) -> Mapping[str, bytes]:
        """An ended round's seed as it was sealed to each auditor's key, by the key's id.

        That it was read is in the log, and known to the guard, before anything is answered. Raises `NotFound`,
        `WrongState` before the round has ended: who knew a seed before could choose a nonce by it.
        """
        with committing(self.operations.store, "seed read") as connection:
            record, now = read_round(connection, round_id), self.operations.clock()
            ended = record.state is RoundState.ABORTED or streams_open(record.state, record.release_time, now)
            if not ended:
                raise WrongState("the round has not ended yet")
            query = select(sealed_seeds).where(sealed_seeds.c.round_id == round_id).order_by(sealed_seeds.c.key_id)
            found = {row.key_id: row.sealed for row in connection.execute(query)}
            if not found:
                raise WrongState("the round's seed was destroyed, or there was no auditor's key when it was opened")
            seed_read(connection, round_id, auditor, now)
        self.sequencer.sequence(self.operations.clock())
        return found

    def destroy(self, round_id: str) -> None:
        """Remove what auditors could read of a round's seed, and put that on record: both, or neither."""
        with self.operations.store.write() as connection:
            mine = sealed_seeds.c.round_id == round_id
            # Another server may have done it.
            if connection.execute(sealed_seeds.delete().where(mine)).rowcount:
                seed_destroyed(connection, round_id, self.operations.clock())


def kept_too_long(connection: Connection, now: datetime, window: timedelta) -> list[str]:
    """The rounds whose time for audits is over, and whose seeds are still there; none where the window is empty."""
    if not window:
        return []
    ended = records.c.kind.in_(ENDINGS) & (records.c.publish_time <= to_microseconds(now - window))
    query = select(records.c.round_id).where(ended)
    return list(connection.execute(query.where(records.c.round_id.in_(select(sealed_seeds.c.round_id)))).scalars())
