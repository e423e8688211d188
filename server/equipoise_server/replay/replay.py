"""Computing a released round again and comparing it, step by step, with what is stored and on record.

A round is a function of its data, workloads, public parameters and seed. All of these are committed to before
anything is computed, so whoever holds data and seed can check that what analysts got is what these determine.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from sqlalchemy import select

from equipoise.errors import DataLoss, VerificationFailed, WrongState
from equipoise.records import stream_start, stream_step, synopsis_digest, workload_commitment
from equipoise.results import AnswerMethod
from equipoise_server.mechanisms.interface import Outcome, Progress, Setting
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.replay.answers import Ways, tolerance_of
from equipoise_server.replay.committed import Committed, read_committed
from equipoise_server.replay.differences import Difference, Differs, same
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.rows import (
    plan_to_json,
    read_audit_nonce,
    read_dataset,
    read_round,
    read_workloads,
    terms_to_json,
)
from equipoise_server.rounds.runs import CELL_BYTES, read_synopsis
from equipoise_server.rounds.states import RoundState
from equipoise_server.rounds.terms import setting_of
from equipoise_server.rounds.worker import CHUNKS_IN_PART, Job, Part, compute_round, stream_parts
from equipoise_server.storage.store import ReadOnlyStore
from equipoise_server.storage.tables import result_chunks, rounds, submissions

SHOWN = 16  # hexadecimal digits of what is only to be recognised


@dataclass(frozen=True)
class Check:
    """A check that has passed: its name, and what was found to hold."""

    name: str
    detail: str


@dataclass
class Replayed:
    """The checks that passed, in order; and the name of the first that did not, with its difference.

    `ways`: for every way of answering how many answers there are, by how much at most, in units of 2^-40, a value
    or bound differs, and by how much it may.
    """

    round_id: str
    checks: list[Check] = field(default_factory=list)
    failed: str = ""
    difference: Difference | None = None
    ways: Mapping[AnswerMethod, tuple[int, int, int]] = field(default_factory=dict)


@dataclass
class Replay:
    """A round to be replayed, with what is not in the store.

    `seed_of` gives the seed that opens the round's commitment, or raises `VerificationFailed`; `table_of` the file
    of the dataset.
    """

    store: ReadOnlyStore
    round_id: str
    seed_of: Callable[[bytes], bytes]
    table_of: Callable[[DatasetRecord], Path]
    progress: Progress
    messages: Counter[str] = field(default_factory=Counter)  # that were compared, by analyst

    def run(self) -> Replayed:
        """Check after check, until one fails. Raises `NotFound`; `WrongState` where a round cannot be replayed."""
        if self.round.state is not RoundState.RELEASED:
            raise WrongState("the round has not been released")
        found = Replayed(self.round_id)
        checks = {
            "records": self.records_are_bound,
            "plan": self.plan_follows,
            "seed": self.seed_opens,
            "workloads": self.workloads_open,
            "data": self.data_are_registered,
            "answers": self.answers_agree,
            "streams": self.streams_are_committed,
            "synopsis": self.synopsis_agrees,
        }
        for name, check in checks.items():
            try:
                found.checks.append(Check(name, check()))
            except Differs as error:
                found.failed, found.difference = name, error.difference
                break
            except VerificationFailed as error:
                found.failed, found.difference = name, Difference(error.message)
                break
        ways = self.ways
        found.ways = {way: (count, ways.furthest[way], ways.tolerance) for way, count in ways.answers.items()}
        return found

    def records_are_bound(self) -> str:
        """The round's records are whole, and each names the one before."""
        return ", ".join(f"{kind} {root.hex()}" for kind, root in self.committed.roots.items())

    def plan_follows(self) -> str:
        """Terms and plan are those on record, and from these terms the planner makes this plan."""
        item, released = self.committed.plan, self.round
        terms = json.loads(terms_to_json(released.terms)) | {"shares": [asdict(s) for s in released.terms.shares]}
        same("terms", terms, item["terms"])
        same("plan", json.loads(plan_to_json(released.plan)), item["plan"])
        self.progress("planning", 0, 1)
        again = mechanism(released.terms.mechanism).plan(self.setting)
        same("plan", item["plan"], json.loads(plan_to_json(again)))
        return f"{again.mechanism}, as planned from the terms again"

    def seed_opens(self) -> str:
        """The seed is the one that was committed to, and the auditor's nonce the one on record."""
        commitment = self.round.seed_commitment
        same("the seed's commitment", commitment.hex(), self.committed.round["seed_commitment"])
        nonce = None if self.nonce is None else self.nonce.hex()
        same("the auditor's nonce", nonce, self.committed.seal["nonce"])
        assert self.seed
        bound = "no nonce of an auditor" if nonce is None else f"the auditor's nonce {nonce[:SHOWN]}..."
        return f"opens its commitment {commitment.hex()[:SHOWN]}..., and is used with {bound}"

    def workloads_open(self) -> str:
        """Every workload is the one that was committed to, and nobody's is missing."""
        with self.store.read() as connection:
            query = select(submissions.c.analyst, submissions.c.salt).where(submissions.c.round_id == self.round_id)
            salts = {row.analyst: row.salt for row in connection.execute(query)}
        for share in self.round.terms.shares:
            name = share.analyst
            if name not in self.committed.workloads:
                raise WrongState(f"{name} was deleted with its workload, so the round cannot be computed again")
            mine = None
            if name in self.workloads:
                mine = workload_commitment(salts[name], self.workloads[name]).hex()
            same("the workload's commitment", mine, self.committed.workloads[name]["commitment"], name)
        return f"{len(self.workloads):,} of {len(self.round.terms.shares):,} analysts have asked, as on record"

    def data_are_registered(self) -> str:
        """The table is the one that was registered; then the round is computed, which takes as long as it took."""
        digest = self.committed.data["digest"]
        same("the data's digest at the release", self.committed.spending["data_digest"], digest)
        try:
            assert self.outcome
        except DataLoss as error:
            raise Differs(Difference(error.message)) from None
        return (
            f"{self.round.records:,} records with the digest {digest[:SHOWN]}...; all was computed from them again"
        )

    def answers_agree(self) -> str:
        """Every message that is stored is the one that is computed."""
        for part in stream_parts(self.job, self.outcome, self.progress):
            for place, (stored, computed) in enumerate(self._beside(part), start=part.first_sequence):
                if stored is None:
                    raise Differs(Difference("the message is missing", analyst=part.analyst, message=place))
                self.ways.compare(part.analyst, stored, computed)
                self.messages[part.analyst] += 1
        answers, messages = sum(self.ways.answers.values()), self.messages.total()
        fitted = f"to within 2^-20, ways exactly: {self.round.plan.mechanism} fits in floats"
        return f"{answers:,} in {messages:,} messages agree {fitted if self.ways.tolerance else 'byte for byte'}"

    def streams_are_committed(self) -> str:
        """What is stored of every stream is what the release has put on record, and nobody has more."""
        for name, result in self.committed.results.items():
            digest, stored = self._stored_stream(name)
            same("messages", stored, self.messages[name], name)
            told = None
            if stored:
                queries = len(self.outcome.answers[name].values)
                told = {"digest": digest.hex(), "messages": stored, "queries": queries}
            same("stream", result["stream"], told, name)
        return f"{len(self.messages):,} have the digests on record, and nobody has another"

    def synopsis_agrees(self) -> str:
        """The synopsis is the one that is computed, and that the release has put on record."""
        with self.store.read() as connection:
            stored = read_synopsis(connection, self.round_id)
        computed = self.outcome.synopsis.astype("<u4").tobytes()
        same("the synopsis's length in bytes", len(stored), len(computed))
        cells, again = (np.frombuffer(each, dtype="<u4") for each in (stored, computed))
        for record in np.flatnonzero(cells != again).tolist():
            same(f"the cell of the synopsis's record {record}", int(cells[record]), int(again[record]))
        told = {"digest": synopsis_digest(stored).hex(), "records": len(stored) // CELL_BYTES} if stored else None
        same("the synopsis", told, self.committed.release["synopsis"])
        return f"{len(stored) // CELL_BYTES:,} records agree one by one"

    @cached_property
    def round(self) -> RoundRecord:
        """The round as the store has it."""
        with self.store.read() as connection:
            return read_round(connection, self.round_id)

    @cached_property
    def committed(self) -> Committed:
        """What the round has on record."""
        with self.store.read() as connection:
            return read_committed(connection, self.round)

    @cached_property
    def dataset(self) -> DatasetRecord:
        """The dataset as the store has it."""
        with self.store.read() as connection:
            return read_dataset(connection, self.round.terms.dataset)

    @cached_property
    def setting(self) -> Setting:
        """What the round was planned from."""
        released = self.round
        return setting_of(released.terms, released.records, released.universe_size, self.dataset.schema.sizes)

    @cached_property
    def nonce(self) -> bytes | None:
        """The auditor's part of the randomness."""
        with self.store.read() as connection:
            return read_audit_nonce(connection, self.round_id)

    @cached_property
    def seed(self) -> bytes:
        """The seed that opens the commitment on record."""
        return self.seed_of(self.round.seed_commitment)

    @cached_property
    def workloads(self) -> Mapping[str, bytes]:
        """What was submitted, by analyst, in the order of the shares."""
        with self.store.read() as connection:
            return read_workloads(connection, self.round_id)

    @cached_property
    def job(self) -> Job:
        """What the round's worker was given."""
        return Job(
            round_id=self.round_id,
            table=self.table_of(self.dataset),
            schema=self.dataset.schema.to_json(),
            setting=self.setting,
            plan=self.round.plan,
            workloads=self.workloads,
            seed=self.seed,
            audit_nonce=self.nonce,
            data_digest=bytes.fromhex(self.committed.data["digest"]),
        )

    @cached_property
    def outcome(self) -> Outcome:
        """The round, computed again."""
        return compute_round(self.job, self.progress)

    @cached_property
    def ways(self) -> Ways:
        """How the answers compare."""
        return Ways(tolerance_of(self.round.plan.mechanism))

    @cached_property
    def run_id(self) -> str:
        """The run whose messages were released. Raises `WrongState` where they are no longer kept."""
        with self.store.read() as connection:
            query = select(rounds.c.run_id).where(rounds.c.id == self.round_id)
            kept: str | None = connection.execute(query).scalar_one()
        if kept is None:
            raise WrongState("the round's results are no longer kept, so there is nothing to compare with")
        return kept

    def _beside(self, part: Part) -> list[tuple[bytes | None, bytes]]:
        """The messages of a part that was computed, each beside the one that is stored."""
        last = part.first_sequence + len(part.chunks) - 1
        with self.store.read() as connection:
            query = select(result_chunks.c.sequence, result_chunks.c.chunk).where(
                result_chunks.c.run_id == self.run_id,
                result_chunks.c.analyst == part.analyst,
                result_chunks.c.sequence.between(part.first_sequence, last),
            )
            stored = {row.sequence: row.chunk for row in connection.execute(query)}
        numbered = enumerate(part.chunks, start=part.first_sequence)
        return [(stored.get(sequence), chunk) for sequence, chunk in numbered]

    def _stored_stream(self, analyst: str) -> tuple[bytes, int]:
        """What commits to an analyst's stream as it is stored, and how many messages it has."""
        digest, messages = stream_start(self.round_id), 0
        query = (
            select(result_chunks.c.chunk)
            .where(result_chunks.c.run_id == self.run_id, result_chunks.c.analyst == analyst)
            .order_by(result_chunks.c.sequence)
        )
        with self.store.read() as connection:
            for chunk in connection.execution_options(yield_per=CHUNKS_IN_PART).execute(query).scalars():
                digest, messages = stream_step(digest, chunk), messages + 1
        return digest, messages
