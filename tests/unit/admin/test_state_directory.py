"""The state directory: made whole or not at all, private, and checked when opened."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from sqlalchemy import select

from equipoise.errors import InvalidArgument
from equipoise.model.identities import Role
from equipoise.profile.profile import LOG_KEYS, SEED_KEY, read_log_keys
from equipoise_server.admin.identities import renew_server_certificate
from equipoise_server.admin.new_state import create_state
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.identity.authority import Authority, certificate_to_pem, server_names
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.names import certified_name
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.keys import Purpose, in_force

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    create_state(path, clock=lambda: NOW)
    return path


def test_everything_is_there_and_private(state: Path) -> None:
    for directory in ("", "ca", "keys", "data", "profiles/operator", "profiles/auditor"):
        assert stat.S_IMODE((state / directory).stat().st_mode) == 0o700, directory
    keys = [*state.rglob("*.key"), *state.rglob("key.pem"), state / "equipoise.db"]
    assert len(keys) == 8
    for key in keys:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600, key
    assert [path.name for path in state.parent.iterdir()] == ["state"]


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_the_first_profiles_are_in_force(state: Path, role: Role) -> None:
    deployment = open_deployment(state, NOW)
    profile = state / "profiles" / role.value
    certificate = x509.load_pem_x509_certificate((profile / "certificate.pem").read_bytes())
    assert certified_name(certificate, deployment.config.deployment) == role.value
    assert (profile / "ca.pem").read_bytes() == deployment.authority.pem
    assert 'target = "127.0.0.1:7443"' in (profile / "profile.toml").read_text()
    store = deployment.open_store()
    assert (
        deployment.admission(store, lambda: NOW).registry.caller(role.value, credential_of(certificate)).role
        is role
    )
    store.close()


def test_the_log_begins_with_its_key_and_the_auditor_s(state: Path) -> None:
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    with store.read() as connection:
        (log_key,), (auditor_key,) = (in_force(connection, purpose) for purpose in Purpose)
        started = connection.execute(select(records.c.kind)).scalars().all()
        deployment.signer.check(connection)
        lines = deployment.signer.lines(connection)
    store.close()
    assert started == ["log-started", "identity-changed", "identity-changed"]
    for role in (Role.OPERATOR, Role.AUDITOR):
        (known,) = read_log_keys(state / "profiles" / role.value / LOG_KEYS)
        assert known.to_text() + "\n" == lines
        assert (known.name, known.public) == (f"equipoise/{deployment.config.deployment}", log_key.public)
    sealed_to = load_pem_private_key((state / "profiles" / "auditor" / SEED_KEY).read_bytes(), None)
    assert isinstance(sealed_to, X25519PrivateKey)
    assert sealed_to.public_key().public_bytes_raw() == auditor_key.public


def test_one_of_several_servers_may_listen_elsewhere(state: Path) -> None:
    assert open_deployment(state, NOW, "127.0.0.1:9").config.listen == "127.0.0.1:9"
    with pytest.raises(InvalidArgument, match=r"^listen: must be HOST:PORT"):
        open_deployment(state, NOW, "nowhere")


def test_a_new_deployment_needs_an_empty_store(tmp_path: Path, store_url: str) -> None:
    create_state(tmp_path / "one", store=store_url)
    assert open_deployment(tmp_path / "one", datetime.now(UTC)).config.store == store_url
    with pytest.raises(InvalidArgument, match=r"^store: belongs to a deployment already"):
        create_state(tmp_path / "two", store=store_url)
    assert not (tmp_path / "two").exists()


def test_two_deployments_share_nothing(state: Path, tmp_path: Path) -> None:
    create_state(tmp_path / "other", clock=lambda: NOW)
    one, two = (open_deployment(path, NOW) for path in (state, tmp_path / "other"))
    assert one.config.deployment != two.config.deployment
    assert one.storage_key != two.storage_key
    assert one.authority.pem != two.authority.pem


def test_an_existing_directory_is_never_touched(state: Path) -> None:
    before = (state / "ca" / "authority.pem").read_bytes()
    with pytest.raises(InvalidArgument, match="exists already"):
        create_state(state)
    assert (state / "ca" / "authority.pem").read_bytes() == before


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="hosts"):
        create_state(tmp_path / "state", ["no host name: ü"])
    with pytest.raises(InvalidArgument, match="listen: must be HOST:PORT"):
        create_state(tmp_path / "state", listen="nowhere")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    create_state(tmp_path / "state")
    open_deployment(tmp_path / "state", datetime.now(UTC))


def test_listening_everywhere_puts_a_name_into_profiles(tmp_path: Path) -> None:
    create_state(tmp_path / "state", ["server.example"], listen="0.0.0.0:7443")
    text = (tmp_path / "state" / "profiles" / "operator" / "profile.toml").read_text()
    assert 'target = "server.example:7443"' in text


@pytest.mark.parametrize("name", ["ca/authority.key", "keys/server.key", "keys/storage.key"])
def test_exposed_or_missing_keys_are_refused(state: Path, name: str) -> None:
    (state / name).chmod(0o644)
    with pytest.raises(InvalidArgument, match=f"{name}: can be read by other users"):
        open_deployment(state, NOW)
    (state / name).unlink()
    with pytest.raises(InvalidArgument, match=f"{name}: cannot be read"):
        open_deployment(state, NOW)


def test_a_server_certificate_of_another_authority_or_time_is_refused(state: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"server\.pem: expired on 2028-04-05; equipoise-server certificate"):
        open_deployment(state, NOW + timedelta(days=826))
    with pytest.raises(InvalidArgument, match=r"server\.pem: is not valid before"):
        open_deployment(state, NOW - timedelta(days=1))
    deployment = open_deployment(state, NOW)
    key = deployment.server_certificate.public_key()
    stranger = Authority.create(deployment.config.deployment, NOW)
    forged = stranger.issue_server(["localhost"], key, NOW)  # type: ignore[arg-type]
    (state / "keys" / "server.pem").write_bytes(certificate_to_pem(forged))
    with pytest.raises(InvalidArgument, match=r"server\.pem: was not issued by"):
        open_deployment(state, NOW)


def test_what_expires_soon_is_told_of(state: Path) -> None:
    deployment = open_deployment(state, NOW)
    assert deployment.expiring(NOW + timedelta(days=794)) == []
    for days, word in ((796, "expires"), (826, "expired")):
        (line,) = deployment.expiring(NOW + timedelta(days=days))
        assert line.startswith(f"{word} on 2028-04-05: the server's certificate (renew it with: equipoise-server")
    assert len(deployment.expiring(NOW + timedelta(days=3649))) == 2


def test_nothing_outlives_the_authority(state: Path) -> None:
    authority = open_deployment(state, NOW).authority
    key = authority.key.public_key()
    late = NOW + timedelta(days=3600)
    for issued in (authority.issue_identity("ann", key, late), authority.issue_server(["localhost"], key, late)):
        assert issued.not_valid_after_utc == authority.certificate.not_valid_after_utc
    with pytest.raises(InvalidArgument, match=r"^authority: expired on 2035-12-30"):
        authority.issue_identity("ann", key, NOW + timedelta(days=3650))


def test_the_server_s_certificate_is_renewed_for_the_names_it_had(state: Path) -> None:
    later = NOW + timedelta(days=830)
    renewed = renew_server_certificate(state, clock=lambda: later)
    deployment = open_deployment(state, later)
    assert deployment.server_certificate == renewed
    assert server_names(renewed) == ["localhost", "127.0.0.1", "::1"]
    assert stat.S_IMODE((state / "keys" / "server.key").stat().st_mode) == 0o600
    assert server_names(renew_server_certificate(state, ["db.example"], clock=lambda: later)) == ["db.example"]
    left = {path.name for path in (state / "keys").iterdir() if not path.name.startswith("log-")}
    assert left == {"server.key", "server.pem", "storage.key"}


def test_a_missing_data_directory_is_named(state: Path) -> None:
    (state / "data").rmdir()
    with pytest.raises(InvalidArgument, match="data_directory"):
        open_deployment(state, NOW)
