"""What a custodian gives one analyst about one round: opened items of the round's records, with all their proofs.

    {"format": "equipoise-evidence", "version": 1, "deployment": ..., "round": ..., "analyst": ...,
     "checkpoint": NOTE, "keys": [VKEY, ...], "earlier": {"checkpoint": NOTE, "path": [HEX, ...]} or null,
     "records": [{"leaf": LEAF, "index": ..., "path": [HEX, ...],
                  "items": [{"position": ..., "content": ITEM, "salt": BASE64, "path": [HEX, ...]}, ...]}, ...],
     "receipt": ENVELOPE or null, "salt": BASE64 or null}

What was hashed or signed is carried as a string of exactly its bytes. `docs/formats.md` describes each part;
`equipoise.verification.checks` says what it proves. No part is judged here: it is only read, and refused where it
has another form than the one that is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import (
    canonical_json,
    from_base64,
    from_hex,
    parse_canonical_json,
    read_object,
    to_base64,
)
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.merkle import HASH_BYTES
from equipoise.records.record import SALT_BYTES
from equipoise.records.signed_notes import VerifierKey, open_checkpoint

FORMAT = "equipoise-evidence"
VERSION = 1

_NULL = type(None)
_TOP: Mapping[str, type | tuple[type, ...]] = {
    "format": str, "version": int, "deployment": str, "round": str, "analyst": str, "checkpoint": str, "keys": list,
    "earlier": (dict, _NULL), "records": list, "receipt": (str, _NULL), "salt": (str, _NULL),
}  # fmt: skip
_RECORD = {"leaf": str, "index": int, "path": list, "items": list}
_ITEM = {"position": int, "content": str, "salt": str, "path": list}


@dataclass(frozen=True)
class OpenedItem:
    """An item of a record: `path` leads from its hash, at `position` of the record's tree, to the record's root."""

    position: int
    content: bytes
    salt: bytes
    path: tuple[bytes, ...]


@dataclass(frozen=True)
class OpenedRecord:
    """A leaf of the log with the items that are opened. `path` leads from its hash to the checkpoint's root."""

    leaf: bytes
    index: int
    path: tuple[bytes, ...]
    items: tuple[OpenedItem, ...]


@dataclass(frozen=True)
class Earlier:
    """A checkpoint from before, a signed note, and the proof that the log has only grown since."""

    checkpoint: bytes
    path: tuple[bytes, ...]


@dataclass(frozen=True)
class Evidence:
    """All of it. `checkpoint`: a signed note; `keys`: verifier keys of all who signed any part, a line each.

    `receipt`: the envelope of the workload that was in force, or of the last answer of a session, None where there
    was none; `salt`: that under which the workload is committed to, None likewise.
    """

    deployment: str
    round_id: str
    analyst: str
    checkpoint: bytes
    keys: tuple[str, ...]
    earlier: Earlier | None
    records: tuple[OpenedRecord, ...]
    receipt: bytes | None
    salt: bytes | None

    def to_fields(self) -> dict[str, Any]:
        """The JSON object."""
        earlier = self.earlier
        return {
            "format": FORMAT,
            "version": VERSION,
            "deployment": self.deployment,
            "round": self.round_id,
            "analyst": self.analyst,
            "checkpoint": self.checkpoint.decode(),
            "keys": list(self.keys),
            "earlier": None
            if earlier is None
            else {"checkpoint": earlier.checkpoint.decode(), "path": _hexes(earlier.path)},
            "records": [_record_fields(record) for record in self.records],
            "receipt": None if self.receipt is None else self.receipt.decode(),
            "salt": None if self.salt is None else to_base64(self.salt),
        }

    def to_bytes(self) -> bytes:
        """The canonical JSON."""
        return canonical_json(self.to_fields())

    @classmethod
    def from_fields(cls, value: Any) -> Evidence:
        """The evidence of a JSON value. Raises `VerificationFailed` for anything else."""
        fields = read_object(value, _TOP, "the evidence")
        if (fields["format"], fields["version"]) != (FORMAT, VERSION):
            raise VerificationFailed(f"the evidence is not of the format {FORMAT}, version {VERSION}")
        if fields["earlier"] is None:
            earlier = None
        else:
            told = read_object(fields["earlier"], {"checkpoint": str, "path": list}, "the earlier checkpoint")
            earlier = Earlier(_bytes(told["checkpoint"]), _hashes(told["path"]))
        for key in fields["keys"]:
            if type(key) is not str:
                raise VerificationFailed("the evidence: a key is not a string")
        return cls(
            deployment=fields["deployment"],
            round_id=fields["round"],
            analyst=fields["analyst"],
            checkpoint=_bytes(fields["checkpoint"]),
            keys=tuple(fields["keys"]),
            earlier=earlier,
            records=tuple(_read_record(each) for each in fields["records"]),
            receipt=None if fields["receipt"] is None else _bytes(fields["receipt"]),
            salt=None if fields["salt"] is None else _salt(fields["salt"]),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Evidence:
        """The inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        return cls.from_fields(parse_canonical_json(data, "the evidence"))


def log_origin(deployment: str) -> str:
    """What the log of a deployment is called, and the keys that sign for it."""
    return f"equipoise/{deployment}"


def needed_keys(keys: Sequence[VerifierKey], notes: Sequence[bytes], receipt: bytes | None) -> list[VerifierKey]:
    """Those of the keys without which a signature of the checkpoints or of the receipt could not be verified."""
    return [key for key in keys if not explained([other for other in keys if other != key], notes, receipt)]


def explained(keys: Sequence[VerifierKey], notes: Sequence[bytes], receipt: bytes | None) -> bool:
    """Whether every signature of the checkpoints and of the receipt is by one of the keys."""
    try:
        for note in notes:
            open_checkpoint(note, keys)
        if receipt is not None:
            open_envelope(receipt, claimed_type(receipt), keys)
    except VerificationFailed:
        return False
    return True


def _record_fields(record: OpenedRecord) -> dict[str, Any]:
    return {
        "leaf": record.leaf.decode(),
        "index": record.index,
        "path": _hexes(record.path),
        "items": [
            {
                "position": item.position,
                "content": item.content.decode(),
                "salt": to_base64(item.salt),
                "path": _hexes(item.path),
            }
            for item in record.items
        ],
    }


def _read_record(value: Any) -> OpenedRecord:
    fields = read_object(value, _RECORD, "a record")
    items = tuple(_read_item(each) for each in fields["items"])
    return OpenedRecord(_bytes(fields["leaf"]), fields["index"], _hashes(fields["path"]), items)


def _read_item(value: Any) -> OpenedItem:
    fields = read_object(value, _ITEM, "an item")
    return OpenedItem(fields["position"], _bytes(fields["content"]), _salt(fields["salt"]), _hashes(fields["path"]))


def _hexes(path: Sequence[bytes]) -> list[str]:
    return [each.hex() for each in path]


def _hashes(path: Sequence[Any]) -> tuple[bytes, ...]:
    return tuple(from_hex(each, HASH_BYTES, "a hash of a proof") for each in path)


def _salt(text: str) -> bytes:
    salt = from_base64(text, "a salt")
    if len(salt) != SALT_BYTES:
        raise VerificationFailed(f"a salt has not {SALT_BYTES} bytes")
    return salt


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise VerificationFailed("the evidence holds half of a surrogate pair") from None
