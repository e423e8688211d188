"""Exchanges the deployment's authority in place, for the holder of the state directory. Servers may run meanwhile.

    rotate_authority    a new key; the old one signs a link to it; everybody's certificates are signed anew
    retire_authority    what the old key signed is refused
    retire_at_end       the same, once the time has come that was stated at the exchange

In between both generations are honoured. A server that runs takes up the new files at its next handshake; open
connections stay. The steps of each are durable in an order in which a kill leaves a server that starts, and the
same command again completes what was cut off. The old private key is gone as soon as the new one is in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from sqlalchemy import Connection

from equipoise.errors import WrongState
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem, HeldCertificate
from equipoise_server.admin.identities import renew_server_certificate
from equipoise_server.admin.overlap import forget_end, state_end, stated_end
from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.succession import left_behind, reissue, revoke_predecessor
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store
from equipoise_server.transparency.identity_records import authority_changed, newest_authority_change


@dataclass(frozen=True)
class Exchanged:
    """How an exchange went: the present authority, and how many certificates it signed anew or lost."""

    authority: Authority
    certificates: int


def rotate_authority(state: Path, clock: Clock = system_clock, until: datetime | None = None) -> Exchanged:
    """Puts a new authority in the place of the present one, which is honoured until it is retired.

    Args:
        state: the state directory.
        clock: tells the time.
        until: when servers retire the old one by themselves, whoever is locked out; None: they do not.

    Raises:
        InvalidArgument: `until` has passed.
        WrongState: the authority was exchanged before, and the old one is not retired yet.
    """
    with _opened(state, clock) as (deployment, store):
        now, authority = clock(), deployment.authority
        with store.read() as connection:
            change = newest_authority_change(connection)
        digest = _digest(authority.certificate)
        if authority.predecessor is not None and change == (AuthorityEvent.ROTATED, digest):
            raise WrongState("the old authority is not retired yet; retire it first: equipoise-server ca retire")
        if authority.predecessor is not None and change == (AuthorityEvent.RETIRED, digest):
            raise WrongState("the retirement was cut off; complete it first: equipoise-server ca retire")
        if until is None:
            forget_end(state)
        else:
            state_end(state, until, now)
        if authority.predecessor is None:
            authority = authority.succeeded(now)
            authority.save(state / "ca")
        if not authority.issued(deployment.server_certificate):
            renew_server_certificate(state, (), clock)
        with committing(store, "reissue") as connection:
            issued = reissue(connection, authority, now)
            _record(connection, AuthorityEvent.ROTATED, authority, issued, now)
        return Exchanged(authority, len(issued))


def retire_authority(state: Path, *, lock_out: bool = False, clock: Clock = system_clock) -> Exchanged:
    """Ends the old authority: its certificates are revoked, and no connection begins with them.

    Args:
        state: the state directory.
        lock_out: whether to go on where people have not used their new certificates yet. They are locked out.
        clock: tells the time.

    Raises:
        WrongState: there is no old authority, its exchange was cut off, or somebody would be locked out.
    """
    with _opened(state, clock) as (deployment, store):
        now, authority = clock(), deployment.authority
        if authority.predecessor is None:
            raise WrongState("there is no old authority; make a new one first: equipoise-server ca rotate")
        digest = _digest(authority.certificate)
        with committing(store, "retire_authority") as connection:
            change = newest_authority_change(connection)
            if change not in ((AuthorityEvent.ROTATED, digest), (AuthorityEvent.RETIRED, digest)):
                raise WrongState("the exchange was cut off; complete it first: equipoise-server ca rotate")
            revoked: tuple[HeldCertificate, ...] = ()
            if change != (AuthorityEvent.RETIRED, digest):
                behind = left_behind(connection, authority, now)
                if behind and not lock_out:
                    raise WrongState(
                        f"not all have used a certificate of the new authority yet: {', '.join(behind)}; each "
                        "fetches its own with: equipoise authority. To lock them out, say --lock-out"
                    )
                revoked = revoke_predecessor(connection, authority, now)
                _record(connection, AuthorityEvent.RETIRED, authority, revoked, now)
        authority.without_predecessor().save(state / "ca")
        forget_end(state)
        return Exchanged(authority, len(revoked))


def retire_at_end(state: Path, clock: Clock = system_clock) -> Exchanged | None:
    """Ends the old authority if the time has come that was stated at the exchange; who has not moved is locked out.

    An exchange that was cut off keeps both until it is completed.

    Args:
        state: the state directory.
        clock: tells the time, or raises `Unavailable` where it is not trusted.

    Returns:
        How it went; None where no end was stated, or it has not come.

    Raises:
        WrongState: the exchange was cut off, or the old authority is retired just now.
        Unavailable: the clock is not trusted.
    """
    end = stated_end(state)
    if end is None or clock() < end:
        return None
    if open_deployment(state, clock()).authority.predecessor is None:
        forget_end(state)  # the retirement, or the exchange, was cut off after or before all else
        return None
    return retire_authority(state, lock_out=True, clock=clock)


def _record(
    connection: Connection,
    event: AuthorityEvent,
    authority: Authority,
    changed: tuple[HeldCertificate, ...],
    now: datetime,
) -> None:
    assert authority.predecessor is not None
    present, before = _digest(authority.certificate), _digest(authority.predecessor)
    authority_changed(connection, AuthorityItem(event, present, before, changed, to_microseconds(now)), now)


def _digest(certificate: x509.Certificate) -> bytes:
    return certificate.fingerprint(hashes.SHA256())


@contextmanager
def _opened(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Store]]:
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        # Refuse an older copy of the store before anything is changed.
        deployment.guard.advance(store)
        yield deployment, store
        deployment.guard.advance(store)
    finally:
        store.close()
