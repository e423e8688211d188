"""What a table's state is recognised by before anything is charged, without counting its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = b"equipoise snapshot v1\n"


@dataclass(frozen=True)
class Snapshot:
    """One state of a table.

    `digest`: 32 bytes, equal for equal states of one source. `seen`: what it is made of, in the plural. `rows`: how
    many the table has; None where this is not known without reading it.

    Two states that differ have different digests but for what a source says of itself; the digest of the counts
    (`datasets.digest`), which every run compares, has no such exceptions.
    """

    digest: bytes
    seen: str
    rows: int | None = None


def of_files(root: Path, files: Sequence[Path]) -> Snapshot:
    """Return the snapshot of a table in files: SHA-256 over the names of those in a directory, and all bytes.

    Args:
        root: the file, or the directory of the files.
        files: those that hold the table, in order.

    Raises:
        OSError: a file cannot be read.
    """
    parts = []
    for file in files:
        parts.append(str(file.relative_to(root)).encode())
        with file.open("rb") as opened:
            parts.append(hashlib.file_digest(opened, "sha256").digest())
    return Snapshot(_digest(b"files", parts), "the bytes of its files")


def of_rows(facts: Sequence[int]) -> Snapshot:
    """Return the snapshot of a table that an engine counts. `facts`: its row of `sql.snapshot`, rows first."""
    return Snapshot(_digest(b"rows", [str(fact).encode() for fact in facts]), "its rows", facts[0])


def of_version(*named: str) -> Snapshot:
    """Return the snapshot of a table whose format keeps old versions.

    `named`: where the table is, its format, and the version.
    """
    return Snapshot(_digest(b"version", [name.encode() for name in named]), "its place or its version")


def _digest(kind: bytes, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(PREFIX)
    for part in (kind, *parts):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
