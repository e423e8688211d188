"""A profile follows its authority to a new key on the word of the old one alone, and works after every step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from equipoise.errors import NotFound, VerificationFailed
from equipoise.profile.certificates import read_certificates
from equipoise.profile.enrolment import Bundle, begin, install
from equipoise.profile.profile import AUTHORITY, Profile
from equipoise.profile.succession import follow_authority
from equipoise.records.signed_notes import VerifierKey
from equipoise_server.identity.authority import Authority, certificate_to_pem, new_key
from equipoise_server.identity.enrolment import requested_key

NOW = datetime.now(UTC)
OLD = Authority.create("here", NOW)
NEW = OLD.succeeded(NOW)
LOG_KEYS = f"{VerifierKey('equipoise/here', bytes(range(32))).to_text()}\n"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    request = begin(tmp_path / "ann")
    certificate = certificate_to_pem(OLD.issue_identity("ann", requested_key(request), NOW, 10))
    install(tmp_path / "ann", Bundle("ann", "db.example:7443", certificate, OLD.pem, LOG_KEYS))
    return tmp_path / "ann"


def reissued(profile: Path, authority: Authority = NEW, name: str = "ann") -> bytes:
    """The certificate in the profile, signed anew."""
    (held,) = read_certificates(Profile.load(profile).certificate)
    return certificate_to_pem(authority.reissue_identity(name, held, NOW))


def content(profile: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in profile.iterdir() if path.is_file()}


def test_a_profile_follows_its_authority(profile: Path) -> None:
    before = Profile.load(profile)
    others = certificate_to_pem(NEW.issue_identity("ann", new_key().public_key(), NOW))
    assert not follow_authority(profile, OLD.pem, b"", [])
    assert follow_authority(profile, NEW.pem, NEW.link_pem, [others, reissued(profile)])
    after = Profile.load(profile)
    assert (after.authority, after.expire_time) == (NEW.pem, before.expire_time)
    assert not follow_authority(profile, NEW.pem, NEW.link_pem, [])


def strangers() -> dict[str, tuple[bytes, bytes]]:
    """What somebody shows who cannot sign with the old authority's key, by what is wrong with it."""
    stranger = Authority.create("here", NOW)
    after = stranger.succeeded(NOW)
    leaf = certificate_to_pem(OLD.issue_identity("eve", after.key.public_key(), NOW))
    past = OLD.succeeded(NOW - timedelta(days=4000))
    return {
        "no word of the old one": (stranger.pem, b""),
        "more than one authority": (OLD.pem + stranger.pem, b""),
        "shows more than one": (NEW.pem + stranger.pem, NEW.link_pem),
        "has not signed it": (after.pem, after.link_pem),
        "signed another key": (stranger.pem, NEW.link_pem),
        "the old one has signed another key": (after.pem, leaf),
        "the old one has not signed it": (past.pem, past.link_pem),
        "the link is not a certificate": (NEW.pem, b"nothing"),
        "the authority is not a certificate": (b"nothing", NEW.link_pem),
    }


@pytest.mark.parametrize("words", strangers())
def test_a_stranger_s_authority_is_refused_and_nothing_changes(profile: Path, words: str) -> None:
    before, (authority, link) = content(profile), strangers()[words]
    with pytest.raises(VerificationFailed, match=words):
        follow_authority(profile, authority, link, [reissued(profile)])
    assert content(profile) == before


@pytest.mark.parametrize("whose", ["nobody", "another name", "the old authority", "another key"])
def test_without_a_certificate_of_its_own_a_profile_stays_as_it_is(profile: Path, whose: str) -> None:
    offered = {
        "nobody": [],
        "another name": [reissued(profile, name="bob")],
        "the old authority": [reissued(profile, OLD)],
        "another key": [certificate_to_pem(NEW.issue_identity("ann", new_key().public_key(), NOW))],
    }[whose]
    before = content(profile)
    with pytest.raises(NotFound, match="no certificate for this profile's key"):
        follow_authority(profile, NEW.pem, NEW.link_pem, offered)
    assert content(profile) == before


def test_a_profile_works_after_every_step(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, steps, offered = Path.replace, 0, [reissued(profile)]

    def cut_off(path: Path, target: Path) -> Path:
        nonlocal steps
        if steps == 0:
            raise KeyboardInterrupt
        steps -= 1
        return really(path, target)

    first = content(profile)
    for before in range(3):
        for name, held in first.items():
            (profile / name).write_bytes(held)
        steps = before
        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", cut_off)
            with pytest.raises(KeyboardInterrupt):
                follow_authority(profile, NEW.pem, NEW.link_pem, offered)
        assert Profile.load(profile).authority.startswith(OLD.pem if before == 0 else NEW.pem)
    assert follow_authority(profile, NEW.pem, NEW.link_pem, [])
    assert (profile / AUTHORITY).read_bytes() == NEW.pem
