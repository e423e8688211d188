"""A session's server of one analyst, which breaks off, forgets and lies where a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from equipoise.clients.analyst import Client
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import (
    AlreadyExists,
)
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Ending, Grant, RoundState, SessionTerms
from equipoise.profile.profile import LOG_KEYS, SETTINGS, settings_text
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.records.envelopes import sign
from equipoise.records.item_parts import RecordedSession
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.results import answers_to_chunk
from equipoise.wire.workloads import schema_to_message
from harness.answers import some_answers
from harness.fake_server import connected, refuse
from harness.shown_rounds import PROMISE, shown_round
from harness.small_custodian import DEPLOYMENT, SCHEMA, signing_key

SESSION = "cd" * 16
TERMS = SessionTerms(100, ending=Ending.STOP)
PROMISED = replace(PROMISE, session=RecordedSession(TERMS.ending, TERMS.length, 1, TERMS.turn_seconds))
KEY = signing_key(1)
COLOUR, SIZE = attribute("colour"), attribute("size")
STATEMENTS: tuple[Statement, ...] = (
    COLOUR == "red",
    Marginal(("colour", "size")),
    SIZE == "s",
    SIZE.isin(["m", "l"]),
    ~(COLOUR == "green"),
)
Part = analyst_pb2.AskQueriesResponse
Handler = Callable[[Iterator[Any], Any], Iterator[Any]]


def cells(statement: bytes) -> int:
    return 8 if types_pb2.Statement.FromString(statement).HasField("marginal") else 1


@dataclass
class Store:
    """What a custodian holds of one analyst in one session: each answer as it was stored, and what was asked."""

    analyst: str = "ann"
    salt: bytes = b""
    chain: bytes = b""
    answers: list[Any] = field(default_factory=list)
    asked: list[tuple[int, bytes]] = field(default_factory=list)
    attached: list[int] = field(default_factory=list)

    def attach(self, requests: Iterator[Any]) -> Any:
        """What the stream begins with, and its answer."""
        attach = next(requests).attach
        assert attach.session_id == SESSION
        self.attached.append(attach.after_sequence)
        if not self.salt:
            self.salt = attach.commitment_salt
            self.chain = chain_start(DEPLOYMENT, SESSION, self.analyst, self.salt)
        return Part(attached=Part.Attached(answered=len(self.answers), commitment_salt=self.salt))

    def answer(self, statement: bytes, **told: Any) -> Any:
        """Stores the next answer."""
        sequence = len(self.answers) + 1
        count = cells(statement)
        answers = some_answers(np.arange(count, dtype=np.int64) + sequence, AnswerMethod.HYPOTHESIS, 7)
        slot = 3 * sequence
        self.chain = chain_step(self.chain, sequence, slot, statement, answers)
        receipt = SessionReceiptPayload(
            DEPLOYMENT, SESSION, self.analyst, sequence, self.chain, sequence, told.get("promise", PROMISED)
        )
        chunk = answers_to_chunk(SESSION, sequence, 0, replace(answers, values=answers.values + told.get("off", 0)))
        envelope = sign(SESSION_RECEIPT_TYPE, receipt.to_bytes(), told.get("keys", [KEY]))
        self.answers.append(
            Part(answered=Part.Answered(sequence=sequence, slot=slot, chunk=chunk, envelope=envelope))
        )
        return self.answers[-1]

    def handler(self, breaks: int = 10**9, **told: Any) -> Handler:
        """A server that breaks each stream off after so many messages, the first one counted."""

        def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
            for number, part in enumerate(self._parts(requests, context, told), start=1):
                yield part
                if number == breaks:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

        return serve

    def _parts(self, requests: Iterator[Any], context: Any, told: Any) -> Iterator[Any]:
        yield self.attach(requests)
        yield from self.answers[self.attached[-1] :]
        for request in requests:
            sequence, statement = request.asked.sequence, request.asked.statement
            if sequence <= len(self.answers):
                if self.asked[sequence - 1] != (sequence, statement):
                    refuse(context, AlreadyExists("sequence: was asked before with another statement"))
                yield self.answers[sequence - 1]
                continue
            self.asked.append((sequence, statement))
            assert sequence == len(self.answers) + 1
            yield self.answer(statement, **told)


def handlers(ask: Handler, grant: Grant | None = None) -> dict[str, Callable[[Any, Any], Any]]:
    """Methods of a server with one session; with `grant`, it is shown as one."""

    def shown(_: Any, __: Any) -> Any:
        shown = shown_round(SESSION, RoundState.OPEN, grant, session=TERMS)
        return analyst_pb2.GetAnalystRoundResponse(round=shown)

    def dataset(_: Any, __: Any) -> Any:
        described = types_pb2.Dataset(name="shop", schema=schema_to_message(SCHEMA), records=400)
        return analyst_pb2.GetDatasetResponse(dataset=described)

    return {"AskQueries": ask, "GetAnalystRound": shown, "GetDataset": dataset}


def asked_of(
    ask: Handler, statements: Any = STATEMENTS, keep: Path | None = None, **how: Any
) -> list[StatementAnswer]:
    """All answers that the client gives."""
    keepsakes = None if keep is None else profile_of(keep)
    with connected(handlers(ask)) as connection:
        return list(Client(connection, keepsakes).ask(SESSION, statements, **how))


def profile_of(directory: Path) -> ReceiptStore:
    """The analyst's profile in this directory."""
    (directory / SETTINGS).write_bytes(settings_text("127.0.0.1:1", "ann"))
    (directory / LOG_KEYS).write_text(KEY.verifier.to_text() + "\n")
    return ReceiptStore(directory)
