"""Exchanging the authority of a state directory: steps that a kill may cut off, and what each leaves."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from harness.authorities import NOW, certified, clock, events
from harness.server_process import make_state
from sqlalchemy import Executable, select, update

from equipoise.errors import DataLoss, InvalidArgument, Unavailable, WrongState
from equipoise.model.identities import Role
from equipoise.profile.certificates import issued_by, read_certificate
from equipoise.profile.enrolment import begin
from equipoise.records.identity_items import AuthorityEvent
from equipoise_server.admin.authority_exchange import retire_authority, rotate_authority
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.identities import add_identity, renew_identity, revoke_identity
from equipoise_server.admin.live_deployment import RETRY_SECONDS, LiveDeployment
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.identity.names import certified_name
from equipoise_server.identity.succession import certificates_of
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.tables.identity import certificates, identities

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


@pytest.mark.slow
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


def test_everybody_fetches_own_certificates_alone(state: Path) -> None:
    """A certificate says who else is known here."""
    rotate_authority(state, clock)
    deployment = open_deployment(state, NOW)
    store, authority = deployment.open_store(), deployment.authority
    with store.read() as connection:
        held = {
            name: certificates_of(connection, authority, name, NOW) for name in ("auditor", "operator", "nobody")
        }
    store.close()
    assert {
        name: [certified_name(read_certificate(pem), authority.deployment) for pem in own]
        for name, own in held.items()
    } == {"auditor": ["auditor"], "operator": ["operator"], "nobody": []}


@pytest.mark.slow
@pytest.mark.thin(3)
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


@pytest.mark.slow
@pytest.mark.thin(4)
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


def test_a_server_that_could_not_read_new_keys_reads_them_again_after_a_pause(state: Path) -> None:
    now = [0.0]
    live = LiveDeployment(open_deployment(state, NOW), clock, lambda: now[0])
    first = live.now()
    rotate_authority(state, clock)
    key = state / "ca" / "authority.key"
    key.chmod(0o644)  # refused, and none of the files is changed when this is mended
    assert live.now() is first
    key.chmod(0o600)
    now[0] += RETRY_SECONDS / 2
    assert live.now() is first
    now[0] += RETRY_SECONDS / 2
    second = live.now()
    assert second.authority.predecessor == first.authority.certificate
    assert live.now() is second


@pytest.mark.slow
def test_a_second_key_of_one_person_is_not_locked_out_without_a_word(state: Path, tmp_path: Path) -> None:
    renew_identity(state, "operator", begin(tmp_path / "laptop"), clock=clock)
    rotate_authority(state, clock)
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    with store.write() as connection:
        rows = connection.execute(select(certificates).order_by(certificates.c.created)).all()
        new = [row for row in rows if deployment.authority.issued(read_certificate(row.certificate))]
        calling = [row.serial for row in new if row.name == "auditor"] + [
            next(row.serial for row in new if row.name == "operator")
        ]
        connection.execute(update(certificates).where(certificates.c.serial.in_(calling)).values(used=1))
    store.close()
    with pytest.raises(WrongState, match=r"authority yet: operator \(1 of 2 keys\); "):
        retire_authority(state, clock=clock)
    used(state)
    assert retire_authority(state, clock=clock).certificates == 3


@pytest.mark.slow
def test_an_enrolment_that_is_sent_again_gets_a_certificate_of_the_present_authority(
    state: Path, tmp_path: Path
) -> None:
    request = begin(tmp_path / "ann")
    first = add_identity(state, "ann", Role.ANALYST, request, clock=clock)
    assert add_identity(state, "ann", Role.ANALYST, request, clock=clock) == first
    rotate_authority(state, clock)
    again = add_identity(state, "ann", Role.ANALYST, request, clock=clock)
    assert again.authority != first.authority
    before, after, signer = map(read_certificate, (first.certificate, again.certificate, again.authority))
    assert issued_by(after, signer)
    assert (key_of(after), after.not_valid_after_utc) == (key_of(before), before.not_valid_after_utc)
    retire_authority(state, lock_out=True, clock=clock)
    assert add_identity(state, "ann", Role.ANALYST, request, clock=clock) == again
    assert issued_by(read_certificate(renew_identity(state, "ann", request, clock=clock).certificate), signer)
    revoke_identity(state, "ann", clock)
    with pytest.raises(InvalidArgument, match="its key belongs to a revoked certificate"):
        add_identity(state, "ann", Role.ANALYST, request, clock=clock)
    with pytest.raises(InvalidArgument, match="its key belongs to a revoked certificate"):
        renew_identity(state, "ann", request, clock=clock)


def test_nobody_is_admitted_by_an_authority_that_is_not_in_force_any_more(state: Path, tmp_path: Path) -> None:
    """A server that has signed just before an exchange, and registers just after it."""
    late = open_deployment(state, NOW)
    rotate_authority(state, clock)
    store = late.open_store()
    with pytest.raises(Unavailable, match="the authority is being exchanged"):
        late.admission(store, clock).admit("ann", Role.ANALYST, begin(tmp_path / "ann"), "a", "operator/olga")
    with pytest.raises(Unavailable, match="the authority is being exchanged"):
        late.admission(store, clock).renew("auditor", set(Role), begin(tmp_path / "late"), "b", "operator/olga")
    store.close()
    assert len(certified(state)) == 4
    add_identity(state, "ann", Role.ANALYST, begin(tmp_path / "again"), clock=clock)


@pytest.mark.slow
def test_nobody_is_admitted_amid_an_exchange_that_was_cut_off(state: Path, tmp_path: Path) -> None:
    request = begin(tmp_path / "ann")
    killed_at(CrashPoint.PAIR_EXCHANGED, 1, lambda: rotate_authority(state, clock))
    with pytest.raises(Unavailable, match="the authority is being exchanged"):
        add_identity(state, "ann", Role.ANALYST, request, clock=clock)
    with pytest.raises(WrongState, match="the authority in ca is not the one on record"):
        check_state(state, clock)
    rotate_authority(state, clock)
    add_identity(state, "ann", Role.ANALYST, request, clock=clock)
    check_state(state, clock)


@pytest.mark.slow
@pytest.mark.thin(6)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (update(certificates).values(revoked=None), "is not revoked in the store, and revoked on record"),
        (update(certificates).values(revoked=1), "is revoked in the store, and not revoked on record"),
        (update(certificates).values(name="auditor"), "is not there in the store, and "),
        (update(identities).where(identities.c.name == "ann").values(role="operator"), "'ann' is operator in the "),
        (
            update(identities).where(identities.c.name == "ann").values(deleted=1),
            "'ann' is analyst, deleted in the ",
        ),
        (identities.insert().values(name="zoe", role="operator", created=1), "'zoe' is in the store, and its"),
        (certificates.delete().where(certificates.c.name == "operator"), "is not there in the store, and "),
    ],
)
def test_a_store_whose_certificates_are_not_those_on_record_is_found(
    state: Path, tmp_path: Path, change: Executable, told: str
) -> None:
    add_identity(state, "ann", Role.ANALYST, begin(tmp_path / "ann"), clock=clock)
    rotate_authority(state, clock)
    retire_authority(state, lock_out=True, clock=clock)
    revoke_identity(state, "ann", clock)
    check_state(state, clock)
    store = open_deployment(state, NOW).open_store()
    with store.write() as connection:
        connection.execute(change)
    store.close()
    with pytest.raises(DataLoss, match=re.escape(told)):
        check_state(state, clock)
