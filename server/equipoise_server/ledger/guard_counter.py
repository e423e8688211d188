"""The guard's count of answers, which somebody waits for: overwritten in place, where all else is replaced.

The guard's file is its document, a line, and two places for the count, each a block of its own. The place that
says less is overwritten, and synced. A power loss in the middle of that damages no other block: the other place
says what was counted before, and nothing was told upon the newer count. Neither the length of the file changes nor
its name, so one sync of its data is all that is needed: no journal of the file system, and no directory. Which file
has the name was made durable before it is overwritten; it is held open, so no other can be taken for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

BLOCK_BYTES = 4096  # no disk or file system in use writes less than a whole one of these over another
PLACES = 2
_RECORD_BYTES = 37


def with_places(document: bytes) -> bytes:
    """Return the file's content: a document without line breaks, and places that say nothing yet."""
    blocks = -(-(len(document) + 1) // BLOCK_BYTES) + PLACES
    return document + b"\n" + bytes(blocks * BLOCK_BYTES - len(document) - 1)


def split(content: bytes) -> tuple[bytes, int]:
    """Document and count of a file's content; 0 where nothing is counted."""
    document = content.partition(b"\n")[0]
    if len(content) != len(with_places(document)):
        return content, 0
    return document, max(_read_count(content[start : start + _RECORD_BYTES]) for start in _places(len(content)))


@dataclass(eq=False)
class AnswerCount:
    """The file that is overwritten. To be used by whoever holds the guard's lock."""

    _descriptor: int | None = None

    def follows(self, path: Path) -> bool:
        """Return whether the file of this name is the one that was followed."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.lstat())
        except FileNotFoundError:
            return False

    def follow(self, path: Path) -> None:
        """From here on overwrite this file, which has places and is durable under its name. Raises `OSError`."""
        self.forget()
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)

    def put(self, answered: int) -> None:
        """Durable when this returns, and never less than before. Raises `OSError`; then nothing is followed."""
        descriptor = self._descriptor
        if descriptor is None:
            raise ValueError("no file is followed")
        try:
            places = list(_places(os.fstat(descriptor).st_size))
            counts = [_read_count(os.pread(descriptor, _RECORD_BYTES, place)) for place in places]
            os.pwrite(descriptor, _record(max(answered, *counts)), places[counts.index(min(counts))])
            os.fdatasync(descriptor)
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Follow no file."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def __del__(self) -> None:
        with suppress(OSError):
            self.forget()


def _places(size: int) -> Iterator[int]:
    yield from range(size - PLACES * BLOCK_BYTES, size, BLOCK_BYTES)


def _record(answered: int) -> bytes:
    number = b"%020d" % answered
    return number + b" " + sha256(number).hexdigest()[:16].encode()


def _read_count(record: bytes) -> int:
    """0 where a record is not whole."""
    number = record[:20]
    return int(number) if number.isdigit() and record == _record(int(number)) else 0
