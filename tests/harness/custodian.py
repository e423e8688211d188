"""A custodian in miniature: it keeps a journal and records as a server does, and can be made to cheat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.auditing.archive import ListedRound
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records import envelopes
from equipoise.records.items import RoundItem
from equipoise.records.promises import Promise, promise_of
from equipoise.records.receipts import RECEIPT_TYPE, SESSION_RECEIPT_TYPE, ReceiptPayload, SessionReceiptPayload
from equipoise.records.record import Kind
from equipoise.records.record_layouts import read_item
from equipoise.records.signed_notes import SigningKey
from harness.admitting_custodian import AdmittingCustodian
from harness.record_book import digest_of

DATA_PARTS: tuple[PrivacyEvent, ...] = (
    ZcdpEvent("game", Fraction(1, 1000)),
    ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**12)),
)
ANALYST_PARTS: tuple[PrivacyEvent, ...] = (ZcdpEvent("game", Fraction(1, 2000)),)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SHARE = {"statements": 4, "queries": 12, "sensitivity": 0, "support": 0, "ways": 0}
ORDER = 9.0  # at which the data's accounts count
GRID_SECONDS = 60
EACH_ROW = {"mode": "rows", "records": 1}
SESSION = {"ending": "stop", "length": 8}


class Custodian(AdmittingCustodian):
    """Each method is a step of a deployment. What it lists, journals and records can be changed in between."""

    def __init__(self, keys: Sequence[SigningKey] = ()) -> None:
        super().__init__(keys)
        self.shares: dict[str, list[str]] = {}
        self.silent: set[str] = set()  # analysts who submit nothing
        self.promised: dict[str, Any] = {}  # what receipts promise instead of what is on record
        self.unprotected: set[str] = set()  # sessions without an analyst budget
        self.dataset = self.account = "shop"  # of the next rounds, and which account they are charged to
        self.versions: dict[str, int] = {}  # of datasets that have another one than the first

    def register(
        self,
        name: str = "shop",
        epsilon: float = 3.0,
        order: float = ORDER,
        create_time: int | None = None,
        people: str = "new",
        account: str = "",
        version: int = 1,
    ) -> None:
        """`people`: whose they are; new ones are given an account. `account`: the recorded one, if not `name`."""
        if people == "new":
            self.open_account(f"data/{name}", "sum", epsilon, order)
        created = to_microseconds(self.time) if create_time is None else create_time
        public = {"dataset": name, "dataset_version": version, "schema": {}, "records": 400}
        public |= {"persons": EACH_ROW, "create_time": created}
        cap = {"epsilon": 3.0, "delta": 1e-6} if people == "new" else None
        answered: dict[str, object] = {"people": people, "account": account or name, "person": None}
        answered |= {"analyst_cap": cap, "analyst_order": ORDER if people == "new" else None}
        data: dict[str, object] = {
            "dataset": name,
            "digest": digest_of("data"),
            "snapshot": digest_of("file"),
            **answered,
            "accepted": [],
            "journal": self.head(),
        }
        self.versions[name] = version
        self._record(Kind.DATASET_REGISTERED, [("dataset", public), ("data", data)])

    def end_dataset(self, kind: Kind, name: str = "shop") -> None:
        """Retire a dataset, or delete it."""
        item = "retirement" if kind is Kind.DATASET_RETIRED else "deletion"
        self._record(kind, [(item, {"dataset": name, "time": to_microseconds(self.time)})])

    def open(
        self,
        round_id: str,
        analysts: tuple[str, ...] = ("ann", "bob"),
        cost: Cost | None = None,
        session: Mapping[str, object] | None = None,
    ) -> None:
        """`cost`: what the plan says it costs the data, where that is not what its parts come to.

        `session`: what makes it one. It is charged and begun in `begin`, which must come before.
        """
        for analyst in analysts:
            if not any(entry.account == f"analyst/{self.account}/query/{analyst}" for entry in self.journal):
                self.open_account(f"analyst/{self.account}/query/{analyst}", "worst", 3.0)
            if f'"name":"{analyst}"'.encode() not in b"".join(each.items[0].content for each in self.records):
                self.admit(analyst)
        protected = round_id not in self.unprotected
        analyst_parts = ANALYST_PARTS if protected else ()
        analyst_budget = BUDGET if protected else None
        analyst_cost = asdict(charge_of(analyst_parts)) if protected else None
        analyst_events = events_to_json("equilibrium", analyst_parts)
        public = {
            "round": round_id,
            "dataset": self.dataset,
            "dataset_version": self.versions.get(self.dataset, 1),
            "dataset_root": self.root("dataset-registered", self.dataset),
            "unit": "query",
            "data_budget": BUDGET,
            "analyst_budget": analyst_budget,
            "beta": 0.05,
            "mechanism": "equilibrium",
            "max_half_width": 0.1,
            "max_uncertified": 0,
            "analyst_cost": analyst_cost,
            "analyst_events": json.loads(analyst_events),
            "analyst_order": None,
            "seed_commitment": digest_of(f"seed {round_id}"),
            "seed_fingerprint": digest_of(f"fingerprint {round_id}"),
            "open_time": to_microseconds(self.time),
            "close_time": None,
            "release_grid_seconds": GRID_SECONDS,
            "records": 400,
            "universe_size": 8,
            "session": None,
            "accepted": [],
            "standing": None,
        }
        shares = [{"analyst": analyst, **SHARE} for analyst in analysts]
        terms: dict[str, object] = {
            "unit": "query",
            "data_budget": BUDGET,
            "analyst_budget": analyst_budget,
            "beta": 0.05,
            "mechanism": "auto",
            "options": {},
            "release_grid_seconds": GRID_SECONDS,
            "session": None,
            "accepted": [],
        }
        if session is not None:
            turns = int(str(session["length"])) * int(str(session["turn_seconds"])) * 1_000_000
            public |= {"session": {**session, "shares": len(analysts)}}
            public |= {"close_time": to_microseconds(self.time) + turns if turns else None}
            terms |= {"session": session}
        plan = {
            "mechanism": "equilibrium",
            "parameters": "{}",
            "data_cost": asdict(cost or charge_of(DATA_PARTS)),
            "analyst_cost": analyst_cost,
            "max_half_width": 0.1,
            "max_uncertified": 0,
            "data_events": events_to_json("equilibrium", DATA_PARTS),
            "analyst_events": analyst_events,
            "seconds": 1.0,
            "memory_bytes": 1,
            "expected_error": 0.01,
        }
        told = {"round": round_id, "terms": terms, "shares": shares, "plan": plan, "journal": self.head()}
        self.shares[round_id] = list(analysts)
        items = [("share", {"round": round_id, **share}) for share in shares]
        self._record(Kind.ROUND_OPENED, [("round", public), ("plan", told), *items])
        self.listed[round_id] = ListedRound(round_id, self.dataset, "open", public["open_time"], None)

    def open_session(
        self,
        round_id: str,
        analysts: tuple[str, ...] = ("ann", "bob"),
        turn_seconds: int = 0,
        protected: bool = True,
    ) -> None:
        """Charged, begun and opened."""
        self.shares[round_id] = list(analysts)
        if not protected:
            self.unprotected.add(round_id)
        for analyst in analysts if protected else ():
            if not any(entry.account == f"analyst/{self.account}/query/{analyst}" for entry in self.journal):
                self.open_account(f"analyst/{self.account}/query/{analyst}", "worst", 3.0)
        self.reserve(round_id)
        self.append("run", f"data/{self.account}", round_id, Cost(), json.dumps({"round": round_id}))
        self.open(round_id, analysts, session={**SESSION, "turn_seconds": turn_seconds})

    def play_session(self, round_id: str, turn_seconds: int = 0, protected: bool = True) -> None:
        """A whole session."""
        self.open_session(round_id, turn_seconds=turn_seconds, protected=protected)
        self.seal(round_id)
        self.settle(round_id)
        self.release(round_id)

    def reserve(self, round_id: str, cost: Cost | None = None) -> None:
        """`cost`: what the data's account is charged, where that is not what its parts come to."""
        for account, parts in self._charged(round_id).items():
            due = charge_at(parts, self.orders[account]) if account in self.orders else charge_of(parts)
            charged = due if cost is None or account != f"data/{self.account}" else cost
            self.append("reserve", account, round_id, charged, events_to_json("equilibrium", parts))

    def seal(self, round_id: str, nonce: str | None = None) -> None:
        charges = [
            {"account": entry.account, "cost": asdict(entry.cost)}
            for entry in self.journal
            if entry.round_id == round_id and entry.action == "reserve"
        ]
        told = {"round": round_id, "opened_root": self.root("round-opened", round_id), "nonce": nonce}
        times = {"seal_time": to_microseconds(self._time_of("reserve", round_id))}
        held = {"round": round_id, "charges": charges, "journal": self.head(), **times}
        items = [
            (
                "workload",
                {
                    "round": round_id,
                    "analyst": analyst,
                    "commitment": None if analyst in self.silent else self.commitment(round_id, analyst).hex(),
                },
            )
            for analyst in self.shares[round_id]
        ]
        self._record(Kind.ROUND_SEALED, [("seal", told), ("reservation", held), *items])
        self._list(round_id, "sealed")

    def run(self, round_id: str) -> None:
        self.append("run", f"data/{self.account}", round_id, Cost(), json.dumps({"round": round_id}))
        self._list(round_id, "running")

    def settle(self, round_id: str, action: str = "spend") -> None:
        for reserved in [each for each in self.journal if each.round_id == round_id and each.action == "reserve"]:
            self.append(action, reserved.account, round_id, reserved.cost, reserved.events)

    def release(self, round_id: str) -> None:
        spent = [each for each in self.journal if each.round_id == round_id and each.action == "spend"]
        now = to_microseconds(self._time_of("spend", round_id))
        release_time = now + -now % (GRID_SECONDS * 1_000_000)
        told = {
            "round": round_id,
            "sealed_root": self.root("round-sealed", round_id),
            "release_time": release_time,
            "synopsis": {"digest": digest_of("synopsis"), "records": 50},
            "measurement": None,
            "spent": None,
        }
        spending = {
            "round": round_id,
            "charges": [{"account": each.account, "cost": asdict(each.cost)} for each in spent],
            "journal": self.head(),
            "commit_time": now,
            "data_digest": digest_of("data"),
        }
        stream = {"digest": digest_of("stream"), "messages": 1, "queries": 12}
        cost = asdict(Cost() if round_id in self.unprotected else charge_of(ANALYST_PARTS))
        items = [
            (
                "result",
                {
                    "round": round_id,
                    "analyst": analyst,
                    "stream": None if analyst in self.silent else stream,
                    "charge": cost,
                },
            )
            for analyst in self.shares[round_id]
        ]
        self._record(Kind.ROUND_RELEASED, [("release", told), ("spending", spending), *items])
        self._list(round_id, "released", release_time)

    def abort(self, round_id: str, state: str) -> None:
        """`state` of its charges: "released", "spent", or "none" where it was not sealed."""
        sealed = any(record.kind == Kind.ROUND_SEALED and self._about(record, round_id) for record in self.records)
        settled = [
            {"account": each.account, "cost": asdict(each.cost), "state": state}
            for each in self.journal
            if each.round_id == round_id and each.action == "reserve"
        ]
        kind = "round-sealed" if sealed else "round-opened"
        told = {
            "round": round_id,
            "previous_root": self.root(kind, round_id),
            "reason": "no time",
            "abort_time": to_microseconds(self._time_of("release" if state == "released" else "spend", round_id)),
        }
        state = "none" if round_id in self.unprotected else state
        cost = asdict(Cost() if state == "none" else charge_of(ANALYST_PARTS))
        items = [
            ("charge", {"round": round_id, "analyst": analyst, "charge": cost, "state": state})
            for analyst in self.shares[round_id]
        ]
        settlement = {"round": round_id, "charges": settled, "journal": self.head()}
        self._record(Kind.ROUND_ABORTED, [("abort", told), ("settlement", settlement), *items])
        self._list(round_id, "aborted")

    def play(self, round_id: str) -> None:
        """A whole round."""
        self.open(round_id)
        self.reserve(round_id)
        self.seal(round_id)
        self.run(round_id)
        self.settle(round_id)
        self.release(round_id)

    def read_seed(self, round_id: str) -> None:
        """Once the round's results are released."""
        release = self.listed[round_id].release_time
        if release is not None:
            self.time = max(self.time, from_microseconds(release))
        fields = {"round": round_id, "auditor": "auditor", "time": to_microseconds(self.time)}
        self._record(Kind.SEED_READ, [("access", fields)])

    def destroy_seed(self, round_id: str) -> None:
        fields = {"round": round_id, "time": to_microseconds(self.time)}
        self._record(Kind.SEED_DESTROYED, [("destruction", fields)])

    def confirm_clock(self, time: datetime) -> None:
        """The clock was wrong, and is right from now on."""
        before, self.time = to_microseconds(self.time), time
        fields = {"before": before, "journal": self.head(), "time": to_microseconds(time)}
        self._record(Kind.CLOCK_CONFIRMED, [("confirmation", fields)])

    def promise(self, round_id: str) -> Promise:
        """What the round's opening has put on record; of a round without one, what the first one has."""
        opened = [record for record in self.records if record.kind == Kind.ROUND_OPENED]
        record = next((each for each in opened if self._about(each, round_id)), opened[0])
        promise = promise_of(record.root, read_item(record.items[0].content, RoundItem))
        return replace(promise, **self.promised)

    def receipt(self, round_id: str, analyst: str, commitment: bytes) -> bytes:
        time, promise = to_microseconds(self.time), self.promise(round_id)
        payload = ReceiptPayload("test", round_id, analyst, commitment, 4, 12, time, promise, None)
        return envelopes.sign(RECEIPT_TYPE, payload.to_bytes(), self.keys)

    def session_receipt(self, payload: SessionReceiptPayload) -> bytes:
        return envelopes.sign(SESSION_RECEIPT_TYPE, payload.to_bytes(), self.keys)

    def commitment(self, round_id: str, analyst: str) -> bytes:
        return bytes.fromhex(digest_of(f"{round_id} {analyst}"))

    def _time_of(self, action: str, round_id: str) -> datetime:
        """The time of a round's entries, of whose transaction a step is; of a step without any, now."""
        times = [each.time for each in self.journal if (each.action, each.round_id) == (action, round_id)]
        return times[-1] if times else self.time

    def _charged(self, round_id: str) -> dict[str, tuple[PrivacyEvent, ...]]:
        accounts: dict[str, tuple[PrivacyEvent, ...]] = {
            f"analyst/{self.account}/query/{analyst}": ANALYST_PARTS
            for analyst in self.shares[round_id]
            if round_id not in self.unprotected
        }
        return accounts | {f"data/{self.account}": DATA_PARTS}

    def _list(self, round_id: str, state: str, release_time: int | None = None) -> None:
        self.listed[round_id] = replace(self.listed[round_id], state=state, release_time=release_time)
