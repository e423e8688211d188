"""The table of a round or of a session, as it was registered or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import DataLoss
from equipoise.queries.schema import Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import Source


@dataclass(frozen=True)
class LoadedData:
    """A table that is the registered one, and its digest."""

    counts: Counts
    digest: bytes


def load_data(source: Source, schema: Schema, records: int, registered: bytes) -> LoadedData:
    """Read the table, if it is the one that was registered, with its number of records and its digest.

    Raises `InvalidArgument` for a table that its schema refuses, `DataLoss` for another one.
    """
    counts = source.counts(schema)
    if counts.records != records:
        raise DataLoss(f"the table has {counts.records} records, but had {records} when it was registered")
    digest = data_digest(counts)
    if digest != registered:
        raise DataLoss("the table's records are not those that were registered")
    return LoadedData(counts, digest)
