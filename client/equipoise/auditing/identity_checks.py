"""A12: who took part had been admitted, and had a certificate in force.

Times are the server's: where its clock was set back by more than certificates tolerate, this check says so, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from equipoise.auditing.identities import KnownIdentity
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.model.identities import Role
from equipoise.model.times import from_microseconds
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.items import AccessItem, WorkloadItem
from equipoise.records.log_items import KeyItem
from equipoise.records.receipts import (
    RECEIPT_TYPE,
    SESSION_RECEIPT_TYPE,
    ReceiptPayload,
    SessionReceiptPayload,
)
from equipoise.records.record import key_id
from equipoise.records.signed_notes import VerifierKey

REPLAY = "replay by the key "  # instead of an auditor's name: no name has a space


def check_identities(
    recorded: Recorded, known: Mapping[str, KnownIdentity], auditor_keys: Mapping[str, int]
) -> None:
    """Checks everybody who took part in a recorded round: its analysts, and who has read its seed.

    Args:
        recorded: all rounds on record.
        known: everybody who was ever admitted.
        auditor_keys: the entries of the log that add auditors' keys, as `keys_of_auditors` returns them.

    Raises:
        VerificationFailed: naming the first who had not been admitted, had no certificate in force, or whose items
            are withheld without a deletion.
    """
    if problem := withheld(recorded, known):
        raise VerificationFailed(problem)
    for history in recorded.rounds.values():
        for analyst in history.analysts:
            _check_admitted(history, analyst, known.get(analyst))
        _check_workloads(history, known)
        for step in history.readings:
            _check_reading(history, step, known, auditor_keys)


def keys_of_auditors(steps: Iterable[Step]) -> dict[str, int]:
    """Returns the first entry of the log that names each auditor's key, by the key's id; also of retired keys."""
    found: dict[str, int] = {}
    for step in steps:
        for item in step.record.items:
            if isinstance(item, KeyItem) and item.purpose == "auditor":
                found.setdefault(key_id(item.public), step.index)
    return found


def withheld(recorded: Recorded, known: Mapping[str, KnownIdentity]) -> str:
    """Returns the first item of which only the hash is shown, though no deletion of its analyst is on record.

    Items leave the store with their analyst, in the transaction that records the deletion.

    Args:
        recorded: all rounds on record.
        known: everybody who was ever admitted.

    Returns:
        One sentence; empty where there is no such item.
    """
    for history in recorded.rounds.values():
        for step, analyst, shown in history.shown:
            holder = known.get(analyst)
            if not shown and (holder is None or holder.deleted is None):
                return (
                    f"{step}: the item of {analyst!a} is withheld, as only a deleted analyst's may be, but the log "
                    f"does not say that {analyst!a} was deleted"
                )
    return ""


def check_receipt_times(
    known: Mapping[str, KnownIdentity],
    receipts: Iterable[bytes],
    trusted: Sequence[VerifierKey],
    signers: Sequence[VerifierKey],
) -> None:
    """Checks that the analyst of each receipt had a certificate in force at the receipt's time.

    Args:
        known: everybody who was ever admitted, with the times of their certificates.
        receipts: envelopes of rounds and sessions.
        trusted: the keys that the auditor trusts.
        signers: further keys of the log, by its own records.

    Raises:
        VerificationFailed: naming the first who had none.
    """
    for envelope in receipts:
        if claimed_type(envelope) == SESSION_RECEIPT_TYPE:
            answer = SessionReceiptPayload.from_bytes(
                open_envelope(envelope, SESSION_RECEIPT_TYPE, trusted, signers)
            )
            name, time = answer.analyst, answer.time
        else:
            taken = ReceiptPayload.from_bytes(open_envelope(envelope, RECEIPT_TYPE, trusted, signers))
            name, time = taken.analyst, taken.accept_time
        holder = known.get(name)
        if holder is None or not holder.certified(time, time):
            when = f"{from_microseconds(time):%Y-%m-%d %H:%M:%S}"
            raise VerificationFailed(
                f"a receipt is for {name!a} at {when} UTC, who had no certificate in force then: somebody else was "
                "let in, or the log leaves something out"
            )


def _check_admitted(history: RecordedRound, analyst: str, known: KnownIdentity | None) -> None:
    opened = history.opened.index
    if known is None or known.role is not Role.ANALYST or known.since > opened:
        raise VerificationFailed(f"{history.opened}: {analyst!a} has a share, but is not admitted before")
    if known.deleted is not None and known.deleted < opened:
        raise VerificationFailed(f"{history.opened}: {analyst!a} has a share, but was deleted before")


def _check_reading(
    history: RecordedRound, step: Step, known: Mapping[str, KnownIdentity], auditor_keys: Mapping[str, int]
) -> None:
    access, release = step.one(AccessItem), history.release
    if access.auditor.startswith(REPLAY):
        used = access.auditor.removeprefix(REPLAY)
        if auditor_keys.get(used, step.index) >= step.index:
            raise VerificationFailed(
                f"{step}: the seed of the round {access.round_id} was read by a replay with the key {used!a}, "
                "which is not on record before as an auditor's"
            )
    else:
        reader = known.get(access.auditor)
        if reader is None or reader.role is not Role.AUDITOR or not reader.certified(access.time, access.time):
            raise VerificationFailed(
                f"{history.opened}: its seed was read by {access.auditor!a}, who had no auditor's certificate in "
                "force"
            )
    # A reading compares the very time that it is dated with the release time. An abort has no such time.
    if release is not None and access.time < release.release_time:
        raise VerificationFailed(
            f"{step}: the seed of the round {access.round_id} was read before its release time"
        )


def _check_workloads(history: RecordedRound, known: Mapping[str, KnownIdentity]) -> None:
    if history.sealed is None or history.seal_time is None:
        return
    first, last = sorted((history.terms.open_time, history.seal_time))
    entries = history.opened.index, history.sealed.index
    for item in history.sealed.record.each(WorkloadItem):
        if item is None or item.commitment is None:
            continue
        if not known[item.analyst].certified(first, last, entries):
            raise VerificationFailed(
                f"{history.sealed}: a workload of {item.analyst!a} was used, who had no certificate in force while "
                "the round was open"
            )
