"""DuckDB's expressions for the values of a column: numbers, dates, and the bins they are in.

No name and no label is ever part of an expression: columns are called by position, and edges are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from equipoise.queries.dates import ISO_8601
from equipoise_server.datasets.halving import halved
from equipoise_server.datasets.universe import BELOW

NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")


def number(column: str, kind: str, decimal: str) -> str:
    """Return the expression of a column's numbers as doubles; null for what is none.

    Args:
        column: the SQL expression of the column.
        kind: the column's type in DuckDB.
        decimal: the sign between units and tenths in texts, `.` or `,`.
    """
    if NUMERIC.fullmatch(kind):
        return f"TRY_CAST({column} AS DOUBLE)"
    text = f"CAST({column} AS VARCHAR)"
    if decimal == ".":
        return f"TRY_CAST({text} AS DOUBLE)"
    # A point could only stand between thousands, and would be taken for the decimal one.
    return f"CASE WHEN NOT contains({text}, '.') THEN TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"


def seconds(column: str, kind: str) -> str:
    """Return the expression of a column's dates as whole seconds since 1970, rounded down; null for what is none.

    Text is taken apart here, as DuckDB's own reading leaves offsets out, and no session's time zone may matter.

    Args:
        column: the SQL expression of the column.
        kind: the column's type in DuckDB.
    """
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        per_second, unit = (10**9, "ns") if kind.endswith("_NS") else (10**6, "us")
        count = f"epoch_{unit}({column})"
        # Division rounds towards 0, so what is left over is negative before 1970.
        return f"CAST({count} // {per_second} - CAST({count} % {per_second} < 0 AS BIGINT) AS DOUBLE)"
    text = f"CAST({column} AS VARCHAR)"
    local = f"TRY_CAST(regexp_extract({text}, '^[0-9-]+([T ][0-9:]+)?') AS TIMESTAMP)"
    hours, minutes = (
        f"coalesce(TRY_CAST(regexp_extract({text}, '[T ].*[+-]([0-9]{{2}}):?([0-9]{{2}})?$', {part}) AS BIGINT), 0)"
        for part in (1, 2)
    )
    east = f"CASE WHEN regexp_matches({text}, '[T ].*-') THEN -1 ELSE 1 END * ({hours} * 3600 + {minutes} * 60)"
    return (
        f"CASE WHEN regexp_full_match({text}, '{ISO_8601}') "
        f"THEN CAST(epoch_us({local}) // 1000000 - {east} AS DOUBLE) END"
    )


def bin_code(value: str, edges: Sequence[float]) -> str:
    """Return the expression of the bin that a number is in, as `universe` codes it.

    Args:
        value: the SQL expression of the number, a double.
        edges: of the bins, ascending; one more than there are bins.
    """

    def choose(place: int, below: str, above: str) -> str:
        # As text, because DuckDB would read a number with a point as a decimal one first, and round twice.
        return f"CASE WHEN {value} < '{edges[place]!r}'::DOUBLE THEN {below} ELSE {above} END"

    return halved(len(edges), lambda place: str(place - 1 if place else BELOW), choose)
