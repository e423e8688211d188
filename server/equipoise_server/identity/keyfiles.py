"""Private files: written so that only their owner reads them, refused when anyone else could.

Trusted: whoever reads one of these files can issue certificates, pose as the server or decrypt stored seeds.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from pathlib import Path

from equipoise.errors import InvalidArgument

_STORAGE_KEY_FORMAT = "equipoise-storage-key-1"
STORAGE_KEY_BYTES = 32


def make_private_directory(path: Path) -> None:
    """Creates a directory that only its owner may enter; an existing one is narrowed to that."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Writes a new file of mode 0600, on disk before this returns. An existing one is never overwritten."""
    # The mode is given at creation: a file narrowed afterwards is readable for a moment.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_private(path: Path) -> bytes:
    """Return the content of a private file; `InvalidArgument` naming it if it is missing or others may open it."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))  # noqa: SIM115
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    with file:
        # Asked of the open file, not of the path, which could be exchanged in between.
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidArgument(str(path), f"can be read by other users of this machine; run: chmod 600 {path}")
        return file.read()


def write_storage_key(path: Path, key: bytes) -> None:
    """Writes the key that encrypts stored seeds, in a versioned one-line text format."""
    write_private(path, f"{_STORAGE_KEY_FORMAT} {base64.b64encode(key).decode()}\n".encode())


def read_storage_key(path: Path) -> bytes:
    """Return the 32 bytes written by `write_storage_key`; `InvalidArgument` naming the file if it holds none."""
    label, _, encoded = read_private(path).decode("ascii", "replace").strip().partition(" ")
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if label != _STORAGE_KEY_FORMAT or len(key) != STORAGE_KEY_BYTES:
        raise InvalidArgument(str(path), f"is not a key file of the format {_STORAGE_KEY_FORMAT!r}")
    return key
