"""A small custodian's receipt for a workload of ann's, and the store in which her profile keeps it."""

from __future__ import annotations

from pathlib import Path

from equipoise.profile.profile import LOG_KEYS, SETTINGS, settings_text
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.receipts import ReceiptPayload
from equipoise.records.record import workload_commitment
from equipoise.wire.workloads import workload_to_bytes
from harness.shown_rounds import PROMISE
from harness.small_custodian import DEPLOYMENT, ROUND, SALT, STATEMENTS, Custodian

WORKLOAD = workload_to_bytes(STATEMENTS)
PAYLOAD = ReceiptPayload(DEPLOYMENT, ROUND, "ann", workload_commitment(SALT, WORKLOAD), 3, 10, 1_000, PROMISE, None)
LOG = Custodian()


def store_of(directory: Path) -> ReceiptStore:
    """The store of a profile of ann's that trusts the custodian's first key."""
    (directory / SETTINGS).write_bytes(settings_text("127.0.0.1:1", "ann"))
    (directory / LOG_KEYS).write_text(LOG.trusted[0].to_text() + "\n")
    return ReceiptStore(directory)
