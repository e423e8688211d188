"""The tables of open grants, each read once, by a process of its own, into a file in memory.

The server holds the files' descriptors and passes them on to workers; it never reads a file. A file is sealed
before it is passed on, so that no worker can change what another one reads. Each worker compares its digest with
that of the registration. When a table is read depends on which grants are open, which is public, and not on who
asks.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import send_handle

import structlog

from equipoise.errors import EquipoiseError
from equipoise_server.workers.process import AMONG_CALLS, Failed, WorkerProcess, start
from equipoise_server.workers.table_worker import TableJob, serve_table

READERS = 2  # tables that are read at once; others wait in the order in which they came
RETRY_SECONDS = 30.0

log = structlog.get_logger(__name__)


class SharedTable:
    """One table, which may still be read. The file is closed when nobody refers to it any more."""

    def __init__(self) -> None:
        self._read = threading.Event()
        self._file: int | None = None
        self.failed_at: float | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the reading, for so long at most. Return whether it has ended."""
        return self._read.wait(seconds)

    @property
    def file(self) -> int | None:
        """The descriptor of the sealed file; None where the table could not be read, or is still being read."""
        return self._file

    def end(self, file: int | None) -> None:
        """Note the file with the counts; None: reading has failed."""
        self._file = file
        self.failed_at = time.monotonic() if file is None else None
        self._read.set()

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)


class SharedTables:
    """The tables of one server. Safe to use from several threads. `idle_seconds`: as for workers."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._tables: dict[TableJob, SharedTable] = {}
        self._running: set[WorkerProcess] = set()
        self._closed = False
        self._readers = ThreadPoolExecutor(READERS, "table")

    def table(self, job: TableJob) -> SharedTable:
        """Return a table, whose reading begins now unless it has begun before.

        What could not be read is tried again after 30 seconds.
        """
        with self._lock:
            known = self._tables.get(job)
            failed = None if known is None else known.failed_at
            if known is not None and (failed is None or time.monotonic() < failed + RETRY_SECONDS):
                return known
            table = self._tables[job] = SharedTable()
            if self._closed:
                table.end(None)
            else:
                self._readers.submit(self._read, job, table)
            return table

    def keep(self, jobs: Collection[TableJob]) -> None:
        """Forget all other tables. Workers that have them go on."""
        with self._lock:
            self._tables = {job: table for job, table in self._tables.items() if job in jobs}

    def close(self) -> None:
        """Forget all tables, and end what reads them."""
        with self._lock:
            self._closed = True
            self._tables = {}
            running = list(self._running)
        for process in running:
            process.end()
        self._readers.shutdown()

    def _read(self, job: TableJob, table: SharedTable) -> None:
        file: int | None = None
        try:
            file = self._file_of(job)
        except (EquipoiseError, EOFError, OSError) as error:
            log.warning("table_not_read", kind=type(error).__name__)
        finally:
            table.end(file)

    def _file_of(self, job: TableJob) -> int | None:
        """Return a sealed file with a table's counts; None where it could not be read, or this is not Linux."""
        if not hasattr(os, "memfd_create"):
            return None
        process = start(serve_table, job, "table", AMONG_CALLS, self._idle_seconds)
        file = os.memfd_create("table", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with self._lock:
                if self._closed:
                    raise EOFError
                self._running.add(process)
            send_handle(process.pipe, file, process.pid or 0)
            failed: Failed | None = process.receive()
            process.join()
            if failed is not None:
                # The problem's text may count records. The worker of whoever asks comes to the same, and says so.
                log.warning("table_not_read", kind=failed.kind)
                raise EOFError
            seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        except (EOFError, OSError):
            os.close(file)
            return None
        finally:
            with self._lock:
                self._running.discard(process)
            process.end()
            process.pipe.close()
        return file
