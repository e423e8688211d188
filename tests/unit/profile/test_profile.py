"""Profiles: they are private, and a damaged or foreign part is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import (
    InvalidArgument,
)
from equipoise.profile.profile import Profile
from equipoise_server.admin.new_state import create_state


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A profile as a deployment makes it."""
    create_state(tmp_path / "state", listen="127.0.0.1:7443")
    return tmp_path / "state" / "profiles" / "operator"


def test_a_profile_is_private(profile: Path) -> None:
    assert Profile.load(profile).target == "127.0.0.1:7443"
    assert "PRIVATE" not in repr(Profile.load(profile))
    assert profile.stat().st_mode & 0o777 == 0o700
    (profile / "key.pem").chmod(0o640)
    with pytest.raises(InvalidArgument, match="can be read by other users"):
        Profile.load(profile)


@pytest.mark.parametrize("name", ["ca.pem", "certificate.pem", "key.pem"])
def test_a_damaged_or_foreign_part_of_a_profile_is_named(profile: Path, tmp_path: Path, name: str) -> None:
    create_state(tmp_path / "other", listen="127.0.0.1:7443")
    foreign = (tmp_path / "other" / "profiles" / "operator" / name).read_bytes()
    for content in (b"damaged", foreign):
        (profile / name).write_bytes(content)
        with pytest.raises(InvalidArgument) as refused:
            Profile.load(profile)
        # A foreign authority shows in the certificate, and a foreign certificate in the key that is not its own.
        assert refused.value.field.endswith(".pem")


@pytest.mark.parametrize("text", ["target = 1\nname = 'x'", "name = 'x'", "target =", "\xff"])
def test_a_malformed_profile_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "profile.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match=r"profile\.toml"):
        Profile.load(tmp_path)
