"""Sessions after a death, and on a store that was altered, lost rows, or is an older copy."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from harness.rounds_bench import COLOUR, SIZE, Bench
from harness.session_terms import ONLINE, answered, ask, ask_all, attached
from harness.stores import allow_changes, back_up, restore, statements
from harness.waiting import PATIENCE
from sqlalchemy import select, text

from equipoise.errors import (
    DataLoss,
    Unavailable,
    WrongState,
)
from equipoise.model.rounds import SessionTerms
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.storage.tables.session import asked


@pytest.mark.full
def test_a_session_goes_on_after_any_death_with_the_same_answers(bench: Bench) -> None:
    session_id = bench.sessions.open(replace(ONLINE, session=SessionTerms(length=6)), "open").id
    charged = bench.charged()
    told = ask_all(bench, session_id)
    process_id = bench.sessions.loops.process_id(session_id)
    assert process_id is not None
    stream = attached(bench, "ann", session_id)
    os.kill(process_id, signal.SIGKILL)
    with pytest.raises(Unavailable):
        ask(stream, 4, COLOUR == "green")
    with pytest.raises(Unavailable):
        stream.ended.result(PATIENCE)
    stored = answered(bench)
    bench.restart()
    stream = attached(bench, "ann", session_id)
    assert stream.stored(0, 10) == told["ann"]
    last = stream.ask(4, statement_to_bytes(COLOUR == "green"))
    with pytest.raises(WrongState, match="length"):
        stream.ask(5, statement_to_bytes(COLOUR == "green"))
    assert last.result(PATIENCE).slot == 5
    with pytest.raises(WrongState, match="length"):
        stream.ask(5, statement_to_bytes(COLOUR == "green"))
    assert answered(bench)[:5] == stored
    assert bench.charged() == charged


def test_a_changed_answer_is_data_loss_while_it_is_open_and_when_it_is_run(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(ONLINE, "open").id
    ask_all(bench, session_id)
    bench.stop()
    bench.start()
    with bench.store.write() as connection:
        for statement in ("UPDATE asked SET slot = 9", "DELETE FROM asked"):
            with pytest.raises(Exception, match="append-only"), connection.begin_nested():
                connection.execute(text(statement))
        allow_changes(connection, "asked")
        other = select(asked.c.statement).where(asked.c.slot == 2).scalar_subquery()
        connection.execute(asked.update().where(asked.c.slot == 0).values(statement=other))
    with pytest.raises(DataLoss):  # at the latest by the answer; a quick worker has found it before
        ask(attached(bench, "bob", session_id), 3, COLOUR == "green")
    with pytest.raises(DataLoss):
        attached(bench, "ann", session_id)
    bench.sessions.close(session_id, "close")
    bench.rounds.lifecycle.run(session_id, "run")
    assert "does not reproduce the answers" in bench.wait(session_id).phase


def test_an_answer_that_is_missing_from_the_store_is_data_loss_and_is_not_given_anew(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(ONLINE, "open").id
    ask_all(bench, session_id)
    bench.stop()
    bench.start()
    with bench.store.write() as connection:
        allow_changes(connection, "asked")
        connection.execute(asked.delete().where(asked.c.slot == 4))  # the last: what is left goes together
    with pytest.raises(DataLoss):  # at the latest by the answer; a quick worker has found it before
        ask(attached(bench, "bob", session_id), 2, COLOUR == "green")
    assert len(answered(bench)) == 4


def test_what_is_answered_after_a_stream_was_attached_is_not_told_twice(on_sqlite: Bench) -> None:
    """Its caller asks again what it was not told to be answered, and takes each answer once."""
    session_id = on_sqlite.sessions.open(ONLINE, "open").id
    ask(attached(on_sqlite, "ann", session_id), 1, COLOUR == "red")
    stream = attached(on_sqlite, "ann", session_id)
    assert stream.answered == 1
    second = ask(stream, 2, COLOUR == "green")
    assert [each.sequence for each in stream.stored(0, 10)] == [1]
    assert stream.stored(1, 10) == []
    assert attached(on_sqlite, "ann", session_id).stored(1, 10) == [second]


def test_an_older_copy_of_the_store_is_not_asked_once_more(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(ONLINE, "open").id
    bench.stop()
    copy = back_up(bench.url)
    bench.start()
    bench.rounds.lifecycle.recover()
    stream = attached(bench, "ann", session_id)
    ask(stream, 1, SIZE == "s")
    bench.stop()
    restore(bench.url, copy)
    bench.start()
    with pytest.raises(DataLoss, match="0 answers of sessions, but 1 had been given"):
        bench.rounds.lifecycle.recover()
    with pytest.raises(DataLoss):
        attached(bench, "ann", session_id)


def test_an_attachment_and_its_statements_read_the_share_of_one_analyst_alone(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(ONLINE, "open", "olga").id
    for number, analyst in enumerate(("bob", "ann")):
        with statements() as carried_out:
            stream = attached(bench, analyst, session_id)
            ask(stream, 1, COLOUR == "red")
            stream.detach()
        # The worker starts for the first of them, and its plan is that of all shares.
        of_shares = [sql for sql in carried_out if "FROM shares" in sql]
        own = [sql for sql in of_shares if "shares.analyst = " in sql]
        assert own
        assert len(of_shares) - len(own) == (number == 0)


@pytest.mark.full
def test_a_stopped_worker_holds_its_session_only_for_a_public_time(on_sqlite: Bench) -> None:
    bench = on_sqlite
    bench.worker_idle_seconds = 2
    bench.restart()
    session_id = bench.sessions.open(ONLINE, "open", "olga").id
    charged = bench.charged()
    told = ask_all(bench, session_id)
    process_id = bench.sessions.loops.process_id(session_id)
    assert process_id is not None
    stream = attached(bench, "ann", session_id)
    os.kill(process_id, signal.SIGSTOP)
    with pytest.raises(Unavailable):
        ask(stream, 4, COLOUR == "green")
    stream = attached(bench, "ann", session_id)
    assert stream.stored(0, 10) == told["ann"]
    assert ask(stream, 4, COLOUR == "green").sequence == 4
    assert bench.charged() == charged
