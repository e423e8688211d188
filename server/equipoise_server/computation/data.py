"""Loads the table of a round or of a session, and refuses any table but the registered one."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import DataLoss
from equipoise.queries.schema import Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import Source


@dataclass(frozen=True)
class LoadedData:
    """The registered table as counts, and its digest."""

    counts: Counts
    digest: bytes


def load_data(source: Source, schema: Schema, records: int, registered: bytes) -> LoadedData:
    """Read a table and check that it is the registered one.

    Args:
        source: where the table is.
        schema: the table's attributes.
        records: the number of records at registration.
        registered: the table's digest at registration, 32 bytes.

    Raises:
        InvalidArgument: a record does not fit the schema.
        DataLoss: the table is not the registered one.
    """
    counts = source.counts(schema)
    if counts.records != records:
        raise DataLoss(f"the table has {counts.records} records, but had {records} when it was registered")
    digest = data_digest(counts)
    if digest != registered:
        raise DataLoss("the table's records are not those that were registered")
    return LoadedData(counts, digest)
