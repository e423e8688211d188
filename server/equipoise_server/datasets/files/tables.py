"""Tables in the custodian's files: CSV and Parquet, read with DuckDB.

DuckDB's own messages quote lines of the file, which are private, so callers get fixed texts instead.
"""

from __future__ import annotations

import csv
import filecmp
import gzip
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import duckdb

from equipoise.errors import InvalidArgument, Unavailable
from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.files.columns import columns_of
from equipoise_server.datasets.files.grouping import Relation, connect, count_rows, place_of
from equipoise_server.datasets.files.persons import person_blocks, rows_a_person
from equipoise_server.datasets.files.reported import reported
from equipoise_server.datasets.files.whole_lines import MAX_LINE, check_quotes, scan_lines
from equipoise_server.datasets.persons.groups import PersonColumn, RowsAPerson, Settled, Unsettled
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.snapshot import Snapshot, of_files

MAX_HEADER = 1 << 20  # characters; without a limit a small compressed file could fill the memory
ENCODINGS = ("utf-8", "latin-1", "utf-16")


@dataclass(frozen=True)
class TableFile(ABC):
    """A table in one file. `datasets.source.Source` documents the methods."""

    path: Path
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    @classmethod
    def of(cls, path: Path, options: Mapping[str, str], field: str) -> Self:
        """Return the file at a path, read with options. Raises `InvalidArgument` naming an unknown one."""
        if options:
            raise InvalidArgument(
                f"{field}: {next(iter(options))}", f"files that end in {path.suffix} have no options"
            )
        return cls(path)

    def files(self) -> tuple[Path, ...]:
        """Return the files that hold the table, in order; none where it is gone."""
        # Unlike Path.is_file, this is also false for names longer than any file's.
        return (self.path.resolve(),) if os.path.isfile(self.path) else ()

    def exists(self) -> bool:
        return bool(self.files())

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:
        with self._opened() as (connection, relation), reported(connection, progress):
            self.check_rows(connection, relation)
            return count_rows(connection, relation, schema)

    def snapshot(self, schema: Schema, person: str = "") -> Snapshot:  # noqa: ARG002  # all bytes count
        with self._opened() as (_, relation):
            for attribute in schema.attributes:
                place_of(relation, attribute)
            return of_files(self.path.resolve(), self.files())

    def columns(self) -> tuple[Column, ...]:
        with self._opened() as (connection, relation):
            return tuple(columns_of(connection, relation))

    def persons(
        self, schema: Schema, column: PersonColumn, progress: OnRead = unseen
    ) -> Iterator[Settled | Unsettled]:
        with self._opened() as (connection, relation), reported(connection, progress):
            self.check_rows(connection, relation)
            yield from person_blocks(connection, relation, schema, column)

    def rows_a_person(self, column: str) -> RowsAPerson:
        with self._opened() as (connection, relation):
            self.check_rows(connection, relation)
            return rows_a_person(connection, relation, column)

    @contextmanager
    def _opened(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, Relation]]:
        paths = self.files()
        if not paths:
            raise InvalidArgument("table", "there is no such file")
        if any(set("*?[") & set(str(path)) for path in paths):
            # DuckDB would treat the path as a pattern, and has no way to escape it.
            raise InvalidArgument("table", "has one of the characters * ? [ in its path")
        try:
            with connect(paths) as connection:
                yield connection, self.relation(connection, paths)
        except (duckdb.Error, UnicodeDecodeError, csv.Error, OSError, EOFError) as error:
            raise InvalidArgument("table", _unreadable(error)) from None

    def same_table(self, other: object) -> bool:
        if not isinstance(other, TableFile):
            return False
        own, others = self.files(), other.files()
        if not others or len(own) != len(others):
            return False
        try:
            return all(
                mine.samefile(theirs) or filecmp.cmp(mine, theirs, shallow=False)
                for mine, theirs in zip(own, others, strict=True)
            )
        except OSError as error:
            raise Unavailable(f"the tables of other datasets cannot be compared: {error.strerror}") from None

    def check_rows(self, connection: duckdb.DuckDBPyConnection, relation: Relation) -> None:  # noqa: B027
        """Raise `InvalidArgument` where rows would be left out; the readers of most files leave out none."""

    @abstractmethod
    def relation(self, connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> Relation:
        """Return the columns of the files as DuckDB reads them."""


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A CSV file with a header, also compressed. Empty fields and `NA` are missing.

    Its options are `delimiter`, one ASCII character or `tab`; `decimal`, the point or comma in numbers; and
    `encoding`, one of `ENCODINGS`.
    """

    title = "CSV"
    suffixes = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    @classmethod
    def of(cls, path: Path, options: Mapping[str, str], field: str) -> Self:
        for name in options:
            if name not in ("delimiter", "decimal", "encoding"):
                problem = "is no option; CSV files have delimiter, decimal and encoding"
                raise InvalidArgument(f"{field}: {name}", problem)
        usual = "tab" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
        delimiter = options.get("delimiter", usual)
        delimiter = "\t" if delimiter == "tab" else delimiter
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0':
            raise InvalidArgument(f"{field}: delimiter", "must be tab, or one ASCII character such as ; or |")
        decimal = options.get("decimal", ".")
        if decimal not in (".", ",") or decimal == delimiter:
            raise InvalidArgument(f"{field}: decimal", "must be . or , and another character than the delimiter")
        encoding = options.get("encoding", "utf-8")
        if encoding not in ENCODINGS:
            raise InvalidArgument(f"{field}: encoding", f"must be one of {', '.join(ENCODINGS)}")
        return cls(path, delimiter, encoding, decimal)

    def relation(self, connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> Relation:  # noqa: ARG002
        """Return all columns as text."""
        (path,) = paths
        names = self._header(path)
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
        # Nothing depends on the look of the first lines. The parallel reader refuses some quoted lines.
        sql = (
            f"read_csv(?, columns = {{{columns}}}, auto_detect = false, header = true, delim = ?, quote = '\"', "
            "escape = '\"', nullstr = ['', 'NA'], encoding = ?, parallel = false, hive_partitioning = false, "
            f"max_line_size = {MAX_LINE})"
        )
        return Relation(
            sql, (str(path), self.delimiter, self.encoding), names, ("VARCHAR",) * len(names), self.decimal
        )

    def check_rows(self, connection: duckdb.DuckDBPyConnection, relation: Relation) -> None:
        if scan_lines(self.path, self.encoding):
            check_quotes(connection, relation.sql, relation.parameters)

    def _header(self, path: Path) -> tuple[str, ...]:
        opened = gzip.open if path.name.lower().endswith(".gz") else open
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with opened(path, "rt", encoding=encoding, newline="") as file:
            begin = io.StringIO(file.read(MAX_HEADER), newline="")
        names = next(csv.reader(begin, delimiter=self.delimiter, strict=True), [])
        if begin.tell() == MAX_HEADER:
            raise InvalidArgument("table", f"has a header line of {MAX_HEADER:,} characters or more")
        if not names:
            raise InvalidArgument("table", "has no header line")
        return tuple(names)


class ParquetFile(TableFile):
    """A Parquet file, or a directory with all Parquet files in it and below.

    Files of a directory have the same columns. Folders called `name=value` add a column of text, as programs that
    write partitioned tables expect.
    """

    title = "Parquet"
    suffixes = (".parquet", ".pq")

    def files(self) -> tuple[Path, ...]:
        if not os.path.isdir(self.path):
            return super().files()
        root = self.path.resolve()
        found = sorted(path for path in root.rglob("*") if path.name.lower().endswith(self.suffixes))
        # A link out of the directory would lead out of the data directory.
        return tuple(path for path in found if path.is_file() and path.resolve().is_relative_to(root))

    def relation(self, connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> Relation:
        """Return the top-level columns with their types, and those that folders add."""
        files = [str(path) for path in paths]
        folders = paths[0].relative_to(self.path.resolve()).parts[:-1]
        added = [folder.partition("=")[0] for folder in folders if "=" in folder]
        partitioned = "true, hive_types_autocast = false" if added else "false"
        source = f"read_parquet(?, hive_partitioning = {partitioned})"
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [files]).fetchall()
        elements = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [files[0]]).fetchall()
        names = _top_level([(str(name), int(children or 0)) for name, children in elements])
        # DuckDB also adds what folders above the table are called; no attribute has an empty name.
        names += tuple(str(row[0]) if row[0] in added else "" for row in described[len(names) :])
        columns = ", ".join(f"c{i}" for i in range(len(described)))
        return Relation(f"{source} AS t({columns})", (files,), names, tuple(str(row[1]) for row in described))


def _top_level(elements: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Return the columns' names as they are in the file, from its tree of elements in depth-first order.

    DuckDB's own list renames columns whose names differ only in case.
    """
    names = []
    pending = [elements[0][1]]
    for name, children in elements[1:]:
        if len(pending) == 1:
            names.append(name)
        pending[-1] -= 1
        if children:
            pending.append(children)
        while len(pending) > 1 and not pending[-1]:
            pending.pop()
    return tuple(names)


def _unreadable(error: Exception) -> str:
    line = re.search(r"CSV Error on Line: (\d+)", str(error))
    where = f" at line {int(line[1]):,}" if line else ""
    return (
        f"cannot be read{where}: it is damaged, or not the kind of file that its name, delimiter and encoding say"
    )
