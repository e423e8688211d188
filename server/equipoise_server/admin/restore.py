"""Puts a backup's store in the place of a deployment's, while no server runs; makes a lost state directory anew."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from equipoise.errors import DataLoss, InvalidArgument
from equipoise_server.admin.backups import STATE, STORE, Backup, kind_of, read_backup
from equipoise_server.config_file import load_config
from equipoise_server.identity.keyfiles import make_private_directory
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.storage import copies
from equipoise_server.storage.durable import sync_directory, sync_tree
from equipoise_server.storage.failures import damage_as_data_loss
from equipoise_server.storage.store import open_store
from equipoise_server.transparency.log import check_log


@dataclass(frozen=True)
class Restored:
    """What `restore` did.

    Args:
        replaced: Where the store before is kept: a directory, or the name of a database; empty if there was none.
        made: Whether the state directory was made from the backup.
        older: Why the guard refuses the store until `ledger write-off`; empty if it does not.
    """

    replaced: str
    made: bool
    older: str


def restore(state: Path, source: Path, *, older: bool = False) -> Restored:
    """Put the store of a backup in the place of a deployment's.

    The copy is loaded beside the store and checked before anything is replaced: its journal, its accounts, its log,
    and that the guard knows of nothing that it lacks.

    Args:
        state: The state directory. One that does not exist is made of the backup's configuration and keys; what a
            restoration that was killed has left of it is removed first.
        source: The backup.
        older: Whether a store is put in place that the guard refuses, or where there is no guard to ask.

    Raises:
        InvalidArgument: The backup is damaged or of another deployment, a server uses the store, or another
            restoration is at work.
        DataLoss: The guard refuses the store and `older` is False, or the store is damaged. Nothing is replaced or
            made.
        Unavailable: The copy cannot be loaded.
    """
    backup = read_backup(source)
    if state.exists():
        return _exchanged(state, source, backup, older)
    # Under another name until all of it is there: a server would begin a new store with the keys of this one.
    making = state.with_name(f".{state.name}-restoring")
    state.parent.mkdir(parents=True, exist_ok=True)
    with _alone_in(state.parent):
        # Of a restoration that was killed: it holds keys, and nothing that the backup does not.
        if making.exists():
            shutil.rmtree(making)
        try:
            _unpack(source / STATE, making)
            done = _exchanged(making, source, backup, older)
            making.rename(state)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        sync_directory(state.parent)
    return replace(done, made=True)


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Let no other restoration make a state directory in a directory. Raises `InvalidArgument` if one does."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument(
                str(directory), "another restore makes a state directory in it; let it end"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _exchanged(state: Path, source: Path, backup: Backup, older: bool) -> Restored:
    """Put the store in the place of the one of a state directory that is there."""
    config = load_config(state)
    if (config.deployment, kind_of(config.store)) != (backup.deployment, backup.kind):
        raise InvalidArgument(
            str(source),
            f"is of the deployment {backup.deployment} on {backup.kind}, and {state} is {config.deployment} on "
            f"{kind_of(config.store)}",
        )
    url, guard = config.store_url(state), Guard(state / GUARD_FILE)
    with copies.beside(url, source / STORE) as loaded:
        store = open_store(loaded.render_as_string(hide_password=False))
        try:
            with store.read() as connection, damage_as_data_loss():
                check_accounts(connection)
                check_log(connection)
                refused = _refusal(guard, connection)
        finally:
            store.close()
        if refused and not older:
            raise DataLoss(f"{refused}; nothing was replaced, and --older replaces the store all the same")
        replaced = copies.exchange(url, loaded)
    return Restored(replaced, False, refused)


def _refusal(guard: Guard, connection: Connection) -> str:
    """Return why the guard refuses the store; empty if it does not."""
    try:
        guard.check(connection)
    except DataLoss as error:
        return error.message
    return ""


def _unpack(archive: Path, state: Path) -> None:
    """Make a state directory of configuration and keys, with an empty directory for the private tables."""
    make_private_directory(state)
    with tarfile.open(archive) as file:
        file.extractall(state, filter="data")
    # Modes of directories are not taken from archives.
    for name in ("ca", "keys"):
        make_private_directory(state / name)
    data = load_config(state).data_path(state)
    if not data.exists():
        make_private_directory(data)
    sync_tree(state)
