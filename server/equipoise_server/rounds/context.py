"""What rounds and sessions are built on."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise_server.clock import Clock
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.storage.store import Store
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class Foundation:
    """One deployment's store, tables and keys. `storage_key` opens the seeds that the store holds."""

    store: Store
    tables: Datasets
    clock: Clock
    signer: Signer
    deployment: str
    storage_key: bytes = field(repr=False)
