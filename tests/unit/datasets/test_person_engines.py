"""Tables of persons that a real PostgreSQL and a real Spark group, against files with the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.engines import for_spark
from harness.orders import ALL_MODES, SCHEMA, Row, counted, expected, made_rows, written
from harness.stores import Cluster

from equipoise.errors import InvalidArgument
from equipoise.model.persons import PersonMode, Persons
from equipoise_server.datasets.persons.table import PersonTable
from equipoise_server.datasets.source import RowSource

Write = Callable[[list[Row]], RowSource]
MODES = [Persons(PersonMode.EVENTS, 2), Persons(PersonMode.AVERAGE, 4), Persons(PersonMode.ONE)]


@pytest.fixture(
    params=[
        pytest.param("postgresql", marks=pytest.mark.both_stores),
        pytest.param("spark", marks=[pytest.mark.full, pytest.mark.slow]),
    ]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Write]:
    """Writes orders where an engine groups them."""
    if request.param == "spark":

        def to_lake(rows: list[Row]) -> RowSource:
            written(tmp_path, "parquet", rows)
            return for_spark(tmp_path, "orders.parquet")

        yield to_lake
        return
    started: Cluster = request.getfixturevalue("postgresql")
    with started.database(tmp_path) as url:
        yield lambda rows: written(tmp_path, "postgresql", rows, url=url)


@pytest.mark.full
@pytest.mark.sparse(2)
@pytest.mark.slow
def test_an_engine_has_the_records_that_are_written_down(engine: Write, request: pytest.FixtureRequest) -> None:
    rows = made_rows()
    source = engine(rows)
    # A start of Spark takes ten seconds of processor time.
    for persons in MODES if "spark" in request.node.name else ALL_MODES:
        assert counted(source, persons) == expected(rows, persons), persons
    numbers = Counter(Counter(row[0] for row in rows).values())
    found = source.rows_a_person("who")
    assert dict(zip(found.rows.tolist(), found.persons.tolist(), strict=True)) == dict(numbers)
    assert found.nameless == 0


@pytest.mark.slow
def test_an_engine_refuses_rows_without_a_person(engine: Write) -> None:
    source = engine([("ann", "a", 5.0, "x"), ("", "b", 5.0, "y"), ("", "a", 5.0, "x")])
    with pytest.raises(InvalidArgument, match="table: 2 rows have no person in the column 'who'"):
        counted(source, MODES[0])


@pytest.mark.slow
@pytest.mark.both_stores
def test_postgresql_s_columns_without_ids_and_rows_that_do_not_fit_are_refused(
    tmp_path: Path, postgresql: Cluster
) -> None:
    rows: list[Row] = [("ann", "a", 5.0, "x"), ("ann", "b", 5.0, "x"), *[("bob", "z", 5.0, "x")] * 7]
    with postgresql.database(tmp_path) as url:
        source = written(tmp_path, "postgresql", rows, url=url)
        for persons in MODES[:2]:
            with pytest.raises(InvalidArgument, match="attribute good: 7 unknown categories"):
                counted(source, persons)
        for column, problem in (
            ("nobody", "no column named 'nobody'"),
            ("price", "column 'price' is of type DOUBLE"),
        ):
            with pytest.raises(InvalidArgument, match=f"person: .*{problem}"):
                PersonTable(source, column, Persons(PersonMode.ONE)).counts(SCHEMA)


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.both_stores
@pytest.mark.parametrize("kind", ["bigint", "uuid", "varchar(40)", 'text COLLATE "und-x-icu"'])
def test_ids_of_postgresql_are_those_of_a_file(tmp_path: Path, postgresql: Cluster, kind: str) -> None:
    rows: list[Row] = []
    for person in range(20):
        own = f"00000000-0000-0000-0000-{person:012}" if kind == "uuid" else str(person * 7)
        rows.extend((own, good, 5.0, "x") for good in "abca")
    of_file = written(tmp_path, "parquet", rows)
    with postgresql.database(tmp_path) as url:
        typed = [(int(row[0]), *row[1:]) for row in rows] if kind == "bigint" else rows
        of_table = written(tmp_path, "postgresql", typed, kind, url)  # type: ignore[arg-type]
        for persons in MODES:
            assert counted(of_table, persons) == counted(of_file, persons)


@pytest.mark.nightly
@pytest.mark.slow
def test_ids_that_are_no_text_are_refused_by_spark(tmp_path: Path) -> None:
    ids = pa.array([b"\xff", b"\xff", b"\xfe", b"\xfe"], pa.binary())
    columns = {"good": pa.array(["a", "b", "a", "c"]), "price": pa.array([1.0] * 4), "place": pa.array(["x"] * 4)}
    for column, problem in (
        (ids, "column 'who' is of type binary; ids must be text"),
        (ids.view(pa.string()), "column 'who' has an id that is not UTF-8 text"),
    ):
        pq.write_table(pa.table({"who": column, **columns}), tmp_path / "t.parquet")
        with pytest.raises(InvalidArgument, match=f"person: {problem}"):
            PersonTable(for_spark(tmp_path, "t.parquet"), "who", Persons(PersonMode.ONE)).counts(SCHEMA)
