"""The list of who was admitted and of exchanges of the authority, from a log that is verified first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from equipoise.auditing.identities import read_identities
from equipoise.auditing.log_checks import check_root, check_signatures
from equipoise.auditing.steps import Step, open_steps
from equipoise.errors import VerificationFailed
from equipoise.model.identities import Role
from equipoise.model.log import RecordOpening
from equipoise.model.times import from_microseconds
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem, IdentityEvent, IdentityItem
from equipoise.records.signed_notes import VerifierKey


@dataclass(frozen=True)
class KnownCertificate:
    """A certificate on record: the SHA-256 of its DER encoding, and the last moment of its validity."""

    digest: bytes
    expire_time: datetime


@dataclass(frozen=True)
class NamedCertificate:
    """A certificate on record with its holder's name."""

    name: str
    digest: bytes
    expire_time: datetime


@dataclass(frozen=True)
class IdentityChange:
    """A change of one identity. `index`: its entry of the log; the rest is the record's `IdentityItem`."""

    index: int
    time: datetime
    event: IdentityEvent
    name: str
    role: Role
    by: str
    certificates: tuple[KnownCertificate, ...]


@dataclass(frozen=True)
class AuthorityChange:
    """An exchange of the certificate authority. `index`: its entry of the log; the rest is its `AuthorityItem`."""

    index: int
    time: datetime
    event: AuthorityEvent
    authority: bytes
    predecessor: bytes
    certificates: tuple[NamedCertificate, ...]


def registry_changes(
    checkpoint: bytes, leaves: tuple[bytes, ...], records: Iterable[RecordOpening], trusted: Sequence[VerifierKey]
) -> list[IdentityChange | AuthorityChange]:
    """Returns every change of identities and of the authority in a log, once all of it is verified.

    Args:
        checkpoint: the signed note of the log's newest checkpoint.
        leaves: all leaves of the log, in order.
        records: all records, in the same order, with the items that auditors may see.
        trusted: the keys that the auditor trusts.

    Raises:
        VerificationFailed: as checks A1, A2 and A4, or a change cannot follow those before it.
    """
    steps = open_steps(records, leaves)
    verified, _ = check_signatures(checkpoint, trusted, steps)
    check_root(verified, leaves)
    read_identities(steps)
    return [_change_in(step) for step in steps if step.record.has(IdentityItem) or step.record.has(AuthorityItem)]


def _change_in(step: Step) -> IdentityChange | AuthorityChange:
    try:
        if step.record.has(AuthorityItem):
            exchange = step.one(AuthorityItem)
            held = tuple(
                NamedCertificate(each.name, each.digest, from_microseconds(each.expire_time))
                for each in exchange.certificates
            )
            time = from_microseconds(exchange.time)
            return AuthorityChange(step.index, time, exchange.event, exchange.authority, exchange.predecessor, held)
        item = step.one(IdentityItem)
        known = tuple(
            KnownCertificate(each.digest, from_microseconds(each.expire_time)) for each in item.certificates
        )
        time = from_microseconds(item.time)
        return IdentityChange(step.index, time, item.event, item.name, item.role, item.by, known)
    except OverflowError:
        raise VerificationFailed(f"{step}: its time is not valid") from None
