"""Whether two checkpoints are of one log that has only grown: a custodian who shows two logs is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.errors import VerificationFailed
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Earlier, Evidence
from equipoise.records.merkle import verify_consistency
from equipoise.records.signed_notes import Checkpoint, VerifierKey, open_checkpoint


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


def check_history(
    evidence: Evidence,
    checkpoint: Checkpoint,
    seen: EarlierCheckpoint | None,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
) -> str:
    """Checks that the log has only grown between the checkpoints that the analyst knows.

    Args:
        evidence: The bundle's evidence, which may have an earlier checkpoint.
        checkpoint: The checkpoint of the evidence, opened.
        seen: A checkpoint that the analyst got at another time, with what leads to it; None without one.
        trusted: The keys that the analyst trusts.
        listed_keys: Further keys of the log, as the bundle lists them.

    Returns:
        What the checkpoint was compared with, for people.

    Raises:
        VerificationFailed: The log has not only grown, or nothing connects the two checkpoints.
    """
    roots = {checkpoint.size: checkpoint.root}
    compared = []
    if evidence.earlier is not None:
        earlier = open_checkpoint(evidence.earlier.checkpoint, trusted, listed_keys)
        _check_growth(earlier, checkpoint, evidence.earlier)
        roots[earlier.size] = earlier.root
        compared.append(f"{earlier.size:,} leaves, in the bundle")
    if seen is not None:
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
    return " and ".join(compared) or "nothing to compare with: no other checkpoint was given"


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
