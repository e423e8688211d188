"""The items of records about who gets in. Auditors alone may open them: one analyst may not learn of another."""

from __future__ import annotations

from enum import StrEnum

from equipoise.model.identities import Role
from equipoise.records.codec import COUNT, HASH, TEXT, Codec, canonical_object, codec_of, key, list_of, name_of


class IdentityEvent(StrEnum):
    """What has become of an identity."""

    ADDED = "added"  # with its first certificate
    RENEWED = "renewed"  # with another certificate; earlier ones stay in force
    REVOKED = "revoked"  # with all certificates that were in force
    DELETED = "deleted"  # likewise, for ever


@canonical_object
class RecordedCertificate:
    """A certificate: the SHA-256 of its DER encoding, and the last moment of its validity."""

    digest: bytes = key("digest", HASH)
    expire_time: int = key("expire_time", COUNT)


CERTIFICATES: Codec[tuple[RecordedCertificate, ...]] = list_of(codec_of(RecordedCertificate))


@canonical_object
class IdentityItem:
    """A change of the registry. `certificates`: the new one, or all that were revoked.

    `by`: the operator as "operator/" and its name, or "holder" for the holder of the state directory.
    """

    event: IdentityEvent = key("event", name_of(IdentityEvent))
    name: str = key("name", TEXT)
    role: Role = key("role", name_of(Role))
    certificates: tuple[RecordedCertificate, ...] = key("certificates", CERTIFICATES)
    by: str = key("by", TEXT)
    time: int = key("time", COUNT)
