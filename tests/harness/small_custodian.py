"""A custodian made of the client's formats alone: it keeps a log, holds rounds, and lies where a test wants it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equipoise.accounting import Cost, PrivacyEvent, PureDpEvent, ZcdpEvent, charge_of, events_to_json
from equipoise.model.results import AnswerMethod
from equipoise.model.synopsis import Synopsis
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.records import envelopes, merkle
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Earlier, Evidence, OpenedItem, OpenedRecord
from equipoise.records.promises import PROMISE, Promise
from equipoise.records.receipts import (
    RECEIPT_TYPE,
    SESSION_RECEIPT_TYPE,
    ReceiptPayload,
    SessionReceiptPayload,
    chain_start,
    chain_step,
)
from equipoise.records.record import (
    Audience,
    Item,
    Kind,
    Record,
    make_record,
    questions_commitment,
    stream_digest,
    synopsis_digest,
    workload_commitment,
)
from equipoise.records.signed_notes import Checkpoint, SigningKey, VerifierKey, sign_note
from equipoise.results import Results
from equipoise.wire.outline import asked_to_bytes
from equipoise.wire.results import chunk_from_bytes, results_to_chunks
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes
from harness.answers import some_answers
from harness.consistency import consistency_path
from harness.record_items import forge_item

DEPLOYMENT = "0123456789abcdef"
ORIGIN = f"equipoise/{DEPLOYMENT}"
ROUND = "ab" * 16
SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
STATEMENTS: tuple[Statement, ...] = (
    Marginal(("colour", "size")),
    attribute("size").isin(["s", "m"]),
    attribute("colour") == "red",
)
SALT = bytes(range(32))
RECORDS = 400
HALF_WIDTH = 1 << 33
PARTS: tuple[PrivacyEvent, ...] = (ZcdpEvent("game", Fraction(1, 3)), PureDpEvent("places", Fraction(1, 10)))
SHARES = ("ann", "bob", "cyd")
TIME = 1_700_000_000_000_000
PROMISE_KEYS = tuple(field.metadata["key"] for field in fields(Promise))
SYNOPSIS = np.array([0, 3, 3, 5, 7, 1, 2, 2, 2, 6], dtype=np.int64)

Fields = Mapping[str, Any]


def signing_key(number: int) -> SigningKey:
    """A key of the log's, the same each time."""
    return SigningKey(ORIGIN, Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


@dataclass
class Custodian:
    """A log, and the keys that are in force."""

    keys: list[SigningKey] = field(default_factory=lambda: [signing_key(1)])
    leaves: list[bytes] = field(default_factory=list)

    @property
    def trusted(self) -> list[VerifierKey]:
        """What an analyst holds: the first key."""
        return [self.keys[0].verifier]

    def grow(self, leaves: int) -> None:
        """Leaves of other rounds."""
        for number in range(leaves):
            item = forge_item("destruction", Audience.ROUND, {"round": f"{number:032x}", "time": TIME})
            self.append(make_record(Kind.SEED_DESTROYED, [item]))

    def append(self, record: Record) -> int:
        """The index of the record's leaf."""
        self.leaves.append(record.leaf)
        return len(self.leaves) - 1

    def checkpoint(self, size: int | None = None) -> bytes:
        """The signed note of the log at a size; None: as it is."""
        size = len(self.leaves) if size is None else size
        root = merkle.root_of(self._hashes()[:size])
        return sign_note(Checkpoint(ORIGIN, size, root).to_text(), self.keys)

    def opened(self, record: Record, index: int, places: Sequence[int]) -> OpenedRecord:
        """The record with the items at these places."""
        path = tuple(merkle.inclusion_path(self._hashes(), index))
        return OpenedRecord(record.leaf, index, path, tuple(_opened(record, place) for place in places))

    def earlier(self, size: int) -> Earlier:
        """The checkpoint of a size, and the proof that the log has only grown since."""
        return Earlier(self.checkpoint(size), tuple(consistency_path(self._hashes(), size)))

    def receipt(self, payload: ReceiptPayload) -> bytes:
        """Signed."""
        return envelopes.sign(RECEIPT_TYPE, payload.to_bytes(), self.keys)

    def session_receipt(self, payload: SessionReceiptPayload) -> bytes:
        """Signed."""
        return envelopes.sign(SESSION_RECEIPT_TYPE, payload.to_bytes(), self.keys)

    def _hashes(self) -> list[bytes]:
        return [merkle.leaf_hash(leaf) for leaf in self.leaves]


@dataclass(frozen=True)
class Told:
    """What a custodian does and says of one round; the fields of items by the item's name replace the honest ones.

    `statements`: None where the analyst submits nothing. `end`: "released", or where the round was aborted: "open",
    "sealed", "running". `values`, `methods`, `lows`, `highs`: what is told of some queries instead. `place`: of the
    analyst's items in a record. `slots`: of the statements, where the round is a session; then `live` are values
    that were told of some queries instead of those that are delivered, and `turn_seconds` and `length` its terms.
    `promised`: what receipts promise instead of what is on record. `questions`: what was understood of those that
    the statements were translated from; None for none. `translated`: the same of a session's statements, by
    their places.
    """

    analyst: str = "ann"
    statements: tuple[Statement, ...] | None = STATEMENTS
    end: str = "released"
    synopsis: bool = True
    parts: tuple[PrivacyEvent, ...] = PARTS
    values: Mapping[int, int] = field(default_factory=dict)
    methods: Mapping[int, AnswerMethod] = field(default_factory=dict)
    lows: Mapping[int, int] = field(default_factory=dict)
    highs: Mapping[int, int] = field(default_factory=dict)
    items: Mapping[str, Fields] = field(default_factory=dict)
    place: int = 2
    slots: tuple[int, ...] = ()
    live: Mapping[int, int] = field(default_factory=dict)
    turn_seconds: int = 0
    length: int = 9
    promised: Fields = field(default_factory=dict)
    questions: bytes | None = None
    translated: Mapping[int, bytes] = field(default_factory=dict)

    def sent(self) -> list[bytes]:
        """The exact bytes of a session's statements."""
        assert self.statements is not None
        said = [self.translated.get(i) for i in range(len(self.statements))]
        commitments = [b"" if each is None else questions_commitment(SALT, each) for each in said]
        return [statement_to_bytes(each, 0, own) for each, own in zip(self.statements, commitments, strict=True)]

    def receipts(self, log: Custodian) -> list[bytes]:
        """The envelopes that came with the answers of a session, in their order."""
        assert self.statements is not None
        stream, _ = replace(self, end="released", values={**self.values, **self.live})._delivered()
        told = Results.collect(ROUND, map(chunk_from_bytes, stream))
        chain, first, envelopes = chain_start(DEPLOYMENT, ROUND, self.analyst, SALT), 0, []
        asked = zip(self.statements, self.sent(), self.slots, strict=True)
        for i, (statement, data, slot) in enumerate(asked, start=1):
            cells = slice(first, first := first + compile_workload([statement], SCHEMA).query_count)
            chain = chain_step(chain, i, slot, data, told.answers[cells])
            payload = SessionReceiptPayload(DEPLOYMENT, ROUND, self.analyst, i, chain, TIME + i, self.promise())
            envelopes.append(log.session_receipt(payload))
        return envelopes

    def bundle(self, log: Custodian, earlier: int | None = None) -> Bundle:
        """The round held, recorded in the log with everything true but `items`, and its bundle."""
        workload, receipt = self._asked(log)
        commitment = None if workload is None else workload_commitment(SALT, workload)
        stream, synopsis = self._delivered()
        records = self._records(commitment, stream, synopsis)
        indices = [log.append(record) for record in records]
        log.grow(2)
        places = ((0,), *(((0, self.place),) * (len(records) - 1)))
        opened = [log.opened(*each) for each in zip(records, indices, places, strict=True)]
        keys = sorted(key.verifier.to_text() for key in log.keys)
        evidence = Evidence(
            DEPLOYMENT,
            ROUND,
            self.analyst,
            log.checkpoint(),
            tuple(keys),
            None if earlier is None else log.earlier(earlier),
            tuple(opened),
            receipt,
            None if workload is None else SALT,
        )
        return Bundle(evidence, workload, stream, synopsis)

    def _asked(self, log: Custodian) -> tuple[bytes | None, bytes | None]:
        """The workload and its receipt."""
        if self.statements is None:
            return None, None
        if self.slots:
            return asked_to_bytes(self.sent(), self.slots), self.receipts(log)[-1]
        workload, compiled = workload_to_bytes(self.statements), compile_workload(self.statements, SCHEMA)
        counts = (compiled.statement_count, compiled.query_count)
        commitment = workload_commitment(SALT, workload)
        names = (DEPLOYMENT, ROUND, self.analyst)
        understood = None if self.questions is None else questions_commitment(SALT, self.questions)
        payload = ReceiptPayload(*names, commitment, *counts, TIME + 1, self.promise(), understood)
        return workload, log.receipt(payload)

    def promise(self) -> Promise:
        """What receipts promise: the terms on record, but for what is `promised` instead."""
        opened = self._openings()[1]
        recorded = json.loads(opened.items[0].content) | {"opened_root": opened.root.hex()} | self.promised
        return PROMISE.decode({name: recorded[name] for name in PROMISE_KEYS}, "a promise")

    def _delivered(self) -> tuple[tuple[bytes, ...], bytes | None]:
        if self.end != "released":
            return (), None
        synopsis = Synopsis.of_cells(SYNOPSIS, SCHEMA.sizes).to_bytes() if self.synopsis else None
        if self.statements is None:
            return (), synopsis
        compiled = compile_workload(self.statements, SCHEMA)
        values = on_grid(compiled.record_counts(SYNOPSIS), len(SYNOPSIS))
        way = AnswerMethod.SYNOPSIS if self.synopsis else AnswerMethod.GAUSSIAN
        way = AnswerMethod.HYPOTHESIS if self.slots else way
        methods = np.full(compiled.query_count, way, dtype=np.uint8)
        methods[-1] = AnswerMethod.UNCERTIFIED
        for column, changes in ((values, self.values), (methods, self.methods)):
            for query, value in changes.items():
                column[query] = value
        answers = some_answers(values, methods, HALF_WIDTH)
        for name in ("lows", "highs"):
            for query, value in getattr(self, name).items():
                getattr(answers, name)[query] = value
        return tuple(results_to_chunks(ROUND, answers)), synopsis

    def _openings(self) -> list[Record]:
        """The records of the dataset and of the round's opening, the same each time."""
        cost = asdict(charge_of(self.parts))
        announced = {
            "unit": "query",
            "beta": 0.05,
            "mechanism": "equilibrium",
            "max_half_width": HALF_WIDTH / 2**40,
        }
        announced |= {
            "max_uncertified": 5,
            "analyst_cost": cost,
            "analyst_order": None,
            "release_grid_seconds": 60,
        }
        announced |= {"analyst_events": json.loads(events_to_json("equilibrium", self.parts))}
        announced |= {"seed_commitment": "ef" * 32, "seed_fingerprint": "ed" * 32}
        announced |= {"open_time": TIME, "close_time": None, "records": RECORDS}
        budgets = {name: {"epsilon": 8.0, "delta": 1e-6} for name in ("data_budget", "analyst_budget")}
        schema = json.loads(SCHEMA.to_json())
        persons = {"mode": "rows", "records": 1}
        dataset = {
            "dataset": "shop",
            "dataset_version": 1,
            "schema": schema,
            "records": RECORDS,
            "persons": persons,
            "create_time": TIME - 9,
        }
        told = _again(self._record(Kind.DATASET_REGISTERED, dataset, {}))
        share = {"statements": 4, "queries": 12, "sensitivity": 4, "support": 4, "ways": 2}
        public = announced | budgets | {"dataset": "shop", "dataset_version": 1, "universe_size": 8}
        public |= {"dataset_root": told.root.hex()}
        public |= {"session": None, "accepted": [], "standing": None}
        if self.slots:
            terms = {"ending": "stop", "length": self.length, "turn_seconds": self.turn_seconds}
            public["session"] = terms | {"shares": len(SHARES)}
        return [told, _again(self._record(Kind.ROUND_OPENED, public, share))]

    def _records(self, commitment: bytes | None, stream: Sequence[bytes], synopsis: bytes | None) -> list[Record]:
        cost, nothing = asdict(charge_of(self.parts)), asdict(Cost())
        records = self._openings()
        if self.end != "open":
            seal = {"opened_root": records[-1].root.hex(), "nonce": None}
            own = {"commitment": None if commitment is None else commitment.hex()}
            records.append(self._record(Kind.ROUND_SEALED, seal, own))
        before = records[-1].root.hex()
        if self.end == "released":
            known = None
            if synopsis is not None:
                known = {"digest": synopsis_digest(synopsis).hex(), "records": len(SYNOPSIS)}
            release = {"sealed_root": before, "release_time": TIME + 60, "synopsis": known}
            release |= {"measurement": None, "spent": None}
            result = {"stream": self._stream(stream), "charge": cost}
            records.append(self._record(Kind.ROUND_RELEASED, release, result))
        else:
            abort = {"previous_root": before, "reason": "the power failed", "abort_time": TIME + 60}
            state = {"open": "none", "sealed": "released", "running": "spent"}[self.end]
            state = "spent" if self.slots else state
            charge = {"charge": nothing if state == "none" else cost, "state": state}
            records.append(self._record(Kind.ROUND_ABORTED, abort, charge))
        return records

    def _stream(self, stream: Sequence[bytes]) -> Fields | None:
        if self.statements is None:
            return None
        queries = compile_workload(self.statements, SCHEMA).query_count
        return {"digest": stream_digest(ROUND, stream).hex(), "messages": len(stream), "queries": queries}

    def _record(self, kind: Kind, public: Fields, own: Fields) -> Record:
        names = {
            Kind.DATASET_REGISTERED: ("dataset", ""),
            Kind.ROUND_OPENED: ("round", "share"),
            Kind.ROUND_SEALED: ("seal", "workload"),
            Kind.ROUND_RELEASED: ("release", "result"),
            Kind.ROUND_ABORTED: ("abort", "charge"),
        }
        name, own_name = names[kind]
        of_round = {} if kind is Kind.DATASET_REGISTERED else {"round": ROUND}
        changed = self.items.get(name, {})
        items = [forge_item(name, Audience.ROUND, of_round | dict(public) | dict(changed))]
        items.append(forge_item("plan", Audience.AUDITOR, {"not": "opened"}))
        if own_name:
            items += [self._own(own_name, analyst, own) for analyst in SHARES]
        return make_record(kind, items)

    def _own(self, name: str, analyst: str, fields: Fields) -> Item:
        told = {"round": ROUND, "analyst": analyst, **fields, **self.items.get(name, {})}
        return forge_item(name, Audience.ANALYST, told, analyst)


def _again(record: Record) -> Record:
    """The record with salts and padding that are the same each time."""
    items = tuple(replace(item, salt=bytes([place + 1]) * 32) for place, item in enumerate(record.items))
    return replace(record, items=items, padding=tuple(bytes(32) for _ in record.padding))


def _opened(record: Record, place: int) -> OpenedItem:
    item = record.items[place]
    return OpenedItem(place, item.content, item.salt, tuple(record.path(place)))
