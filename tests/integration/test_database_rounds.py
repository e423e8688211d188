"""Rounds on a table in a database: the answers of a file with its rows, and none where the table has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.answers import flat_chunks
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import CAP, SCHEMA, TERMS, Bench
from harness.stores import Cluster
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import RoundState
from equipoise.wire.results import chunk_from_bytes

pytestmark = pytest.mark.both_stores
ON_TABLE = replace(TERMS, dataset="orders")


@pytest.fixture
def database(postgresql: Cluster, tmp_path: Path, on_sqlite: Bench) -> Iterator[str]:
    """The URL of a database whose table "orders" has the rows of shop.csv, which is registered as "orders"."""
    header, *rows = (on_sqlite.directory / "data" / "shop.csv").read_text().split()
    values = ", ".join("('{}', '{}')".format(*row.split(",")) for row in rows)
    with postgresql.database(tmp_path) as url:
        run(url, f"CREATE TABLE orders ({header.replace(',', ' text, ')} text); INSERT INTO orders VALUES {values}")
        description = f'url = "{url}"\ntable = "orders"\n'
        (on_sqlite.directory / "data" / "orders.database.toml").write_text(description)
        on_sqlite.rounds.datasets.register(
            "orders", "orders.database.toml", SCHEMA, None, None, "orders", people="same-as:shop"
        )
        yield url


def run(url: str, statement: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(statement))


@pytest.mark.full
def test_a_round_on_a_database_gives_the_answers_of_one_on_its_rows_in_a_file(
    on_sqlite: Bench, database: str
) -> None:
    assert database
    of_file, of_table = (on_sqlite.released(terms).id for terms in (TERMS, ON_TABLE))
    for analyst in ("ann", "bob"):
        assert flat_chunks(chunks(on_sqlite, analyst, of_table)) == flat_chunks(chunks(on_sqlite, analyst, of_file))


def chunks(bench: Bench, analyst: str, round_id: str) -> list[ResultColumns]:
    return [chunk_from_bytes(chunk) for chunk in bench.rounds.analyst_views.results(analyst, round_id, 0, 100)]


def test_new_people_of_a_table_that_is_registered_already_are_refused(on_sqlite: Bench, database: str) -> None:
    assert database
    with pytest.raises(InvalidArgument, match="people: must be 'same-as:"):
        on_sqlite.rounds.datasets.register(
            "again", "orders.database.toml", SCHEMA, CAP, CAP, "x", people="new", accepted=LARGE_CAPS
        )


@pytest.mark.sparse(4)
@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("INSERT INTO orders VALUES ('red', 's')", "it has 401 rows, and had 400"),
        ("UPDATE orders SET size = 's'", "its rows are others"),
        ("UPDATE orders SET colour = 'blue' WHERE size = 's'", "its rows are others"),
        ("DELETE FROM orders", "it has 0 rows, and had 400"),
    ],
)
def test_a_table_that_has_changed_is_noticed_before_anything_is_charged(
    on_sqlite: Bench, database: str, change: str, problem: str
) -> None:
    run(database, "CREATE TABLE kept AS TABLE orders")
    round_id = on_sqlite.sealed(ON_TABLE)
    run(database, change)
    with pytest.raises(InvalidArgument, match=f"version 1 of the dataset 'orders' has changed.*: {problem}"):
        on_sqlite.rounds.lifecycle.run(round_id, "run")
    assert on_sqlite.state(round_id) is RoundState.SEALED
    on_sqlite.rounds.lifecycle.abort(round_id, "the table has changed", "abort")
    assert all(spent == committed == 0 for spent, committed in on_sqlite.charged().values())
    later = on_sqlite.sealed(ON_TABLE)
    # The same rows in another order are the registered state.
    run(database, "DROP TABLE orders; CREATE TABLE orders AS SELECT size, colour FROM kept ORDER BY size DESC")
    on_sqlite.rounds.lifecycle.run(later, "again")
    assert on_sqlite.wait(later).complete


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DROP TABLE orders", "there is no such table or view"),
        ("ALTER TABLE orders RENAME size TO width", "has no column named 'size'"),
        ("ALTER TABLE orders ALTER size TYPE real USING 1", "column 'size' is of type REAL"),
        ("REVOKE ALL ON orders FROM reader; ALTER ROLE reader NOLOGIN", 'role "reader" is not permitted to log in'),
    ],
)
def test_a_table_that_cannot_be_read_leaves_the_round_sealed_and_nothing_spent(
    on_sqlite: Bench, database: str, change: str, problem: str
) -> None:
    run(database, "CREATE ROLE reader LOGIN; GRANT SELECT ON orders TO reader")
    try:
        description = on_sqlite.directory / "data" / "orders.database.toml"
        description.write_text(f'url = "{database.replace("postgres@", "reader@")}"\ntable = "orders"\n')
        round_id = on_sqlite.sealed(ON_TABLE)
        run(database, change)
        with pytest.raises(InvalidArgument, match=re.escape(problem)):
            on_sqlite.rounds.lifecycle.run(round_id, "run")
        assert on_sqlite.state(round_id) is RoundState.SEALED
        on_sqlite.rounds.lifecycle.abort(round_id, "the table is gone", "abort")
        assert all(spent == committed == 0 for spent, committed in on_sqlite.charged().values())
    finally:
        run(database, "DROP OWNED BY reader; DROP ROLE reader")
