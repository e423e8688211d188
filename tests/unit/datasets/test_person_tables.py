"""Tables whose persons have several rows, from every kind of source, against a slow and plain count."""

from __future__ import annotations

import csv
import hashlib
import hmac
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest
from sqlalchemy import create_engine, text

from equipoise.errors import InvalidArgument
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.persons.table import PersonTable
from equipoise_server.datasets.source import RowSource, source_at

SCHEMA = Schema.from_json(
    '{"version": 1, "attributes": [{"name": "good", "categories": ["a", "b", "c"]}, '
    '{"name": "price", "edges": [0, 10, 20, 30], "clamp": true, "missing": "lost"}, '
    '{"name": "place", "categories": ["x", "y"], "unknown": "other"}]}'
)
Row = tuple[str, str, float | None, str]
KINDS = ["csv", "parquet", "database"]
ALL_MODES = [
    *(Persons(mode, records) for mode in (PersonMode.EVENTS, PersonMode.AVERAGE) for records in (1, 2, 4, 16)),
    Persons(PersonMode.ONE),
]
every_mode = pytest.mark.parametrize("persons", ALL_MODES, ids=lambda each: f"{each.mode}-{each.records}")
every_kind = pytest.mark.parametrize("kind", KINDS)


def made_rows(persons: int = 60, seed: int = 1) -> list[Row]:
    """Orders of persons, of whom most have few and some very many."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for person in range(persons):
        for _ in range(min(int(random.zipf(1.6)), 200)):
            price = None if random.random() < 0.1 else float(random.integers(-5, 40))
            place = str(random.choice(["x", "y", "elsewhere"]))
            rows.append((f"person {person} é", str(random.choice(["a", "b", "c"])), price, place))
    return [rows[place] for place in random.permutation(len(rows))]


def written(directory: Path, kind: str, rows: list[Row], column: str = "TEXT") -> RowSource:
    """Write a table of one kind."""
    if kind == "csv":
        path = directory / "orders.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("who", "good", "price", "place"), *rows])
        return source_at(path)
    if kind == "parquet":
        path = directory / "orders.parquet"
        with duckdb.connect() as connection:
            connection.execute(f"CREATE TABLE t (who {column}, good TEXT, price DOUBLE, place TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            connection.execute("COPY t TO ? (FORMAT parquet)", [str(path)])
        return source_at(path)
    path = directory / "orders.database.toml"
    url = f"sqlite:///{directory / 'orders.sqlite'}"
    path.write_text(f'url = "{url}"\ntable = "orders"\n')
    with create_engine(url).begin() as connection:
        connection.execute(text(f"CREATE TABLE orders (who {column}, good TEXT, price DOUBLE, place TEXT)"))
        inserted = text("INSERT INTO orders VALUES (:who, :good, :price, :place)")
        connection.execute(
            inserted, [dict(zip(("who", "good", "price", "place"), row, strict=True)) for row in rows]
        )
    return source_at(path)


def record_of(row: Row) -> tuple[int, ...]:
    """The categories of a row."""
    _, good, price, place = row
    found = 3 if price is None else min(max(int(price) // 10, 0), 2)
    return "abc".index(good), found, {"x": 0, "y": 1}.get(place, 2)


def token(person: str, record: tuple[int, ...], rank: int) -> int:
    """As `docs/formats.md` has it."""
    name = person.encode()
    message = (
        len(name).to_bytes(4, "little") + name + np.array(record, "<u4").tobytes() + rank.to_bytes(8, "little")
    )
    digest = hmac.new(b"equipoise persons v1", message, hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "little")


def expected(rows: list[Row], persons: Persons) -> Counter[tuple[int, ...]]:
    """All records, one person after the other; a record of nothing is `(3, 4, 3)`."""
    own: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for row in rows:
        own[row[0]][record_of(row)] += 1
    records: Counter[tuple[int, ...]] = Counter()
    for person, counts in own.items():
        if persons.mode is PersonMode.EVENTS:
            ranked = sorted((token(person, each, rank), each) for each, n in counts.items() for rank in range(n))
            chosen = [each for _, each in ranked[: persons.records]]
            records.update(chosen + [(3, 4, 3)] * (persons.records - len(chosen)))
        elif persons.mode is PersonMode.AVERAGE:
            shares = {each: Fraction(persons.records * n, counts.total()) for each, n in counts.items()}
            given = {each: int(share) for each, share in shares.items()}
            rest = sorted(shares, key=lambda each: (int(shares[each]) - shares[each], token(person, each, 0)))
            for each in rest[: persons.records - sum(given.values())]:
                given[each] += 1
            records.update(given)
        else:
            records[tuple(_usual(counts, axis) for axis in range(3))] += 1
    return +records


def _usual(counts: Counter[tuple[int, ...]], axis: int) -> int:
    of_category = Counter[int]()
    for record, rows in counts.items():
        of_category[record[axis]] += rows
    return min(of_category, key=lambda category: (-of_category[category], category))


def counted(source: RowSource, persons: Persons, schema: Schema = SCHEMA) -> dict[tuple[int, ...], int]:
    """The records that the product makes."""
    table = PersonTable(source, "who", persons)
    counts = table.counts(padded_schema(schema) if persons.padded else schema)
    return {
        tuple(record): number
        for records, numbers in counts.occupied()
        for record, number in zip(records.tolist(), numbers.tolist(), strict=True)
    }


@every_kind
@every_mode
def test_every_kind_of_source_has_the_records_that_are_written_down(
    tmp_path: Path, kind: str, persons: Persons
) -> None:
    rows = made_rows()
    found = counted(written(tmp_path, kind, rows), persons)
    assert found == expected(rows, persons)
    assert sum(found.values()) == persons.records * len({row[0] for row in rows})


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


@every_kind
def test_rows_without_a_person_are_refused_by_number(tmp_path: Path, kind: str) -> None:
    rows: list[Row] = [("ann", "a", 5.0, "x"), ("", "b", 5.0, "y"), ("", "a", 5.0, "x")]
    source = written(tmp_path, kind, rows)
    for persons in ALL_MODES:
        with pytest.raises(InvalidArgument, match="table: 2 rows have no person in the column 'who'"):
            counted(source, persons)
    assert source.rows_a_person("who").nameless == 2


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
        with pytest.raises(InvalidArgument, match="person: column 'price' is of type DOUBLE"):
            PersonTable(source, "price", Persons(PersonMode.ONE)).counts(SCHEMA)
    with pytest.raises(InvalidArgument, match="schema: must have a category for records of nothing"):
        PersonTable(source, "who", Persons(PersonMode.EVENTS, 2)).counts(SCHEMA)


def test_tables_of_spark_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "orders.spark.toml").write_text('path = "orders.parquet"\n')
    source = source_at(tmp_path / "orders.spark.toml")
    with pytest.raises(InvalidArgument, match="person: 'who': tables that Spark counts cannot be read by persons"):
        PersonTable(source, "who", Persons(PersonMode.ONE)).counts(SCHEMA)
    with pytest.raises(InvalidArgument, match="tables that Spark counts cannot be read by persons"):
        source.rows_a_person("who")


@every_kind
def test_how_many_rows_persons_have(tmp_path: Path, kind: str) -> None:
    rows = made_rows()
    found = written(tmp_path, kind, rows).rows_a_person("who")
    numbers = Counter(Counter(row[0] for row in rows).values())
    assert dict(zip(found.rows.tolist(), found.persons.tolist(), strict=True)) == dict(numbers)
    assert found.nameless == 0


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
