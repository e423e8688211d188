"""Tables in databases: the same counts as of a file with the same rows, refusals that tell nothing private."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.stores import Cluster
from harness.typed_table import COLUMNS, ROWS, SCHEMA, write_parquet
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.datasets import packed_codes
from equipoise_server.datasets.database.table import DatabaseTable
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.files import grouping
from equipoise_server.datasets.source import source_at, source_in

pytestmark = pytest.mark.both_stores


@pytest.fixture
def database(postgresql: Cluster, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with an empty table "t"."""
    with postgresql.database(tmp_path) as url:
        with connected(url) as engine, engine.begin() as connection:
            columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
            connection.execute(text(f"CREATE TABLE t ({columns})"))
        yield url


@contextmanager
def connected(url: str) -> Iterator[Engine]:
    """An engine that leaves no connection."""
    yield create_engine(url, poolclass=NullPool)


def insert(url: str, rows: list[dict[str, object]]) -> None:
    with connected(url) as engine, engine.begin() as connection:
        names = ", ".join(f":{name}" for name in COLUMNS)
        connection.execute(text(f"INSERT INTO t VALUES ({names})"), rows)


def run(url: str, statement: str) -> None:
    with connected(url) as engine, engine.begin() as connection:
        connection.execute(text(statement))


def described(directory: Path, url: str, table: str = "t", more: str = "") -> DatabaseTable:
    """A source whose file says where the table is."""
    path = directory / "t.database.toml"
    path.write_text(f'url = "{url}"\ntable = "{table}"\n{more}')
    source = source_at(path)
    assert isinstance(source, DatabaseTable)
    return source


@pytest.mark.slow
def test_a_table_in_a_database_has_the_counts_and_digest_of_a_file_with_its_rows(
    database: str, tmp_path: Path
) -> None:
    insert(database, ROWS)
    write_parquet(tmp_path / "t.parquet")
    of_file = source_at(tmp_path / "t.parquet").counts(SCHEMA)
    of_table = described(tmp_path, database).counts(SCHEMA)
    assert of_table.records == len(ROWS)
    assert (of_table.dense() == of_file.dense()).all()
    assert data_digest(of_table) == data_digest(of_file)
    # And not because nothing falls anywhere: of each attribute most categories occur.
    for axis, counts in of_table.marginals([(axis,) for axis in range(len(SCHEMA.sizes))]):
        assert (counts > 0).sum() >= SCHEMA.sizes[axis[0]] - 2


@pytest.mark.slow
def test_neither_joined_edges_nor_many_words_change_a_count(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins are found by halving or, where edges are many, by a join; wide rows are packed into several words."""
    insert(database, ROWS)
    write_parquet(tmp_path / "t.parquet")
    of_file, of_table = source_at(tmp_path / "t.parquet"), described(tmp_path, database)
    usual = data_digest(of_file.counts(SCHEMA))
    monkeypatch.setattr(grouping, "MAX_HALVED", 0)
    assert data_digest(of_file.counts(SCHEMA)) == usual
    monkeypatch.setattr(packed_codes, "MAX_WORD", 1 << 12)
    assert len(packed_codes.words_of(SCHEMA)) > 2
    assert [data_digest(source.counts(SCHEMA)) for source in (of_file, of_table)] == [usual, usual]


@pytest.mark.slow
def test_a_view_and_a_namespace_are_tables_like_others(database: str, tmp_path: Path) -> None:
    insert(database, ROWS)
    run(database, 'CREATE SCHEMA "odd name"')
    run(database, 'CREATE VIEW "odd name"."V ""1""" AS SELECT * FROM t WHERE late')
    source = described(tmp_path, database, 'V \\"1\\"', 'schema = "odd name"\n')
    assert source.counts(SCHEMA).records == sum(row["late"] is True for row in ROWS)


@pytest.mark.slow
def test_the_database_s_time_zone_changes_nothing(database: str, tmp_path: Path) -> None:
    insert(database, ROWS)
    before = data_digest(described(tmp_path, database).counts(SCHEMA))
    name = make_url(database).database
    run(database, f"ALTER DATABASE {name} SET timezone = 'Asia/Kathmandu'")
    run(database, f"ALTER DATABASE {name} SET datestyle = 'German'")
    assert data_digest(described(tmp_path, database).counts(SCHEMA)) == before


@pytest.mark.slow
def test_the_database_is_asked_for_one_grouping_and_told_no_text(database: str, tmp_path: Path) -> None:
    """What a warehouse logs is the public schema: one GROUP BY, whatever will be asked; labels are parameters."""
    asked: list[str] = []

    def note(*call: object) -> None:
        asked.append(str(call[2]))

    insert(database, ROWS)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        described(tmp_path, database).counts(SCHEMA)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    ours = [statement for statement in asked if "pg_catalog" not in statement]
    assert len(ours) == 1
    assert ours[0].count("GROUP BY") == 1
    assert "DROP TABLE" not in ours[0]


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("ALTER TABLE t RENAME TO gone", "table: table: there is no such table or view in the database"),
        ("ALTER TABLE t DROP COLUMN seats", "table: has no column named 'seats'"),
        ("ALTER TABLE t ALTER seats TYPE text", "column 'seats' is of type TEXT, which has no numbers"),
        ("ALTER TABLE t ALTER day TYPE text", "column 'day' is of type TEXT, which has no dates"),
        ("ALTER TABLE t ALTER gate TYPE real", "column 'gate' is of type REAL, which has floating-point numbers"),
        ("DELETE FROM t", "table: has no records"),
        (
            "CREATE TABLE s AS TABLE t; DROP TABLE t; CREATE FUNCTION f(text) RETURNS int LANGUAGE sql AS "
            "$$ SELECT $1::int $$; CREATE VIEW t AS SELECT *, f(carrier) AS x FROM s WHERE f(carrier) > 0",
            "table: cannot be read from the database: InvalidTextRepresentation 22P02",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_no_value_told(
    database: str, tmp_path: Path, statement: str, problem: str
) -> None:
    insert(database, ROWS[:20])
    run(database, statement)
    with pytest.raises(InvalidArgument) as refused:
        described(tmp_path, database).counts(SCHEMA)
    assert problem in str(refused.value)
    assert "AA" not in str(refused.value)


def test_rows_that_the_schema_refuses_are_counted_as_in_files(database: str, tmp_path: Path) -> None:
    insert(database, ROWS)
    strict = Schema((Attribute("seats", bin_labels((0.0, 1.0, 2.0)), (0.0, 1.0, 2.0)),))
    with pytest.raises(InvalidArgument, match=r"table: attribute seats: \d+ nulls, \d+ out of range"):
        described(tmp_path, database).counts(strict)


def hostile_urls(url: str) -> list[tuple[str, str, str]]:
    more = "&" if "?" in url else "?"
    return [
        (url.replace("postgres@", "nobody@"), "", 'role "nobody" does not exist'),
        (url.replace("/test", "/nowhere"), "", "the database cannot be reached: "),
        ("postgresql+psycopg://127.0.0.1:1/x", "", "the database cannot be reached: "),
        (url.replace("postgres@", "postgres:hunter2@"), "", "table: url: must not have a password"),
        (f"{url}{more}password=hunter2", "", "table: url: must not have a password or another secret"),
        (f"{url}{more}ssl%50assword=hunter2", "", "table: url: must not have a password or another secret"),
        ("databricks://h?access_token=hunter2", "", "table: url: must not have a password or another secret"),
        ("snowflake://h/d?private_key=hunter2", "", "table: url: must not have a password or another secret"),
        ("bigquery://p?credentials_base64=hunter2", "", "table: url: must not have a password or another secret"),
        ("no url", "", "table: url: is no URL of a database"),
        ("oracle+nothing://x", "", "table: url: needs a driver that is not installed"),
        ("nosuch://x", "", "table: url: needs a driver that is not installed"),
        (url, 'pasword = "x"\n', "table: pasword: Extra inputs are not permitted"),
        (url, "schema = 1\n", "table: schema: "),
        (url, "schema\n", "is not TOML"),
        (url, 'password_file = "nowhere"\n', "table: password_file: "),
    ]


def test_a_description_that_does_not_work_is_refused_by_field(database: str, tmp_path: Path) -> None:
    for url, more, problem in hostile_urls(database):
        with pytest.raises(InvalidArgument) as refused:
            described(tmp_path, url, more=more).counts(SCHEMA)
        assert problem in str(refused.value)
        assert "hunter2" not in str(refused.value)


def test_the_password_is_in_a_file_that_only_its_owner_reads(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(database, ROWS)
    secret = tmp_path / "password"
    secret.write_text("correct horse\n")
    secret.chmod(0o640)
    source = described(tmp_path, database, more='password_file = "password"\n')
    with pytest.raises(InvalidArgument, match="is open to others; make it mode 0600"):
        source.counts(SCHEMA)
    secret.chmod(0o600)
    passwords = passwords_given(monkeypatch)
    assert source.counts(SCHEMA).records == len(ROWS)
    assert passwords() == ["correct horse"]
    # What is sent to a worker says where the description is, and nothing else.
    assert b"horse" not in pickle.dumps(source)


def passwords_given(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[object]]:
    """Makes the function that says which passwords were given to the driver since now."""
    import psycopg  # noqa: PLC0415  # the driver is an extra

    given: list[object] = []
    connect = psycopg.connect

    def noted(*arguments: object, **options: object) -> object:
        given.append(options.get("password"))
        return connect(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg, "connect", noted)
    return lambda: given


def test_two_descriptions_of_one_table_are_the_same_table(database: str, tmp_path: Path) -> None:
    first = described(tmp_path, database)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert first.same_table(described(elsewhere, f"{database}&application_name=x"))
    assert not first.same_table(described(elsewhere, database, "u"))
    assert not first.same_table(source_at(tmp_path / "t.csv"))


def test_a_description_is_a_source_of_the_data_directory(database: str, tmp_path: Path) -> None:
    insert(database, ROWS)
    described(tmp_path, database)
    assert source_in(tmp_path, "t.database.toml").counts(SCHEMA).records == len(ROWS)
    with pytest.raises(InvalidArgument, match="source: delimiter: descriptions of databases have no options"):
        source_in(tmp_path, "t.database.toml?delimiter=;")
