"""Follows a deployment's authority to its new key, on the word of the old one and of nobody else.

    ca.pem              the new authority, and before the last step the old one behind it
    certificate.pem     the holder's certificate of the new authority, for the same key

The files are replaced one by one, and after each the profile works. Cut off, it is simply done again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from equipoise.errors import InvalidArgument, NotFound, VerificationFailed
from equipoise.profile.certificates import issued_by, read_certificate
from equipoise.profile.enrolment import replace_file
from equipoise.profile.profile import AUTHORITY, CERTIFICATE, KEY, check_chain, read_file, read_key, read_settings


def follow_authority(directory: Path, authority: bytes, link: bytes, certificates: Sequence[bytes]) -> bool:
    """Makes a profile trust a new authority, and gives it a certificate of it; returns whether anything was new.

    Args:
        directory: the profile.
        authority: the authority that the server shows, PEM.
        link: what the profile's authority has signed for it, PEM; empty where there is none.
        certificates: the holder's certificates of the new authority, PEM.

    Raises:
        VerificationFailed: the authority that the profile trusts has not signed the link, or it is for another key.
        NotFound: none of the certificates is for the profile's key.
    """
    kept = read_file(directory / AUTHORITY)
    old, new = _certificate(kept, AUTHORITY), _certificate(authority, "the authority")
    # A profile trusts all that is in its file, so nothing but the one certificate that is checked here gets there.
    if authority.count(b"-----BEGIN") != 1:
        raise VerificationFailed("the server shows more than one authority; nothing was changed")
    authority = new.public_bytes(serialization.Encoding.PEM)
    if old == new and kept == authority:
        return False
    if old != new:
        _check_link(old, link, new)
        chosen = _own(directory, authority, certificates)
        replace_file(directory / AUTHORITY, authority + kept)
    else:
        # It was cut off after its first step: the old authority is still trusted, too.
        chosen = _own(directory, authority, [read_file(directory / CERTIFICATE), *certificates])
    replace_file(directory / CERTIFICATE, chosen)
    replace_file(directory / AUTHORITY, authority)
    return True


def _check_link(old: x509.Certificate, link: bytes, new: x509.Certificate) -> None:
    """Raises `VerificationFailed` unless `old` has signed that the key of `new` is its successor's."""
    what = "the server shows another authority than the one that this profile trusts"
    if not link:
        raise VerificationFailed(f"{what}, and no word of the old one for it; nothing was changed")
    signed, now = _certificate(link, "the link"), datetime.now(UTC)
    if not issued_by(signed, old) or not signed.not_valid_before_utc <= now <= signed.not_valid_after_utc:
        raise VerificationFailed(f"{what}, and the old one has not signed it; nothing was changed")
    if signed.public_key() != new.public_key() or signed.subject != new.subject or not issued_by(new, new):
        raise VerificationFailed(f"{what}, and the old one has signed another key; nothing was changed")
    # Any holder of a certificate could otherwise sign a link.
    try:
        may_sign = signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        may_sign = False
    if not may_sign:
        raise VerificationFailed(f"{what}, and the old one has signed something else; nothing was changed")


def _own(directory: Path, authority: bytes, certificates: Sequence[bytes]) -> bytes:
    """Returns the first certificate of this authority for the profile's key and name. Raises `NotFound`."""
    _, name = read_settings(directory)
    place, key = f"{directory}{os.sep}", read_key(directory / KEY)
    for certificate in certificates:
        try:
            check_chain(place, authority, certificate, key, name)
        except InvalidArgument:
            continue
        return certificate
    raise NotFound("the new authority has signed no certificate for this profile's key; ask your operator for one")


def _certificate(pem: bytes, what: str) -> x509.Certificate:
    try:
        return read_certificate(pem)
    except ValueError as error:
        raise VerificationFailed(f"{what} {error}") from None
