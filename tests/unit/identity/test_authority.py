"""What the authority issues, and how its files are refused."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from equipoise.errors import InvalidArgument
from equipoise_server.identity.authority import CERTIFICATE_FILE, KEY_FILE, Authority, new_key
from equipoise_server.identity.certificate_forms import CLOCK_SKEW
from equipoise_server.identity.names import certified_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def authority() -> Authority:
    return Authority.create("here", NOW)


def test_an_identity_is_good_for_one_name_for_a_while_on_the_client_side(authority: Authority) -> None:
    issued = authority.issue_identity("alice", new_key().public_key(), NOW, days=10)
    issued.verify_directly_issued_by(authority.certificate)
    assert certified_name(issued, "here") == "alice"
    assert issued.not_valid_before_utc == NOW - CLOCK_SKEW
    assert issued.not_valid_after_utc == NOW + timedelta(days=10)
    usages = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not issued.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_the_server_is_certified_for_names_and_addresses(authority: Authority) -> None:
    issued = authority.issue_server(["localhost", "127.0.0.1", "::1"], new_key().public_key(), NOW)
    alternatives = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(alternatives) == [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    usages = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


@pytest.mark.parametrize("hosts", [[], ["münchen.example"]])
def test_unusable_host_names_are_named(authority: Authority, hosts: list[str]) -> None:
    with pytest.raises(InvalidArgument, match=r"^hosts: "):
        authority.issue_server(hosts, new_key().public_key(), NOW)


def test_every_certificate_has_a_serial_number_of_its_own(authority: Authority) -> None:
    key = new_key().public_key()
    assert len({authority.issue_identity("alice", key, NOW).serial_number for _ in range(5)}) == 5


def test_saved_and_loaded(authority: Authority, tmp_path: Path) -> None:
    authority.save(tmp_path / "ca")
    loaded = Authority.load(tmp_path / "ca", "here")
    assert loaded.pem == authority.pem
    loaded.issue_identity("alice", new_key().public_key(), NOW).verify_directly_issued_by(authority.certificate)


def test_loading_names_what_is_wrong(authority: Authority, tmp_path: Path) -> None:
    authority.save(tmp_path / "ca")
    (tmp_path / "ca" / KEY_FILE).chmod(0o644)
    with pytest.raises(InvalidArgument, match=r"authority\.key: can be read by other users"):
        Authority.load(tmp_path / "ca", "here")
    (tmp_path / "ca" / KEY_FILE).unlink()
    with pytest.raises(InvalidArgument, match=r"authority\.key: cannot be read"):
        Authority.load(tmp_path / "ca", "here")
    Authority.create("here", NOW).save(tmp_path / "other")
    (tmp_path / "other" / KEY_FILE).rename(tmp_path / "ca" / KEY_FILE)
    with pytest.raises(InvalidArgument, match="is not the key of"):
        Authority.load(tmp_path / "ca", "here")
    (tmp_path / "ca" / CERTIFICATE_FILE).write_text("nothing")
    with pytest.raises(InvalidArgument, match=r"authority\.pem: holds no certificate"):
        Authority.load(tmp_path / "ca", "here")


def test_keys_are_on_p256(authority: Authority) -> None:
    assert isinstance(authority.key.curve, ec.SECP256R1)
