"""Computes a released round again and compares it, step by step, with the store and the records.

A round is a function of its data, workloads, public parameters and seed. All of these are committed to before
anything is computed. So a holder of data and seed can check that they determine the results that analysts got.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from equipoise.errors import DataLoss, VerificationFailed, WrongState
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import MEASUREMENT, RoundState
from equipoise.model.synopsis import record_bytes
from equipoise.records.codec import list_of, optional
from equipoise.records.item_parts import STREAM, SYNOPSIS, RecordedStream, RecordedSynopsis
from equipoise.records.public_facts import PERSONS, PLAN, SHARE, TERMS
from equipoise.records.record import Kind, synopsis_digest, workload_commitment
from equipoise.records.sealed_seeds import fingerprint
from equipoise_server.computation.round import Job, compute_round
from equipoise_server.computation.streams import stream_parts
from equipoise_server.datasets.source import Source
from equipoise_server.mechanisms.interface import OnStep, Outcome
from equipoise_server.replay.answers import Ways, tolerance_of
from equipoise_server.replay.differences import Difference, Differs, same
from equipoise_server.replay.measured import check_measured
from equipoise_server.replay.seed import OpenedSeed
from equipoise_server.replay.session import check_live_answers, check_slots
from equipoise_server.replay.stored import StoredRound
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.rounds import recorded_terms
from equipoise_server.rounds.terms.defaults import make_plan

OF_SESSIONS = ("slots", "told")
SHOWN = 16  # hexadecimal digits of a hash that a reader only has to recognise


@dataclass(frozen=True)
class Check:
    """A check that has passed: its name, and the facts that were found."""

    name: str
    detail: str


@dataclass
class Replayed:
    """The outcome of a replay: the checks that passed, in order, and the first failed one with its difference.

    `records`: the roots of the records that were relied on, by kind, and of the one that says that the seed was
    read, unless it came from a file. `ways` has for every answer method the number of answers, and the largest and
    the allowed difference of a number that they carry, in units of 2^-40.
    """

    round_id: str
    checks: list[Check] = field(default_factory=list)
    failed: str = ""
    difference: Difference | None = None
    ways: Mapping[AnswerMethod, tuple[int, int, int]] = field(default_factory=dict)
    records: Mapping[Kind, bytes] = field(default_factory=dict)


@dataclass
class Replay:
    """The replay of one round, with the seed and the table, which are not in the store.

    `seed_of` returns the seed that opens the round's commitment, or raises `VerificationFailed`; `source_of` gets
    the table of the dataset.
    """

    stored: StoredRound
    seed_of: Callable[[bytes], OpenedSeed]
    source_of: Callable[[DatasetRecord], Source]
    progress: OnStep
    messages: Counter[str] = field(default_factory=Counter)  # the number of compared messages, by analyst
    records: dict[Kind, bytes] = field(default_factory=dict)  # the roots of those relied on or written, by kind

    def run(self) -> Replayed:
        """Run the checks until one fails. Raises `NotFound`, and `WrongState` if the round cannot be replayed."""
        if self.stored.round.state is not RoundState.RELEASED:
            raise WrongState("the round has not been released")
        replayed = Replayed(self.stored.id)
        checks: dict[str, Callable[[], str]] = {
            "records": self.records_are_bound,
            "plan": self.plan_follows,
            "seed": self.seed_opens,
            "workloads": self.workloads_open,
            "slots": lambda: check_slots(self.stored),
            "data": self.data_are_registered,
            "answers": self.answers_agree,
            "told": lambda: check_live_answers(self.stored),
            "streams": self.streams_are_committed,
            "synopsis": self.synopsis_agrees,
            MEASUREMENT: lambda: check_measured(self.stored, self.outcome.measured),
        }
        session = self.stored.round.terms.session is not None
        left_out = {name for name in OF_SESSIONS if not session}
        left_out |= set() if self.stored.round.mechanism == MEASUREMENT else {MEASUREMENT}
        for name, check in checks.items():
            if name in left_out:
                continue
            try:
                replayed.checks.append(Check(name, check()))
            except Differs as error:
                replayed.failed, replayed.difference = name, error.difference
                break
            except VerificationFailed as error:
                replayed.failed, replayed.difference = name, Difference(error.message)
                break
        replayed.records = self.records
        ways = self.ways
        replayed.ways = {way: (count, ways.furthest[way], ways.tolerance) for way, count in ways.answers.items()}
        return replayed

    def records_are_bound(self) -> str:
        """Check that the round's records are complete, and that each names the one before."""
        self.records.update(self.stored.committed.roots)
        return ", ".join(f"{kind} {root.hex()}" for kind, root in self.records.items())

    def plan_follows(self) -> str:
        """Check that dataset, terms and plan are the recorded ones, and that the terms lead to this plan."""
        stored, committed, released = self.stored, self.stored.committed, self.stored.round
        same("the round's dataset", stored.dataset.name, committed.round.dataset)
        same("the version of the dataset", stored.dataset.version, committed.round.dataset_version)
        same("schema", json.loads(stored.dataset.schema.to_json()), dict(committed.dataset.schema))
        same("records", stored.round.records, committed.round.records)
        same("persons", PERSONS.encode(stored.dataset.persons), PERSONS.encode(committed.dataset.persons))
        same("person", stored.dataset.person or None, committed.data.person)
        same("universe_size", stored.round.universe_size, committed.round.universe_size)
        same("terms", TERMS.encode(recorded_terms(released.terms)), TERMS.encode(committed.plan.terms))
        same("shares", list_of(SHARE).encode(released.terms.shares), list_of(SHARE).encode(committed.plan.shares))
        same("plan", PLAN.encode(released.plan), PLAN.encode(committed.plan.plan))
        self.progress("planning", 0, 1)
        again = make_plan(released.terms, stored.dataset)
        same("plan", PLAN.encode(committed.plan.plan), PLAN.encode(again))
        return f"{again.mechanism}, as planned from the terms again"

    def seed_opens(self) -> str:
        """Check that the seed is the committed one, and the auditor's nonce the recorded one."""
        commitment, recorded = self.stored.round.seed_commitment, self.stored.committed.round
        same("the seed's commitment", commitment, recorded.seed_commitment)
        same("the seed's fingerprint", recorded.seed_fingerprint, fingerprint(self.seed))
        nonce = self.stored.nonce
        same("the auditor's nonce", nonce, self.stored.committed.seal.nonce)
        bound = "no nonce of an auditor" if nonce is None else f"the auditor's nonce {nonce.hex()[:SHOWN]}..."
        return f"{len(self.seed)} bytes open the commitment {commitment.hex()[:SHOWN]}...; used with {bound}"

    def workloads_open(self) -> str:
        """Check that every workload is the committed one, and that none is missing."""
        workloads, salts = self.stored.workloads, self.stored.salts
        for share in self.stored.round.terms.shares:
            name = share.analyst
            if name not in self.stored.committed.workloads:
                raise WrongState(f"{name} was deleted with its workload, so the round cannot be computed again")
            commitment = None
            if name in workloads and (salt := salts[name]) is not None:
                commitment = workload_commitment(salt, workloads[name])
            same("the workload's commitment", commitment, self.stored.committed.workloads[name].commitment, name)
        return f"{len(workloads):,} of {len(self.stored.round.terms.shares):,} analysts have asked, as on record"

    def data_are_registered(self) -> str:
        """Check that the table is the registered one, and compute the round, which takes as long as its run did."""
        stored, committed = self.stored, self.stored.committed
        digest = committed.data.digest
        same("the data's digest at the release", committed.spending.data_digest, digest)
        try:
            analysts = len(self.outcome.answers)
        except DataLoss as error:
            raise Differs(Difference(error.message)) from None
        described = f"{stored.round.records:,} records with the digest {digest.hex()[:SHOWN]}..."
        return f"{described}, from which the answers of {analysts:,} analysts were computed again"

    def answers_agree(self) -> str:
        """Check that every stored message is the computed one."""
        for part in stream_parts(self.stored.id, self.outcome, self.progress):
            for place, (stored, computed) in enumerate(self.stored.beside(part), start=part.first_sequence):
                if stored is None:
                    raise Differs(Difference("the message is missing", analyst=part.analyst, message=place))
                self.ways.compare(part.analyst, stored, computed)
                self.messages[part.analyst] += 1
        answers, messages = sum(self.ways.answers.values()), self.messages.total()
        fitted = f"to within 2^-20, ways exactly: {self.stored.round.plan.mechanism} fits in floats"
        return f"{answers:,} in {messages:,} messages agree {fitted if self.ways.tolerance else 'byte for byte'}"

    def streams_are_committed(self) -> str:
        """Check that every stored stream is the one that the release recorded, and that there are no others."""
        for name, result in self.stored.committed.results.items():
            digest, stored = self.stored.stream(name)
            same("messages", stored, self.messages[name], name)
            expected = RecordedStream(digest, stored, len(self.outcome.answers[name].values)) if stored else None
            same("stream", optional(STREAM).encode(result.stream), optional(STREAM).encode(expected), name)
        return f"{len(self.messages):,} have the digests on record, and nobody has another"

    def synopsis_agrees(self) -> str:
        """Check that the stored synopsis is the computed one, and the one that the release recorded."""
        try:
            stored = self.stored.synopsis()
        except DataLoss as error:
            raise Differs(Difference(error.message)) from None
        computed = self.outcome.synopsis.to_bytes()
        same("the synopsis's length in bytes", len(stored), len(computed))
        each = record_bytes(self.stored.dataset.schema.sizes)
        kept, again = (np.frombuffer(data, dtype=f"V{each}") for data in (stored, computed))
        for record in np.flatnonzero(kept != again).tolist():
            here, there = (bytes(data[record]).hex() for data in (kept, again))
            same(f"the bytes of the synopsis's record {record}", here, there)
        expected = RecordedSynopsis(synopsis_digest(stored), len(stored) // each) if stored else None
        recorded = optional(SYNOPSIS).encode(self.stored.committed.release.synopsis)
        same("the synopsis", optional(SYNOPSIS).encode(expected), recorded)
        return f"{len(stored) // each:,} records agree one by one"

    @cached_property
    def seed(self) -> bytes:
        """The seed that opens the recorded commitment."""
        opened = self.seed_of(self.stored.round.seed_commitment)
        if opened.reading is not None:
            self.records[Kind.SEED_READ] = opened.reading
        return opened.seed

    @cached_property
    def job(self) -> Job:
        """The job of the round's worker."""
        return Job(
            round_id=self.stored.id,
            source=self.source_of(self.stored.dataset),
            schema=self.stored.dataset.schema.to_json(),
            setting=self.stored.setting,
            plan=self.stored.round.plan,
            workloads=self.stored.workloads,
            seed=self.seed,
            audit_nonce=self.stored.nonce,
            data_digest=self.stored.committed.data.digest,
        )

    @cached_property
    def outcome(self) -> Outcome:
        """The outcome of the round, computed again."""
        return compute_round(self.job, self.progress)

    @cached_property
    def ways(self) -> Ways:
        """The comparison of the answers."""
        return Ways(tolerance_of(self.stored.round.plan.mechanism))
