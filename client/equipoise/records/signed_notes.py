"""Signed notes and checkpoints, as C2SP's signed-note and tlog-checkpoint have them, with Ed25519 keys.

A note is a text, an empty line, and one line for each signature: a dash, the key's name, and base64 of the key's
id and the signature of the text. A checkpoint is a text of three lines: the log's origin, the size of its tree, and
the root in base64. Its signers' names are its origin. Names have no spaces, so that no text signed here can also be
what an envelope's signature covers (`equipoise.records.envelopes`), though a log signs both with one key.

Reading is stricter than those specifications ask, as nothing in what is kept as evidence may be unexplained: every
signature must be by a key that the reader was given, of which one at least is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import from_base64, from_hex, to_base64
from equipoise.records.merkle import HASH_BYTES

ID_BYTES = 4
MAX_SIZE = 2**63 - 1
_ED25519 = b"\x01"
_KEY_BYTES = 32
_DASH = "\N{EM DASH} "


@dataclass(frozen=True)
class VerifierKey:
    """A public Ed25519 key and the name under which it signs; `VerificationFailed` where either is malformed."""

    name: str
    public: bytes

    def __post_init__(self) -> None:
        if not self.name or "+" in self.name or any(each.isspace() or not each.isprintable() for each in self.name):
            raise VerificationFailed("a key's name must be printable, without spaces and plus signs")
        if len(self.public) != _KEY_BYTES:
            raise VerificationFailed(f"the key {self.name} is not {_KEY_BYTES} bytes long")

    @property
    def id(self) -> bytes:
        """The first 4 bytes of the hash of name and key."""
        return sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:ID_BYTES]

    @property
    def label(self) -> str:
        """The name and the id, by which a person or an envelope tells keys apart."""
        return f"{self.name}+{self.id.hex()}"

    def to_text(self) -> str:
        """C2SP's line for the key: its label and, in base64, the algorithm's byte and the key."""
        return f"{self.label}+{to_base64(_ED25519 + self.public)}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Returns the key of such a line.

        Raises `VerificationFailed` for anything else, also for other algorithms.
        """
        name, _, rest = text.partition("+")
        hashed, _, encoded = rest.partition("+")
        kind_and_public = from_base64(encoded, "the verifier key")
        key = cls(name, kind_and_public[1:])
        if kind_and_public[:1] != _ED25519 or from_hex(hashed, ID_BYTES, "the verifier key's id") != key.id:
            raise VerificationFailed(f"the verifier key {name} is not an Ed25519 key with its id")
        return key

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Returns whether the signature is this key's for exactly this message."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """A private Ed25519 key and the name under which it signs."""

    name: str
    private: Ed25519PrivateKey

    @property
    def verifier(self) -> VerifierKey:
        """The public part."""
        return VerifierKey(self.name, self.private.public_key().public_bytes_raw())


@dataclass(frozen=True)
class Signature:
    """A signature and whose it says it is."""

    name: str
    id: bytes
    signature: bytes


@dataclass(frozen=True)
class Checkpoint:
    """What a log's operator signs: the size and the root of its tree. `origin` names the log."""

    origin: str
    size: int
    root: bytes

    def to_text(self) -> str:
        """Returns the three lines."""
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The checkpoint of exactly these three lines; `VerificationFailed` for others, also for extensions."""
        lines = text.split("\n")
        if len(lines) != 4 or not (lines[1].isascii() and lines[1].isdecimal() and len(lines[1]) <= 19):
            raise VerificationFailed("a checkpoint is not an origin, a size and a root")
        checkpoint = cls(lines[0], int(lines[1]), from_base64(lines[2], "the checkpoint's root"))
        if checkpoint.to_text() != text or checkpoint.size > MAX_SIZE or len(checkpoint.root) != HASH_BYTES:
            raise VerificationFailed("a checkpoint is not an origin, a size and a root")
        return checkpoint


def sign_note(text: str, keys: Iterable[SigningKey]) -> bytes:
    """Returns the note: the `text`, which must end in a newline, with one signature by each of the `keys`."""
    if not text.endswith("\n") or not _is_plain(text):
        raise ValueError("a note's text must end in a newline and have no other control characters")
    message = text.encode()
    lines = (f"{_DASH}{key.name} {to_base64(key.verifier.id + key.private.sign(message))}\n" for key in keys)
    return f"{text}\n{''.join(lines)}".encode()


def open_note(
    note: bytes,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey] = (),
    what: str = "the signed note",
) -> str:
    """Returns the text of a signed note.

    Args:
        note: what `sign_note` writes.
        trusted: one of them must have signed.
        listed_keys: may have signed besides.
        what: names the note in errors.

    Raises:
        VerificationFailed: no trusted key has signed, a signature does not verify or is by another key, one key has
            signed twice, or the bytes are not what `sign_note` writes.
    """
    text, signatures = _read_note(note)
    verify_signatures(text.encode(), signatures, trusted, listed_keys, what)
    return text


def open_checkpoint(
    note: bytes, trusted: Sequence[VerifierKey], listed_keys: Sequence[VerifierKey] = ()
) -> Checkpoint:
    """Returns the checkpoint in a signed note.

    Args:
        note: a note as `open_note` takes it.
        trusted: one of them must have signed.
        listed_keys: may have signed besides.

    Raises:
        VerificationFailed: as `open_note`, or the note is no checkpoint whose origin is the name of every key that
            signed it.
    """
    checkpoint = Checkpoint.from_text(open_note(note, trusted, listed_keys, "the checkpoint"))
    if any(each.name != checkpoint.origin for each in _read_note(note)[1]):
        raise VerificationFailed("a checkpoint's origin is not the name of the keys that signed it")
    return checkpoint


def claimed(note: bytes) -> Checkpoint:
    """Returns what a checkpoint says, whoever has signed it: to ask for what belongs to it, and for nothing else.

    Raises `VerificationFailed` where its text is no checkpoint's.
    """
    return Checkpoint.from_text(note.decode("utf-8", "replace").partition("\n\n")[0] + "\n")


def verify_signatures(
    message: bytes,
    signatures: Sequence[Signature],
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
    what: str,
) -> None:
    """Checks that every signature of a message is by a known key, each by another, and one by a trusted key.

    Args:
        message: the exact bytes that were signed.
        signatures: all signatures.
        trusted: one of them must have signed.
        listed_keys: may have signed besides.
        what: names the message in errors.

    Raises:
        VerificationFailed: a key has signed twice, is unknown, or no trusted one has; or a signature is wrong.

    The id is too short to name one key among hostile ones: whose signature it is, only the signature decides.
    """
    if len({(each.name, each.id) for each in signatures}) != len(signatures):
        raise VerificationFailed(f"{what} is signed twice by one key")
    is_trusted = False
    for each in signatures:
        named = [key for key in (*trusted, *listed_keys) if (key.name, key.id) == (each.name, each.id)]
        if not named:
            raise VerificationFailed(f"{what} is signed by the unknown key {each.name}+{each.id.hex()}")
        signers = [key for key in named if key.verifies(each.signature, message)]
        if not signers:
            raise VerificationFailed(f"{what}: the signature by {each.name}+{each.id.hex()} is wrong")
        is_trusted = is_trusted or any(key in trusted for key in signers)
    if not is_trusted:
        raise VerificationFailed(f"{what} is not signed by a trusted key")


def count_signatures(note: bytes) -> int:
    """Returns how many signatures a note has, by whomever. Raises `VerificationFailed` for what is no note."""
    return len(_read_note(note)[1])


def _read_note(note: bytes) -> tuple[str, list[Signature]]:
    try:
        decoded = note.decode()
    except UnicodeDecodeError:
        raise VerificationFailed("a signed note is not UTF-8") from None
    text, separator, lines = decoded.rpartition("\n\n")
    if not separator or not lines.endswith("\n") or not _is_plain(decoded):
        raise VerificationFailed("a signed note is not a text and lines of signatures")
    return text + "\n", [_read_signature(line) for line in lines[:-1].split("\n")]


def _read_signature(line: str) -> Signature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    content = from_base64(encoded, "a note's signature")
    if not line.startswith(_DASH) or len(content) <= ID_BYTES:
        raise VerificationFailed("a signed note has a line that is no signature")
    return Signature(name, content[:ID_BYTES], content[ID_BYTES:])


def _is_plain(text: str) -> bool:
    return all(each >= " " or each == "\n" for each in text)
