"""A1 to A4: the log is the custodian's, whole, and the continuation of every state of it that was seen before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.records.log_items import KeyItem, RestorationItem
from equipoise.records.merkle import leaf_hash, root_of
from equipoise.records.signed_notes import Checkpoint, VerifierKey, claimed, open_checkpoint
from equipoise.verification.admitted_losses import signers_of


def check_signatures(
    note: bytes, trusted: Sequence[VerifierKey], steps: Sequence[Step] | None
) -> tuple[Checkpoint, list[VerifierKey]]:
    """A1: checks that a trusted key has signed the checkpoint, and every key in force and no other.

    Args:
        note: the signed note of the checkpoint.
        trusted: the keys that the auditor trusts, at least one.
        steps: the log's records; None if they could not be read, so that only trusted keys count.

    Returns:
        The checkpoint, and every log key that the log names.

    Raises:
        VerificationFailed: a signature is wrong, missing, or by a key that was not in force.
    """
    if steps is None:
        checkpoint = open_checkpoint(note, trusted)
        return checkpoint, list(trusted)
    known, in_force = log_keys(steps, trusted[0].name)
    checkpoint = open_checkpoint(note, trusted, known)
    everybody = list(dict.fromkeys((*trusted, *known)))
    signers = signers_of(note, everybody)
    for key in everybody:
        signed = key in signers
        if signed and key not in in_force:
            raise VerificationFailed(f"the checkpoint is signed by {key.label}, which the log says is not in force")
        if not signed and key in in_force:
            raise VerificationFailed(f"the checkpoint is not signed by {key.label}, which the log says is in force")
    return checkpoint, known


def log_keys(steps: Iterable[Step], name: str) -> tuple[list[VerifierKey], list[VerifierKey]]:
    """Every key that ever signed for the log under this name, and those in force; both by its key records.

    Args:
        steps: all steps of the log, in order.
        name: of the log, as its checkpoints are signed.

    Returns:
        The keys that ever signed, and of these the keys in force, each in the order of their records.

    Raises:
        VerificationFailed: a key is added that is in force, or retired while it is not.
    """
    known: list[VerifierKey] = []
    in_force: list[VerifierKey] = []
    for step in steps:
        for item in step.record.items:
            if not isinstance(item, KeyItem) or item.purpose != "log":
                continue
            key = VerifierKey(name, item.public)
            if (step.kind == "key-retired") != (key in in_force):
                problem = "is in force already" if key in in_force else "is not in force"
                raise VerificationFailed(f"{step}: the key {key.label} {problem}")
            if step.kind == "key-retired":
                in_force.remove(key)
            else:
                known.append(key)
                in_force.append(key)
    return known, in_force


def check_root(checkpoint: Checkpoint, leaves: Sequence[bytes]) -> None:
    """A2: the leaves are as many as the checkpoint says, and hash to its root."""
    if len(leaves) != checkpoint.size:
        raise VerificationFailed(f"there are {len(leaves)} leaves, and the checkpoint says {checkpoint.size}")
    if len(set(leaves)) != len(leaves):
        raise VerificationFailed("a leaf is in the log twice")
    if root_of([leaf_hash(leaf) for leaf in leaves]) != checkpoint.root:
        raise VerificationFailed("the leaves do not hash to the checkpoint's root: one was changed or moved")


def check_continuation(
    checkpoint: Checkpoint,
    leaves: Sequence[bytes],
    seen: Sequence[bytes],
    trusted: Sequence[VerifierKey],
    known: Sequence[VerifierKey],
    steps: Sequence[Step],
) -> None:
    """A3: checks that every checkpoint that was seen before is of this log, at an earlier size or the same.

    Args:
        checkpoint: the log's newest checkpoint.
        leaves: all leaves of the log, in order.
        seen: signed notes of checkpoints seen before.
        trusted: the keys that the auditor trusts.
        known: further keys of the log, by its own records.
        steps: the log's records.

    Raises:
        VerificationFailed: the log is another one, was forked, changed afterwards, or shown in an old state.
    """
    hashes = [leaf_hash(leaf) for leaf in leaves]
    for note in seen:
        try:
            _check_contained(open_checkpoint(note, trusted, known), checkpoint, hashes)
        except VerificationFailed as error:
            raise VerificationFailed(error.message + _way_on(note, steps, trusted)) from None


def _check_contained(before: Checkpoint, checkpoint: Checkpoint, hashes: Sequence[bytes]) -> None:
    """Check that the log with the leaves of these hashes, and this checkpoint, has gone on from an earlier one."""
    if before.origin != checkpoint.origin:
        raise VerificationFailed(f"a checkpoint seen before is of another log: {before.origin}")
    if before.size > checkpoint.size:
        raise VerificationFailed(
            f"the checkpoint is of size {checkpoint.size}, but one of size {before.size} was seen before: "
            "an old one is shown again, or this archive is older than what was seen"
        )
    if before.size == checkpoint.size and before.root != checkpoint.root:
        raise VerificationFailed(f"there are two checkpoints of size {before.size}: the log was forked")
    if root_of(hashes[: before.size]) != before.root:
        raise VerificationFailed(
            f"the first {before.size} leaves are not those of the checkpoint of that size seen before: "
            "the log was forked, or changed afterwards"
        )


def told_loss(note: bytes, steps: Sequence[Step], trusted: Sequence[VerifierKey]) -> str:
    """Returns where the log says that what a checkpoint was of is lost; empty where it says nothing.

    Either a record says that a log was lost, and covers the checkpoint; or every key that signed it was retired, as
    where nobody knows how much was lost.

    Args:
        note: the signed note of the checkpoint.
        steps: the log's records.
        trusted: the keys that the auditor trusts.

    Raises:
        VerificationFailed: the note is no checkpoint.
    """
    before = claimed(note)
    told: set[RestorationItem] = set()
    for step in steps:
        if step.kind == "log-restored":
            lost = step.one(RestorationItem)
            if lost in told:
                continue  # a restoration is told once for each lost entry, and the first shows where it begins
            told.add(lost)
            if lost.covers(step.index, before.size, before.root):
                return f"{step} says that a log of size {lost.lost_size} was lost"
    known, in_force = log_keys(steps, trusted[0].name)
    signers = signers_of(note, [*trusted, *known])
    if signers and not any(key in in_force for key in signers):
        return "the log says that every key that signed that checkpoint was retired"
    return ""


def _way_on(note: bytes, steps: Sequence[Step], trusted: Sequence[VerifierKey]) -> str:
    """Return the sentence that tells an auditor how to accept a loss that the log admits; empty without one."""
    told = told_loss(note, steps, trusted)
    if not told:
        return ""
    root = claimed(note).root.hex()
    return f". But {told}. Find out what was; then accept that loss: equipoise audit accept-loss {root}"
