"""Asking in a session, of a server that breaks off, forgets and lies on purpose."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from harness.fake_server import connected, refuse
from harness.session_server import SESSION, SIZE, STATEMENTS, Store, asked_of, handlers

from equipoise.clients.analyst import Client
from equipoise.clients.conversation import ATTEMPTS, CONVERSATION_ATTEMPTS
from equipoise.errors import (
    AlreadyExists,
    DataLoss,
    EquipoiseError,
    InvalidArgument,
    OutOfRange,
    Unavailable,
    WrongState,
)
from equipoise.model.results import AnswerMethod
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.statements import Statement


@pytest.mark.parametrize("window", [1, 3, 100])
def test_statements_are_answered_in_order_and_the_newest_receipt_is_kept(tmp_path: Path, window: int) -> None:
    store = Store()
    answers = asked_of(store.handler(), keep=tmp_path, window=window)
    assert [each.sequence for each in answers] == [1, 2, 3, 4, 5]
    assert [each.slot for each in answers] == [3, 6, 9, 12, 15]
    assert [each.statement for each in answers] == list(STATEMENTS)
    assert (answers[0].value, answers[0].low, answers[0].high) == (2.0**-40, 0.0, 8 * 2.0**-40)
    assert answers[0].standard_error is None
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


def test_a_client_looks_a_session_up_once_for_all_that_it_asks_there() -> None:
    store, looked = Store(), []
    served = handlers(store.handler())

    def counted(name: str, answer: Callable[[Any, Any], Any], request: Any, context: Any) -> Any:
        looked.append(name)
        return answer(request, context)

    counting = {name: partial(counted, name, answer) for name, answer in served.items()}
    with connected(counting) as connection:
        client = Client(connection)
        told = [each.sequence for statement in STATEMENTS for each in client.ask(SESSION, [statement], after=None)]
    assert told == [1, 2, 3, 4, 5]
    assert sorted(looked) == ["AskQueries"] * 5 + ["GetAnalystRound", "GetDataset"]


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
        asked_of(Store().handler(), (STATEMENTS[0], Among("size", ())))


def test_a_session_that_takes_no_more_says_so() -> None:
    store = Store()

    def serve(requests: Iterator[Any], _: Any) -> Iterator[Any]:
        yield store.attach(requests)
        yield store.answer(next(requests).asked.statement)

    with pytest.raises(WrongState, match="takes no more statements"):
        asked_of(serve)


@pytest.mark.slow
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
