"""Asking in a session, of a server that breaks off, forgets and lies on purpose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from harness.fake_server import connected, refuse
from harness.shown_rounds import PROMISE, shown_round
from harness.small_custodian import DEPLOYMENT, SCHEMA, signing_key

from equipoise.clients import connection as connection_module
from equipoise.clients.analyst import Client
from equipoise.clients.conversation import ATTEMPTS, CONVERSATION_ATTEMPTS
from equipoise.clients.session_stream import StatementAnswer
from equipoise.errors import (
    AlreadyExists,
    DataLoss,
    EquipoiseError,
    InvalidArgument,
    OutOfRange,
    Unavailable,
    VerificationFailed,
    WrongState,
)
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Ending, RoundState, SessionTerms
from equipoise.profile.profile import LOG_KEYS
from equipoise.profile.receipt_store import REFUSED_RECEIPTS, ReceiptStore, read_session_receipt
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.records.envelopes import sign
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.results import answers_to_chunk
from equipoise.wire.workloads import schema_to_message

SESSION = "cd" * 16
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


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_PAUSE_SECONDS", 0.001)


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
        values, bounds = np.arange(count, dtype=np.int64) + sequence, np.full(count, 7, dtype=np.int64)
        methods = np.full(count, AnswerMethod.HYPOTHESIS, dtype=np.uint8)
        slot = 3 * sequence
        self.chain = chain_step(self.chain, sequence, slot, statement, values, methods, bounds)
        receipt = SessionReceiptPayload(
            DEPLOYMENT, SESSION, self.analyst, sequence, self.chain, sequence, told.get("promise", PROMISE)
        )
        chunk = answers_to_chunk(SESSION, sequence, 0, values + told.get("off", 0), methods, bounds)
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


def handlers(ask: Handler) -> dict[str, Callable[[Any, Any], Any]]:
    def shown(_: Any, __: Any) -> Any:
        shown = shown_round(SESSION, RoundState.OPEN, session=SessionTerms(100, ending=Ending.STOP))
        return analyst_pb2.GetAnalystRoundResponse(round=shown)

    def dataset(_: Any, __: Any) -> Any:
        described = types_pb2.Dataset(name="shop", schema=schema_to_message(SCHEMA), records=400)
        return analyst_pb2.GetDatasetResponse(dataset=described)

    return {"AskQueries": ask, "GetAnalystRound": shown, "GetDataset": dataset}


def asked_of(
    ask: Handler, statements: Any = STATEMENTS, keep: Path | None = None, **how: Any
) -> list[StatementAnswer]:
    """All answers that the client gives."""
    keepsakes = None
    if keep is not None:
        (keep / LOG_KEYS).write_text(KEY.verifier.to_text() + "\n")
        keepsakes = ReceiptStore(keep)
    with connected(handlers(ask)) as connection:
        return list(Client(connection, keepsakes).ask(SESSION, statements, **how))


@pytest.mark.parametrize("window", [1, 3, 100])
def test_statements_are_answered_in_order_and_the_newest_receipt_is_kept(tmp_path: Path, window: int) -> None:
    store = Store()
    answers = asked_of(store.handler(), keep=tmp_path, window=window)
    assert [each.sequence for each in answers] == [1, 2, 3, 4, 5]
    assert [each.slot for each in answers] == [3, 6, 9, 12, 15]
    assert [each.statement for each in answers] == list(STATEMENTS)
    assert (answers[0].value, answers[0].bound) == (2.0**-40, 7 * 2.0**-40)
    assert answers[0].method is AnswerMethod.HYPOTHESIS
    assert [each.cell for each in answers[1].results] == list(
        itertools.product(("red", "green"), ("s", "m", "l", "xl"))
    )
    with pytest.raises(InvalidArgument, match="several cells"):
        _ = answers[1].value
    assert ReceiptStore(tmp_path).session_receipt(SESSION) == answers[-1].receipt


def test_the_next_statement_may_depend_on_the_last_answer() -> None:
    seen: list[float] = []

    def statements() -> Iterator[Statement]:
        for number in range(4):
            assert len(seen) == number
            yield attribute("size").isin(["s"] if number % 2 else ["m"])

    with connected(handlers(Store().handler())) as connection:
        for answer in Client(connection).ask(SESSION, statements()):
            seen.append(answer.value)
    assert len(seen) == 4


@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize("breaks", [2, 3])
def test_a_stream_that_breaks_is_resumed_and_nothing_is_asked_twice(window: int, breaks: int) -> None:
    store = Store()
    answers = asked_of(store.handler(breaks), window=window)
    assert [each.sequence for each in answers] == [1, 2, 3, 4, 5]
    assert [sequence for sequence, _ in store.asked] == [1, 2, 3, 4, 5]


def test_an_answer_that_was_stored_and_not_sent_comes_when_the_stream_is_resumed() -> None:
    store = Store()

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield store.attach(requests)
        yield from store.answers[store.attached[-1] :]
        for request in requests:
            store.asked.append((request.asked.sequence, request.asked.statement))
            store.answer(request.asked.statement)
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    answers = asked_of(serve, window=3)
    assert [each.sequence for each in answers] == [1, 2, 3, 4, 5]
    assert [sequence for sequence, _ in store.asked] == [1, 2, 3, 4, 5]
    assert store.attached == [0, 0, 1, 2, 3, 4]


def test_the_same_program_again_gets_the_same_answers_and_goes_on(tmp_path: Path) -> None:
    store = Store()
    first = asked_of(store.handler(), STATEMENTS[:3], keep=tmp_path)
    again = asked_of(store.handler(), STATEMENTS, keep=tmp_path)
    assert [each.receipt for each in again[:3]] == [each.receipt for each in first]
    assert [sequence for sequence, _ in store.asked] == [1, 2, 3, 4, 5]
    part = asked_of(store.handler(), STATEMENTS[:2], keep=tmp_path)
    assert [each.receipt for each in part] == [each.receipt for each in first[:2]]
    assert ReceiptStore(tmp_path).session_receipt(SESSION) == again[-1].receipt
    rest = asked_of(store.handler(), STATEMENTS[3:], keep=tmp_path, after=3)
    assert [each.receipt for each in rest] == [each.receipt for each in again[3:]]


@pytest.mark.parametrize("kept", [True, False], ids=["with a receipt", "without one"])
def test_after_none_asks_what_comes_next(tmp_path: Path, kept: bool) -> None:
    store = Store()
    asked_of(store.handler(), STATEMENTS[:2], keep=tmp_path)
    asked_of(store.handler(), STATEMENTS[2:3], after=2)
    if not kept:
        (tmp_path / "session-receipts" / SESSION).unlink()
    rest = asked_of(store.handler(breaks=2), STATEMENTS[3:], keep=tmp_path, after=None)
    assert [each.sequence for each in rest] == [4, 5]
    assert len(store.asked) == 5


def test_other_words_for_what_was_asked_before_are_refused() -> None:
    store = Store()
    asked_of(store.handler(), STATEMENTS[:2])
    with pytest.raises(AlreadyExists, match="statement 2 of this session was asked before"):
        asked_of(store.handler(), (STATEMENTS[0], SIZE == "xl"))
    assert len(store.asked) == 2


@pytest.mark.parametrize("breaks", [2, 3, 10**9])
def test_statements_after_some_that_are_not_known_here_are_compared_by_the_server(breaks: int) -> None:
    store = Store()
    first = asked_of(store.handler(), STATEMENTS[:3])
    rest = asked_of(store.handler(breaks), STATEMENTS[1:], after=1, window=2)
    assert [each.receipt for each in rest[:2]] == [each.receipt for each in first[1:]]
    assert [sequence for sequence, _ in store.asked] == [1, 2, 3, 4, 5]
    with pytest.raises(AlreadyExists, match="was asked before"):
        asked_of(store.handler(), (SIZE == "xl",), after=2)


def other_answer(store: Store) -> Handler:
    return store.handler(off=1)


def other_key(store: Store) -> Handler:
    return store.handler(keys=[signing_key(2)])


def other_terms(store: Store) -> Handler:
    return store.handler(promise=replace(PROMISE, beta=0.5))


def other_session(store: Store) -> Handler:
    def serve(requests: Iterator[Any], _: Any) -> Iterator[Any]:
        yield store.attach(requests)
        answer = store.answer(next(requests).asked.statement)
        receipt = read_session_receipt(answer.answered.envelope)
        wrong = SessionReceiptPayload(DEPLOYMENT, "ef" * 16, "ann", 1, receipt.chain, 1, PROMISE)
        answer.answered.envelope = sign(SESSION_RECEIPT_TYPE, wrong.to_bytes(), [KEY])
        yield answer

    return serve


@pytest.mark.parametrize("lie", [other_answer, other_key, other_terms, other_session])
def test_a_receipt_that_is_for_something_else_is_not_taken(tmp_path: Path, lie: Callable[[Store], Handler]) -> None:
    store = Store()
    with pytest.raises(VerificationFailed, match="kept as evidence"):
        asked_of(lie(store), keep=tmp_path)
    assert ReceiptStore(tmp_path).session_receipt(SESSION) is None
    (refused,) = (tmp_path / REFUSED_RECEIPTS).iterdir()
    assert refused.read_bytes() == store.answers[0].answered.envelope


def test_a_custodian_who_is_exchanging_its_key_is_believed(tmp_path: Path) -> None:
    answers = asked_of(Store().handler(keys=[KEY, signing_key(2)]), keep=tmp_path)
    assert len(answers) == len(STATEMENTS)


def test_a_custodian_who_forgets_answers_is_caught(tmp_path: Path) -> None:
    asked_of(Store().handler(), STATEMENTS[:3], keep=tmp_path)
    with pytest.raises(VerificationFailed, match="signed 3 answers, but says that there are 0"):
        asked_of(Store().handler(), STATEMENTS[:3], keep=tmp_path)


def test_a_custodian_who_answers_the_same_again_otherwise_is_caught(tmp_path: Path) -> None:
    """The other store has as many answers, of another chain."""
    asked_of(Store().handler(), STATEMENTS[:2], keep=tmp_path)
    other = Store()
    asked_of(other.handler(), STATEMENTS[:2])
    with pytest.raises(VerificationFailed, match="two different things"):
        asked_of(other.handler(), STATEMENTS, keep=tmp_path)


def test_a_message_that_is_not_the_next_one_is_refused() -> None:
    store = Store()

    def serve(requests: Iterator[Any], _: Any) -> Iterator[Any]:
        yield store.attach(requests)
        store.answer(next(requests).asked.statement)
        yield store.answer(next(requests).asked.statement)

    with pytest.raises(DataLoss, match="not the next one"):
        asked_of(serve, window=2)


@pytest.mark.parametrize(
    "refusal",
    [WrongState("attached elsewhere"), OutOfRange("no such answer"), InvalidArgument("session_id", "is missing")],
    ids=lambda each: each.reason,
)
def test_what_the_server_refuses_is_raised_as_it_is(refusal: EquipoiseError) -> None:
    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield from ()
        next(requests)
        refuse(context, refusal)

    with pytest.raises(type(refusal)) as caught:
        asked_of(serve)
    assert caught.value.message == refusal.message


def test_a_statement_that_is_refused_is_named_and_all_before_it_are_answered() -> None:
    store = Store()

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield store.attach(requests)
        yield store.answer(next(requests).asked.statement)
        next(requests)
        refuse(context, InvalidArgument("statement.predicate.among", "is unknown"))

    with connected(handlers(serve)) as connection:
        answers = Client(connection).ask(SESSION, STATEMENTS, window=5)
        assert next(answers).sequence == 1
        with pytest.raises(InvalidArgument, match=r"^statements\[1\].predicate.among: is unknown$"):
            next(answers)
    with pytest.raises(InvalidArgument, match=r"^statements\[1\].predicate.among.categories"):
        asked_of(Store().handler(), (STATEMENTS[0], SIZE.isin([])))


def test_a_session_that_takes_no_more_says_so() -> None:
    store = Store()

    def serve(requests: Iterator[Any], _: Any) -> Iterator[Any]:
        yield store.attach(requests)
        yield store.answer(next(requests).asked.statement)

    with pytest.raises(WrongState, match="takes no more statements"):
        asked_of(serve)


def test_a_server_that_answers_nothing_is_given_up() -> None:
    store = Store()
    with pytest.raises(Unavailable, match="the 0 answers so far are kept, and the same again goes on"):
        asked_of(store.handler(breaks=1))
    assert len(store.attached) == CONVERSATION_ATTEMPTS


def test_a_server_that_lets_nobody_attach_is_given_up_sooner() -> None:
    tried = []

    def refuse(_: Iterator[Any], context: Any) -> Iterator[Any]:
        tried.append(1)
        context.abort(grpc.StatusCode.UNAVAILABLE, "no room")
        yield

    with pytest.raises(Unavailable, match="no room"):
        asked_of(refuse)
    assert len(tried) == ATTEMPTS


@pytest.mark.parametrize(("how", "field"), [({"window": 0}, "window"), ({"after": -1}, "after")])
def test_numbers_that_make_no_sense_are_refused(how: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{field}"):
        asked_of(Store().handler(), **how)
