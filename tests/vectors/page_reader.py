"""A reader of the formats written from docs/formats.md alone: no module of the package, only hashes and Ed25519.

It says whether the page is enough to implement the formats, and it is short so that it can be compared with it.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def canonical(value: Any) -> str:
    """Section 1, written out: what stands for each kind of value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_character(each) for each in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(canonical(each) for each in value) + "]"
    return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"


def _character(character: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
    if character in short:
        return short[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def root(hashes: list[bytes]) -> bytes:
    """Section 2."""
    if len(hashes) <= 1:
        return hashes[0] if hashes else sha256(b"").digest()
    k = 1
    while 2 * k < len(hashes):
        k *= 2
    return sha256(b"\1" + root(hashes[:k]) + root(hashes[k:])).digest()


def root_by_path(hashed: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """Section 2: the root to which a path leads, reading it from its end."""
    if size == 1:
        assert path == []
        return hashed
    k = 1
    while 2 * k < size:
        k *= 2
    *rest, last = path
    if index < k:
        return sha256(b"\1" + root_by_path(hashed, index, k, rest) + last).digest()
    return sha256(b"\1" + last + root_by_path(hashed, index - k, size - k, rest)).digest()


def verifier_key(line: str) -> tuple[str, str, bytes]:
    """Section 3: name, id in hexadecimal and public key."""
    name, hashed, encoded = line.split("+", 2)
    key = base64.b64decode(encoded, validate=True)
    assert sha256(name.encode() + b"\n" + key).digest()[:4].hex() == hashed
    assert key[0] == 1
    return name, hashed, key[1:]


def checkpoint(note: str, keys: list[str]) -> tuple[str, int, str]:
    """Section 4: origin, size and root in hexadecimal of a checkpoint that all of these keys signed."""
    text, _, lines = note.rpartition("\n\n")
    signatures = [line.split(" ") for line in lines.splitlines()]
    for (name, hashed, public), (dash, signer, encoded) in zip(map(verifier_key, keys), signatures, strict=True):
        content = base64.b64decode(encoded, validate=True)
        assert (dash, signer, content[:4].hex()) == ("\u2014", name, hashed)
        Ed25519PublicKey.from_public_bytes(public).verify(content[4:], (text + "\n").encode())
    origin, size, encoded = text.split("\n")
    return origin, int(size), base64.b64decode(encoded, validate=True).hex()


def payload(envelope: str, kind: str, keys: list[str]) -> str:
    """Section 5: the payload of an envelope of this type that all of these keys signed."""
    fields = json.loads(envelope)
    content = base64.b64decode(fields["payload"], validate=True)
    assert fields["payloadType"] == kind
    signed = f"DSSEv1 {len(kind.encode())} {kind} {len(content)} ".encode() + content
    for (name, hashed, public), signature in zip(map(verifier_key, keys), fields["signatures"], strict=True):
        assert signature["keyid"] == f"{name}+{hashed}"
        Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(signature["sig"]), signed)
    return content.decode("ascii")
