"""What a custodian in miniature writes: records, which it signs, and a journal of charges."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equipoise.accounting import Cost
from equipoise.auditing.archive import Archive, AuditorLog, ListedRound
from equipoise.model.accounts import JournalEntry
from equipoise.model.journal import START, entry_digest
from equipoise.model.log import ItemOpening, RecordOpening
from equipoise.model.times import to_microseconds
from equipoise.records.merkle import leaf_hash, root_of
from equipoise.records.record import Audience, Kind, Record, make_record
from equipoise.records.signed_notes import Checkpoint, SigningKey, VerifierKey, sign_note
from harness.record_items import forge_item

ORIGIN = "equipoise/test"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class RecordBook:
    """A log and a journal, and what is listed of rounds. All of it can be changed in between."""

    def __init__(self, keys: Sequence[SigningKey] = ()) -> None:
        self.keys = list(keys) or [SigningKey(ORIGIN, Ed25519PrivateKey.generate())]
        self.time = BEGIN
        self.records: list[Record] = []
        self.journal: list[JournalEntry] = []
        self.listed: dict[str, ListedRound] = {}
        self.own = AuditorLog("auditor")
        self.orders: dict[str, float] = {}  # of accounts to which rounds add
        start = {"journal": self.head(), "time": to_microseconds(self.time)}
        self._record(Kind.LOG_STARTED, [("start", start), ("key", self.key_fields(self.keys[0], "log"))])

    @property
    def trusted(self) -> list[VerifierKey]:
        return [self.keys[0].verifier]

    def key_fields(self, key: SigningKey, purpose: str) -> dict[str, object]:
        public = key.verifier.public
        key_id = hashlib.sha256(public).hexdigest()[:16]
        return {"purpose": purpose, "public": public.hex(), "id": key_id, "time": to_microseconds(self.time)}

    def add_key(self) -> SigningKey:
        key = SigningKey(ORIGIN, Ed25519PrivateKey.generate())
        self._record(Kind.KEY_ADDED, [("key", self.key_fields(key, "log"))])
        self.keys.append(key)
        return key

    def retire_key(self, key: SigningKey) -> None:
        self._record(Kind.KEY_RETIRED, [("key", self.key_fields(key, "log"))])
        self.keys.remove(key)

    def open_account(self, name: str, composition: str, epsilon: float, order: float | None = None) -> None:
        events = {"cap": {"epsilon": epsilon, "delta": 1e-6}, "composition": composition}
        counted = {} if order is None else {"order": order}
        self.orders |= {} if order is None else {name: order}
        self.append("open-account", name, "", Cost(), json.dumps(events | counted))

    def append(self, action: str, account: str, round_id: str, cost: Cost, events: str) -> None:
        last = self.journal[-1] if self.journal else None
        together = last is not None and last.action in (action, "reduce") and last.round_id == round_id
        if not round_id or not together:
            self.time += timedelta(seconds=1)  # else they are of one transaction
        entry = JournalEntry(len(self.journal) + 1, self.time, action, account, round_id, cost, events, b"")
        self.journal.append(chained(self.journal[-1].digest if self.journal else START, entry))

    def remove(self, round_id: str) -> None:
        """Takes all records of a round out of the log."""
        self.records = [record for record in self.records if not self._about(record, round_id)]

    def change_last(self, name: str, **fields: object) -> None:
        """Writes an item of the newest record anew, with some fields replaced, those of objects one by one."""
        record = self.records[-1]
        items = []
        for item in record.items:
            told = json.loads(item.content)
            if told["item"] == name:
                for field, value in fields.items():
                    told[field] = {**(told[field] or {}), **value} if isinstance(value, dict) else value
                told.pop("item")
                item = forge_item(name, item.audience, told)  # noqa: PLW2901
            items.append(item)
        self.records[-1] = make_record(record.kind, items)

    def head(self) -> dict[str, object]:
        return {"sequence": len(self.journal), "digest": (self.journal[-1].digest if self.journal else START).hex()}

    def root(self, kind: str, about: str) -> str:
        """Of the newest record of a kind, of a dataset or a round."""
        for record in reversed(self.records):
            if record.kind == kind and about in json.loads(record.items[0].content).values():
                return record.root.hex()
        return digest_of("nothing")

    def checkpoint(self) -> bytes:
        leaves = [leaf_hash(record.leaf) for record in self.records]
        return sign_note(Checkpoint(ORIGIN, len(leaves), root_of(leaves)).to_text(), self.keys)

    def archive(self, earlier: bytes | None = None) -> Archive:
        records = [
            RecordOpening(
                index,
                record.leaf,
                tuple(ItemOpening(item.content, item.salt, item.hash) for item in record.items),
                record.padding,
            )
            for index, record in enumerate(self.records)
        ]
        return Archive(
            time=self.time + timedelta(days=1),
            checkpoint=self.checkpoint(),
            earlier=earlier,
            leaves=tuple(record.leaf for record in self.records),
            records=tuple(records),
            rounds=tuple(reversed(self.listed.values())),
            journal=tuple(self.journal),
            own=self.own,
        )

    def _about(self, record: Record, round_id: str) -> bool:
        return f'"round":"{round_id}"'.encode() in record.items[0].content

    def _record(self, kind: Kind, items: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        self.time += timedelta(seconds=1)
        self.records.append(make_record(kind, [forge_item(name, Audience.AUDITOR, told) for name, told in items]))


def chained(previous: bytes, entry: JournalEntry) -> JournalEntry:
    """The entry with the digest that it has behind another."""
    return replace(entry, digest=entry_digest(previous, entry))


def rechained(journal: list[JournalEntry]) -> list[JournalEntry]:
    """Entries numbered and hashed anew, as somebody does who has changed one."""
    chain: list[JournalEntry] = []
    for number, entry in enumerate(journal, start=1):
        chain.append(chained(chain[-1].digest if chain else START, replace(entry, sequence=number)))
    return chain


def digest_of(text: str) -> str:
    """A digest that stands for something with this name."""
    return hashlib.sha256(text.encode()).hexdigest()
