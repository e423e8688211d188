"""The guard's count of session answers, which is overwritten in place because an analyst waits for each answer.

The guard's file is its document on one line, followed by two slots for the count. Each slot is a block of its own.
The slot with the smaller count is overwritten and synced. A power loss during that write damages no other block:
the other slot still has the earlier count, and no answer was sent that needs the newer one. Neither the file's
length nor its name changes, so one `fdatasync` is enough; the directory needs no sync. The file's name was made
durable before the first write in place. The file is held open, so no other file can be mistaken for it.
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
    """Return the file's content: a document without line breaks, and empty slots."""
    blocks = -(-(len(document) + 1) // BLOCK_BYTES) + PLACES
    return document + b"\n" + bytes(blocks * BLOCK_BYTES - len(document) - 1)


def split(content: bytes) -> tuple[bytes, int]:
    """Return the document and the count of a file's content; the count is 0 where no slot has one."""
    document = content.partition(b"\n")[0]
    if len(content) != len(with_places(document)):
        return content, 0
    return document, max(_read_count(content[start : start + _RECORD_BYTES]) for start in _places(len(content)))


@dataclass(eq=False)
class AnswerCount:
    """The file whose count is overwritten in place. Only the holder of the guard's lock may use it."""

    _descriptor: int | None = None

    def follows(self, path: Path) -> bool:
        """Return whether the file at this path is the one that is followed."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.lstat())
        except FileNotFoundError:
            return False

    def follow(self, path: Path) -> None:
        """Overwrite this file from now on. It must have slots and be durable under its name. Raises `OSError`."""
        self.forget()
        self._descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)

    def put(self, answered: int) -> None:
        """Write a count. The count is durable when this method returns, and it never falls.

        Raises:
            OSError: the file cannot be written; no file is followed afterwards.
            ValueError: no file is followed.
        """
        descriptor = self._descriptor
        if descriptor is None:
            raise ValueError("the guard's file is not open")
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
    """Return the count of a slot's record; 0 where the record is incomplete."""
    number = record[:20]
    return int(number) if number.isdigit() and record == _record(int(number)) else 0
