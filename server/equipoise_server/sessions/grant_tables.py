"""The tables of the grants that are open, which are read when a grant is given, and not when its analyst asks."""

from __future__ import annotations

import threading
from collections.abc import Collection

from equipoise.errors import InvalidArgument, NotFound
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.dataset_records import registered_digest
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.workers.shared_tables import SharedTable, SharedTables
from equipoise_server.workers.table_worker import TableJob


class GrantTables:
    """The tables of one server's grants. Safe to use from several threads."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tables = SharedTables(context.worker_idle_seconds)
        self._lock = threading.Lock()
        self._jobs: dict[str, TableJob] = {}

    def table(self, record: RoundRecord) -> SharedTable | None:
        """Return the table of an open grant, which may still be read; None where it is gone."""
        with self._lock:
            job = self._jobs.get(record.id)
        if job is None:
            try:
                job = self._job(record)
            except (InvalidArgument, NotFound):
                return None
            with self._lock:
                self._jobs[record.id] = job
        return self._tables.table(job)

    def look_after(self, grants: Collection[str]) -> None:
        """Begin to read the tables of grants that were opened, and forget those that no open grant is about.

        Args:
            grants: the ids of all that are open.
        """
        with self._lock:
            self._jobs = {grant: job for grant, job in self._jobs.items() if grant in grants}
            kept, known = set(self._jobs.values()), set(self._jobs)
        self._tables.keep(kept)
        for grant in grants:
            if grant not in known:
                with self._context.store.read() as connection:
                    record = read_round(connection, grant)
                self.table(record)

    def close(self) -> None:
        """Forget all tables, and end what reads them."""
        self._tables.close()

    def _job(self, record: RoundRecord) -> TableJob:
        """Return what is to be read. Raises `InvalidArgument` where the table is gone."""
        with self._context.store.read() as connection:
            dataset = dataset_of(connection, record)
            digest = registered_digest(connection, dataset.name, dataset.version)
        return TableJob(self._context.tables.table(dataset), dataset.schema.to_json(), dataset.records, digest)
