"""A table whose persons have equally many records each, read from a source of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.persons import PersonMode, Persons
from equipoise.queries.padding import schema_of_rows
from equipoise.queries.schema import Schema
from equipoise_server.datasets.coded_counts import CodedCounts, code_type
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.packed_codes import codes_of
from equipoise_server.datasets.persons.dealing import PersonRows, dealt
from equipoise_server.datasets.persons.groups import PersonColumn, Settled, Unsettled
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.snapshot import Snapshot
from equipoise_server.datasets.source import RowSource, Source
from equipoise_server.datasets.universe import Rules, counts_of_records


@dataclass(frozen=True)
class PersonTable:
    """A source of records, of which every person has `persons.records`; `column` has the persons' ids.

    `datasets.source.Source` documents the methods. What is counted is that of `dealing`.
    """

    rows: RowSource
    column: str
    persons: Persons

    def exists(self) -> bool:
        return self.rows.exists()

    def snapshot(self, schema: Schema) -> Snapshot:
        return self.rows.snapshot(schema_of_rows(schema), self.column)

    def columns(self) -> tuple[Column, ...]:
        return self.rows.columns()

    def same_table(self, other: object) -> bool:
        return self.rows.same_table(other)

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:
        """Read the records. The schema has a category for records of nothing where persons may lack rows.

        Raises `InvalidArgument`: "table", also for rows without an id; "person" for a column that has no ids.
        """
        if schema.padded != self.persons.padded:
            raise InvalidArgument(
                "schema", "must have a category for records of nothing just where persons may lack rows"
            )
        events = self.persons.mode is PersonMode.EVENTS
        column = PersonColumn(self.column, self.persons.records if events else None)
        reading = _Reading(self.persons, schema_of_rows(schema))
        for block in self.rows.persons(reading.schema, column, progress):
            reading.take(block)
        return reading.counts(schema, self.column)


def records_of(rows: RowSource, person: str, persons: Persons) -> Source:
    """Return the source of a dataset's records. `person`: the column of ids; empty: each row is a record."""
    return PersonTable(rows, person, persons) if person else rows


def check_persons(schema: Schema, person: str, persons: Persons) -> None:
    """Check that a schema goes with who is a person of the table. Raises `InvalidArgument`."""
    if (not person) != (persons.mode is PersonMode.ROWS):
        raise InvalidArgument("person", "must name a column just where rows are not persons of their own")
    if person in schema.names:
        raise InvalidArgument("person", f"{person!r} is an attribute: ids are no categories; leave it out")
    if schema.padded and not persons.padded:
        raise InvalidArgument("schema", "must have no category for records of nothing: no person lacks rows")


@dataclass
class _Reading:
    """The records of the persons that were read so far.

    `schema`: of rows. `parts`: groups of different records, a category of each attribute, [attributes, groups],
    with how many there are.
    """

    persons: Persons
    schema: Schema
    rules: Rules = field(init=False)
    parts: list[CodedCounts] = field(default_factory=list)
    count: int = 0
    nameless: int = 0

    def __post_init__(self) -> None:
        self.rules = Rules(self.schema)

    def take(self, block: Settled | Unsettled) -> None:
        codes = codes_of(self.schema, block.packed)
        records = np.stack(list(self.rules.records(codes, block.rows)))
        if isinstance(block, Settled):
            self.count += block.count
            self.nameless += block.nameless
            whole = self.persons.mode is PersonMode.EVENTS
            counts = block.rows if whole else block.persons * self.persons.records
        else:
            ids = list(dict.fromkeys(block.ids))
            places = {each: place for place, each in enumerate(ids)}
            owners = np.array([places[each] for each in block.ids], dtype=np.int64)
            made, counts = dealt(PersonRows(ids, owners, records.T, block.rows), self.persons)
            records = made.T
            self.count += len(ids)
        sizes = self.schema.sizes
        self.parts.append(CodedCounts.of(sizes, records.astype(code_type(sizes)), counts))

    def counts(self, schema: Schema, column: str) -> Counts:
        """Return all records, with those of nothing. `schema`: of the records."""
        if self.nameless:
            one = self.nameless == 1
            problem = f"{self.nameless:,} {'row has' if one else 'rows have'} no person in the column {column!r}"
            raise InvalidArgument("table", problem)
        self.rules.check()
        if not self.count:
            raise InvalidArgument("table", "has no records")
        lacking = self.count * self.persons.records - sum(part.records for part in self.parts)
        assert lacking == 0 or (lacking > 0 and schema.padded)
        last = np.array(schema.sizes, dtype=np.int64)[:, None] - 1
        records: NDArray[np.int64] = np.concatenate([*(each.table.codes for each in self.parts), last], axis=1)
        counts = np.concatenate([*(each.counts for each in self.parts), [lacking]])
        return counts_of_records(schema, records.astype(np.int64), counts)
