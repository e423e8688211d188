"""Tables whose persons have several rows, from files and SQLite, against a slow and plain count."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from harness.orders import ALL_MODES, SCHEMA, Row, counted, expected, made_rows, written

from equipoise.errors import InvalidArgument
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.schema import Schema
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.persons.table import PersonTable
from equipoise_server.datasets.source import RowSource

KINDS = ["csv", "parquet", "sqlite"]
every_mode = pytest.mark.parametrize("persons", ALL_MODES, ids=lambda each: f"{each.mode}-{each.records}")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.slow
@pytest.mark.thin(8)
@every_kind
@every_mode
def test_every_kind_of_source_has_the_records_that_are_written_down(
    tmp_path: Path, kind: str, persons: Persons
) -> None:
    rows = made_rows()
    found = counted(written(tmp_path, kind, rows), persons)
    assert found == expected(rows, persons)
    assert sum(found.values()) == persons.records * len({row[0] for row in rows})


@pytest.mark.slow
@pytest.mark.thin(8)
@every_mode
def test_replacing_a_person_replaces_its_records_and_moves_no_others(tmp_path: Path, persons: Persons) -> None:
    rows = [row for row in made_rows(12, 3) if row[0] != "person 0 é"]
    own: list[list[Row]] = [
        [("eve", "a", 5.0, "x")],
        [("eve", "c", 25.0, "y")] * 40,
        list(product(["zoe"], "abc", [5.0, 15.0, None], "x")) * 3,
        [("person 0 é", "b", None, "q"), ("person 0 é", "b", 15.0, "x")],
    ]
    everybody = [Counter(counted(_in(tmp_path, place, rows + each), persons)) for place, each in enumerate(own)]
    alone = [Counter(counted(_in(tmp_path, f"alone{place}", each), persons)) for place, each in enumerate(own)]
    rest = everybody[0] - alone[0]
    for together, single in zip(everybody, alone, strict=True):
        assert single.total() == persons.records
        assert together == rest + single
        assert ((together - everybody[0]).total()) <= persons.records


def _in(directory: Path, place: object, rows: list[Row]) -> RowSource:
    own = directory / str(place)
    own.mkdir()
    return written(own, "csv", rows)


@every_mode
def test_one_row_a_person_with_one_record_is_the_table_itself(tmp_path: Path, persons: Persons) -> None:
    if persons.records > 1:
        return
    rows = [(f"p{place}", *row[1:]) for place, row in enumerate(made_rows(20))]
    source = written(tmp_path, "parquet", rows)
    assert data_digest(PersonTable(source, "who", persons).counts(SCHEMA)) == data_digest(source.counts(SCHEMA))


@pytest.mark.full
def test_wide_schemas_and_ids_that_are_numbers(tmp_path: Path) -> None:
    wide = Schema((*SCHEMA.attributes,))
    rows = [(person * 7, good, 5.0, "x") for person in range(30) for good in "abca"]
    kinds = [written(_made(tmp_path / kind), kind, rows, "INTEGER") for kind in KINDS]  # type: ignore[arg-type]
    for persons in ALL_MODES:
        found = [counted(source, persons, wide) for source in kinds]
        assert found[0] == found[1] == found[2]


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.thin(2)
@pytest.mark.slow
@every_kind
def test_rows_without_a_person_are_refused_by_number(tmp_path: Path, kind: str) -> None:
    rows: list[Row] = [("ann", "a", 5.0, "x"), ("", "b", 5.0, "y"), ("", "a", 5.0, "x")]
    source = written(tmp_path, kind, rows)
    for persons in ALL_MODES:
        with pytest.raises(InvalidArgument, match="table: 2 rows have no person in the column 'who'"):
            counted(source, persons)
    assert source.rows_a_person("who").nameless == 2


@pytest.mark.thin(2)
@pytest.mark.slow
@every_kind
def test_wrong_columns_and_wrong_rows_are_refused(tmp_path: Path, kind: str) -> None:
    rows: list[Row] = [("ann", "a", 5.0, "x"), *[("bob", "z", 5.0, "x")] * 7]
    source = written(tmp_path, kind, rows)
    for persons in ALL_MODES:
        with pytest.raises(InvalidArgument, match="attribute good: 7 unknown categories"):
            counted(source, persons)
    with pytest.raises(InvalidArgument, match="person: the table has no column named 'nobody'"):
        PersonTable(source, "nobody", Persons(PersonMode.ONE)).counts(SCHEMA)
    if kind != "csv":  # where all columns are text
        with pytest.raises(InvalidArgument, match=r"person: column 'price' is of type (DOUBLE|REAL)"):
            PersonTable(source, "price", Persons(PersonMode.ONE)).counts(SCHEMA)
    with pytest.raises(InvalidArgument, match="schema: must have a category for records of nothing"):
        PersonTable(source, "who", Persons(PersonMode.EVENTS, 2)).counts(SCHEMA)


@pytest.mark.slow
@every_kind
def test_how_many_rows_persons_have(tmp_path: Path, kind: str) -> None:
    rows = made_rows()
    found = written(tmp_path, kind, rows).rows_a_person("who")
    numbers = Counter(Counter(row[0] for row in rows).values())
    assert dict(zip(found.rows.tolist(), found.persons.tolist(), strict=True)) == dict(numbers)
    assert found.nameless == 0


@pytest.mark.full
@pytest.mark.slow
def test_the_order_of_rows_does_not_matter_and_blocks_hold_whole_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made_rows()
    usual = [counted(written(_made(tmp_path / kind), kind, rows), Persons(PersonMode.EVENTS, 2)) for kind in KINDS]
    for module in ("files.persons", "database.table"):
        monkeypatch.setattr(f"equipoise_server.datasets.{module}.BLOCK", 5)
    for kind in KINDS:
        again = written(_made(tmp_path / f"{kind} again"), kind, rows[::-1])
        assert counted(again, Persons(PersonMode.EVENTS, 2)) == usual[0] == usual[1] == usual[2]


def test_every_row_of_a_person_is_as_likely_to_be_chosen(tmp_path: Path) -> None:
    rows: list[Row] = [(f"p{n}", good, 5.0, "x") for n in range(4000) for good in "aaab"]
    found = counted(written(tmp_path, "csv", rows), Persons(PersonMode.EVENTS, 1))
    # 3 of 4: six standard deviations of the binomial law are 164. A fixed function of these ids: it cannot flicker.
    assert abs(found[(0, 0, 0)] - 3000) < 164
