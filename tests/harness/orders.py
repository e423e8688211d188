"""Orders of customers, some of whom have very many: written as several kinds of source, counted plainly."""

from __future__ import annotations

import csv
import hashlib
import hmac
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise_server.datasets.persons.table import PersonTable
from equipoise_server.datasets.source import RowSource, source_at

SCHEMA = Schema.from_json(
    '{"version": 1, "attributes": [{"name": "good", "categories": ["a", "b", "c"]}, '
    '{"name": "price", "edges": [0, 10, 20, 30], "clamp": true, "missing": "lost"}, '
    '{"name": "place", "categories": ["x", "y"], "unknown": "other"}]}'
)
Row = tuple[str, str, float | None, str]
ALL_MODES = [
    *(Persons(mode, records) for mode in (PersonMode.EVENTS, PersonMode.AVERAGE) for records in (1, 2, 4, 16)),
    Persons(PersonMode.ONE),
]


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


def written(directory: Path, kind: str, rows: list[Row], column: str = "TEXT", url: str = "") -> RowSource:
    """Write a table of one kind. `column`: the type of the ids; `url`: of the database, else an SQLite file."""
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
    url = url or f"sqlite:///{directory / 'orders.sqlite'}"
    path = directory / "orders.database.toml"
    path.write_text(f'url = "{url}"\ntable = "orders"\n')
    with create_engine(url, poolclass=NullPool).begin() as connection:
        columns = f"who {column}, good TEXT, price DOUBLE PRECISION, place TEXT"
        connection.execute(text(f"CREATE TABLE orders ({columns})"))
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
