"""A round's seed as an auditor opens it: it must be the one that the log commits to, and that its fingerprint says.

The log has a commitment to each seed, which tells nobody whether two rounds have one seed, and a fingerprint, which
does (A10). A custodian could record a fingerprint of something else. Whoever opens a seed finds that out at once.

    refused-seeds/ROUND.HASH    in the auditor's profile, mode 0600: what was refused, with its proof, as JSON

What is kept shows the fault to anybody: the opening's record with its inclusion in the signed log, the sealed seed,
and the commitment's salt and the seed if they open the commitment. It is as secret as the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from equipoise.auditing.archive import EXACT, RECORD
from equipoise.auditing.download import read_log
from equipoise.auditing.log_checks import check_root, check_signatures
from equipoise.auditing.steps import open_steps
from equipoise.clients.auditor import Auditor
from equipoise.errors import NotFound, VerificationFailed
from equipoise.model.log import RecordOpening
from equipoise.profile.receipt_store import write_whole
from equipoise.records.codec import BASE64, HASH, TEXT, Codec, canonical_object, codec_of, key, list_of, optional
from equipoise.records.items import RoundItem
from equipoise.records.merkle import inclusion_path, leaf_hash
from equipoise.records.record import Kind
from equipoise.records.sealed_seeds import SALT_BYTES, fingerprint, open_committed
from equipoise.records.signed_notes import VerifierKey

REFUSED_SEEDS = "refused-seeds"
_HASH_DIGITS = 16


@dataclass(frozen=True)
class RecordedSeed:
    """What the log says of a round's seed: commitment and fingerprint, and the record that has them.

    `checkpoint`: the signed note of the log; `inclusion`: the hashes that prove that the record is in it.
    """

    round_id: str
    commitment: bytes
    fingerprint: bytes
    checkpoint: bytes
    opening: RecordOpening
    inclusion: tuple[bytes, ...]


@canonical_object
class RefusedSeed:
    """A seed that is not the recorded one. `opened`: salt and seed, where they open the commitment; else None."""

    round_id: str = key("round", TEXT)
    checkpoint: bytes = key("checkpoint", EXACT)
    opening: RecordOpening = key("opening", RECORD)
    inclusion: tuple[bytes, ...] = key("inclusion", list_of(HASH))
    sealed: bytes = key("sealed", BASE64)
    opened: bytes | None = key("opened", optional(BASE64))


REFUSED: Codec[RefusedSeed] = codec_of(RefusedSeed, {"format": "equipoise-refused-seed", "version": 1})


def recorded_seed(auditor: Auditor, trusted: Sequence[VerifierKey], round_id: str) -> RecordedSeed:
    """Returns what the custodian's signed log says of a round's seed, before the seed itself is asked for.

    Args:
        auditor: the auditor's client.
        trusted: the custodian's keys, from a source that the auditor trusts.
        round_id: the round.

    Raises:
        NotFound: the log has no such round.
        VerificationFailed: the log is not signed, is not what was signed, or opens the round twice.
    """
    note, leaves, records = read_log(auditor)
    steps = open_steps(records, leaves)
    checkpoint, _ = check_signatures(note, trusted, steps)
    check_root(checkpoint, leaves)
    openings = [step for step in steps if step.kind == Kind.ROUND_OPENED]
    own = [step for step in openings if step.one(RoundItem).round_id == round_id]
    if not own:
        raise NotFound("there is no such round on record")
    if len(own) > 1:
        raise VerificationFailed(f"{own[1]}: the round {round_id} is opened twice")
    (step,) = own
    terms = step.one(RoundItem)
    path = inclusion_path([leaf_hash(leaf) for leaf in leaves], step.index)
    return RecordedSeed(
        round_id, terms.seed_commitment, terms.seed_fingerprint, note, records[step.index], tuple(path)
    )


def open_recorded(private: X25519PrivateKey, sealed: bytes, recorded: RecordedSeed, profile: Path) -> bytes:
    """Returns the commitment's salt and the seed, 64 bytes, of a seed that is the recorded one.

    Args:
        private: the auditor's key.
        sealed: the seed, sealed to that key.
        recorded: what the log says of it.
        profile: the auditor's directory, in which a seed that is refused is kept.

    Raises:
        VerificationFailed: the seed does not open, or is another one than was committed to, or than its fingerprint
            says; the message names the file that has the evidence.
    """
    plain = None
    try:
        plain = open_committed(private, recorded.round_id, sealed, recorded.commitment)
        if fingerprint(plain[SALT_BYTES:]) != recorded.fingerprint:
            raise VerificationFailed(
                "the round's seed is not the one whose fingerprint is on record: nothing shows that no other round "
                "has the same seed"
            )
    except VerificationFailed as error:
        refused = RefusedSeed(
            recorded.round_id, recorded.checkpoint, recorded.opening, recorded.inclusion, sealed, plain
        )
        name = f"{recorded.round_id}.{sha256(sealed).hexdigest()[:_HASH_DIGITS]}"
        path = profile / REFUSED_SEEDS / name
        write_whole(path, REFUSED.to_bytes(refused))
        raise VerificationFailed(f"{error.message}; what was sent is kept as evidence in {path}") from None
    return plain
