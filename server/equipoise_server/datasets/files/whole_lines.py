"""Checks that DuckDB leaves out no rows at the end of a CSV file, before rows are counted.

DuckDB silently drops a last line that is longer than its buffer, and all that follows a quote that is never closed.
So lines have a limit, and a file with quotes is counted in the lenient mode, too, in which nothing is dropped.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb

from equipoise.errors import InvalidArgument

MAX_LINE = 2 << 20  # bytes; DuckDB's own limit of a row
_CHUNK = 1 << 20


def scan_lines(path: Path, encoding: str) -> bool:
    """Read a CSV file's bytes once, also those of a compressed one.

    Returns:
        Whether it has a quote.

    Raises:
        InvalidArgument: a line has more than `MAX_LINE` bytes.
        OSError, EOFError: the file cannot be read, or not be decompressed.
    """
    utf_16 = encoding == "utf-16"  # a line feed's byte is part of other characters, too
    ends = (b"\0\n", b"\n\0", b"\0\r", b"\r\0") if utf_16 else (b"\n", b"\r")
    quoted, length = False, 0
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            quoted = quoted or b'"' in chunk
            first = min((place for end in ends if (place := chunk.find(end)) >= 0), default=-1)
            length += len(chunk) if first < 0 else first
            if length > MAX_LINE:
                raise InvalidArgument("table", f"has a line of more than {MAX_LINE:,} bytes")
            if first >= 0:
                length = len(chunk) - max(chunk.rfind(end) for end in ends)
    return quoted


def check_quotes(
    connection: duckdb.DuckDBPyConnection, source: str, parameters: tuple[str | list[str], ...]
) -> None:
    """Count the rows in the strict mode, in which they are read, and in the lenient one.

    Args:
        connection: may read the file.
        source: the table function, as the rows are read.
        parameters: those of the function.

    Raises:
        InvalidArgument: the lenient mode finds more rows.
        duckdb.Error: the file cannot be read.
    """
    lenient = source.removesuffix(")") + ", strict_mode = false)"
    # One statement: DuckDB reads a quoted file on one core, and so both at the same time.
    counts = connection.execute(
        f"SELECT (SELECT count(*) FROM {source}), (SELECT count(*) FROM {lenient})", [*parameters, *parameters]
    ).fetchone()
    assert counts is not None
    if counts[0] != counts[1]:
        raise InvalidArgument("table", "has a quote that is not closed, so that what follows it is no row")
