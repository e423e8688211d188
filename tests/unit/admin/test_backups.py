"""Backups of a deployment and their restoration, on both stores: what is kept, refused and replaced."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness.stores import find_binaries
from sqlalchemy import select

from equipoise.errors import DataLoss, InvalidArgument
from equipoise_server.admin.backups import MANIFEST, STATE, STORE, back_up, read_backup
from equipoise_server.admin.ledger_repair import verify, write_off_state
from equipoise_server.admin.log_keys import add_log_key
from equipoise_server.admin.new_state import create_state
from equipoise_server.admin.restore import _alone_in, restore
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.config_file import load_config
from equipoise_server.storage.store import hold, open_store
from equipoise_server.storage.tables.identity import identities
from equipoise_server.transparency.sequencing import Sequencer

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> datetime:
    return NOW


@pytest.fixture
def state(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new deployment; on PostgreSQL with the cluster's own programs in reach."""
    if (binaries := find_binaries()) is not None:
        monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    path = tmp_path / "state"
    store = "sqlite:///equipoise.db" if store_url.startswith("sqlite") else store_url
    create_state(path, clock=clock, store=store)
    go_on(path)
    return path


def go_on(state: Path) -> None:
    """What a server does: a record more, which the guard knows of before anybody is shown it."""
    add_log_key(state, clock)
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    try:
        Sequencer(store, deployment.guard, deployment.signer).sequence(NOW)
    finally:
        store.close()


def log_size(state: Path) -> int:
    """How long the log is; the store agrees with its guard."""
    return int(verify(state, clock)["log_size"])


def write_off(state: Path) -> None:
    write_off_state(state, clock)


def test_what_was_backed_up_is_restored_and_what_it_replaces_is_kept(state: Path, tmp_path: Path) -> None:
    made = back_up(state, tmp_path / "backup", clock)
    assert (made, made.time) == (read_backup(tmp_path / "backup"), int(NOW.timestamp()))
    before = log_size(state)
    done = restore(state, tmp_path / "backup")
    assert (done.made, done.older) == (False, "")
    assert done.replaced
    assert log_size(state) == before


def test_a_backup_is_for_its_owner_and_without_guard_tables_or_profiles(state: Path, tmp_path: Path) -> None:
    out = tmp_path / "backup"
    back_up(state, out, clock)
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE((out / name).stat().st_mode) for name in (STORE, STATE, MANIFEST)} == {0o600}
    with tarfile.open(out / STATE) as archive:
        names = {name.partition("/")[0] for name in archive.getnames()}
    assert names == {"equipoise.toml", "ca", "keys"}
    with pytest.raises(InvalidArgument, match="is not empty"):
        back_up(state, out, clock)


@pytest.mark.full
def test_a_store_that_lacks_what_the_guard_knows_is_refused_before_anything_is_replaced(
    state: Path, tmp_path: Path
) -> None:
    back_up(state, tmp_path / "backup", clock)
    old = log_size(state)
    go_on(state)
    newer = log_size(state)
    assert newer > old
    with pytest.raises(DataLoss, match=r"restored from an older copy.* nothing was replaced.* --older"):
        restore(state, tmp_path / "backup")
    assert log_size(state) == newer
    done = restore(state, tmp_path / "backup", older=True)
    assert "older copy" in done.older
    with pytest.raises(DataLoss, match="older copy"):
        verify(state, clock)
    write_off(state)
    assert log_size(state) > newer


def test_a_lost_state_directory_is_made_anew_and_its_guard_is_missed(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "backup", clock)
    lost = state.rename(tmp_path / "lost")
    with pytest.raises(DataLoss, match=r"guard .* is missing"):
        restore(state, tmp_path / "backup")
    # Nothing that a server could begin a new store in, with a guard that knows of no budget.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "lost"]
    done = restore(state, tmp_path / "backup", older=True)
    assert "is missing" in done.older
    assert done.made
    assert not list(state.glob("replaced*"))  # a database of PostgreSQL was not lost, and is kept
    for name in ("ca", "keys", "data"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o700
    for path in (state / "keys").iterdir():
        assert path.read_bytes() == (lost / "keys" / path.name).read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 or path.suffix == ".pem"
    write_off(state)
    assert log_size(state)


@pytest.mark.full
def test_what_was_acknowledged_before_a_backup_under_load_is_in_it(state: Path, tmp_path: Path) -> None:
    store, stopping = open_deployment(state, NOW).open_store(), threading.Event()
    acknowledged: list[str] = []

    def write() -> None:
        while not stopping.is_set():
            name = f"analyst-{len(acknowledged)}"
            with store.write() as connection:
                connection.execute(identities.insert().values(name=name, role="analyst", created=0))
            acknowledged.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while writer.is_alive() and len(acknowledged) < 20:
            time.sleep(0.01)
        before = list(acknowledged)
        back_up(state, tmp_path / "backup", clock)
    finally:
        stopping.set()
        writer.join()
        store.close()
    assert len(acknowledged) > len(before)
    restore(tmp_path / "elsewhere", tmp_path / "backup", older=True)
    copy = open_store(load_config(tmp_path / "elsewhere").store_url(tmp_path / "elsewhere"))
    try:
        with copy.read() as connection:
            query = select(identities.c.name).where(identities.c.name.startswith("analyst-"))
            kept = set(connection.execute(query).scalars())
    finally:
        copy.close()
    # What one transaction after another wrote is there up to one of them.
    assert set(before) <= kept
    assert kept == set(acknowledged[: len(kept)])


def cut(backup: Path) -> None:
    (backup / MANIFEST).unlink()


def change_the_store(backup: Path) -> None:
    content = bytearray((backup / STORE).read_bytes())
    content[len(content) // 2] ^= 1
    (backup / STORE).write_bytes(content)


def shorten_the_keys(backup: Path) -> None:
    (backup / STATE).write_bytes((backup / STATE).read_bytes()[:-512])


def say_more(backup: Path) -> None:
    (backup / MANIFEST).write_bytes((backup / MANIFEST).read_bytes() + b" ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (cut, "no backup, or one that was interrupted"),
        (change_the_store, "store: is not what backup.json says"),
        (shorten_the_keys, "state.tar: is not what backup.json says"),
        (say_more, "backup.json: is damaged"),
    ],
)
def test_a_damaged_backup_is_refused_by_name(
    state: Path, tmp_path: Path, damage: Callable[[Path], None], problem: str
) -> None:
    back_up(state, tmp_path / "backup", clock)
    before = log_size(state)
    damage(tmp_path / "backup")
    with pytest.raises(InvalidArgument, match=problem):
        restore(state, tmp_path / "backup", older=True)
    assert log_size(state) == before


def test_the_backup_of_another_deployment_is_refused(state: Path, tmp_path: Path) -> None:
    create_state(tmp_path / "other", clock=clock)
    back_up(tmp_path / "other", tmp_path / "backup", clock)
    before = log_size(state)
    with pytest.raises(InvalidArgument, match="is of the deployment"):
        restore(state, tmp_path / "backup", older=True)
    assert log_size(state) == before


def test_nothing_is_restored_under_a_server(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "backup", clock)
    with hold(open_deployment(state, NOW).config.store_url(state)):
        for _ in ("with the lock file", "without it"):
            with pytest.raises(InvalidArgument, match="is in use"):
                restore(state, tmp_path / "backup", older=True)
            (state / "equipoise.db-server").unlink(missing_ok=True)  # on SQLite
        back_up(state, tmp_path / "under a server", clock)
    # A copy that was laid beside the store is gone, and the next attempt finds nothing in its way.
    assert not list(state.glob("*-restoring*"))
    restore(state, tmp_path / "backup")


def test_what_a_killed_restoration_left_is_removed_by_the_next(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "backup", clock)
    shutil.rmtree(state)
    left = tmp_path / ".state-restoring" / "keys"
    left.mkdir(parents=True)
    (left / "storage.key").write_text("secret")
    with _alone_in(tmp_path), pytest.raises(InvalidArgument, match="another restore"):
        restore(state, tmp_path / "backup", older=True)
    assert left.exists()
    restore(state, tmp_path / "backup", older=True)
    assert sorted(each.name for each in tmp_path.iterdir() if "state" in each.name) == ["state"]
    assert (state / "keys" / "storage.key").read_bytes() != b"secret"


def test_a_backup_that_cannot_be_written_names_its_place(state: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="file"):
        back_up(state, tmp_path / "file", clock)
    with pytest.raises(InvalidArgument, match="file"):
        back_up(state, tmp_path / "file" / "backup", clock)


def test_without_the_programs_of_postgresql_they_are_named(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if "postgresql" not in open_deployment(state, NOW).config.store:
        assert back_up(state, tmp_path / "backup", clock).kind == "sqlite"
        return
    with pytest.raises(InvalidArgument, match="pg_dump: is not installed"):
        back_up(state, tmp_path / "backup", clock)
    with pytest.raises(InvalidArgument, match="no backup, or one that was interrupted"):
        read_backup(tmp_path / "backup")
