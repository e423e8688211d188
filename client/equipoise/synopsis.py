"""Writes the synopsis of a released round to a file: it can be long, so a few thousand records at a time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.synopsis import SynopsisPart
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.schema import Schema


def write_csv(
    parts: Iterable[SynopsisPart], schema: Schema, path: Path, on_progress: Callable[[int, int], None]
) -> int:
    """Writes the records with the schema's labels as CSV, which `equipoise-server data check` reads.

    The file appears when all records are there.

    Args:
        parts: the synopsis, as `Client.stream_synopsis` yields it.
        schema: the dataset's schema.
        path: the file to write.
        on_progress: called with how many records are written, and how many there are.

    Returns:
        The number of records.

    Raises:
        InvalidArgument: the file cannot be written. What reading the parts raises is raised, too.
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
                    categories = part.synopsis.categories(schema.sizes)
                    columns = (names[categories[:, axis]] for axis, names in enumerate(labels))
                    writer.writerows(zip(*columns, strict=True))
                    written += len(part.synopsis)
                    on_progress(written, part.total)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None
    return written
