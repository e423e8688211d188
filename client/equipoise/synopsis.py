"""Writes the synopsis of a released round to a file: it can be long, so a few thousand records at a time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.synopsis import Synopsis, SynopsisPart
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.schema import Schema

PARQUET = ".parquet"


Write = Callable[[Synopsis], object]
"""Writes some more records to an open file."""


def write_synopsis(
    parts: Iterable[SynopsisPart], schema: Schema, path: Path, on_progress: Callable[[int, int], None]
) -> int:
    """Writes the records with the schema's labels, in a form that `equipoise-server data check` reads.

    The file appears when all records are there.

    Args:
        parts: the synopsis, as `Client.stream_synopsis` yields it.
        schema: the dataset's schema.
        path: the file to write: Parquet where its name ends in `.parquet`, else CSV.
        on_progress: called with how many records are written, and how many there are.

    Returns:
        The number of records.

    Raises:
        InvalidArgument: the file cannot be written, or is Parquet and pyarrow is not installed. What reading the
            parts raises is raised, too.
    """
    unfinished = path.with_name(f"{path.name}.part")
    opened = _parquet if path.suffix.lower() == PARQUET else _csv
    written = 0
    try:
        try:
            with opened(unfinished, schema) as write:
                for part in parts:
                    write(part.synopsis)
                    written += len(part.synopsis)
                    on_progress(written, part.total)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be written: {error.strerror or error}") from None
    return written


@contextmanager
def _csv(path: Path, schema: Schema) -> Iterator[Write]:
    """Labels as text, in quotes where CSV needs them."""
    labels = [np.array([*map(csv_label, each.categories)], dtype=object) for each in schema.attributes]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([csv_label(name) for name in schema.names])
        yield lambda records: writer.writerows(
            zip(*(names[own] for names, own in zip(labels, records.codes, strict=True)), strict=True)
        )


@contextmanager
def _parquet(path: Path, schema: Schema) -> Iterator[Write]:
    """Labels as text."""
    try:
        import pyarrow  # noqa: PLC0415 - optional
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise InvalidArgument("pyarrow", "is not installed; run: pip install 'equipoise[arrow]'") from None
    labels = [pyarrow.array(attribute.categories, pyarrow.string()) for attribute in schema.attributes]
    columns = pyarrow.schema([(name, pyarrow.string()) for name in schema.names])
    with pyarrow.parquet.ParquetWriter(path, columns) as writer:
        yield lambda records: writer.write_table(
            pyarrow.table(
                [own.take(pyarrow.array(codes)) for own, codes in zip(labels, records.codes, strict=True)],
                schema=columns,
            )
        )
