"""What the log says of who was admitted, and A12: who took part had been admitted, and had a certificate in force.

Times are the server's: where its clock was set back by more than certificates tolerate, this check says so, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from equipoise.auditing.log_checks import check_root, check_signatures
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.auditing.steps import Step, open_steps
from equipoise.errors import VerificationFailed
from equipoise.model.identities import Role
from equipoise.model.log import RecordOpening
from equipoise.model.times import from_microseconds
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem, IdentityEvent, IdentityItem
from equipoise.records.items import AccessItem, WorkloadItem
from equipoise.records.receipts import (
    RECEIPT_TYPE,
    SESSION_RECEIPT_TYPE,
    ReceiptPayload,
    SessionReceiptPayload,
)
from equipoise.records.signed_notes import VerifierKey

EARLY = 5 * 60 * 1_000_000  # microseconds by which a certificate begins before it is issued
LATE = 60 * 1_000_000  # microseconds after its end within which open calls are ended
REPLAY = "replay by the key "  # instead of an auditor's name: no name has a space


@dataclass(frozen=True)
class KnownCertificate:
    """A certificate on record: the SHA-256 of its DER encoding, and the last moment of its validity."""

    digest: bytes
    expire_time: datetime


@dataclass(frozen=True)
class IdentityChange:
    """What entry `index` of the log says of who gets in (`records.identity_items.IdentityItem`)."""

    index: int
    time: datetime
    event: IdentityEvent
    name: str
    role: Role
    by: str
    certificates: tuple[KnownCertificate, ...]


@dataclass
class _Validity:
    begin: int
    end: int
    revoked: bool = False


@dataclass
class KnownIdentity:
    """Somebody who was admitted at the entry `since` of the log, and deleted at another; None: not."""

    role: Role
    since: int
    deleted: int | None = None
    certificates: dict[bytes, _Validity] = field(default_factory=dict)

    def certified(self, first: int, last: int) -> bool:
        """Whether a certificate was in force at any time from `first` to `last`, in microseconds since 1970."""
        return any(each.begin - EARLY <= last and first <= each.end + LATE for each in self.certificates.values())


def identity_changes(
    checkpoint: bytes, leaves: tuple[bytes, ...], records: Iterable[RecordOpening], trusted: Sequence[VerifierKey]
) -> list[IdentityChange]:
    """Returns every change of the registry in a log, once its checkpoint, root and records are verified.

    Raises `VerificationFailed` as checks A1, A2 and A4, and for a change that cannot follow those before it.
    """
    steps = open_steps(records, leaves)
    verified, _ = check_signatures(checkpoint, trusted, steps)
    check_root(verified, leaves)
    read_identities(steps)
    return [_shown(step, step.one(IdentityItem)) for step in steps if step.record.has(IdentityItem)]


def _shown(step: Step, item: IdentityItem) -> IdentityChange:
    try:
        time = from_microseconds(item.time)
        known = tuple(
            KnownCertificate(each.digest, from_microseconds(each.expire_time)) for each in item.certificates
        )
    except OverflowError:
        raise VerificationFailed(f"{step}: says a time that is none") from None
    return IdentityChange(step.index, time, item.event, item.name, item.role, item.by, known)


def read_identities(steps: Iterable[Step]) -> dict[str, KnownIdentity]:
    """Returns everybody who was ever admitted, by name.

    Raises `VerificationFailed` naming the first change that cannot follow those before it.
    """
    known: dict[str, KnownIdentity] = {}
    digests: set[bytes] = set()
    for step in steps:
        if step.record.has(AuthorityItem):
            _exchange(known, digests, step, step.one(AuthorityItem))
        if not step.record.has(IdentityItem):
            continue
        change = step.one(IdentityItem)
        _take(known, step, change)
        if change.event in (IdentityEvent.ADDED, IdentityEvent.RENEWED):
            (issued,) = change.certificates
            if issued.digest in digests:
                raise VerificationFailed(f"{step}: the certificate of {change.name!a} is issued twice")
            digests.add(issued.digest)
    return known


def check_identities(recorded: Recorded, known: Mapping[str, KnownIdentity]) -> None:
    """A12: of every round the analysts with shares, whose workloads were used, and who has read the seed."""
    for history in recorded.rounds.values():
        for analyst in history.analysts:
            _check_admitted(history, analyst, known.get(analyst))
        _check_workloads(history, known)
        for access in history.reads:
            auditor = known.get(access.auditor)
            if access.auditor.startswith(REPLAY):
                continue
            if (
                auditor is None
                or auditor.role is not Role.AUDITOR
                or not auditor.certified(access.time, access.time)
            ):
                raise VerificationFailed(
                    f"{history.opened}: its seed was read by {access.auditor!a}, who had no auditor's certificate "
                    "in force"
                )


def check_receipt_times(
    known: Mapping[str, KnownIdentity],
    receipts: Iterable[bytes],
    trusted: Sequence[VerifierKey],
    signers: Sequence[VerifierKey],
) -> None:
    """A12: whoever got a receipt had a certificate in force at that time."""
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


def _take(known: dict[str, KnownIdentity], step: Step, change: IdentityItem) -> None:
    name, there = change.name, known.get(change.name)
    if change.event is IdentityEvent.ADDED:
        if any(other.lower() == name.lower() for other in known):
            raise VerificationFailed(f"{step}: {name!a} is admitted twice")
        there = known[name] = KnownIdentity(change.role, step.index)
    if there is None or there.deleted is not None:
        state = "was deleted" if there is not None else "is not admitted"
        raise VerificationFailed(f"{step}: {name!a} is {change.event}, but {state} before")
    if there.role is not change.role:
        raise VerificationFailed(f"{step}: {name!a} has the role {change.role}, and was admitted as {there.role}")
    if change.event in (IdentityEvent.ADDED, IdentityEvent.RENEWED):
        if len(change.certificates) != 1:
            raise VerificationFailed(
                f"{step}: {name!a} is {change.event} with {len(change.certificates)} certificates"
            )
        (issued,) = change.certificates
        there.certificates[issued.digest] = _Validity(change.time, issued.expire_time)
        return
    left = {digest for digest, each in there.certificates.items() if not each.revoked}
    if left != {each.digest for each in change.certificates}:
        raise VerificationFailed(f"{step}: the certificates that {name!a} has lost are not all that were in force")
    for digest in left:
        there.certificates[digest].revoked = True
        there.certificates[digest].end = min(there.certificates[digest].end, change.time)
    if change.event is IdentityEvent.DELETED:
        there.deleted = step.index


def _exchange(known: dict[str, KnownIdentity], digests: set[bytes], step: Step, change: AuthorityItem) -> None:
    for each in change.certificates:
        there = known.get(each.name)
        if there is None or there.deleted is not None:
            raise VerificationFailed(f"{step}: {each.name!a} has a certificate, but is not admitted")
        if change.event is AuthorityEvent.ROTATED:
            if each.digest in digests:
                raise VerificationFailed(f"{step}: the certificate of {each.name!a} is issued twice")
            digests.add(each.digest)
            there.certificates[each.digest] = _Validity(change.time, each.expire_time)
            continue
        lost = there.certificates.get(each.digest)
        if lost is None or lost.revoked:
            raise VerificationFailed(f"{step}: a certificate of {each.name!a} is revoked that was not in force")
        lost.revoked, lost.end = True, min(lost.end, change.time)


def _check_admitted(history: RecordedRound, analyst: str, known: KnownIdentity | None) -> None:
    opened = history.opened.index
    if known is None or known.role is not Role.ANALYST or known.since > opened:
        raise VerificationFailed(f"{history.opened}: {analyst!a} has a share, but is not admitted before")
    if known.deleted is not None and known.deleted < opened:
        raise VerificationFailed(f"{history.opened}: {analyst!a} has a share, but was deleted before")


def _check_reader(history: RecordedRound, access: AccessItem, known: KnownIdentity | None) -> None:
    if known is None or known.role is not Role.AUDITOR or not known.certified(access.time, access.time):
        raise VerificationFailed(
            f"{history.opened}: its seed was read by {access.auditor!a}, who had no auditor's certificate in force"
        )


def _check_workloads(history: RecordedRound, known: Mapping[str, KnownIdentity]) -> None:
    if history.sealed is None or history.seal_time is None:
        return
    first, last = sorted((history.terms.open_time, history.seal_time))
    for item in history.sealed.record.each(WorkloadItem):
        if item is not None and item.commitment is not None and not known[item.analyst].certified(first, last):
            raise VerificationFailed(
                f"{history.sealed}: a workload of {item.analyst!a} was used, who had no certificate in force while "
                "the round was open"
            )
