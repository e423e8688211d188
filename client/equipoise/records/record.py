"""What is recorded at each step of a deployment: items, committed to one by one, in trees that enter the log.

An item is a statement of fact in canonical JSON under a random salt, so that its hash says nothing to whoever does
not hold the salt. A record is the RFC 6962 tree of its items' hashes, filled up with random ones to a size that
depends on public things only. Its leaf in the log names the kind of step, the record's root and its size.
`docs/formats.md` describes every item; the names here are its names.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from equipoise.records.codec import COUNT, HASH, Codec, canonical_object, codec_of, key, name_of
from equipoise.records.merkle import HASH_BYTES, inclusion_path, leaf_hash, root_of

VERSION = 1
SALT_BYTES = 32
KEY_ID_DIGITS = 16
MIN_RECORD = 8  # items, with padding


class Kind(StrEnum):
    """The steps that are recorded."""

    LOG_STARTED = "log-started"
    KEY_ADDED = "key-added"
    KEY_RETIRED = "key-retired"
    LOG_RESTORED = "log-restored"
    IDENTITY_CHANGED = "identity-changed"
    AUTHORITY_CHANGED = "authority-changed"
    CLOCK_CONFIRMED = "clock-confirmed"
    DATASET_REGISTERED = "dataset-registered"
    DATASET_RETIRED = "dataset-retired"
    DATASET_DELETED = "dataset-deleted"
    ROUND_OPENED = "round-opened"
    ROUND_SEALED = "round-sealed"
    ROUND_RELEASED = "round-released"
    ROUND_ABORTED = "round-aborted"
    SEED_READ = "seed-read"
    SEED_DESTROYED = "seed-destroyed"


class Audience(StrEnum):
    """Who may open an item besides auditors, who may open all."""

    ANALYST = "analyst"  # the analyst it is about
    ROUND = "round"  # every analyst who has a share in the round, or in a round of the dataset
    AUDITOR = "auditor"  # nobody


@dataclass(frozen=True)
class Item:
    """A statement with its salt. `analyst` names whom it is about where the audience is that analyst."""

    content: bytes
    salt: bytes
    audience: Audience
    analyst: str = ""

    @property
    def hash(self) -> bytes:
        """What commits to the item: RFC 6962's hash of the leaf `salt + content`, 32 bytes."""
        return item_hash(self.salt, self.content)


@dataclass(frozen=True)
class Record:
    """The items of one step, in their order, and the random hashes after them."""

    kind: Kind
    items: tuple[Item, ...]
    padding: tuple[bytes, ...]

    @property
    def hashes(self) -> list[bytes]:
        """All leaves of the record's tree."""
        return [*(item.hash for item in self.items), *self.padding]

    @property
    def root(self) -> bytes:
        """The record's root, 32 bytes."""
        return root_of(self.hashes)

    @property
    def leaf(self) -> bytes:
        """What enters the log."""
        return leaf_bytes(self.kind, self.root, len(self.items) + len(self.padding))

    def path(self, place: int) -> list[bytes]:
        """Returns what leads from an item's hash to the root."""
        return inclusion_path(self.hashes, place)


def make_record(kind: Kind, items: Sequence[Item]) -> Record:
    """Returns a record of these items, filled up with random hashes."""
    size = padded_size(len(items))
    return Record(kind, tuple(items), tuple(secrets.token_bytes(HASH_BYTES) for _ in range(size - len(items))))


def padded_size(items: int) -> int:
    """Returns the size of a record's tree: a power of two that holds its items."""
    return max(MIN_RECORD, 1 << (items - 1).bit_length())


def item_hash(salt: bytes, content: bytes) -> bytes:
    """Returns the hash of an item, 32 bytes; the salt has a fixed length, so the concatenation is unambiguous.

    Args:
        salt: 32 bytes, drawn for this item alone.
        content: of the item, its canonical bytes.

    Raises:
        ValueError: the salt has another length.
    """
    return leaf_hash(_checked_salt(salt) + content)


@canonical_object
class Leaf:
    """A leaf of the log: for which step it stands, its record's root, and the size of its record's tree."""

    kind: Kind = key("kind", name_of(Kind))
    root: bytes = key("root", HASH)
    size: int = key("size", COUNT)


LEAF: Codec[Leaf] = codec_of(Leaf, {"version": VERSION})


def leaf_bytes(kind: Kind, root: bytes, size: int) -> bytes:
    """Returns the exact bytes of a leaf of the log.

    Args:
        kind: of the record.
        root: of the record's tree of items, 32 bytes.
        size: how many leaves that tree has.
    """
    return LEAF.to_bytes(Leaf(kind, root, size))


def read_leaf(data: bytes, what: str) -> Leaf:
    """Returns the inverse of `leaf_bytes`.

    Raises `VerificationFailed`, naming `what`, for bytes that it does not write.

    Args:
        data: the leaf's bytes.
        what: names them in messages.
    """
    return LEAF.from_bytes(data, what)


def key_id(public: bytes) -> str:
    """By what records, files and people tell keys apart: 16 digits of the SHA-256 of the public 32 bytes."""
    return hashlib.sha256(public).hexdigest()[:KEY_ID_DIGITS]


def workload_commitment(salt: bytes, workload: bytes) -> bytes:
    """Returns what commits to a workload's exact bytes, under the salt that its analyst has drawn; 32 bytes.

    Args:
        salt: the one that the analyst drew.
        workload: the exact bytes that were submitted.
    """
    return hashlib.sha256(workload_prefix(salt) + workload).digest()


def workload_prefix(salt: bytes) -> bytes:
    """Returns the bytes that come before a workload in the SHA-256 that commits to it (`workload_commitment`)."""
    return b"equipoise workload v1\n" + _checked_salt(salt)


def _checked_salt(salt: bytes) -> bytes:
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    return salt


def questions_commitment(salt: bytes, questions: bytes) -> bytes:
    """Returns what commits to the questions that a workload was translated from; 32 bytes.

    It is made with the workload's salt, from another beginning, so it tells nobody more than 32 random bytes would
    who has neither the salt nor a preimage of SHA-256: no guess of the questions can be compared with it.

    Args:
        salt: the one that the analyst drew for the workload.
        questions: what was understood of them, the lines of `equipoise.questions.questions.Questions.as_comments`
            in UTF-8.
    """
    return hashlib.sha256(b"equipoise questions v1\n" + _checked_salt(salt) + questions).digest()


def stream_digest(round_id: str, chunks: Iterable[bytes]) -> bytes:
    """Returns what commits to a result stream: a chain over the exact bytes of its messages; 32 bytes.

    Args:
        round_id: the round or session.
        chunks: the exact bytes of each message, in order.
    """
    digest = stream_start(round_id)
    for chunk in chunks:
        digest = stream_step(digest, chunk)
    return digest


def stream_start(round_id: str) -> bytes:
    """Returns the digest of a stream of which nothing was sent yet."""
    return hashlib.sha256(b"equipoise stream v1\n" + round_id.encode()).digest()


def stream_step(digest: bytes, chunk: bytes) -> bytes:
    """Returns the digest of a stream after its next message.

    Args:
        digest: of the stream so far, 32 bytes.
        chunk: the exact bytes of the next message.
    """
    return hashlib.sha256(digest + hashlib.sha256(chunk).digest()).digest()


def synopsis_digest(categories: bytes) -> bytes:
    """Returns what commits to a synopsis: over its records' category numbers, as `Synopsis.to_bytes` has them."""
    return hashlib.sha256(b"equipoise synopsis v1\n" + categories).digest()
