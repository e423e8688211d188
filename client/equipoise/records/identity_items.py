"""The items of records about who gets in. Auditors alone may open them: one analyst may not learn of another."""

from __future__ import annotations

from enum import StrEnum

from equipoise.model.identities import Role
from equipoise.records.codec import (
    COUNT,
    HASH,
    TEXT,
    Codec,
    canonical_object,
    codec_of,
    key,
    list_of,
    name_of,
    optional,
)


class IdentityEvent(StrEnum):
    """What has become of an identity."""

    ADDED = "added"  # with its first certificate
    RENEWED = "renewed"  # with another certificate; earlier ones stay in force
    REVOKED = "revoked"  # with all certificates that were in force
    DELETED = "deleted"  # likewise, for ever
    LOGIN = "login"  # may log in with an account of an identity provider, also somebody who was not admitted before


# After these the newest one says with which account somebody may log in: with one, or with none.
LOGIN_EVENTS = (IdentityEvent.LOGIN, IdentityEvent.REVOKED, IdentityEvent.DELETED)


@canonical_object
class RecordedCertificate:
    """A certificate: the SHA-256 of its DER encoding, and the last moment of its validity."""

    digest: bytes = key("digest", HASH)
    expire_time: int = key("expire_time", COUNT)


CERTIFICATES: Codec[tuple[RecordedCertificate, ...]] = list_of(codec_of(RecordedCertificate))


@canonical_object
class IdentityItem:
    """A change of the registry. `certificates`: the new one, or all that were revoked.

    `by`: the operator as "operator/" and its name, "holder" for the holder of the state directory, or "login/" and
    the identity's own name where it has logged in. `login`: the SHA-256 of the account it may log in with, or has.
    """

    event: IdentityEvent = key("event", name_of(IdentityEvent))
    name: str = key("name", TEXT)
    role: Role = key("role", name_of(Role))
    certificates: tuple[RecordedCertificate, ...] = key("certificates", CERTIFICATES)
    by: str = key("by", TEXT)
    time: int = key("time", COUNT)
    login: bytes | None = key("login", optional(HASH))


class AuthorityEvent(StrEnum):
    """What has become of the deployment's authority."""

    ROTATED = "rotated"  # a new one signs, and has signed anew what was in force; the old one is honoured
    RETIRED = "retired"  # the old one is not: its certificates are revoked


@canonical_object
class HeldCertificate(RecordedCertificate):
    """A certificate, and the name of the identity that it was issued to."""

    name: str = key("name", TEXT)


@canonical_object
class AuthorityItem:
    """An exchange of the authority, by the holder of the state directory.

    `authority` and `predecessor`: the SHA-256 of the certificates in DER. `certificates`: those that were signed
    anew, or those that were revoked.
    """

    event: AuthorityEvent = key("event", name_of(AuthorityEvent))
    authority: bytes = key("authority", HASH)
    predecessor: bytes = key("predecessor", HASH)
    certificates: tuple[HeldCertificate, ...] = key("certificates", list_of(codec_of(HeldCertificate)))
    time: int = key("time", COUNT)
