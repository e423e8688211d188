"""Which links to a new key are loaded: those that the old key has signed, under its own name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from equipoise.errors import InvalidArgument
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.certificate_forms import authority_certificate, last_moment

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def successor() -> Authority:
    return Authority.create("here", NOW).succeeded(NOW)


def signed_by_another(authority: Authority) -> x509.Certificate:
    """A link for the authority's key, under its name, which is right but for whose key signed it."""
    subject, public = authority.certificate.subject, authority.key.public_key()
    return authority_certificate(subject, public, new_key(), NOW, last_moment(NOW))


def test_a_link_that_the_old_key_has_signed_is_loaded(tmp_path: Path) -> None:
    authority = successor()
    authority.save(tmp_path / "ca")
    loaded = Authority.load(tmp_path / "ca", "here")
    assert (loaded.link_pem, loaded.accepted_pem) == (authority.link_pem, authority.accepted_pem)


@pytest.mark.parametrize("own", [False, True])
def test_a_link_that_the_old_key_has_not_signed_is_refused(tmp_path: Path, own: bool) -> None:
    """Neither another's key nor the new one says for whom the old one stands."""
    authority = successor()
    link = authority.certificate if own else signed_by_another(authority)
    replace(authority, link=link).save(tmp_path / "ca")
    with pytest.raises(InvalidArgument, match="does not hold the authority, its link and its predecessor"):
        Authority.load(tmp_path / "ca", "here")


def test_a_predecessor_that_has_not_signed_the_link_is_refused(tmp_path: Path) -> None:
    replace(successor(), predecessor=Authority.create("here", NOW).certificate).save(tmp_path / "ca")
    with pytest.raises(InvalidArgument, match="does not hold the authority, its link and its predecessor"):
        Authority.load(tmp_path / "ca", "here")
