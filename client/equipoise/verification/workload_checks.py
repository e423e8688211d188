"""The checks of what was asked: the receipt, and the workload that was used."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import VerificationFailed
from equipoise.model.share_limits import check_allowance
from equipoise.model.times import from_microseconds
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.bundle import Bundle
from equipoise.records.envelopes import open_envelope
from equipoise.records.evidence import Evidence
from equipoise.records.promises import check_recorded
from equipoise.records.proven_round import ProvenRound
from equipoise.records.receipts import RECEIPT_TYPE, ReceiptPayload
from equipoise.records.record import workload_commitment
from equipoise.records.signed_notes import VerifierKey
from equipoise.wire.bulk_compiler import compile_workload_bytes
from equipoise.wire.workloads import workload_from_bytes, workload_to_bytes


def check_receipt(
    evidence: Evidence,
    proven: ProvenRound,
    kept: bytes | None,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
) -> tuple[ReceiptPayload | None, str]:
    """Checks the receipt of the workload that was in force against the records and the analyst's own receipt.

    Args:
        evidence: The bundle's evidence.
        proven: The round, and the analyst's share of it, on record.
        kept: The newest envelope that the analyst got from the server at the time; None if none was kept.
        trusted: The keys that the analyst trusts.
        listed_keys: Further keys of the log, as the bundle lists them.

    Returns:
        The receipt, None if no workload was in force; and what it is, for people.

    Raises:
        VerificationFailed: The receipt promises other terms than are on record, is not the one that the analyst
            kept, or is not what was sealed.
    """
    receipt = None if evidence.receipt is None else _read(evidence.receipt, evidence, trusted, listed_keys)
    own = None if kept is None else _read(kept, evidence, trusted, listed_keys)
    for given in (own, receipt):
        if given is not None:
            check_recorded(given.promise, proven.opened_root, proven.round)
    if receipt is not None and own is not None and evidence.receipt != kept:
        problem = f"the bundle has the receipt of {_describe(receipt)}, you kept that of {_describe(own)}"
        raise VerificationFailed(f"{problem}: another workload was used than the one in your receipt")
    if receipt is None and own is not None and own.commitment is not None:
        raise VerificationFailed(f"you kept a receipt of {_describe(own)}, but the bundle has none")
    committed = None if receipt is None else receipt.commitment
    if proven.seal is not None and committed != proven.commitment:
        raise VerificationFailed("what was sealed is not what the receipt says")
    whose = "the custodian's copy, none of your own was given" if own is None else "the same as your own"
    return receipt, f"{'none' if receipt is None else _describe(receipt)}; {whose}"


def check_workload(
    bundle: Bundle, receipt: ReceiptPayload | None, proven: ProvenRound, own: Sequence[Statement] | None
) -> tuple[CompiledWorkload | None, str]:
    """Checks that the workload is the one that the receipt commits to, and within the analyst's share.

    Args:
        bundle: The workload and its salt.
        receipt: What `check_receipt` returned.
        proven: The round, and the analyst's share of it, on record.
        own: The statements that the analyst remembers; None to compare with none.

    Returns:
        The compiled workload, None if the receipt commits to none; and what it is, for people.

    Raises:
        VerificationFailed: The workload is missing, or another than the one committed to, counted or remembered.
        InvalidArgument: It cannot be compiled.
        BudgetExhausted: It asks more than the share allows.
    """
    salt, workload = bundle.evidence.salt, bundle.workload
    if receipt is None or receipt.commitment is None:
        if salt is not None or workload is not None:
            raise VerificationFailed("no workload is committed to, but there is one")
        if own is not None:
            raise VerificationFailed("no workload of yours was in the round, but you say that you asked")
        return None, "none"
    if salt is None or workload is None:
        raise VerificationFailed("a workload is committed to, but it is not there, or not its salt")
    if workload_commitment(salt, workload) != receipt.commitment:
        raise VerificationFailed("the workload is another than the one committed to")
    if own is not None and not _same(workload_to_bytes(own), workload):
        raise VerificationFailed("the workload is another than your statements")
    compiled = compile_workload_bytes(workload, proven.schema)
    check_allowance(compiled, proven.share.share)
    if (compiled.statement_count, compiled.query_count) != (receipt.statements, receipt.queries):
        raise VerificationFailed("the receipt counts other statements or queries than the workload has")
    whose = "not compared with statements of your own" if own is None else "the same as your own"
    return compiled, f"{compiled.statement_count:,} statements, {compiled.query_count:,} queries; {whose}"


def _same(own: bytes, workload: bytes) -> bool:
    """Whether a workload asks what is asked in `own`; there are several ways to encode the same."""
    return own == workload or own == workload_to_bytes(workload_from_bytes(workload))


def _read(
    envelope: bytes, evidence: Evidence, trusted: Sequence[VerifierKey], listed_keys: Sequence[VerifierKey]
) -> ReceiptPayload:
    receipt = ReceiptPayload.from_bytes(open_envelope(envelope, RECEIPT_TYPE, trusted, listed_keys))
    about = (receipt.deployment, receipt.round_id, receipt.analyst)
    if about != (evidence.deployment, evidence.round_id, evidence.analyst):
        raise VerificationFailed(f"a receipt is of {receipt.analyst} in round {receipt.round_id}")
    return receipt


def _describe(receipt: ReceiptPayload) -> str:
    return f"{from_microseconds(receipt.accept_time):%Y-%m-%d %H:%M:%S} UTC"
