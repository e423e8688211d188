"""The guard's count of answers in place: it never falls, and a torn write leaves what was told before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise_server.ledger.guard_counter import BLOCK_BYTES, PLACES, AnswerCount, split, with_places

DOCUMENT = b'{"version":1}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "guard"
    path.write_bytes(with_places(DOCUMENT))
    return path


@pytest.fixture
def count(file: Path) -> Iterator[AnswerCount]:
    made = AnswerCount()
    made.follow(file)
    yield made
    made.forget()


def test_a_count_never_falls(file: Path, count: AnswerCount) -> None:
    """Two servers share the file, and the slower one knows of fewer answers."""
    told = []
    for answered in (7, 3, 0, 8, 2, 2, 9):
        count.put(answered)
        told.append(split(file.read_bytes())[1])
    assert told == [7, 7, 7, 8, 8, 8, 9]
    assert split(file.read_bytes())[0] == DOCUMENT


@pytest.mark.parametrize("torn", [b"", b"\0" * 37, b"\xff" * 37, b"9" * 20 + b" " + b"0" * 16])
def test_a_write_that_was_torn_leaves_the_count_before_it(file: Path, count: AnswerCount, torn: bytes) -> None:
    """Whichever block a power loss damages is the one that was being written."""
    for answered in range(1, 6):
        count.put(answered)
        whole = file.read_bytes()
        starts = range(len(whole) - PLACES * BLOCK_BYTES, len(whole), BLOCK_BYTES)
        (written,) = [start for start in starts if int(whole[start : start + 20].strip(b"\0") or 0) == answered]
        damaged = whole[:written] + torn.ljust(BLOCK_BYTES, b"\0") + whole[written + BLOCK_BYTES :]
        assert split(damaged) == (DOCUMENT, answered - 1)
