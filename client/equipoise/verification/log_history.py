"""Whether two checkpoints are of one log that has only grown: a custodian who shows two logs is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.errors import VerificationFailed
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Earlier, Evidence, explained, needed_keys
from equipoise.records.merkle import verify_consistency
from equipoise.records.signed_notes import Checkpoint, VerifierKey, claimed, open_checkpoint
from equipoise.verification.admitted_losses import admitted_loss


@dataclass(frozen=True)
class EarlierCheckpoint:
    """A checkpoint that was seen at another time: a signed note; and what came with it, where it came in a bundle.

    `earlier`: the bundle's proof that the log had grown from another checkpoint to this one; `keys`: who signed.
    """

    checkpoint: bytes
    earlier: Earlier | None = None
    keys: tuple[str, ...] = ()

    @classmethod
    def from_file(cls, data: bytes) -> EarlierCheckpoint:
        """Reads the checkpoint of a bundle, or of a file with a note only.

        Raises:
            VerificationFailed: the bundle is damaged.
        """
        if not data.startswith(b"{"):
            return cls(data)
        evidence = Bundle.from_bytes(data).evidence
        return cls(evidence.checkpoint, evidence.earlier, evidence.keys)


@dataclass(frozen=True)
class Memory:
    """What a verifier remembers of the log.

    `seen`: a checkpoint that it got at another time, with what leads to it; None without one. `losses`: what the
    custodian shows where its log does not contain that checkpoint; None where it was not asked. `accepted`: the
    sizes of the logs whose loss the verifier has accepted, by their roots in hexadecimal.
    """

    seen: EarlierCheckpoint | None = None
    losses: AdmittedLosses | None = None
    accepted: Mapping[str, int] = field(default_factory=dict)


def check_history(
    evidence: Evidence,
    checkpoint: Checkpoint,
    memory: Memory,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
) -> str:
    """Checks that the log has only grown between the checkpoints that the analyst knows.

    A checkpoint whose loss the analyst has accepted is not compared. Where the log lacks another one, the failure
    says what the log admits of it.

    Args:
        evidence: The bundle's evidence, which may have an earlier checkpoint.
        checkpoint: The checkpoint of the evidence, opened.
        memory: What the analyst remembers of the log.
        trusted: The keys that the analyst trusts.
        listed_keys: Further keys of the log, as the bundle lists them.

    Returns:
        What the checkpoint was compared with, for people.

    Raises:
        VerificationFailed: The log has not only grown, or nothing connects the two checkpoints.
    """
    try:
        compared = _compared(evidence, checkpoint, memory, trusted, listed_keys)
    except VerificationFailed as error:
        raise VerificationFailed(error.message + _way_on(evidence.round_id, memory, trusted)) from None
    accepted = [f"{size:,} leaves ({root[:16]}...)" for root, size in memory.accepted.items()]
    lost = [f"lost, as you have accepted: the log of {' and of '.join(accepted)}"] if accepted else []
    told = " and ".join(compared) or "nothing to compare with: no other checkpoint was given"
    return "; ".join([told, *lost])


def _compared(
    evidence: Evidence,
    checkpoint: Checkpoint,
    memory: Memory,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
) -> list[str]:
    """What the checkpoint was compared with. Raises `VerificationFailed` where the log has not only grown."""
    roots = {checkpoint.size: checkpoint.root}
    compared = []
    if evidence.earlier is not None:
        earlier = open_checkpoint(evidence.earlier.checkpoint, trusted, listed_keys)
        _check_growth(earlier, checkpoint, evidence.earlier)
        roots[earlier.size] = earlier.root
        compared.append(f"{earlier.size:,} leaves, in the bundle")
    seen = memory.seen
    if seen is not None and claimed(seen.checkpoint).root.hex() not in memory.accepted:
        known = [*listed_keys, *map(VerifierKey.from_text, seen.keys)]
        other = open_checkpoint(seen.checkpoint, trusted, known)
        _check_origin(other, checkpoint)
        if other.size not in roots and seen.earlier is not None:
            between = open_checkpoint(seen.earlier.checkpoint, trusted, known)
            if between.size == checkpoint.size:
                _check_growth(between, other, seen.earlier)
                _check_same(between, checkpoint.root)
                roots[other.size] = other.root
        if other.size not in roots:
            raise VerificationFailed(
                f"nothing connects the checkpoint of {checkpoint.size:,} leaves with yours of {other.size:,}: the "
                "custodian has lost or changed a part of its log, unless the later bundle was made where the "
                "earlier checkpoint was not kept; then make it again there"
            )
        _check_same(other, roots[other.size])
        compared.append(f"{other.size:,} leaves, held by you")
    return compared


def _way_on(round_id: str, memory: Memory, trusted: Sequence[VerifierKey]) -> str:
    """Returns the sentence that tells an analyst how to go on, where the custodian was asked what is lost."""
    if memory.seen is None or memory.losses is None:
        return ""
    note = memory.seen.checkpoint
    try:
        said = admitted_loss(memory.losses, note, trusted)
    except VerificationFailed as error:
        return f". What the custodian shows of losses is no proof: {error.message}"
    if not said:
        return ". The log admits no loss of it: keep your checkpoint and this bundle, which are evidence"
    return (
        f". But {said}. Ask the custodian what was lost, when and why. Then, if you accept that loss: "
        f"equipoise accept-loss {round_id} {claimed(note).root.hex()}"
    )


def check_signers(evidence: Evidence, listed_keys: Sequence[VerifierKey]) -> None:
    """Checks that the listed keys are those that signed, each with a valid signature.

    Args:
        evidence: The bundle's evidence.
        listed_keys: The keys that it lists.

    Raises:
        VerificationFailed: A key that signed is not listed, or another one is.
    """
    notes = [evidence.checkpoint, *([] if evidence.earlier is None else [evidence.earlier.checkpoint])]
    needed = needed_keys(listed_keys, notes, evidence.receipt)
    if not explained(listed_keys, notes, evidence.receipt):
        raise VerificationFailed("a key that signed a part of the file is not listed in it")
    for key in listed_keys:
        if key not in needed:
            raise VerificationFailed(f"the key {key.label} is listed, but signed nothing")


def _check_growth(earlier: Checkpoint, later: Checkpoint, proof: Earlier) -> None:
    _check_origin(earlier, later)
    verify_consistency(earlier.size, earlier.root, later.size, later.root, proof.path)


def _check_origin(one: Checkpoint, other: Checkpoint) -> None:
    if one.origin != other.origin:
        raise VerificationFailed(f"the checkpoints are of two logs, {one.origin} and {other.origin}")


def _check_same(checkpoint: Checkpoint, root: bytes) -> None:
    if checkpoint.root != root:
        raise VerificationFailed(
            f"there are two different checkpoints of {checkpoint.size:,} leaves, both signed: the log was forked"
        )
