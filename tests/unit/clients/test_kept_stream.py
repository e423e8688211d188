"""The stream to a grant stays open between two times of asking, and what happens meanwhile changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from harness.fake_server import connected, refuse
from harness.session_server import SESSION, STATEMENTS, Handler, Store, handlers, profile_of
from harness.waiting import PATIENCE, until

from equipoise.clients import receipt_chain, session_stream
from equipoise.clients.analyst import Client
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import AlreadyExists, BudgetExhausted, EquipoiseError, InvalidArgument, WrongState
from equipoise.model.rounds import Grant
from equipoise.profile.receipt_store import SESSION_RECEIPTS, ReceiptStore
from equipoise.queries.statements import Statement
from equipoise.wire.statements import statement_to_bytes

ELSEWHERE = WrongState("attached elsewhere: another stream of yours has taken the session over")
PRICE = 1_000_000
GRANT = Grant(10**12, 0)


class Streams:
    """A store behind streams that end when a test says so; a later stream takes over from an earlier one."""

    def __init__(self) -> None:
        self.store = Store()
        self.ended: list[threading.Event] = []
        self.cut: list[threading.Event] = []

    def serve(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        ended = threading.Event()
        context.add_callback(ended.set)
        for earlier in self.cut:
            earlier.set()
        self.ended.append(ended)
        self.cut.append(cut := threading.Event())
        yield self.store.attach(requests)
        yield from self.store.answers[self.store.attached[-1] :]
        for request in requests:
            if cut.is_set():
                refuse(context, ELSEWHERE)
            yield self.answer(request)

    def answer(self, request: Any) -> Any:
        """The answer to a request, stored."""
        assert request.asked.sequence == len(self.store.answers) + 1
        self.store.asked.append((request.asked.sequence, request.asked.statement))
        return self.store.answer(request.asked.statement)


@contextmanager
def asking(serve: Handler, grant: Grant | None = GRANT, keepsakes: ReceiptStore | None = None) -> Iterator[Client]:
    with connected(handlers(serve, grant)) as connection, Client(connection, keepsakes) as client:
        yield client


def ask(client: Client, *statements: Statement) -> list[StatementAnswer]:
    return list(client.ask(SESSION, statements, rho=PRICE / 1e12))


def test_a_grant_is_attached_to_once_for_all_that_one_client_asks() -> None:
    streams = Streams()
    with asking(streams.serve) as client:
        told = [each for statement in STATEMENTS for each in ask(client, statement)]
        assert not streams.ended[0].is_set()
    assert [each.sequence for each in told] == [1, 2, 3, 4, 5]
    assert [each.statement for each in told] == list(STATEMENTS)
    assert streams.store.attached == [0]


def test_the_stream_ends_with_the_client() -> None:
    streams = Streams()
    with connected(handlers(streams.serve, GRANT)) as connection:
        client = Client(connection)
        ask(client, STATEMENTS[0])
        client.close()
        assert streams.ended[0].wait(PATIENCE)


def test_the_newest_receipt_of_an_open_stream_is_kept_soon_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, soon = profile_of(tmp_path), tmp_path / "soon"
    soon.mkdir()
    with asking(Streams().serve, keepsakes=kept) as client:
        monkeypatch.setattr(receipt_chain, "KEEP_SECONDS", 3600.0)
        (first,), (second,) = ask(client, STATEMENTS[0]), ask(client, STATEMENTS[1])
        assert kept.session_receipt(SESSION) == first.receipt, "asking waits for no disk"
        client.close()
        assert kept.session_receipt(SESSION) == second.receipt
    with asking(Streams().serve, keepsakes=profile_of(soon)) as client:
        monkeypatch.setattr(receipt_chain, "KEEP_SECONDS", 0.02)
        told = [answer for each in STATEMENTS for answer in ask(client, each)]
        until(lambda: ReceiptStore(soon).session_receipt(SESSION) == told[-1].receipt)


def test_a_receipt_that_cannot_be_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = profile_of(tmp_path)
    monkeypatch.setattr(receipt_chain, "KEEP_SECONDS", 3600.0)
    with asking(Streams().serve, keepsakes=kept) as client:
        ask(client, STATEMENTS[0])
        ask(client, STATEMENTS[1])
        (tmp_path / SESSION_RECEIPTS / SESSION).unlink()
        (tmp_path / SESSION_RECEIPTS / SESSION).mkdir()
        with pytest.raises(InvalidArgument, match=SESSION_RECEIPTS):
            client.close()


def test_a_stream_of_a_session_that_is_no_grant_ends_with_its_statements() -> None:
    streams = Streams()
    with asking(streams.serve, None) as client:
        for statement in STATEMENTS[:2]:
            list(client.ask(SESSION, [statement], after=None))
            assert streams.ended[-1].wait(PATIENCE)
    assert len(streams.ended) == 2


def test_a_caller_that_takes_no_more_answers_ends_the_stream() -> None:
    streams = Streams()
    with asking(streams.serve) as client:
        asked = client.ask(SESSION, STATEMENTS, rho=PRICE / 1e12)
        next(asked)
        asked.close()  # type: ignore[attr-defined]
        assert streams.ended[0].wait(PATIENCE)
        assert [each.sequence for each in ask(client, STATEMENTS[1])] == [len(streams.store.answers)]


def test_two_clients_that_ask_in_turn_take_the_grant_over_from_one_another() -> None:
    streams = Streams()
    with asking(streams.serve) as one, asking(streams.serve) as other:
        turns = zip((one, other, one, one, other), STATEMENTS, strict=True)
        told = [each for client, statement in turns for each in ask(client, statement)]
    assert [each.sequence for each in told] == [1, 2, 3, 4, 5]
    assert [each.statement for each in told] == list(STATEMENTS)


@pytest.mark.parametrize("refusal", [ELSEWHERE, AlreadyExists("sequence: was asked before with another statement")])
@pytest.mark.parametrize("stored", [True, False], ids=["its answer was stored", "it was not taken"])
def test_a_grant_that_another_program_asks_at_the_same_time_is_taken_over_in_turn(
    monkeypatch: pytest.MonkeyPatch, refusal: EquipoiseError, stored: bool
) -> None:
    monkeypatch.setattr(session_stream, "MAX_PAUSE_MILLISECONDS", 1)
    streams = Streams()
    hindered: list[int] = []

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield streams.store.attach(requests)
        yield from streams.store.answers[streams.store.attached[-1] :]
        for request in requests:
            if len(hindered) < 3:
                hindered.append(1)
                streams.store.answer(statement_to_bytes(STATEMENTS[4], PRICE))  # the other program's
                if stored and len(hindered) == 3:
                    streams.store.answer(request.asked.statement)
                refuse(context, refusal)
            yield streams.answer(request)

    with asking(serve) as client:
        told = ask(client, STATEMENTS[0], STATEMENTS[1])
    assert [each.statement for each in told] == list(STATEMENTS[:2])
    assert [each.sequence for each in told] == [4, 5]


def test_a_grant_that_is_never_left_to_a_program_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_stream, "MAX_PAUSE_MILLISECONDS", 1)
    monkeypatch.setattr(session_stream, "MAX_TAKEOVERS", 3)
    streams = Streams()

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield streams.store.attach(requests)
        next(requests)
        refuse(context, ELSEWHERE)

    with asking(serve) as client, pytest.raises(WrongState, match="attached elsewhere"):
        ask(client, STATEMENTS[0])
    assert len(streams.store.attached) == 4
    with asking(serve, None) as client, pytest.raises(WrongState, match="attached elsewhere"):
        list(client.ask(SESSION, STATEMENTS, after=None))
    assert len(streams.store.attached) == 5


def test_an_error_ends_the_stream_and_the_next_question_has_another() -> None:
    streams = Streams()

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield streams.store.attach(requests)
        yield from streams.store.answers[streams.store.attached[-1] :]
        for request in requests:
            if request.asked.statement == dear:
                refuse(context, BudgetExhausted("costs more than is left"))
            yield streams.answer(request)

    dear = statement_to_bytes(STATEMENTS[1], PRICE)
    with asking(serve) as client:
        ask(client, STATEMENTS[0])
        with pytest.raises(BudgetExhausted):
            ask(client, STATEMENTS[1])
        assert [each.sequence for each in ask(client, STATEMENTS[2])] == [2]
    assert streams.store.attached == [0, 0]


@pytest.mark.parametrize("own", [True, False], ids=["its answer was stored", "it was lost"])
def test_what_another_program_asked_while_a_stream_was_broken_is_passed_over(own: bool) -> None:
    streams = Streams()
    broken: list[Any] = []

    def serve(requests: Iterator[Any], context: Any) -> Iterator[Any]:
        yield streams.store.attach(requests)
        yield from streams.store.answers[streams.store.attached[-1] :]
        for request in requests:
            if len(streams.store.answers) == 1 and not broken:
                broken.append(request)
                streams.store.answer(statement_to_bytes(STATEMENTS[2], PRICE))  # another program's
                if own:
                    streams.store.answer(request.asked.statement)
                streams.store.answer(statement_to_bytes(STATEMENTS[3], PRICE))
                context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            yield streams.answer(request)

    with asking(serve) as client:
        ask(client, STATEMENTS[0])
        (answer,) = ask(client, STATEMENTS[1])
        (last,) = ask(client, STATEMENTS[4])
    assert (answer.sequence, last.sequence) == ((3, 5) if own else (4, 5))
    assert answer.statement == STATEMENTS[1]
