"""The digests of all journal entries that the rollback guard has seen, in a file beside the guard.

A store whose journal ends before the guard's entry is one of two things. It may be an older copy: then the guard
knows everything that the copy lacks. Or it may be a fork: then the copy and the lost store have each spent amounts
that the other does not know. The journal's last digest tells the two apart, because each digest is chained to all
digests before it: the copy is an older one only if the guard has seen that digest at the same sequence number.

The file contains 32 bytes for each entry, from the first one on. It is written and synced before the guard moves.
So the file may be ahead of the guard after a crash, which is harmless: only digests up to the guard's entry are
read. A file that does not have the guard's own digest at the guard's entry proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from equipoise.model.journal import START
from equipoise_server.storage.durable import sync_directory

DIGEST_BYTES = len(START)


@dataclass(frozen=True)
class SeenDigests:
    """The file of one guard. Only the holder of the guard's lock may change it."""

    path: Path

    def at(self, sequence: int) -> bytes | None:
        """Return the digest of entry `sequence`, or None where the file has none; entry 0 has the start value.

        Raises:
            OSError: the file is there and cannot be read.
        """
        if sequence == 0:
            return START
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                file.seek((sequence - 1) * DIGEST_BYTES)
                digest = file.read(DIGEST_BYTES)
        except FileNotFoundError:
            return None
        return digest if len(digest) == DIGEST_BYTES else None

    def extend(self, sequence: int, digests: Iterable[bytes]) -> None:
        """Write the digests of the entries after `sequence` durably, and remove all digests behind them.

        Raises:
            OSError: the file cannot be written.
        """
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            size_before = os.fstat(descriptor).st_size
            os.ftruncate(descriptor, sequence * DIGEST_BYTES)
            file.seek(sequence * DIGEST_BYTES)
            file.writelines(digests)
            file.flush()
            os.fsync(descriptor)
        if not size_before:
            sync_directory(self.path.parent)
