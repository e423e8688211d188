"""What a table's state is recognised by: every change of what counts shows, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.stores import Cluster
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.datasets.persons.table import records_of
from equipoise_server.datasets.snapshot import of_rows, of_version
from equipoise_server.datasets.source import source_at

SCHEMA = Schema((Attribute("a", ("x", "y")), Attribute("b", bin_labels((0.0, 1.0, 2.0)), edges=(0.0, 1.0, 2.0))))
PERSONS = Persons(PersonMode.EVENTS, 2)


def of_file(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    return source_at(path).snapshot(SCHEMA).digest


def test_every_byte_of_a_file_counts_and_its_name_does_not(tmp_path: Path) -> None:
    digest = of_file(tmp_path / "t.csv", b"a,b\nx,0\n")
    assert len(digest) == 32
    assert of_file(tmp_path / "other.csv", b"a,b\nx,0\n") == digest
    assert of_file(tmp_path / "t.csv", b"a,b\nx,1\n") != digest
    assert of_file(tmp_path / "t.csv", b"a,b\nx,0\n\n") != digest
    (tmp_path / "t.csv").write_bytes(b"a\nx\n")
    with pytest.raises(InvalidArgument, match="has no column named 'b'"):
        source_at(tmp_path / "t.csv").snapshot(SCHEMA)


def test_a_version_and_the_rows_of_an_engine_are_told_apart() -> None:
    known = {
        of_version(*named).digest for named in (("/lake", "delta", "1"), ("/lake", "delta", "2"), ("/l", "ake"))
    }
    known |= {of_rows(facts).digest for facts in ((1, 23), (12, 3), (1, 2, 3), (3, 2, 1))}
    assert len(known) == 7


@pytest.fixture
def database(postgresql: Cluster, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with a table "t" of 300 rows, described in t.database.toml."""
    with postgresql.database(tmp_path) as url:
        made = (
            "CREATE TABLE t AS SELECT (ARRAY['x', 'y'])[1 + i % 2] AS a, (i % 7 / 4)::float AS b, "
            "i % 50 AS who, 'free text ' || i AS other FROM generate_series(1, 300) AS i"
        )
        run(url, made)
        (tmp_path / "t.database.toml").write_text(f'url = "{url}"\ntable = "t"\n')
        yield url


def run(url: str, *statements: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.both_stores
def test_every_change_of_what_counts_in_a_database_shows_and_nothing_else_does(
    database: str, tmp_path: Path
) -> None:
    source = source_at(tmp_path / "t.database.toml")
    before = source.snapshot(SCHEMA)
    assert before.rows == 300
    for change in (
        "UPDATE t SET other = 'else'",
        "UPDATE t SET b = b + 0.25",  # within its bin
        "CREATE TABLE turned AS SELECT b, other, who, a FROM t ORDER BY b DESC; DROP TABLE t; "
        "ALTER TABLE turned RENAME TO t",
    ):
        run(database, *change.split("; "))
        assert source.snapshot(SCHEMA) == before
    seen = {before.digest}
    for change in (
        "DELETE FROM t WHERE ctid = (SELECT min(ctid) FROM t)",
        "INSERT INTO t (a, b) VALUES ('x', 0)",
        "UPDATE t SET a = 'y' WHERE ctid = (SELECT min(ctid) FROM t WHERE a = 'x')",
        # Every column keeps its counts, and only which values stand together changes.
        "UPDATE t SET a = CASE a WHEN 'x' THEN 'y' ELSE 'x' END WHERE ctid IN (SELECT min(ctid) FROM t WHERE "
        "a = 'x' AND b < 1 UNION SELECT min(ctid) FROM t WHERE a = 'y' AND b >= 1)",
    ):
        run(database, change)
        assert source.snapshot(SCHEMA).digest not in seen
        seen.add(source.snapshot(SCHEMA).digest)


@pytest.mark.slow
@pytest.mark.both_stores
def test_persons_belong_to_the_state_of_their_table(database: str, tmp_path: Path) -> None:
    source = records_of(source_at(tmp_path / "t.database.toml"), "who", PERSONS)
    padded = padded_schema(SCHEMA)
    before = source.snapshot(padded)
    run(database, "UPDATE t SET who = 1000 WHERE ctid = (SELECT min(ctid) FROM t)")
    joined = source.snapshot(padded)
    run(database, "UPDATE t SET who = NULL WHERE ctid = (SELECT min(ctid) FROM t WHERE who = 7)")
    assert len({before.digest, joined.digest, source.snapshot(padded).digest}) == 3
    run(database, "ALTER TABLE t DROP who")
    with pytest.raises(InvalidArgument, match="person: the table has no column named 'who'"):
        source.snapshot(padded)
