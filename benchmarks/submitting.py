"""What others' remembered requests cost an analyst that submits: a submit beside none, and beside a million rows.

    PYTHONPATH=tests python benchmarks/submitting.py [--rows 1000000]

The rows are of a thousand callers or more, as many of each as the store keeps, in an SQLite store on the disk where
temporary files lie. Both stores are asked in turn, so that both meet the same load of the machine.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.rounds_bench import ANN, BOB, SALT, Bench

from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.storage.idempotency import MAX_REQUESTS
from equipoise_server.storage.tables.identity import callers, requests

SUBMITS = 200
BATCH = 20_000
WORKLOADS = (workload_to_bytes(ANN), workload_to_bytes(BOB))


def main() -> None:
    """Print the median time of a submit in both stores, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="remembered requests of others")
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        benches = [made(Path(place) / str(count), count) for count in (0, rows)]
        rounds = [bench.opened() for bench in benches]
        seconds: tuple[list[float], ...] = ([], [])
        for number in range(SUBMITS):
            for bench, round_id, times in zip(benches, rounds, seconds, strict=True):
                begin = time.perf_counter()
                bench.rounds.submissions.submit("ann", round_id, str(number), WORKLOADS[number % 2], SALT)
                bench.rounds.operations.catch_up()
                times.append(time.perf_counter() - begin)
        for bench in benches:
            bench.stop()
    beside_none, beside_all = (statistics.median(times) * 1e3 for times in seconds)
    print(f"beside no rows: {beside_none:.2f} ms; beside {rows:,}: {beside_all:.2f} ms")
    print(f"ratio: {beside_all / beside_none:.2f}")


def made(directory: Path, count: int) -> Bench:
    """A service whose store remembers `count` requests of others."""
    directory.mkdir()
    bench = Bench(directory, f"sqlite:///{directory / 'equipoise.db'}")
    with bench.store.write() as connection:
        rows = remembered(count)
        while batch := list(itertools.islice(rows, BATCH)):
            connection.execute(requests.insert(), batch)
        for start in range(0, count, MAX_REQUESTS):
            row = {"caller": caller(start), "requests": min(MAX_REQUESTS, count - start), "last_time": 0}
            connection.execute(callers.insert().values(row))
    return bench


def remembered(count: int) -> Iterator[dict[str, Any]]:
    """Rows as submits leave them."""
    for number in range(count):
        yield {
            "caller": caller(number),
            "request_id": f"{number:032x}",
            "method": "submit",
            "content": bytes(32),
            "answer": "x" * 700,
            "time": to_time(number),
            "number": number % MAX_REQUESTS + 1,
        }


def caller(number: int) -> str:
    """Return whose the request of a number is."""
    return f"analyst/other{number // MAX_REQUESTS:06d}"


def to_time(number: int) -> int:
    """Return when a request came, in microseconds: after the benchmark's clock, so that none is forgotten."""
    return 1_704_110_401_000_000 + number


if __name__ == "__main__":
    main()
