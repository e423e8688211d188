"""The program of a process that reads a table once, for the workers of all grants of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle

from equipoise.queries.schema import Schema
from equipoise_server.computation.data import load_data
from equipoise_server.datasets.mapped_counts import write_counts
from equipoise_server.datasets.source import Source


@dataclass(frozen=True)
class TableJob:
    """A registered table. `schema` is JSON; `records` and `data_digest` are those of the registration."""

    source: Source
    schema: str
    records: int
    data_digest: bytes


def serve_table(pipe: Connection, job: TableJob) -> None:
    """Write the counts of a table to the file that comes over `pipe`, and send None: the main function."""
    file = recv_handle(pipe)
    data = load_data(job.source, Schema.from_json(job.schema), job.records, job.data_digest)
    write_counts(data.counts, file)
    os.close(file)
    pipe.send(None)
