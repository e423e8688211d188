"""Archives whose files have been cut or joined: refused in words, whatever is in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.custodian import Custodian

from equipoise.auditing.archive import read_archive, write_archive
from equipoise.errors import InvalidArgument, VerificationFailed


@pytest.mark.parametrize("name", ["archive.json", "own.json"])
@pytest.mark.parametrize("times", [0, 2])
def test_what_is_one_line_is_one(tmp_path: Path, name: str, times: int) -> None:
    """Of two lines one would be read, and nobody could tell which another reader takes."""
    write_archive(Custodian().archive(), tmp_path / "archive")
    file = tmp_path / "archive" / name
    file.write_bytes(file.read_bytes() * times)
    with pytest.raises(VerificationFailed, match=f"{name} does not have one line"):
        read_archive(tmp_path / "archive")


@pytest.mark.parametrize("name", ["archive.json", "checkpoint", "leaves.jsonl", "journal.jsonl", "own.json"])
def test_a_file_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    write_archive(Custodian().archive(), tmp_path / "archive")
    (tmp_path / "archive" / name).unlink()
    with pytest.raises(InvalidArgument, match=name):
        read_archive(tmp_path / "archive")
