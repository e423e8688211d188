"""A reader of the formats written from docs/formats.md alone: no module of the package, only hashes and Ed25519.

It says whether the page is enough to implement the formats, and it is short so that it can be compared with it.
"""

from __future__ import annotations

import base64
import json
import math
import struct
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


def roots_by_path(old: int, new: int, path: list[bytes], old_root: bytes | None) -> tuple[bytes, bytes]:
    """Section 2: the roots to which a consistency path leads. `old_root`: None where the path tells it."""
    if old == new:
        (told,) = path if old_root is None else (old_root, *path)
        return told, told
    k = 1
    while 2 * k < new:
        k *= 2
    *rest, last = path
    if old <= k:
        before, after = roots_by_path(old, k, rest, old_root)
        return before, sha256(b"\1" + after + last).digest()
    before, after = roots_by_path(old - k, new - k, rest, None)
    return sha256(b"\1" + last + before).digest(), sha256(b"\1" + last + after).digest()


def verifier_key(line: str) -> tuple[str, str, bytes]:
    """Section 3: name, id in hexadecimal and public key."""
    name, hashed, encoded = line.split("+", 2)
    key = base64.b64decode(encoded, validate=True)
    assert sha256(name.encode() + b"\n" + key).digest()[:4].hex() == hashed
    assert key[0] == 1
    return name, hashed, key[1:]


def checkpoint(note: str, keys: list[str]) -> tuple[str, int, str]:
    """Section 4: origin, size and root in hexadecimal of a checkpoint that just these keys signed, in order."""
    text, _, lines = note.rpartition("\n\n")
    signatures = [line.split(" ") for line in lines.splitlines()]
    for (name, hashed, public), (dash, signer, encoded) in zip(map(verifier_key, keys), signatures, strict=True):
        content = base64.b64decode(encoded, validate=True)
        assert (dash, signer, content[:4].hex()) == ("\u2014", name, hashed)
        Ed25519PublicKey.from_public_bytes(public).verify(content[4:], (text + "\n").encode())
    origin, size, encoded = text.split("\n")
    return origin, int(size), base64.b64decode(encoded, validate=True).hex()


def payload(envelope: str, kind: str, keys: list[str]) -> str:
    """Section 5: the payload of an envelope of this type that just these keys signed, in this order."""
    fields = json.loads(envelope)
    content = base64.b64decode(fields["payload"], validate=True)
    assert fields["payloadType"] == kind
    signed = f"DSSEv1 {len(kind.encode())} {kind} {len(content)} ".encode() + content
    for (name, hashed, public), signature in zip(map(verifier_key, keys), fields["signatures"], strict=True):
        assert signature["keyid"] == f"{name}+{hashed}"
        Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(signature["sig"]), signed)
    return content.decode("ascii")


def chain_start(deployment: str, session: str, analyst: str, salt: bytes) -> bytes:
    """Section 8: the chain of a session before its analyst's first answer."""
    names = canonical({"analyst": analyst, "deployment": deployment, "session": session})
    return sha256(b"equipoise session v2\n" + salt + names.encode()).digest()


def chain_step(chain: bytes, i: int, slot: int, statement: bytes, answers: list[tuple[int, ...]]) -> bytes:
    """Section 8: the chain after the i-th answer: of each cell value, method, low, high and standard error."""
    parts = [chain, struct.pack("<QQQ", i, slot, len(answers)), sha256(statement).digest()]
    for column, form in enumerate(("<q", "<B", "<q", "<q", "<q")):
        parts += [struct.pack(form, answer[column]) for answer in answers]
    return sha256(b"".join(parts)).digest()


LINKS = {"round": "dataset_root", "seal": "opened_root", "release": "sealed_root", "abort": "previous_root"}
RECEIPT = "application/vnd.equipoise.receipt+json"
SESSION_RECEIPT = "application/vnd.equipoise.session-receipt+json"


def bundle(text: str, key: str) -> dict[str, dict[str, Any]]:
    """Section 9: the items of a bundle all of whose signatures are by this key, by name, if it holds together."""
    whole = read(text)
    evidence = whole["evidence"]
    names = [whole["format"], whole["version"], evidence["format"], evidence["version"]]
    assert names == ["equipoise-bundle", 1, "equipoise-evidence", 1]
    assert evidence["keys"] == [key]
    origin, size, log_root = checkpoint(evidence["checkpoint"], [key])
    assert origin == f"equipoise/{evidence['deployment']}"
    items: dict[str, dict[str, Any]] = {}
    before = ""
    for record in evidence["records"]:
        hashed = sha256(b"\0" + record["leaf"].encode()).digest()
        assert root_by_path(hashed, record["index"], size, hexes(record["path"])).hex() == log_root
        leaf = read(record["leaf"])
        for item in record["items"]:
            hashed = sha256(b"\0" + base64.b64decode(item["salt"]) + item["content"].encode()).digest()
            found = root_by_path(hashed, item["position"], leaf["size"], hexes(item["path"]))
            assert found.hex() == leaf["root"]
            fields = read(item["content"])
            assert fields.get("round", evidence["round"]) == evidence["round"]
            assert fields.get("analyst", evidence["analyst"]) == evidence["analyst"]
            assert fields.get(LINKS.get(fields["item"], ""), before) == before
            items[fields["item"]] = fields
        before = leaf["root"]
    workload = base64.b64decode(evidence["salt"]) + base64.b64decode(whole["workload"])
    assert items["workload"]["commitment"] == sha256(b"equipoise workload v1\n" + workload).hexdigest()
    if items["round"]["session"] is None:
        receipt = read(payload(evidence["receipt"], RECEIPT, [key]))
        assert (receipt["round"], receipt["analyst"]) == (evidence["round"], evidence["analyst"])
        assert receipt["commitment"] == items["workload"]["commitment"]
    else:
        receipt = read(payload(evidence["receipt"], SESSION_RECEIPT, [key]))
        assert (receipt["session"], receipt["analyst"]) == (evidence["round"], evidence["analyst"])
        assert receipt["chain"] == answers_chain(whole, items).hex()
    terms = dict(receipt["promise"])
    assert terms.pop("opened_root") == items["seal"]["opened_root"]
    assert terms == {name: items["round"][name] for name in terms}
    chain = sha256(b"equipoise stream v1\n" + evidence["round"].encode()).digest()
    for message in whole["stream"]:
        chain = sha256(chain + sha256(base64.b64decode(message)).digest()).digest()
    assert chain.hex() == items["result"]["stream"]["digest"]
    if items["release"]["synopsis"] is not None:
        cells = base64.b64decode(whole["synopsis"])
        assert sha256(b"equipoise synopsis v1\n" + cells).hexdigest() == items["release"]["synopsis"]["digest"]
    return items


def answers_chain(whole: dict[str, Any], items: dict[str, dict[str, Any]]) -> bytes:
    """Sections 8 and 9: the chain over the statements of a session's workload and the answers of its stream."""
    evidence = whole["evidence"]
    workload = fields(base64.b64decode(whole["workload"]))
    statements = [value for number, value in workload if number == 2]
    (packed,) = (value for number, value in workload if number == 3)
    slots = []
    while packed:
        slot, packed = number_at(packed)
        slots.append(slot)
    answers: list[tuple[int, ...]] = []
    for message in whole["stream"]:
        columns = dict(fields(base64.b64decode(message)))
        count = len(columns[6])
        values, *carried = (struct.unpack(f"<{count}q", columns[number]) for number in (5, 7, 8, 9))
        answers += zip(values, columns[6], *carried, strict=True)
    sizes = {each["name"]: len(each["categories"]) for each in items["dataset"]["schema"]["attributes"]}
    names = evidence["deployment"], evidence["round"], evidence["analyst"]
    chain = chain_start(*names, base64.b64decode(evidence["salt"]))
    for i, (statement, slot) in enumerate(zip(statements, slots, strict=True), start=1):
        ((kind, content),) = fields(statement)
        cells = math.prod(sizes[name.decode()] for _, name in fields(content)) if kind == 2 else 1
        chain = chain_step(chain, i, slot, statement, answers[:cells])
        answers = answers[cells:]
    assert answers == []
    return chain


def fields(message: bytes) -> list[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers, by their numbers: numbers, or the bytes of what has a length."""
    found: list[tuple[int, Any]] = []
    while message:
        tag, message = number_at(message)
        value, message = number_at(message)
        if tag & 7 == 2:
            found.append((tag >> 3, message[:value]))
            message = message[value:]
        else:
            assert tag & 7 == 0
            found.append((tag >> 3, value))
    return found


def number_at(data: bytes) -> tuple[int, bytes]:
    """The number with which these bytes begin, seven bits a byte and the lowest first, and the bytes behind it."""
    end = next(i for i, byte in enumerate(data) if byte < 128) + 1
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[:end])), data[end:]


def read(text: str) -> Any:
    """Section 1: the value of canonical JSON."""
    value = json.loads(text)
    assert canonical(value) == text
    return value


def hexes(path: list[str]) -> list[bytes]:
    """The hashes of a path."""
    return [bytes.fromhex(each) for each in path]
