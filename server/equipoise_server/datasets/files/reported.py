"""Reports how far DuckDB is with a query, which another thread has to ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from equipoise_server.datasets.progress import OnRead

LOOK_SECONDS = 0.2


@contextmanager
def reported(connection: duckdb.DuckDBPyConnection, progress: OnRead) -> Iterator[None]:
    """Report hundredths while the block runs its queries, from a thread that ends before the block is left."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            # Below 0 as long as DuckDB cannot tell.
            if (percent := connection.query_progress()) >= 0:
                progress(int(percent), 100)

    looking = threading.Thread(target=look, name="reading-progress", daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
