"""The synopsis of a released round, part by part: a table of made-up records, the same for every analyst.

It is a private output already, so whatever is computed from it costs nothing. It can be long, so it is read and
written a few thousand records at a time.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.schema import Schema


@dataclass(frozen=True, eq=False)
class SynopsisPart:
    """The next records, category numbers int64[some, attributes] in the schema's order; `total`: of the whole."""

    records: NDArray[np.int64]
    total: int


def write_csv(
    parts: Iterable[SynopsisPart], schema: Schema, path: Path, on_progress: Callable[[int, int], None]
) -> int:
    """Writes the records with the schema's labels, as `equipoise-server data check` reads them; returns how many.

    `on_progress` is told how many of how many are written. The file appears when all are there. Raises
    `InvalidArgument` where it cannot be written, and whatever reading the parts raises.
    """
    unfinished = path.with_name(f"{path.name}.part")
    labels = [np.array([*map(csv_label, attribute.categories)], dtype=object) for attribute in schema.attributes]
    written = 0
    try:
        try:
            with unfinished.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow([csv_label(name) for name in schema.names])
                for part in parts:
                    columns = (names[part.records[:, axis]] for axis, names in enumerate(labels))
                    writer.writerows(zip(*columns, strict=True))
                    written += len(part.records)
                    on_progress(written, part.total)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
    return written
