"""Signed notes and checkpoints: what is written is read, and nothing else is."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equipoise.errors import VerificationFailed
from equipoise.records.merkle import EMPTY_ROOT, leaf_hash
from equipoise.records.signed_notes import (
    Checkpoint,
    SigningKey,
    VerifierKey,
    open_checkpoint,
    open_note,
    sign_note,
)

ORIGIN = "equipoise/north"
FIRST, SECOND, THIRD = (
    SigningKey(ORIGIN, Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2, 3)
)
TEXT = Checkpoint(ORIGIN, 7, leaf_hash(b"")).to_text()
NOTE = sign_note(TEXT, [FIRST, SECOND])
KEYS = [FIRST.verifier, SECOND.verifier]
SIGNATURES = NOTE.decode().split("\n\n")[1].splitlines(keepends=True)


def test_a_note_is_read_by_whoever_trusts_one_of_its_keys() -> None:
    assert open_note(NOTE, KEYS) == TEXT
    assert open_note(NOTE, KEYS[:1], listed_keys=KEYS[1:]) == TEXT
    assert open_note(NOTE, KEYS[1:], listed_keys=KEYS) == TEXT
    assert open_checkpoint(NOTE, KEYS) == Checkpoint(ORIGIN, 7, leaf_hash(b""))
    assert open_note(sign_note("a\n\nb\n", [FIRST]), KEYS) == "a\n\nb\n"


def test_every_signature_counts_and_one_must_be_trusted() -> None:
    with pytest.raises(VerificationFailed, match="unknown key"):
        open_note(NOTE, KEYS[:1])
    with pytest.raises(VerificationFailed, match="not signed by a trusted key"):
        open_note(NOTE, [THIRD.verifier], listed_keys=KEYS)
    with pytest.raises(VerificationFailed, match="not signed by a trusted key"):
        open_note(NOTE, [], listed_keys=KEYS)
    with pytest.raises(VerificationFailed, match="twice"):
        open_note(NOTE + SIGNATURES[0].encode(), KEYS)
    other = SigningKey("equipoise/south", FIRST.private)
    with pytest.raises(VerificationFailed, match="unknown key"):
        open_note(sign_note(TEXT, [other]), KEYS)


def test_a_signature_is_of_one_text() -> None:
    other = TEXT.replace("\n7\n", "\n8\n")
    with pytest.raises(VerificationFailed, match="is wrong"):
        open_note(f"{other}\n{''.join(SIGNATURES)}".encode(), KEYS)
    moved = SIGNATURES[0].replace(
        base64.b64encode(FIRST.verifier.id)[:4].decode(), base64.b64encode(SECOND.verifier.id)[:4].decode()
    )
    with pytest.raises(VerificationFailed):
        open_note(f"{TEXT}\n{moved}".encode(), KEYS)


def test_a_told_key_under_a_trusted_keys_id_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids have four bytes, so that hostile keys can be made to have a trusted one's; here all are equal."""
    monkeypatch.setattr(VerifierKey, "id", b"same")
    with pytest.raises(VerificationFailed, match="not signed by a trusted key"):
        open_note(sign_note(TEXT, [SECOND]), KEYS[:1], listed_keys=KEYS[1:])
    assert open_note(sign_note(TEXT, [SECOND]), KEYS[1:], listed_keys=KEYS[:1]) == TEXT


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"\n\n",
        TEXT.encode(),
        TEXT.encode() + b"\n",
        NOTE[:-1],
        NOTE + b"\n",
        NOTE.replace(b"\n", b"\r\n"),
        NOTE.replace(b"north", b"no\x00th"),
        NOTE.replace("— ".encode(), b"- "),
        NOTE.replace("— ".encode(), "—".encode()),
        NOTE.replace(b"north ", b"north  "),
        NOTE[:-2] + b" \n",
        b"\xff" + NOTE,
        f"{TEXT}\n— {ORIGIN} \n".encode(),
        f"{TEXT}\n— {ORIGIN} AAAA\n".encode(),
        f"{TEXT}\nmore\n{SIGNATURES[0]}".encode(),
    ],
)
def test_what_is_not_written_as_a_note_is_refused(note: bytes) -> None:
    with pytest.raises(VerificationFailed):
        open_note(note, KEYS)


@pytest.mark.parametrize("text", ["", "no newline", "a\tb\n", "a\r\n"])
def test_no_other_text_is_signed(text: str) -> None:
    with pytest.raises(ValueError, match="newline"):
        sign_note(text, [FIRST])


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT[:-1],
        TEXT + "extension\n",
        TEXT.replace("\n7\n", "\n07\n"),
        TEXT.replace("\n7\n", "\n+7\n"),
        TEXT.replace("\n7\n", "\n-7\n"),
        TEXT.replace("\n7\n", "\n\u0667\n"),
        TEXT.replace("\n7\n", f"\n{2**63}\n"),
        TEXT.replace("\n7\n", f"\n{'9' * 5000}\n"),
        TEXT.replace("\n7\n", "\n\n"),
        f"{ORIGIN}\n7\nAAAA\n",
        f"{ORIGIN}\n7\n\n",
    ],
)
def test_a_checkpoint_is_three_lines(text: str) -> None:
    with pytest.raises(VerificationFailed):
        Checkpoint.from_text(text)


def test_a_checkpoint_is_signed_under_its_origin() -> None:
    for text in (TEXT.replace("north", "south"), "\n0\n" + TEXT.split("\n")[2] + "\n"):
        with pytest.raises(VerificationFailed, match="origin"):
            open_checkpoint(sign_note(text, [FIRST]), KEYS)
    empty = Checkpoint(ORIGIN, 0, EMPTY_ROOT)
    assert open_checkpoint(sign_note(empty.to_text(), [FIRST]), KEYS) == empty


def test_a_key_is_read_as_it_is_written() -> None:
    line = FIRST.verifier.to_text()
    assert VerifierKey.from_text(line) == FIRST.verifier
    name, hashed, encoded = line.split("+", 2)
    for wrong in (
        "",
        line + "\n",
        line[:-1],
        f"{name}+{hashed}",
        f"{name}+{hashed.upper()}+{encoded}",
        f"other+{hashed}+{encoded}",
        f"{name}+{SECOND.verifier.id.hex()}+{encoded}",
        f"{name}+{hashed}+{base64.b64encode(bytes([2]) + FIRST.verifier.public).decode()}",
        f"{name}+{hashed}+{base64.b64encode(bytes([1]) + FIRST.verifier.public[:-1]).decode()}",
    ):
        with pytest.raises(VerificationFailed):
            VerifierKey.from_text(wrong)
    for wrong in ("", "a b", "a+b", "a\n", "a\u2028b", "a\0"):
        with pytest.raises(VerificationFailed, match="name"):
            VerifierKey(wrong, bytes(32))
