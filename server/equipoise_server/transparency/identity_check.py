"""Compares the store's identities, certificates and logins with what the log says of them, change by change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, VerificationFailed
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import (
    LOGIN_EVENTS,
    AuthorityEvent,
    AuthorityItem,
    IdentityEvent,
    IdentityItem,
)
from equipoise.records.record import Kind
from equipoise.records.record_layouts import read_item
from equipoise_server.identity.listing import stored_credential
from equipoise_server.identity.login_bounds import EXPIRED_KEPT
from equipoise_server.identity.login_tokens import Account
from equipoise_server.storage.tables.identity import certificates, identities, logins
from equipoise_server.storage.tables.transparency import record_items, records

_KINDS = {Kind.IDENTITY_CHANGED.value: IdentityItem, Kind.AUTHORITY_CHANGED.value: AuthorityItem}


@dataclass
class _Known:
    """An identity. `in_force`: of each certificate's digest, whether it is; an expired one counts as in force.

    `login`: the digest of the account that it may log in with, None where it has none. `by_login`: of each
    certificate that was had by logging in, when it expires; `logged_in`: the time of the last login, as it is told.
    """

    role: str
    deleted: bool = False
    login: bytes | None = None
    in_force: dict[bytes, bool] = field(default_factory=dict)
    by_login: dict[bytes, int] = field(default_factory=dict)
    logged_in: int = 0

    def forgotten(self, digest: bytes) -> bool:
        """Whether a later login may have removed a certificate: one of a login, not revoked, that had expired."""
        expired = self.by_login.get(digest, self.logged_in) + EXPIRED_KEPT // timedelta(microseconds=1)
        return self.in_force[digest] and expired <= self.logged_in


def check_identities(connection: Connection) -> int:
    """Return the number of certificates. Raises `DataLoss` naming who differs from what is on record, and how."""
    recorded, stored = _recorded(connection), _stored(connection)
    for name in sorted(recorded.keys() | stored.keys()):
        in_store, on_record = stored.get(name), recorded.get(name)
        if on_record is None or in_store is None:
            where = "in the store, and its admission is not on record" if on_record is None else "on record alone"
            raise DataLoss(f"identities: {name!a} is {where}")
        if (in_store.role, in_store.deleted) != (on_record.role, on_record.deleted):
            raise DataLoss(
                f"identities: {name!a} is {_standing(in_store)} in the store, and {_standing(on_record)} on record"
            )
        if in_store.login != on_record.login:
            raise DataLoss(
                f"logins: {name!a} may log in with {_account(in_store.login)} in the store, and with "
                f"{_account(on_record.login)} on record"
            )
        for digest in sorted(in_store.in_force.keys() | on_record.in_force.keys()):
            states = _state(in_store.in_force.get(digest)), _state(on_record.in_force.get(digest))
            if states[0] != states[1] and not (digest not in in_store.in_force and on_record.forgotten(digest)):
                raise DataLoss(
                    f"certificates: the one of {name!a} with the SHA-256 {digest.hex()[:16]}... is {states[0]} in "
                    f"the store, and {states[1]} on record"
                )
            if digest in in_store.in_force and (digest in in_store.by_login) != (digest in on_record.by_login):
                raise DataLoss(
                    f"certificates: by the store and by the log the one of {name!a} with the SHA-256 "
                    f"{digest.hex()[:16]}... was not had in the same way, by logging in or otherwise"
                )
    return sum(len(each.in_force) for each in stored.values())


def _recorded(connection: Connection) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    for item in _changes(connection):
        if isinstance(item, IdentityItem):
            entry = known.setdefault(item.name, _Known(item.role.value))
            issued = item.event in (IdentityEvent.ADDED, IdentityEvent.RENEWED)
            entry.in_force.update((each.digest, issued) for each in item.certificates)
            if item.event is IdentityEvent.RENEWED and item.login is not None:
                entry.by_login.update((each.digest, each.expire_time) for each in item.certificates)
                entry.logged_in = max(entry.logged_in, item.time)
            entry.deleted |= item.event is IdentityEvent.DELETED
            if item.event is IdentityEvent.RENEWED and item.login not in (None, entry.login):
                raise DataLoss(f"logins: {item.name!a} has logged in with an account that was not allowed to")
            if item.event in LOGIN_EVENTS:
                entry.login = item.login
            continue
        for each in item.certificates:
            if each.name not in known:
                raise DataLoss(f"identities: {each.name!a} has a certificate on record, and no admission")
            known[each.name].in_force[each.digest] = item.event is AuthorityEvent.ROTATED
    return known


def _changes(connection: Connection) -> Iterator[IdentityItem | AuthorityItem]:
    query = (
        select(records.c.position, records.c.kind, record_items.c.content)
        .join(record_items, record_items.c.record == records.c.position)
        .where(records.c.kind.in_(_KINDS), record_items.c.content.is_not(None))
        .order_by(records.c.position)
    )
    for row in connection.execute(query):
        try:
            yield read_item(row.content, _KINDS[row.kind])
        except VerificationFailed as error:
            raise DataLoss(f"record {row.position}, {row.kind}: {error.message}") from None


def _stored(connection: Connection) -> dict[str, _Known]:
    known = {
        row.name: _Known(row.role, row.deleted is not None) for row in connection.execute(select(identities)).all()
    }
    for row in connection.execute(select(logins)):
        if row.name not in known:
            raise DataLoss(f"logins: one is of {row.name!a}, who is not among the identities")
        known[row.name].login = Account(row.issuer, row.subject).digest
    query = select(certificates)
    for row in connection.execute(query):
        if row.name not in known:
            raise DataLoss(f"certificates: one is of {row.name!a}, who is not among the identities")
        credential = stored_credential(row.certificate)
        if credential.id != row.serial:
            raise DataLoss(f"certificates: one of {row.name!a} is kept under the serial number of another")
        if (credential.key_digest, to_microseconds(credential.expiry)) != (row.key, row.expires):
            raise DataLoss(f"certificates: one of {row.name!a} is kept with the key or the end of another")
        known[row.name].in_force[credential.digest] = row.revoked is None
        if row.login:
            known[row.name].by_login[credential.digest] = row.expires
    return known


def _standing(known: _Known) -> str:
    return f"{known.role}, deleted" if known.deleted else known.role


def _account(digest: bytes | None) -> str:
    return "no account" if digest is None else f"the account {digest.hex()[:16]}..."


def _state(in_force: bool | None) -> str:
    return {None: "not there", True: "not revoked", False: "revoked"}[in_force]
