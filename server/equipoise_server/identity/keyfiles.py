"""Private files: written so that only their owner can read them, and refused if anyone else could.

Trust: whoever can read one of these files can issue certificates, pose as the server or decrypt stored seeds.
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
import stat
from pathlib import Path

from equipoise.errors import InvalidArgument

_STORAGE_KEY_FORMAT = "equipoise-storage-key-1"
STORAGE_KEY_BYTES = 32


def make_private_directory(path: Path) -> None:
    """Create a directory that only its owner may enter; restrict an existing one likewise."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file of mode 0600 durably. An existing file is never overwritten: raises `FileExistsError`."""
    # The mode is set at creation: a file that is restricted afterwards is readable for a moment.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_private(path: Path) -> bytes:
    """Return the content of a private file; `InvalidArgument` naming it if it is missing or others may open it."""
    content = find_private(path)
    if content is None:
        raise InvalidArgument(str(path), f"cannot be read: {os.strerror(errno.ENOENT)}")
    return content


def find_private(path: Path) -> bytes | None:
    """Return the content of a private file; None if there is no file. `InvalidArgument` if others may open it."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))  # noqa: SIM115
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    with file:
        # The mode is read from the open file, not from the path, which could be exchanged in between.
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidArgument(str(path), f"can be read by other users of this machine; run: chmod 600 {path}")
        return file.read()


def write_storage_key(path: Path, key: bytes) -> None:
    """Write the key that encrypts stored seeds, in a versioned one-line text format."""
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
