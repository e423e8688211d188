"""SQLite as the store: durable settings, a private file, and what it refuses to open."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.errors import DataLoss, InvalidArgument
from equipoise_server.storage import file_systems
from equipoise_server.storage.file_systems import SHARED, file_system
from equipoise_server.storage.store import Store, hold, hold_exclusively, open_store
from equipoise_server.storage.tables.identity import identities

# As proc(5) describes it: a file system over another, one below it, a name with a space, two on one directory.
MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:30 / /srv rw shared:2 - nfs4 files:/srv rw,vers=4.2
31 30 8:2 / /srv/local rw - xfs /dev/sdb1 rw
32 21 0:32 / /mnt/a\\040b rw - fuse.sshfs host: rw
33 21 8:3 / /var/lib rw - ext4 /dev/sdc1 rw
34 21 0:34 / /var/lib rw - cifs //files/lib rw
"""


def url(directory: Path) -> str:
    return f"sqlite:///{directory / 'equipoise.db'}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(url(tmp_path))
    yield store
    store.close()


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of mounts instead of this machine's."""
    table = tmp_path / "mounts"
    monkeypatch.setattr(file_systems, "MOUNTS", table)
    return table


def test_durability_is_what_was_asked_for(store: Store) -> None:
    with store.write() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys")
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    assert values == ["wal", 2, 1]


def test_what_is_erased_is_overwritten(store: Store, tmp_path: Path) -> None:
    """Seeds are erased one row at a time, from pages that stay in use, and whole pages of them are freed."""
    secret = "a seed that nobody may find again"
    with store.write() as connection:
        for number in range(300):
            name = f"{number} {secret * (1 + 9 * (number % 2))}"
            connection.execute(identities.insert().values(name=name, role="analyst", created=0))
    with store.write() as connection:
        for number in range(0, 300, 3):
            connection.execute(identities.delete().where(identities.c.name.startswith(f"{number} ")))
        connection.execute(identities.delete())
    with store.write() as connection:
        assert connection.exec_driver_sql("PRAGMA secure_delete").scalar() == 1
    store.close()
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_only_the_owner_can_read_the_files(store: Store, tmp_path: Path) -> None:
    with store.write() as connection, hold(url(tmp_path)):
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"equipoise.db", "equipoise.db-wal", "equipoise.db-shm", "equipoise.db-server"}
        for path in tmp_path.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "equipoise.db").write_bytes(b"not a database at all" * 200)
    with pytest.raises(DataLoss, match="the store is damaged"):
        open_store(url(tmp_path))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///{place}/x?uri=true&mode=memory", "must name a file and nothing else on SQLite"),
        ("sqlite://ann@host/x", "must name a file and nothing else on SQLite"),
        ("postgresql+psycopg://ann@host:fivefourthreetwo/x", "is not a database URL"),
        ("postgresql+psycopg://ann@host/x?host=a&host=b&port=1&port=2", "names hosts in two ways"),
        ("sqlite:///{place}/a%00b", "holds a control character"),
        ("mysql://ann@host/x", "must be the URL of a database"),
    ],
)
def test_what_is_no_store_s_url_is_refused_and_nothing_made(tmp_path: Path, url: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=f"store: {problem}"):
        open_store(url.format(place=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    for opening in (open_store, lambda missing: hold(missing).__enter__()):
        with pytest.raises(InvalidArgument, match="store: cannot be opened: No such file or directory"):
            opening(url(tmp_path / "missing"))


def test_one_server_at_a_time_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with hold(url(tmp_path)):
        for again in (tmp_path, tmp_path / "link"):
            for opening in (hold, hold_exclusively):
                refused = pytest.raises(InvalidArgument, match=r"store: .* is in use by another server")
                with refused, opening(url(again)):
                    pass
        # Looking at the store is not serving it.
        open_store(url(tmp_path)).close()
    with hold(url(tmp_path)):
        pass


def test_a_store_is_held_whatever_becomes_of_its_lock_file_and_its_name(tmp_path: Path) -> None:
    open_store(url(tmp_path)).close()
    (tmp_path / "elsewhere").mkdir()
    with hold(url(tmp_path)):
        (tmp_path / "equipoise.db-server").unlink()
        for place in (tmp_path, tmp_path / "elsewhere"):
            if not (place / "equipoise.db").exists():
                (tmp_path / "equipoise.db").rename(place / "equipoise.db")
            with pytest.raises(InvalidArgument, match=r"store: .* is in use by another server"), hold(url(place)):
                pass
        # A copy in its place is another store.
        shutil.copy(tmp_path / "elsewhere" / "equipoise.db", tmp_path / "copy.db")
        with hold(f"sqlite:///{tmp_path / 'copy.db'}"):
            pass
    with hold(url(tmp_path / "elsewhere")):
        pass


def test_who_lets_go_of_a_store_takes_no_lock_of_sqlites_away(store: Store, tmp_path: Path) -> None:
    """Else another process could write into the middle of a transaction."""
    writing = f"""
import sqlite3
connection = sqlite3.connect({str(tmp_path / "equipoise.db")!r}, timeout=0)
connection.execute("BEGIN IMMEDIATE")
"""
    with store.write() as connection:
        connection.execute(identities.insert().values(name="ann", role="analyst", created=0))
        for _ in range(2):
            with hold(url(tmp_path)):
                pass
        ended = subprocess.run([sys.executable, "-c", writing], capture_output=True, text=True, check=False)
    assert "database is locked" in ended.stderr


@pytest.mark.parametrize(
    ("path", "name", "shared"),
    [
        ("/home/x.db", "ext4", False),
        ("/srv/state/x.db", "nfs4", True),
        ("/srvother/x.db", "ext4", False),
        ("/srv/local/x.db", "xfs", False),
        ("/mnt/a b/x.db", "fuse.sshfs", True),
        ("/var/lib/x.db", "cifs", True),
    ],
)
def test_the_file_system_of_a_path(mounts: Path, path: str, name: str, shared: bool) -> None:
    mounts.write_text(MOUNTS)
    assert file_system(Path(path)) == name
    assert (name in SHARED) is shared


def test_a_file_that_is_mounted_alone_is_refused(mounts: Path, tmp_path: Path) -> None:
    local = f"21 20 0:9 / {tmp_path.resolve()} rw - ext4 /dev/sdb rw\n"
    mounts.write_text(local)
    open_store(url(tmp_path)).close()
    mounts.write_text(local + f"22 21 0:9 /kept.db {tmp_path.resolve() / 'equipoise.db'} rw - ext4 /dev/sdb rw\n")
    with pytest.raises(InvalidArgument, match=r"^store: .*equipoise\.db is mounted alone; mount its directory$"):
        open_store(url(tmp_path))


def test_a_store_that_is_served_cannot_be_served_where_its_file_is_mounted_again(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "equipoise.db").touch(0o600)
    open_store(url(tmp_path)).close()
    mounted = [
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c"),
        'mount --bind "$1" "$2"; shift 2; exec "$@"',
        *("sh", str(tmp_path / "equipoise.db"), str(other / "equipoise.db")),
    ]
    opening = "import sys; from equipoise_server.storage.store import open_store; open_store(sys.argv[1])"
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount")
    with hold(url(tmp_path)):
        again = [*mounted, sys.executable, "-c", opening, url(other)]
        ended = subprocess.run(again, capture_output=True, text=True, check=False)
    assert "is mounted alone; mount its directory" in ended.stderr


def test_where_nothing_is_told_nothing_is_known(mounts: Path) -> None:
    assert not mounts.exists()
    assert file_system(Path("/home/x.db")) is None


def test_this_machine_tells_of_a_file_system_that_the_kernel_knows(tmp_path: Path) -> None:
    found = file_system(tmp_path.resolve())
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    assert found in known


def test_a_network_file_system_is_refused_and_nothing_made(mounts: Path, tmp_path: Path) -> None:
    local = f"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 0:9 / {tmp_path.resolve()} rw - ext4 /dev/sdb rw\n"
    mounts.write_text(local)
    open_store(url(tmp_path)).close()
    place = tmp_path / "far"
    place.mkdir()
    (tmp_path / "near").symlink_to(place)
    mounts.write_text(local + f"22 21 0:10 / {place.resolve()} rw - nfs4 files:/far rw\n")
    for directory in (place, tmp_path / "near"):
        with pytest.raises(InvalidArgument, match=r"^store: lies on a network file system \(nfs4\)"):
            open_store(url(directory))
    assert list(place.iterdir()) == []
