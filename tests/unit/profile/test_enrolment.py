"""Enrolling: keys that stay, requests that are sent again as they were, bundles that fit or are refused."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from equipoise.cli import main
from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.commands.admission import hand_over, standing
from equipoise.errors import InvalidArgument, Unavailable
from equipoise.profile.enrolment import (
    PENDING_KEY,
    REQUEST,
    Bundle,
    authority_fingerprint,
    begin,
    default_request_id,
    install,
    is_profile,
    key_fingerprint,
)
from equipoise.profile.profile import KEY, LOG_KEYS, Profile, read_log_keys
from equipoise.records.signed_notes import VerifierKey
from equipoise_server.identity.authority import Authority, certificate_to_pem
from equipoise_server.identity.enrolment import requested_key

AUTHORITY = Authority.create("here", datetime.now(UTC))
LOG_KEYS_TEXT = f"{VerifierKey('equipoise/here', bytes(range(32))).to_text()}\n"
WHOLE = {
    "version": 2,
    "name": "a",
    "target": "b",
    "certificate": "c",
    "authority": "d",
    "log_keys": LOG_KEYS_TEXT,
}


def bundle(
    request: bytes, name: str = "ann", authority: Authority = AUTHORITY, now: datetime | None = None
) -> Bundle:
    issued = authority.issue_identity(name, requested_key(request), now or datetime.now(UTC), 10)
    return Bundle(name, "db.example:7443", certificate_to_pem(issued), authority.pem, LOG_KEYS_TEXT)


def test_a_key_and_a_request_become_a_profile(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "ann"
    before = os.umask(0)
    try:
        request = begin(directory)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (directory, directory / PENDING_KEY)}
    assert modes == {directory: 0o700, directory / PENDING_KEY: 0o600}
    assert not is_profile(directory)
    key = (directory / PENDING_KEY).read_bytes()
    assert begin(directory) == request
    install(directory, Bundle.from_json(bundle(request).to_json()))
    profile = Profile.load(directory)
    assert (profile.name, profile.target, profile.authority) == ("ann", "db.example:7443", AUTHORITY.pem)
    assert "".join(f"{key.to_text()}\n" for key in read_log_keys(directory / LOG_KEYS)) == LOG_KEYS_TEXT
    assert timedelta(days=9) < profile.expire_time - datetime.now(UTC) < timedelta(days=11)
    assert (directory / KEY).read_bytes() == key
    assert stat.S_IMODE((directory / KEY).stat().st_mode) == 0o600
    files = {"key.pem", "certificate.pem", "ca.pem", "profile.toml", "log.vkey"}
    assert {path.name for path in directory.iterdir()} == files


def test_a_profile_is_renewed_with_a_fresh_key_and_works_until_then(tmp_path: Path) -> None:
    first = begin(tmp_path)
    install(tmp_path, bundle(first))
    second = begin(tmp_path)
    assert key_fingerprint(second) != key_fingerprint(first)
    old = Profile.load(tmp_path)
    others = LOG_KEYS_TEXT * 2
    renewed = replace(bundle(second), target="elsewhere:1", authority=b"another", log_keys=others)
    install(tmp_path, renewed)
    new = Profile.load(tmp_path)
    assert new.certificate == renewed.certificate != old.certificate
    # Whoever could exchange the bundle cannot send a profile that is there to another server, or to other records.
    assert (new.target, new.authority) == (old.target, old.authority)
    assert (tmp_path / LOG_KEYS).read_text() == LOG_KEYS_TEXT
    assert not (tmp_path / REQUEST).exists()
    install(tmp_path, renewed)
    assert Profile.load(tmp_path).certificate == renewed.certificate
    # A profile from before there was a log gets the keys with its next certificate.
    (tmp_path / LOG_KEYS).unlink()
    install(tmp_path, replace(bundle(begin(tmp_path)), log_keys=others))
    assert (tmp_path / LOG_KEYS).read_text() == others


def test_an_installation_that_was_cut_off_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every rename: each is one step, and what was renamed before stays."""
    really = Path.replace
    steps = 0

    def cut_off(path: Path, target: Path) -> Path:
        nonlocal steps
        if steps == 0:
            raise KeyboardInterrupt
        steps -= 1
        return really(path, target)

    for renewed in (False, True):
        request = begin(tmp_path)
        answer = bundle(request)
        for before in range(3 if renewed else 5):
            steps = before
            with monkeypatch.context() as patched:
                patched.setattr(Path, "replace", cut_off)
                with pytest.raises(KeyboardInterrupt):
                    install(tmp_path, answer)
            assert begin(tmp_path) == request
            assert is_profile(tmp_path) is renewed
        install(tmp_path, answer)
        assert Profile.load(tmp_path).certificate == answer.certificate


def test_a_bundle_that_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    stranger = Authority.create("here", datetime.now(UTC))
    mine, other = begin(tmp_path / "mine"), begin(tmp_path / "other")
    install(tmp_path / "mine", bundle(mine))
    request = begin(tmp_path / "mine")
    before = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    for wrong, problem in (
        (bundle(other), "holds no key that this certificate is for"),
        (bundle(request, "bob"), "bundle: name: is bob, this profile is of ann"),
        (bundle(request, authority=stranger), "was not issued by the authority"),
        (replace(bundle(request), certificate=b"x"), "bundle: certificate: is not"),
    ):
        with pytest.raises(InvalidArgument, match=problem):
            install(tmp_path / "mine", wrong)
    with pytest.raises(InvalidArgument, match="was not issued by"):
        install(tmp_path / "other", replace(bundle(other), authority=stranger.pem))
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == before
    assert not is_profile(tmp_path / "other")


@pytest.mark.parametrize("renewed", [False, True])
def test_a_certificate_of_somebody_else_is_refused_whatever_the_bundle_says(tmp_path: Path, renewed: bool) -> None:
    """Its holder would ask, be charged and be logged as that other."""
    if renewed:
        install(tmp_path, bundle(begin(tmp_path)))
    request = begin(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    nobodys = AUTHORITY.issue_server(["ann"], requested_key(request), datetime.now(UTC))
    for wrong, problem in (
        (replace(bundle(request, "mallory"), name="ann"), "is of 'mallory', not of 'ann'"),
        (replace(bundle(request), certificate=certificate_to_pem(nobodys)), "carries no name, not that of 'ann'"),
    ):
        with pytest.raises(InvalidArgument, match=rf"^bundle: certificate.*: {problem}$"):
            install(tmp_path, wrong)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_profile_whose_certificate_is_of_somebody_else_is_refused(tmp_path: Path) -> None:
    install(tmp_path, bundle(begin(tmp_path)))
    (tmp_path / "profile.toml").write_text('target = "db.example:7443"\nname = "bob"\n')
    with pytest.raises(InvalidArgument, match=r"certificate\.pem: is of 'ann', not of 'bob'"):
        Profile.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", json.dumps(WHOLE | {"version": 1}), json.dumps(WHOLE | {"version": 3})]
    + [
        json.dumps(WHOLE | changed)
        for changed in (
            {"name": 1},
            {"target": ""},
            {"certificate": "\u202e"},
            {"more": "x"},
            {"log_keys": ""},
            {"log_keys": "\n"},
            {"log_keys": LOG_KEYS_TEXT.replace("here+", "there+")},
        )
    ],
)
def test_a_malformed_bundle_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^bundle"):
        Bundle.from_json(text)


def test_a_bundle_says_everything_once(tmp_path: Path) -> None:
    """Else a program that takes the first of two authorities would show another fingerprint than is installed."""
    text = bundle(begin(tmp_path)).to_json()
    assert Bundle.from_json(text)
    with pytest.raises(InvalidArgument, match=r"^bundle: has the key 'authority' twice"):
        Bundle.from_json(text.replace("{", '{"authority": "another",', 1))


def test_what_a_bundle_says_stays_text(tmp_path: Path) -> None:
    hostile = replace(bundle(begin(tmp_path)), target='x"\\\nname = "operator')
    install(tmp_path, hostile)
    loaded = Profile.load(tmp_path)
    assert (loaded.target, loaded.name) == (hostile.target, hostile.name)


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(InvalidArgument, match="exists already, and is no profile"):
        begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_pending_key_that_others_may_open_is_refused(tmp_path: Path) -> None:
    answer = bundle(begin(tmp_path))
    (tmp_path / PENDING_KEY).chmod(0o640)
    with pytest.raises(InvalidArgument, match=r"pending\.key: can be read by other users"):
        install(tmp_path, answer)


def test_an_expired_profile_says_so(tmp_path: Path) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    install(tmp_path, bundle(begin(tmp_path), authority=Authority.create("here", long_ago), now=long_ago))
    with pytest.raises(InvalidArgument, match=r"certificate\.pem: expired on 2020-01-11; .*enroll --renew"):
        Profile.load(tmp_path)
    # Which is when it is wanted.
    assert b"CERTIFICATE REQUEST" in begin(tmp_path)


def test_fingerprints_are_of_keys() -> None:
    assert len(authority_fingerprint(AUTHORITY.pem).split()) == 8
    for function, field in ((key_fingerprint, "signing_request"), (authority_fingerprint, "authority")):
        with pytest.raises(InvalidArgument, match=f"^{field}"):
            function(b"nothing")


def test_an_admission_whose_answer_was_lost_is_sent_again_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.clients.connection.MAX_PAUSE_SECONDS", 0.0)
    directory = tmp_path / "ida"
    with Operator(Connection(grpc.insecure_channel("127.0.0.1:1"), "127.0.0.1:1")) as operator:
        sent = []
        for _ in range(2):
            with pytest.raises(Unavailable):
                operator.add_analyst("ida", directory)
            sent.append((begin(directory), (directory / PENDING_KEY).read_bytes()))
    assert sent[0] == sent[1]
    assert default_request_id("add", sent[0][0]) == default_request_id("add", sent[1][0])
    install(directory, bundle(sent[0][0], "ida"))
    with operator, pytest.raises(InvalidArgument, match="exists already"):
        operator.add_analyst("ida", directory)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command prints for people."""
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert not ended.value.code
    return capsys.readouterr().out


def test_people_see_what_to_send_and_what_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, file = tmp_path / "ann", tmp_path / "ann.json"
    told = said(capsys, "enroll", "--profile", directory)
    request = (directory / REQUEST).read_bytes()
    assert key_fingerprint(request) in told
    assert str(directory / REQUEST) in told
    hand_over(bundle(request), request, file, as_json=False)
    sent = capsys.readouterr().out
    assert key_fingerprint(request) in sent
    installed = said(capsys, "enroll", "--profile", directory, "--bundle", file)
    for shown in (sent, installed):
        assert authority_fingerprint(AUTHORITY.pem) in shown
    assert f"certified until {Profile.load(directory).expire_time:%Y-%m-%d}" in installed
    assert "request.pem" in said(capsys, "enroll", "--profile", directory, "--renew")


def test_how_certificates_stand() -> None:
    assert standing(None) == "revoked"
    assert standing(datetime(2020, 1, 2, tzinfo=UTC)) == "expired 2020-01-02"
    assert standing(datetime(9999, 1, 2, tzinfo=UTC)) == "until 9999-01-02"
