"""Every table. The first migration builds them from here, with the triggers of `append_only`.

Times are microseconds (see `times`), privacy amounts integers in the units of `equipoise.accounting`.
Workloads are here, so whoever reads the store reads every analyst's questions; private data are not.
"""

from __future__ import annotations

from equipoise_server.storage.tables.clock import trusted_time
from equipoise_server.storage.tables.identity import callers, certificates, identities, requests
from equipoise_server.storage.tables.ledger import accounts, charges, journal
from equipoise_server.storage.tables.metadata import metadata
from equipoise_server.storage.tables.round import (
    datasets,
    result_chunks,
    rounds,
    runs,
    shares,
    stream_digests,
    submissions,
    synopses,
)
from equipoise_server.storage.tables.session import asked, attached, sessions
from equipoise_server.storage.tables.transparency import (
    checkpoints,
    keys,
    log_tiles,
    record_items,
    records,
    sealed_seeds,
)

__all__ = [
    "accounts",
    "asked",
    "attached",
    "callers",
    "certificates",
    "charges",
    "checkpoints",
    "datasets",
    "identities",
    "journal",
    "keys",
    "log_tiles",
    "metadata",
    "record_items",
    "records",
    "requests",
    "result_chunks",
    "rounds",
    "runs",
    "sealed_seeds",
    "sessions",
    "shares",
    "stream_digests",
    "submissions",
    "synopses",
    "trusted_time",
]
