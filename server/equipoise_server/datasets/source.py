"""The interface of data sources, and the list of their kinds.

Rounds, sessions, replays and simulations pass a `Source` on and do not know whether it is a file. To add a kind,
write a class that implements `Source`, and add it to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.database.table import DatabaseTable
from equipoise_server.datasets.files.tables import CsvFile, ParquetFile
from equipoise_server.datasets.persons.groups import PersonColumn, RowsAPerson, Settled, Unsettled
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.snapshot import Snapshot
from equipoise_server.datasets.spark.table import SparkTable


class Source(Protocol):
    """The location of one of the custodian's tables. Making a source reads nothing.

    A source is immutable, and is sent to the processes that read it.
    """

    def exists(self) -> bool:
        """Return whether there is anything to read."""
        ...

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:
        """Read the table as counts of the schema's possible records.

        Args:
            schema: the table's public attributes.
            progress: told how far the reading is, where the source knows.

        Raises:
            InvalidArgument: "table" where the table cannot be read or rows are refused (the message has counts for
                each attribute, never values).
        """
        ...

    def snapshot(self, schema: Schema) -> Snapshot:
        """Return what the table's present state is recognised by, which is quicker than its counts.

        Raises:
            InvalidArgument: "table": it cannot be reached, or lacks the schema's columns.
        """
        ...

    def columns(self) -> tuple[Column, ...]:
        """Say what the table's columns hold, which is private. Raises `InvalidArgument`: "table"."""
        ...

    def same_table(self, other: object) -> bool:
        """Return whether both sources have the same bytes; False where the other one is gone or of another kind.

        Raises `Unavailable` where the comparison fails.
        """
        ...


class RowSource(Source, Protocol):
    """A source of rows, whose persons can be told apart."""

    def snapshot(self, schema: Schema, person: str = "") -> Snapshot:
        """Return what the table's present state is recognised by.

        Args:
            schema: the table's public attributes.
            person: the column with the persons' ids, which belong to the state; empty: each row is its own.

        Raises:
            InvalidArgument: as `Source.snapshot` does; "person" where that column is missing or unfit.
        """
        ...

    def persons(
        self, schema: Schema, column: PersonColumn, progress: OnRead = unseen
    ) -> Iterator[Settled | Unsettled]:
        """Yield the rows of the table by persons: of all settled persons together, then of the others, whole each.

        All of it is of one state of the table.

        Raises:
            InvalidArgument: "table" where it cannot be read; "person" where the column has no ids.
        """
        ...

    def rows_a_person(self, column: str) -> RowsAPerson:
        """Count the persons with each number of rows, which is private. Raises as `persons` does."""
        ...


class Kind(Protocol):
    """A kind of sources: its title, the suffixes of names by which it is recognised, and its constructor."""

    @property
    def title(self) -> str: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def of(self, path: Path, options: Mapping[str, str], field: str) -> RowSource: ...


KINDS: tuple[Kind, ...] = (CsvFile, ParquetFile, DatabaseTable, SparkTable)


def source_at(path: Path, field: str = "table") -> RowSource:
    """Return the source at a path, of the kind that its name tells.

    Args:
        path: Where the source lies, or may lie: it need not exist. Options may follow its name, such as
            `flights.csv?delimiter=;&encoding=latin-1`.
        field: What the caller calls the source.

    Raises:
        InvalidArgument: The name tells no kind, or an option is none of that kind's.
    """
    name, _, options = path.name.partition("?")
    return _source(path.with_name(name) if name else path, options, field)


def _source(path: Path, options: str, field: str) -> RowSource:
    pairs = [pair.partition("=")[::2] for pair in options.split("&")] if options else []
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InvalidArgument(field, "has an option twice")
    for kind in KINDS:
        if path.name.lower().endswith(kind.suffixes):
            return kind.of(path, values, field)
    suffixes = ", ".join(suffix for kind in KINDS for suffix in kind.suffixes)
    raise InvalidArgument(field, f"must be a file that ends in one of {suffixes}")


def kind_of(name: str) -> str:
    """Return what the kind of the source called `name` is called; empty where the name tells none."""
    file = name.partition("?")[0].lower()
    return next((kind.title for kind in KINDS if file.endswith(kind.suffixes)), "")


def source_in(directory: Path, name: str) -> RowSource:
    """Return the source called `name` in a data directory; options may follow the name, as in `source_at`.

    Raises:
        InvalidArgument: It lies outside of the directory, is absent, or its name tells no kind.
    """
    file, _, options = name.partition("?")
    try:
        path = (directory / file).resolve()
    except (RuntimeError, OSError):  # symbolic links that lead in a circle
        raise InvalidArgument("source", _absent(file)) from None
    if not file or not path.is_relative_to(directory.resolve()):
        raise InvalidArgument("source", "must be a file inside the server's data directory")
    source = _source(path, options, "source")
    if not source.exists():
        raise InvalidArgument("source", _absent(file))
    return source


def _absent(file: str) -> str:
    return f"there is no such file in the server's data directory: {file!r}"
