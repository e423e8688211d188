"""The dependencies that the services of rounds and of sessions share."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise_server.rounds.clock_watch import ClockWatch
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.storage.store import Store
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class Context:
    """The dependencies of one server's services.

    `storage_key` opens the seeds that the store holds; `watch` says whether the clock is trusted. A worker that is
    waited for is killed once it has used no processor time for `worker_idle_seconds`.
    """

    store: Store
    tables: Datasets
    signer: Signer
    deployment: str
    storage_key: bytes = field(repr=False)
    watch: ClockWatch
    worker_idle_seconds: float
