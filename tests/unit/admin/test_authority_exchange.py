"""Exchanging the authority of a state directory: steps that a kill may cut off, and what each leaves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from harness.server_process import make_state
from sqlalchemy import select, update

from equipoise.errors import WrongState
from equipoise.profile.certificates import issued_by, read_certificate
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem
from equipoise.records.record_layouts import read_item
from equipoise_server.admin.authority_exchange import retire_authority, rotate_authority
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.live_deployment import LiveDeployment
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.tables.identity import certificates
from equipoise_server.storage.tables.transparency import record_items, records

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROTATING = (
    (CrashPoint.PAIR_PREPARED, 1),  # the authority's
    (CrashPoint.PAIR_EXCHANGED, 1),
    (CrashPoint.PAIR_PREPARED, 2),  # the server's
    (CrashPoint.PAIR_EXCHANGED, 2),
    (CrashPoint.REISSUE_WRITTEN, 1),
    (CrashPoint.REISSUE_COMMITTED, 1),
)
RETIRING = (
    (CrashPoint.RETIRE_AUTHORITY_WRITTEN, 1),
    (CrashPoint.RETIRE_AUTHORITY_COMMITTED, 1),
    (CrashPoint.PAIR_PREPARED, 1),
    (CrashPoint.PAIR_EXCHANGED, 1),
)


def clock() -> datetime:
    return NOW


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return make_state(tmp_path / "state", (), clock=clock)


class Killed(BaseException):
    """What stands for a kill: nothing handles it."""


def killed_at(point: CrashPoint, time: int, doing: Callable[[], object]) -> None:
    """Do something that is cut off the first, or second, time that it comes to a point."""
    seen: list[CrashPoint] = []

    def kill(here: CrashPoint) -> None:
        seen.append(here)
        if seen.count(point) == time and here is point:
            raise Killed

    with install_hook(kill), pytest.raises(Killed):
        doing()


def certified(state: Path) -> dict[bytes, bool]:
    """The certificates in force, and whether the present authority has signed each."""
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    with store.read() as connection:
        held = connection.execute(select(certificates.c.certificate).where(certificates.c.revoked.is_(None)))
        found = [bytes(each) for each in held.scalars()]
    store.close()
    return {pem: deployment.authority.issued(read_certificate(pem)) for pem in found}


def events(state: Path) -> list[AuthorityEvent]:
    """What the log says of authorities."""
    store = open_deployment(state, NOW).open_store()
    with store.read() as connection:
        query = select(record_items.c.content).join(records, record_items.c.record == records.c.position)
        kind = records.c.kind == "authority-changed"
        query = query.where(kind, record_items.c.content.is_not(None)).order_by(records.c.position)
        found = [read_item(content, AuthorityItem).event for content in connection.execute(query).scalars()]
    store.close()
    return found


def key_of(certificate: x509.Certificate) -> bytes:
    """The encoding of its public key."""
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def used(state: Path) -> None:
    """Everybody has called with all certificates."""
    store = open_deployment(state, NOW).open_store()
    with store.write() as connection:
        connection.execute(update(certificates).values(used=1))
    store.close()


def test_what_is_signed_anew_ends_as_before_and_the_old_ends_with_its_authority(state: Path) -> None:
    old = open_deployment(state, NOW)
    (first, second), done = certified(state), rotate_authority(state, clock)
    assert done.certificates == 2
    now = open_deployment(state, NOW)
    assert now.authority.predecessor == old.authority.certificate
    assert now.authority.link is not None
    assert issued_by(now.authority.link, old.authority.certificate)
    assert now.authority.issued(now.server_certificate)
    held = certified(state)
    assert {held[first], held[second]} == {False}
    new = [read_certificate(pem) for pem, mine in held.items() if mine]
    before = [read_certificate(pem) for pem in (first, second)]
    assert {(each.not_valid_after_utc, key_of(each)) for each in new} == {
        (each.not_valid_after_utc, key_of(each)) for each in before
    }
    with pytest.raises(WrongState, match=r"not all have used .*: auditor, operator; "):
        retire_authority(state, clock=clock)
    used(state)
    assert retire_authority(state, clock=clock).certificates == 2
    assert set(certified(state).values()) == {True}
    assert open_deployment(state, NOW).authority.predecessor is None
    with pytest.raises(WrongState, match="there is no old authority"):
        retire_authority(state, clock=clock)
    assert events(state) == [AuthorityEvent.ROTATED, AuthorityEvent.RETIRED]
    rotate_authority(state, clock)  # and again
    check_state(state, clock)


@pytest.mark.parametrize(("point", "time"), ROTATING)
def test_after_a_kill_at_any_point_everybody_gets_in_and_the_command_completes_it(
    state: Path, point: CrashPoint, time: int
) -> None:
    killed_at(point, time, lambda: rotate_authority(state, clock))
    deployment = open_deployment(state, NOW)
    before = certified(state)
    authorities = [deployment.authority.certificate, deployment.authority.predecessor]
    for pem in before:
        assert any(each is not None and issued_by(read_certificate(pem), each) for each in authorities)
    if deployment.authority.predecessor is not None and not events(state):
        with pytest.raises(WrongState, match="was cut off; complete it first"):
            retire_authority(state, lock_out=True, clock=clock)
    if events(state):
        with pytest.raises(WrongState, match="not retired yet"):
            rotate_authority(state, clock)
    else:
        rotate_authority(state, clock)
    deployment = open_deployment(state, NOW)
    assert deployment.authority.issued(deployment.server_certificate)
    assert sorted(certified(state).values()) == [False, False, True, True]
    assert events(state) == [AuthorityEvent.ROTATED]
    check_state(state, clock)


@pytest.mark.parametrize(("point", "time"), RETIRING)
def test_a_retirement_that_was_cut_off_is_completed(state: Path, point: CrashPoint, time: int) -> None:
    rotate_authority(state, clock)
    killed_at(point, time, lambda: retire_authority(state, lock_out=True, clock=clock))
    open_deployment(state, NOW)
    if open_deployment(state, NOW).authority.predecessor is not None:
        with pytest.raises(WrongState, match="retire"):  # it would tell of a new key that nobody made
            rotate_authority(state, clock)
        retire_authority(state, lock_out=True, clock=clock)
    assert open_deployment(state, NOW).authority.predecessor is None
    assert certified(state)
    assert set(certified(state).values()) == {True}
    assert events(state) == [AuthorityEvent.ROTATED, AuthorityEvent.RETIRED]


def test_a_certificate_that_has_expired_gets_no_successor(state: Path) -> None:
    later = NOW + timedelta(days=398)
    assert rotate_authority(state, lambda: later).certificates == 0
    assert retire_authority(state, clock=lambda: later).certificates == 0


def test_a_server_that_runs_takes_up_new_keys_and_keeps_its_own_where_they_cannot_be_read(state: Path) -> None:
    live = LiveDeployment(open_deployment(state, NOW), clock)
    first = live.now()
    assert live.now() is first
    rotate_authority(state, clock)
    second = live.now()
    assert second.authority.predecessor == first.authority.certificate
    assert second.server_certificate != first.server_certificate
    (state / "keys" / "server.pem").write_text("nothing")
    assert live.now() is second
