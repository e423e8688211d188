"""Custodians who lie: each function makes the server in this process tell one lie, with the custodian's own keys.

They are called in a server's process before it serves (`harness.lying_server`). Whatever a function returns is
where the server takes its seeds from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, select

from equipoise.records import envelopes
from equipoise.records.identity_items import IdentityEvent, IdentityItem
from equipoise.records.promises import Promise
from equipoise.records.signed_notes import SigningKey
from equipoise_server.clock import next_grid_point
from equipoise_server.identity import registry
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.rounds import lifecycle, opening, round_job, seeds, submissions
from equipoise_server.rounds.store import step_records
from equipoise_server.sessions import answer_journal, open_session, session_loops
from equipoise_server.storage.tables.identity import certificates
from equipoise_server.transparency import identity_records
from equipoise_server.transparency.signing import Signer

Seeds = Callable[[], bytes] | None


def nothing() -> Seeds:
    """An honest server."""
    return None


def _exchange(owner: object, name: str, lying: object) -> None:
    setattr(owner, name, lying)


def _promising(changed: Callable[[Promise], Promise]) -> None:
    for module in (submissions, answer_journal):
        _exchange(module, "recorded_promise", lambda *told: changed(step_records.recorded_promise(*told)))


def a_smaller_half_width_than_on_record() -> Seeds:
    """Receipts promise half the largest half-width that the round's opening has put on record."""
    _promising(lambda promise: replace(promise, max_half_width=promise.max_half_width / 2))
    return None


def another_record_than_on_record() -> Seeds:
    """Receipts promise the same terms, by another record of the round's opening."""
    _promising(lambda promise: replace(promise, opened_root=bytes(32)))
    return None


def other_terms_than_shown() -> Seeds:
    """Receipts are signed by the right key, over another beta than analysts were shown."""
    _promising(lambda promise: replace(promise, beta=promise.beta / 2))
    return None


def receipts_by_an_unknown_key() -> Seeds:
    """Receipts have the form and the name of the custodian's, but not its signature."""
    stranger = Ed25519PrivateKey.generate()

    def receipt(signer: Signer, _: Any, payload_type: str, payload: bytes) -> bytes:
        return envelopes.sign(payload_type, payload, [SigningKey(signer.origin, stranger)])

    _exchange(Signer, "receipt", receipt)
    return None


def receipts_in_another_name() -> Seeds:
    """Receipts are the custodian's, over what was asked, and for an analyst who has not asked it."""
    for module, kind in ((submissions, "ReceiptPayload"), (answer_journal, "SessionReceiptPayload")):
        honest = getattr(module, kind)
        _exchange(module, kind, lambda *told, honest=honest: replace(honest(*told), analyst="bob"))
    return None


def one_seed() -> Seeds:
    """All rounds have one seed."""
    return lambda: bytes(range(32))


def one_seed_under_other_fingerprints() -> Seeds:
    """All rounds have one seed, and what is recorded of them says that they have not."""
    _exchange(opening, "fingerprint", lambda seed: os.urandom(len(seed)))
    return one_seed()


def a_late_release() -> Seeds:
    """Results are held back for another two points of the round's grid."""

    def later(moment: datetime, grid_seconds: int) -> datetime:
        return next_grid_point(moment, grid_seconds) + timedelta(seconds=2 * grid_seconds)

    _exchange(lifecycle, "next_grid_point", later)
    return None


def readings_without_a_record() -> Seeds:
    """Sealed seeds are given out, and nothing says so."""
    _exchange(seeds, "seed_read", lambda *_: None)
    return None


def a_nonce_left_out() -> Seeds:
    """An auditor's nonce is accepted and forgotten."""
    _exchange(seeds.Seeds, "set_nonce", lambda *_: None)
    return None


def a_nonce_changed() -> Seeds:
    """Another nonce is taken than the auditor gave."""
    honest = seeds.Seeds.set_nonce

    def changed(own: seeds.Seeds, round_id: str, nonce: bytes, *told: str) -> None:
        honest(own, round_id, sha256(nonce).digest(), *told)

    _exchange(seeds.Seeds, "set_nonce", changed)
    return None


def a_nonce_not_used() -> Seeds:
    """An auditor's nonce is put on record, but is no part of a session's randomness."""
    for module in (open_session, answer_journal, round_job):
        _exchange(module, "read_audit_nonce", lambda *_: None)
    # Else each worker that was started without it would be ended when that is noticed, half a second later.
    _exchange(session_loops, "_nonces", lambda _: {})
    return None


def admissions_without_a_record() -> Seeds:
    """Analysts are let in, and the log says nothing of it."""
    _exchange(identity_records, "identity_changed", lambda *_: None)
    return None


def a_revocation_that_is_not_kept() -> Seeds:
    """Whoever is revoked on record, two minutes ago, is let in all the same."""
    honest = identity_records.identity_changed

    def earlier(connection: Connection, item: IdentityItem, now: datetime) -> None:
        revoked = item.event is IdentityEvent.REVOKED
        honest(connection, replace(item, time=item.time - 120_000_000) if revoked else item, now)

    def kept(connection: Connection, name: str, _: datetime) -> list[Credential]:
        query = select(certificates.c.certificate).where(certificates.c.name == name)
        return [
            credential_of(x509.load_pem_x509_certificate(content))
            for content in connection.execute(query).scalars()
        ]

    _exchange(identity_records, "identity_changed", earlier)
    _exchange(registry, "_revoke_certificates", kept)
    return None
