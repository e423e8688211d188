"""Workers that end while they read a file or a database: nothing more is charged, and another run answers alike."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from harness.answers import flat_chunks
from harness.dangers import ANY_BUDGET
from harness.rounds_bench import SCHEMA, TERMS, Bench
from harness.stores import Cluster, change_directly
from harness.waiting import PATIENCE, until
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import RoundState
from equipoise.wire.results import chunk_from_bytes
from equipoise_server.datasets.database import table

LOCK = 19
# Whoever reads the view waits as long as somebody else holds the lock.
WAITS = (
    "ALTER TABLE orders RENAME TO kept",
    f"CREATE VIEW orders AS SELECT kept.* FROM kept, (SELECT pg_advisory_xact_lock_shared({LOCK})) AS waited",
)

LOCKED = text(f"SELECT pg_advisory_lock({LOCK})")


def waiting(connection: Connection) -> int:
    """How many wait for the lock."""
    asked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    return int(connection.execute(text(asked)).scalar_one())


def chunks(bench: Bench, round_id: str) -> list[ResultColumns]:
    return [chunk_from_bytes(chunk) for chunk in bench.rounds.analyst_views.results("ann", round_id, 0, 100)]


def committed(charged: dict[str, tuple[float, float]]) -> dict[str, float]:
    """What is spent or reserved, by account."""
    return {name: both for name, (_, both) in charged.items()}


def answers_again(bench: Bench, round_id: str) -> list[ResultColumns]:
    """What ann gets of a round that has to be run again."""
    bench.rounds.lifecycle.run(round_id, "again")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    return chunks(bench, round_id)


@pytest.fixture
def database(postgresql: Cluster, tmp_path: Path, on_sqlite: Bench) -> Iterator[str]:
    """The URL of a database whose view "orders" has the rows of shop.csv, which is registered as "orders"."""
    data = on_sqlite.directory / "data"
    header, *rows = (data / "shop.csv").read_text().split()
    values = ", ".join("('{}', '{}')".format(*row.split(",")) for row in rows)
    with postgresql.database(tmp_path) as url:
        columns = header.replace(",", " text, ")
        change_directly(url, f"CREATE TABLE orders ({columns} text)", f"INSERT INTO orders VALUES {values}", *WAITS)
        (data / "orders.database.toml").write_text(f'url = "{url}"\ntable = "orders"\n')
        on_sqlite.rounds.datasets.register(
            "orders", "orders.database.toml", SCHEMA, None, None, "orders", people="same-as:shop"
        )
        yield url


def kill_worker(bench: Bench, round_id: str, _: str) -> None:
    worker = bench.rounds.runner.process_id(round_id)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)


def end_connection(_: Bench, __: str, url: str) -> None:
    ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    change_directly(url, ended)


@pytest.mark.full
@pytest.mark.both_stores
@pytest.mark.parametrize(
    ("end", "problem"),
    [(kill_worker, "failed: "), (end_connection, "failed: table: cannot be read from the database: ")],
)
def test_a_reading_of_a_database_that_ends_early_is_repeated(
    on_sqlite: Bench, database: str, end: Callable[[Bench, str, str], None], problem: str
) -> None:
    of_file = on_sqlite.released().id
    round_id = on_sqlite.sealed(replace(TERMS, dataset="orders"))
    engine = create_engine(database, poolclass=NullPool)
    with engine.connect() as first, engine.connect() as holder, ThreadPoolExecutor() as beside:
        # The server looks at the table before its worker reads it. Locks are given in the order in which they are
        # asked for: the look waits for the first holder, the next holder for the look, and the worker for that one.
        first.execute(LOCKED)
        started = beside.submit(on_sqlite.rounds.lifecycle.run, round_id, "run")
        until(lambda: waiting(first) == 1)
        held = beside.submit(holder.execute, LOCKED)
        until(lambda: waiting(first) == 2)
        first.execute(text(f"SELECT pg_advisory_unlock({LOCK})"))
        held.result()
        started.result()
        until(lambda: waiting(holder) == 1)
        # What operators are told while a database is read, which does not say how far it is.
        until(lambda: on_sqlite.rounds.views.progress(round_id).phase == "load")
        before = on_sqlite.charged()
        end(on_sqlite, round_id, database)
        progress = on_sqlite.wait(round_id, PATIENCE)
        assert not progress.complete
        assert progress.phase.startswith(problem)
        assert on_sqlite.state(round_id) is RoundState.RUNNING
        assert on_sqlite.charged() == before
    assert flat_chunks(answers_again(on_sqlite, round_id)) == flat_chunks(chunks(on_sqlite, of_file))
    assert committed(on_sqlite.charged()) == committed(before)


def test_a_table_that_somebody_has_locked_does_not_hold_a_server_up(
    on_sqlite: Bench, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "LOCK_SECONDS", 1)
    round_id = on_sqlite.sealed(replace(TERMS, dataset="orders"))
    before = on_sqlite.charged()
    with create_engine(database, poolclass=NullPool).connect() as holder:
        holder.execute(LOCKED)
        with pytest.raises(InvalidArgument, match="lock timeout"):
            on_sqlite.rounds.lifecycle.run(round_id, "run")
    assert on_sqlite.state(round_id) is RoundState.SEALED
    assert on_sqlite.charged() == before


@pytest.mark.nightly
def test_a_worker_that_is_killed_while_it_reads_a_file_is_replaced(on_sqlite: Bench) -> None:
    large = on_sqlite.directory / "data" / "large.csv.gz"
    with gzip.open(large, "wb", compresslevel=1) as file:
        file.write(b"colour,size\n" + b"red,s\ngreen,m\n" * 1_500_000)
    on_sqlite.rounds.datasets.register("large", large.name, SCHEMA, None, None, "large", people="same-as:shop")
    terms = replace(TERMS, dataset="large", accepted=ANY_BUDGET)
    undisturbed = on_sqlite.released(terms).id
    round_id = on_sqlite.sealed(terms)
    on_sqlite.rounds.lifecycle.run(round_id, "run")
    worker = on_sqlite.rounds.runner.process_id(round_id)
    assert worker is not None
    until(lambda: is_reading(worker, large))
    before = on_sqlite.charged()
    os.kill(worker, signal.SIGKILL)
    assert not on_sqlite.wait(round_id, PATIENCE).complete
    assert on_sqlite.charged() == before
    assert flat_chunks(answers_again(on_sqlite, round_id)) == flat_chunks(chunks(on_sqlite, undisturbed))
    assert committed(on_sqlite.charged()) == committed(before)


def is_reading(process: int, path: Path) -> bool:
    """Whether a process has the file open, which then stands still; else it goes on."""
    os.kill(process, signal.SIGSTOP)
    files = Path(f"/proc/{process}/fd")
    if any(each.is_symlink() and Path(os.readlink(each)) == path.resolve() for each in files.iterdir()):
        return True
    os.kill(process, signal.SIGCONT)
    return False


@contextmanager
def only_with_password(started: Cluster, role: str) -> Iterator[None]:
    """Ask a role for its password while the context lasts."""
    rules = started.directory / "data" / "pg_hba.conf"
    usual = rules.read_text()
    reload = "SELECT pg_reload_conf()"
    rules.write_text(f"local all {role} scram-sha-256\n{usual}")
    change_directly(started.url("postgres"), reload)
    try:
        yield
    finally:
        rules.write_text(usual)
        change_directly(started.url("postgres"), reload)


@pytest.mark.full
@pytest.mark.both_stores
def test_a_wrong_password_leaves_the_round_sealed_and_nothing_spent(
    on_sqlite: Bench, database: str, postgresql: Cluster
) -> None:
    data = on_sqlite.directory / "data"
    change_directly(database, "CREATE ROLE keyed LOGIN PASSWORD 'right horse'", "GRANT SELECT ON orders TO keyed")
    (data / "password").write_text("right horse\n")
    (data / "password").chmod(0o600)
    (data / "orders.database.toml").write_text(
        f'url = "{database.replace("postgres@", "keyed@")}"\ntable = "orders"\npassword_file = "password"\n'
    )
    try:
        with only_with_password(postgresql, "keyed"):
            on_sqlite.released(replace(TERMS, dataset="orders"))
            spent = on_sqlite.charged()
            round_id = on_sqlite.sealed(replace(TERMS, dataset="orders"))
            (data / "password").write_text("wrong donkey\n")
            with pytest.raises(InvalidArgument, match=r"the database cannot be reached: .*password") as refused:
                on_sqlite.rounds.lifecycle.run(round_id, "run")
            assert "horse" not in str(refused.value)
            assert "donkey" not in str(refused.value)
            assert on_sqlite.state(round_id) is RoundState.SEALED
            on_sqlite.rounds.lifecycle.abort(round_id, "the password is wrong", "abort")
            assert on_sqlite.charged() == spent
    finally:
        change_directly(database, "DROP OWNED BY keyed", "DROP ROLE keyed")
