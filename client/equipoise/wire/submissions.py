"""What a server answers to a workload, as messages, and back."""

from __future__ import annotations

from equipoise.model.submissions import DryRun, Receipt
from equipoise.v1 import analyst_pb2
from equipoise.wire.scalars import from_server, time_from_message, time_to_message


def receipt_to_message(receipt: Receipt) -> analyst_pb2.Receipt:
    """The message of what was accepted of an analyst."""
    return analyst_pb2.Receipt(
        round_id=receipt.round_id,
        workload_digest=receipt.workload_digest,
        statements=receipt.statements,
        queries=receipt.queries,
        accept_time=time_to_message(receipt.accept_time),
        envelope=receipt.envelope,
        commitment_salt=receipt.salt,
    )


@from_server
def receipt_from_message(message: analyst_pb2.Receipt) -> Receipt:
    """What the server accepted. Raises `DataLoss`."""
    return Receipt(
        round_id=message.round_id,
        workload_digest=message.workload_digest,
        statements=message.statements,
        queries=message.queries,
        accept_time=time_from_message(message.accept_time),
        envelope=message.envelope,
        salt=message.commitment_salt,
    )


def dry_run_to_message(run: DryRun) -> analyst_pb2.DryRunWorkloadResponse:
    """The message of what a workload would come to."""
    return analyst_pb2.DryRunWorkloadResponse(
        statements=run.statements,
        queries=run.queries,
        error_bound=run.error_bound,
        max_uncertified=run.max_uncertified,
        sensitivity=run.sensitivity,
        support=run.support,
    )


def dry_run_from_message(message: analyst_pb2.DryRunWorkloadResponse) -> DryRun:
    """What a workload would come to."""
    return DryRun(
        statements=message.statements,
        queries=message.queries,
        error_bound=message.error_bound,
        max_uncertified=message.max_uncertified,
        sensitivity=message.sensitivity,
        support=message.support,
    )
