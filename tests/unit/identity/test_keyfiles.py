"""Private files are written narrowly and refused when others could open them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise_server.identity.keyfiles import (
    make_private_directory,
    read_private,
    read_storage_key,
    write_private,
    write_storage_key,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_written_for_the_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_directory(tmp_path / "keys")
        write_private(tmp_path / "keys" / "a.key", b"secret")
    finally:
        os.umask(before)
    assert mode(tmp_path / "keys") == 0o700
    assert mode(tmp_path / "keys" / "a.key") == 0o600
    assert read_private(tmp_path / "keys" / "a.key") == b"secret"


def test_never_overwritten(tmp_path: Path) -> None:
    write_private(tmp_path / "a.key", b"first")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "a.key", b"second")
    assert read_private(tmp_path / "a.key") == b"first"


@pytest.mark.parametrize("exposed", [0o640, 0o604, 0o660, 0o601])
def test_refused_when_others_may_open_it(tmp_path: Path, exposed: int) -> None:
    path = tmp_path / "a.key"
    write_private(path, b"secret")
    path.chmod(exposed)
    with pytest.raises(InvalidArgument, match=r"a\.key: .*chmod 600"):
        read_private(path)


def test_refused_when_missing_a_link_or_a_directory(tmp_path: Path) -> None:
    write_private(tmp_path / "real.key", b"secret")
    (tmp_path / "link.key").symlink_to(tmp_path / "real.key")
    (tmp_path / "directory.key").mkdir()
    for name in ("absent.key", "link.key", "directory.key"):
        with pytest.raises(InvalidArgument, match=name):
            read_private(tmp_path / name)


def test_storage_key_round_trip(tmp_path: Path) -> None:
    write_storage_key(tmp_path / "storage.key", bytes(range(32)))
    assert read_storage_key(tmp_path / "storage.key") == bytes(range(32))


@pytest.mark.parametrize(
    "content",
    [b"", b"equipoise-storage-key-2 " + b"A" * 44, b"equipoise-storage-key-1 AAAA", b"\xff" * 32, b"x " * 9],
)
def test_storage_key_of_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    write_private(tmp_path / "storage.key", content)
    with pytest.raises(InvalidArgument, match=r"storage\.key: is not a key file"):
        read_storage_key(tmp_path / "storage.key")
