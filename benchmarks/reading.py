"""Reading a table: seconds and memory, beside DuckDB's own GROUP BY over the same bins.

    python benchmarks/reading.py [--rows 10000000] [--directory DIR]

Makes a Parquet file with eight columns: numbers with many values and with few, dates, labels and truth values.
Reads it in processes of their own, each way in turn: by `datasets`, and by a query that somebody would write by
hand, with one CASE for each column. Prints the medians and the ratio.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import duckdb

from equipoise.queries.schema import Schema
from equipoise_server.datasets.source import source_at

TURNS = 3
AGES, INCOMES, DELAYS, MONTHS = (
    [0, 20, 30, 40, 50, 65, 91],
    [0, 10_000, 20_000, 50_000, 100_001],
    [-60, 0, 15, 60, 141],
    12,
)
QUARTERS = ["2013-01-01", "2013-04-01", "2013-07-01", "2013-10-01", "2014-01-01"]
KINDS, STATES = list("abcdef"), [f"state{number}" for number in range(20)]
SCHEMA = {
    "version": 1,
    "attributes": [
        {"name": "age", "edges": AGES},
        {"name": "income", "edges": INCOMES},
        {"name": "delay", "edges": DELAYS},
        {"name": "month", "categories": [str(month + 1) for month in range(MONTHS)]},
        {"name": "day", "edges": QUARTERS},
        {"name": "kind", "categories": KINDS},
        {"name": "state", "categories": STATES},
        {"name": "flag", "categories": ["true", "false"]},
    ],
}
MADE = """
COPY (
    SELECT CAST(floor(random() * 91) AS INTEGER) AS age, random() * 1e5 AS income, random() * 200 - 60 AS delay,
    CAST(floor(random() * 12) AS INTEGER) + 1 AS month,
    DATE '2013-01-01' + CAST(floor(random() * 365) AS INTEGER) AS day,
    chr(97 + CAST(floor(random() * 6) AS INTEGER)) AS kind,
    'state' || CAST(floor(random() * 20) AS INTEGER) AS state,
    random() < 0.3 AS flag FROM range({rows})
) TO '{path}' (FORMAT parquet)
"""


def main() -> None:
    """Print seconds and peak memory of both ways, and the ratio of the seconds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--directory", type=Path, help="where the file is made, and kept for the next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = (arguments.directory or Path(place)) / f"rows-{arguments.rows}.parquet"
        if not path.exists():
            duckdb.sql(MADE.format(rows=arguments.rows, path=path))
        seconds: dict[Callable[[Path], int], list[float]] = {ours: [], by_hand: []}
        memory = dict.fromkeys(seconds, 0.0)
        for _ in range(TURNS):
            for read, times in seconds.items():
                took, mebibytes = measured(read, path)
                times.append(took)
                memory[read] = max(memory[read], mebibytes)
    for read, times in seconds.items():
        print(f"{read.__name__:>8}: {statistics.median(times):.1f} s, {memory[read]:.0f} MiB at most")
    print(f"ratio: {statistics.median(seconds[ours]) / statistics.median(seconds[by_hand]):.2f}")


def measured(read: Callable[[Path], int], path: Path) -> tuple[float, float]:
    """The seconds and the peak memory, in MiB, of reading in a new process."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=report, args=(read, path, theirs))
    process.start()
    took: tuple[float, float] = mine.recv()
    process.join()
    return took


def report(read: Callable[[Path], int], path: Path, answer: Connection) -> None:
    """Read, and send what it took."""
    begin = time.perf_counter()
    assert read(path) > 0
    took = time.perf_counter() - begin
    answer.send((took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def ours(path: Path) -> int:
    """Read as a registration does; returns the number of rows."""
    return source_at(path).counts(Schema.from_json(json.dumps(SCHEMA))).records


def by_hand(path: Path) -> int:
    """Read with a query written for this table; returns the number of rows."""
    binned = [case(name, edges) for name, edges in (("age", AGES), ("income", INCOMES), ("delay", DELAYS))]
    binned.append(case("day", [f"DATE '{quarter}'" for quarter in QUARTERS]))
    duckdb.execute("SET enable_progress_bar = false")
    groups = duckdb.execute(
        f"SELECT {', '.join(binned)}, month, kind, state, flag, count(*) AS rows FROM '{path}' GROUP BY ALL"
    ).fetchnumpy()
    return int(groups["rows"].sum())


def case(name: str, edges: list[int] | list[str]) -> str:
    """The bins of one column, one comparison after the other."""
    whens = " ".join(f"WHEN {name} < {edge} THEN {place}" for place, edge in enumerate(edges))
    return f"CASE {whens} ELSE {len(edges)} END AS {name}"


if __name__ == "__main__":
    main()
