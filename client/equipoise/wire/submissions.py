"""What a server answers to a workload, as messages, and back."""

from __future__ import annotations

from equipoise.model.submissions import DryRun, Receipt
from equipoise.v1 import analyst_pb2
from equipoise.wire.messages import MessageCodec
from equipoise.wire.scalars import from_server

RECEIPT = MessageCodec(analyst_pb2.Receipt, Receipt, names={"commitment_salt": "salt"})
DRY_RUN = MessageCodec(analyst_pb2.DryRunWorkloadResponse, DryRun)

receipt_to_message, receipt_from_message = RECEIPT.write, from_server(RECEIPT.read)
dry_run_to_message, dry_run_from_message = DRY_RUN.write, DRY_RUN.read
