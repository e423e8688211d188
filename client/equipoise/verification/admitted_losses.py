"""Whether the log admits that a checkpoint is lost which it does not contain: what it says, in words.

A custodian that has restored an older copy of its store says so in its log, or retires the keys that signed it. A
checkpoint that the log does not contain, and that no such record covers, proves that the log was forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.errors import VerificationFailed
from equipoise.model.times import from_microseconds
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.evidence import OpenedRecord, log_origin
from equipoise.records.log_items import KeyItem, RestorationItem
from equipoise.records.proven_round import check_inclusion, check_openings
from equipoise.records.record import Kind, read_leaf
from equipoise.records.record_layouts import read_item
from equipoise.records.signed_notes import Checkpoint, VerifierKey, claimed, open_checkpoint, open_note

LOG = "log"


def open_losses(losses: AdmittedLosses, trusted: Sequence[VerifierKey]) -> Checkpoint:
    """Checks that the records are the custodian's log's, and returns the checkpoint that they are proven under.

    Args:
        losses: what the custodian shows.
        trusted: the custodian's keys, from a source that the verifier trusts.

    Raises:
        VerificationFailed: no trusted key has signed the checkpoint, or a record is not in the log.
    """
    checkpoint = open_checkpoint(losses.checkpoint, trusted, _listed(losses))
    if checkpoint.origin != log_origin(losses.deployment):
        raise VerificationFailed(f"the log is {checkpoint.origin}, not that of {losses.deployment}")
    check_inclusion(losses.records, checkpoint)
    check_openings(losses.records)
    return checkpoint


def admitted_loss(losses: AdmittedLosses, lost: bytes, trusted: Sequence[VerifierKey]) -> str:
    """Returns in which words the log admits that a checkpoint is lost; empty where it says nothing of it.

    It does not ask whether the log contains the checkpoint all the same.

    Args:
        losses: what the custodian shows.
        lost: the checkpoint, a signed note.
        trusted: the custodian's keys, from a source that the verifier trusts.

    Raises:
        VerificationFailed: what is shown is not proven, or the checkpoint is not the custodian's.
    """
    now, before = open_losses(losses, trusted), claimed(lost)
    retired = dict(_retired(losses))
    known = [*trusted, *_listed(losses), *(VerifierKey(now.origin, public) for public in retired)]
    signers = signers_of(lost, known)
    if before.origin != now.origin:
        raise VerificationFailed(f"the checkpoint is of another log, {before.origin}")
    for record in losses.records:
        if _kind(record) is Kind.LOG_RESTORED:
            item = read_item(record.items[0].content, RestorationItem)
            if item.covers(record.index, before.size, before.root):
                return _restored(record.index, item)
    signing = signers_of(losses.checkpoint, known)
    if all(key.public in retired and key not in signing for key in signers):
        return " and ".join(dict.fromkeys(retired[key.public] for key in signers))
    return ""


def signers_of(note: bytes, keys: Sequence[VerifierKey]) -> list[VerifierKey]:
    """Returns those of the keys that have signed a note.

    Args:
        note: a signed note.
        keys: all that may have signed.

    Raises:
        VerificationFailed: a signature is wrong, or by another key.
    """
    open_note(note, keys)
    return [key for key in dict.fromkeys(keys) if _has_signed(note, key, keys)]


def _has_signed(note: bytes, key: VerifierKey, keys: Sequence[VerifierKey]) -> bool:
    """Of a note all of whose signatures are by `keys`: where none is the key's, it is not the trusted one."""
    try:
        open_note(note, [key], keys)
    except VerificationFailed:
        return False
    return True


def _listed(losses: AdmittedLosses) -> list[VerifierKey]:
    return [VerifierKey.from_text(line) for line in losses.keys]


def _kind(record: OpenedRecord) -> Kind:
    kind = read_leaf(record.leaf, "a leaf").kind
    if kind not in (Kind.LOG_RESTORED, Kind.KEY_RETIRED) or [each.position for each in record.items] != [0]:
        raise VerificationFailed(f"entry {record.index} of the log, {kind}, is not opened as a loss is")
    return kind


def _retired(losses: AdmittedLosses) -> Iterator[tuple[bytes, str]]:
    """The log's keys that sign no more, each with what the log says of it."""
    for record in losses.records:
        if _kind(record) is not Kind.KEY_RETIRED:
            continue
        item = read_item(record.items[0].content, KeyItem)
        if item.purpose == LOG:
            yield (
                item.public,
                f"entry {record.index} of the log, of {_time(item.time)}, says that the key {item.id.hex()}, which "
                "has signed your checkpoint, signs no more; no record says how much of the log was lost, or "
                "whether anything was",
            )


def _restored(index: int, item: RestorationItem) -> str:
    """What a record of a restoration says."""
    where = f"up to its first {index:,} entries the log is the same as before"
    if item.lost_size < index:
        where = "it does not say up to which entry the log is the same as before"
    return (
        f"entry {index} of the log, of {_time(item.time)}, says that the custodian's store was restored from an "
        f"older copy, and that the log of {item.lost_size:,} entries with the root {item.lost_root.hex()} was "
        f"lost; {where}"
    )


def _time(microseconds: int) -> str:
    try:
        return f"{from_microseconds(microseconds):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        raise VerificationFailed("a record of the log has a time that no calendar has") from None
