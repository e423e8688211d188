"""The file that people log in with: strict, and named where it is wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from equipoise.errors import InvalidArgument
from equipoise.profile.login_file import LoginFile, kept_login
from equipoise.records.signed_notes import VerifierKey
from equipoise_server.identity.authority import Authority

LOGIN = LoginFile(
    door="db.example:7444",
    target="db.example:7443",
    issuer="https://login.example",
    client="equipoise",
    authority=Authority.create("here", datetime.now(UTC)).pem.decode(),
    log_keys=f"{VerifierKey('equipoise/here', bytes(range(32))).to_text()}\n",
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "login.json").write_text(LOGIN.to_json())
    assert kept_login(tmp_path) == LOGIN


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 2}, "version"),
        ({"door": ""}, "door"),
        ({"target": 7443}, "target"),
        ({"issuer": "https://login.exämple"}, "issuer"),
        ({"authority": "none"}, "authority"),
        ({"log_keys": "none"}, "log_keys"),
        ({"more": "a"}, "login file"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        LoginFile.from_json(json.dumps(json.loads(LOGIN.to_json()) | change))


def test_a_profile_without_a_login_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="--from FILE"):
        kept_login(tmp_path)
