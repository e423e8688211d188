"""The table of a round or of a session, as it was registered or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DataLoss
from equipoise.queries.schema import Schema
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import load_histogram


@dataclass(frozen=True)
class LoadedData:
    """A table's histogram over the universe, counts int64[universe], and its digest."""

    histogram: NDArray[np.int64]
    digest: bytes


def load_data(table: Path, schema: Schema, records: int, registered: bytes) -> LoadedData:
    """Read the table, if it is the one that was registered, with its number of records and its digest.

    Raises `InvalidArgument` for a table that its schema refuses, `DataLoss` for another one.
    """
    loaded = load_histogram(table, schema)
    if loaded.records != records:
        raise DataLoss(f"the table has {loaded.records} records, but {records} when it was registered")
    digest = data_digest(loaded.histogram)
    if digest != registered:
        raise DataLoss("the table's records are not those that it had when it was registered")
    return LoadedData(loaded.histogram, digest)
