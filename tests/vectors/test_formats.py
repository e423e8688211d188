"""The vectors of docs/formats.md: what the package writes and reads, and what a reader of the page alone reads."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness import page_reader
from harness.consistency import consistency_path

from equipoise.model.results import Answers
from equipoise.records.bundle import Bundle
from equipoise.records.canonical import canonical_json, parse_canonical_json
from equipoise.records.envelopes import open_envelope, sign
from equipoise.records.merkle import (
    inclusion_path,
    leaf_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.records.record import (
    Kind,
    item_hash,
    leaf_bytes,
    questions_commitment,
    stream_digest,
    synopsis_digest,
    workload_commitment,
)
from equipoise.records.signed_notes import Checkpoint, SigningKey, VerifierKey, open_checkpoint, sign_note
from equipoise.verification.checks import Check, VerifierInputs, verify

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("formats.json").read_text("utf-8"))
ORIGIN = "equipoise/example"
SEEDS = [bytes.fromhex(each["seed"]) for each in VECTORS["keys"]]
KEYS = [SigningKey(ORIGIN, Ed25519PrivateKey.from_private_bytes(seed)) for seed in SEEDS]
LINES = [each["verifier_key"] for each in VECTORS["keys"]]


def hashes(texts: list[str]) -> list[bytes]:
    return [bytes.fromhex(each) for each in texts]


def test_canonical_json() -> None:
    for each in VECTORS["canonical_json"]:
        assert canonical_json(each["value"]).decode() == each["text"] == page_reader.canonical(each["value"])
        assert parse_canonical_json(each["text"].encode(), "it") == each["value"]


def test_a_record() -> None:
    record = VECTORS["record"]
    leaves = []
    for item in record["items"]:
        salt, content = bytes.fromhex(item["salt"]), item["content"].encode()
        assert item_hash(salt, content).hex() == item["hash"] == sha256(b"\0" + salt + content).hexdigest()
        assert canonical_json(parse_canonical_json(content, "it")) == content
        leaves.append(item_hash(salt, content))
    leaves += hashes(record["padding"])
    assert root_of(leaves).hex() == record["root"] == page_reader.root(leaves).hex()
    assert leaf_bytes(Kind.ROUND_OPENED, root_of(leaves), len(leaves)).decode() == record["leaf"]
    path = hashes(record["path_of_item_2"])
    assert inclusion_path(leaves, 2) == path
    verify_inclusion(leaves[2], 2, len(leaves), path, root_of(leaves))
    assert page_reader.root_by_path(leaves[2], 2, len(leaves), path).hex() == record["root"]


def test_a_log() -> None:
    log = VECTORS["log"]
    leaves = [leaf_hash(each.encode()) for each in log["leaves"]]
    assert log["leaves"][2] == VECTORS["record"]["leaf"]
    assert [key.verifier.to_text() for key in KEYS] == LINES
    for each in log["checkpoints"]:
        size, root = each["size"], root_of(leaves[: each["size"]])
        assert root.hex() == each["root"]
        assert sign_note(Checkpoint(ORIGIN, size, root).to_text(), KEYS).decode() == each["note"]
        opened = open_checkpoint(each["note"].encode(), [key.verifier for key in KEYS])
        assert opened == Checkpoint(ORIGIN, size, root)
        assert page_reader.checkpoint(each["note"], LINES) == (ORIGIN, size, each["root"])
    inclusion, consistency = log["inclusion"], log["consistency"]
    index, size = inclusion["index"], inclusion["size"]
    path = hashes(inclusion["path"])
    assert inclusion_path(leaves[:size], index) == path
    assert page_reader.root_by_path(leaves[index], index, size, path) == root_of(leaves[:size])
    old, new = consistency["old_size"], consistency["new_size"]
    proof = hashes(consistency["path"])
    assert consistency_path(leaves[:new], old) == proof
    roots = root_of(leaves[:old]), root_of(leaves[:new])
    verify_consistency(old, roots[0], new, roots[1], proof)
    assert page_reader.roots_by_path(old, new, proof, roots[0]) == roots


def test_a_receipt() -> None:
    receipt = VECTORS["receipt"]
    kind, payload = receipt["payload_type"], receipt["payload"]
    assert sign(kind, payload.encode(), KEYS).decode() == receipt["envelope"]
    opened = open_envelope(receipt["envelope"].encode(), kind, [KEYS[0].verifier], listed_keys=[KEYS[1].verifier])
    assert opened.decode() == payload
    assert page_reader.payload(receipt["envelope"], kind, LINES) == payload
    for name, digest in (("commitment", "workload"), ("questions", "questions")):
        assert json.loads(payload)[name] == VECTORS["digests"][digest]["commitment"]


def test_a_session_receipt() -> None:
    session = VECTORS["session_receipt"]
    names = session["deployment"], session["session"], session["analyst"], bytes.fromhex(session["salt"])
    chain = chain_start(*names)
    assert chain.hex() == session["start"] == page_reader.chain_start(*names).hex()
    for each in session["answers"]:
        asked = each["sequence"], each["slot"], bytes.fromhex(each["statement"])
        columns = [each[name] for name in ("values", "methods", "lows", "highs", "standard_errors")]
        read = page_reader.chain_step(chain, *asked, list(zip(*columns, strict=True)))
        values, methods, *carried = (np.array(column, dtype=np.int64) for column in columns)
        answers = Answers(values, methods.astype(np.uint8), *carried)
        answers.check()
        chain = chain_step(chain, *asked, answers)
        assert chain.hex() == each["chain"] == read.hex()
    kind, payload = session["payload_type"], session["payload"]
    assert kind == SESSION_RECEIPT_TYPE
    assert sign(kind, payload.encode(), KEYS).decode() == session["envelope"]
    assert page_reader.payload(session["envelope"], kind, LINES) == payload
    signed = SessionReceiptPayload.from_bytes(payload.encode())
    assert (signed.sequence, signed.chain, signed.to_bytes()) == (len(session["answers"]), chain, payload.encode())


def test_digests() -> None:
    digests = VECTORS["digests"]
    salt, workload = (bytes.fromhex(digests["workload"][each]) for each in ("salt", "workload"))
    assert workload_commitment(salt, workload).hex() == digests["workload"]["commitment"]
    assert sha256(b"equipoise workload v1\n" + salt + workload).hexdigest() == digests["workload"]["commitment"]
    salt, questions = bytes.fromhex(digests["questions"]["salt"]), digests["questions"]["questions"].encode()
    assert questions_commitment(salt, questions).hex() == digests["questions"]["commitment"]
    assert sha256(b"equipoise questions v1\n" + salt + questions).hexdigest() == digests["questions"]["commitment"]
    stream = digests["stream"]
    messages = hashes(stream["messages"])
    assert stream_digest(stream["round"], messages).hex() == stream["digest"]
    assert stream_digest(stream["round"], []).hex() == stream["empty"]
    chain = sha256(b"equipoise stream v1\n" + stream["round"].encode()).digest()
    for message in messages:
        chain = sha256(chain + sha256(message).digest()).digest()
    assert chain.hex() == stream["digest"]
    cells = bytes.fromhex(digests["synopsis"]["cells"])
    assert synopsis_digest(cells).hex() == digests["synopsis"]["digest"]
    assert sha256(b"equipoise synopsis v1\n" + cells).hexdigest() == digests["synopsis"]["digest"]


def test_a_bundle_of_a_served_round() -> None:
    """Made by `serve_bundle.py` when version 1 was new: every later program must read it too."""
    data = Path(__file__).with_name("bundle.json").read_bytes()
    key = Path(__file__).with_name("log.vkey").read_text("ascii").rstrip("\n")
    checks: list[Check] = []
    verify(data, VerifierInputs([VerifierKey.from_text(key)]), lambda check, said: checks.append(check))
    assert checks == list(Check)
    assert Bundle.from_bytes(data).to_bytes() == data
    items = page_reader.bundle(data.decode(), key)
    assert {"dataset", "round", "share", "seal", "workload", "release", "result"} == set(items)
