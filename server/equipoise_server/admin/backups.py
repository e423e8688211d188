"""Backups of a deployment: a directory with a copy of the store, the configuration and keys, and their digests.

    store        the store at one moment: an SQLite file, or what `pg_dump` writes
    state.tar    equipoise.toml, ca and keys
    backup.json  which deployment it is of, when it was begun, and the digests of both files; written last

The guard is left out on purpose: it shows that a store is older than the budgets that were spent, so an older guard
must never take the place of a newer one. Private tables are not in the store, and profiles are their owners'. A
backup is as secret as the state directory.
"""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass
from pathlib import Path

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.records.codec import COUNT, HASH, TEXT, Codec, object_codec
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config_file import CONFIG_FILE, load_config
from equipoise_server.identity.keyfiles import make_private_directory, write_private
from equipoise_server.storage import copies
from equipoise_server.storage.durable import sync_directory, sync_file

VERSION = 1
STORE, STATE, MANIFEST = "store", "state.tar", "backup.json"
SELDOM_CHANGED = (CONFIG_FILE, "ca", "keys")  # of the state directory


@dataclass(frozen=True)
class Backup:
    """What `backup.json` says.

    Args:
        deployment: Its name.
        time: When the backup was begun, in seconds since 1970 UTC.
        kind: Of the store: `sqlite` or `postgresql`.
        store: The SHA-256 digest of the copy of the store.
        state: That of the archive of configuration and keys.
    """

    deployment: str
    time: int
    kind: str
    store: bytes
    state: bytes


BACKUP: Codec[Backup] = object_codec(
    Backup,
    {
        "deployment": ("deployment", TEXT),
        "time": ("time", COUNT),
        "kind": ("kind", TEXT),
        "store": ("store", HASH),
        "state": ("state", HASH),
    },
    {"version": VERSION},
)


def back_up(state: Path, out: Path, clock: Clock = system_clock) -> Backup:
    """Back a deployment up, whether or not servers run on it.

    Args:
        state: The state directory.
        out: A new directory, which gets mode 0700, or an empty one.
        clock: Tells the time of the backup.

    Returns:
        What is in it.

    Raises:
        InvalidArgument: The state directory is none, or `out` holds files already.
        Unavailable: The store cannot be copied now. What was written is no backup, as `backup.json` is missing.
    """
    config, begun = load_config(state), clock()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidArgument(str(out), "is not empty; a backup needs a directory of its own")
    try:
        make_private_directory(out)
        # Store before keys: keys that were added in between are kept, though the copy does not know them.
        copies.write(config.store_url(state), out / STORE)
        _archive(state, out / STATE)
        made = Backup(
            config.deployment,
            int(begun.timestamp()),
            kind_of(config.store),
            digest_of(out / STORE),
            digest_of(out / STATE),
        )
        write_private(out / MANIFEST, BACKUP.to_bytes(made))
        sync_directory(out)
    except OSError as error:
        raise InvalidArgument(str(error.filename or out), f"cannot be written: {error.strerror}") from None
    return made


def read_backup(directory: Path) -> Backup:
    """Return what is in a backup whose files are all as they were written.

    Raises:
        InvalidArgument: The directory is no backup, or one that was interrupted; a file is missing or was changed.
    """
    path = directory / MANIFEST
    try:
        found = BACKUP.from_bytes(path.read_bytes(), "it")
        digests = {name: digest_of(directory / name) for name in (STORE, STATE)}
    except VerificationFailed as error:
        raise InvalidArgument(str(path), f"is damaged: {error.message}") from None
    except OSError as error:
        problem = "is missing: this is no backup, or one that was interrupted"
        missing = isinstance(error, FileNotFoundError)
        raise InvalidArgument(
            str(error.filename), problem if missing else f"cannot be read: {error.strerror}"
        ) from None
    for name, expected in ((STORE, found.store), (STATE, found.state)):
        if digests[name] != expected:
            raise InvalidArgument(str(directory / name), f"is not what {MANIFEST} says: it was changed or cut off")
    return found


def kind_of(store_url: str) -> str:
    """Return what a copy of the store is: `sqlite` or `postgresql`."""
    return store_url.partition(":")[0].partition("+")[0]


def digest_of(path: Path) -> bytes:
    """Return the SHA-256 digest of a file. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _archive(state: Path, path: Path) -> None:
    write_private(path, b"")
    with tarfile.open(path, "w") as archive:
        for name in SELDOM_CHANGED:
            archive.add(state / name, name)
    sync_file(path)
