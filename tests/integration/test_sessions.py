"""Sessions from their opening to their release, on both stores: charged at once, answered for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from harness.answers import flat_chunks
from harness.rounds_bench import COLOUR, SALT, TERMS, Bench, HandClock
from harness.session_terms import ASKED, BY_TURNS, ONLINE, answered, ask, ask_all, attached
from harness.waiting import PATIENCE
from sqlalchemy import select

from equipoise.accounting import Cost
from equipoise.errors import (
    AlreadyExists,
    BudgetExhausted,
    InvalidArgument,
    NotFound,
    OutOfRange,
    TooLarge,
    WrongState,
)
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, RoundState, SessionTerms, Share, Terms
from equipoise.profile.receipt_store import read_session_receipt
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.conversion import epsilon_for
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.sessions import pending_statements
from equipoise_server.storage.tables.round import submissions
from equipoise_server.storage.tables.session import asked
from equipoise_server.storage.tables.session import attached as attached_table

DATA = "data/shop"


def test_a_session_is_charged_when_it_opens_and_released_as_it_was_answered(bench: Bench) -> None:
    opened = bench.sessions.open(ONLINE, "open", "olga")
    assert bench.sessions.open(ONLINE, "open", "olga") == opened
    session_id = opened.id
    assert opened.terms.session == SessionTerms(length=8, turn_seconds=0, ending=Ending.HYPOTHESIS)
    charged = bench.charged()
    assert set(charged) == {DATA}  # what is not protected is not accounted for
    assert (bench.on_data().spent, bench.on_data().committed) == (Cost(), bench.due(opened.plan))
    assert 0 < epsilon_for(opened.plan.data_cost, ONLINE.data_budget.delta) <= ONLINE.data_budget.epsilon
    actions = [entry.action for entry in bench.rounds.budgets.history(DATA)[0]]
    assert actions == ["open-account", "reserve", "run"]

    told = ask_all(bench, session_id)
    assert [[each.sequence for each in records] for records in told.values()] == [[1, 2, 3], [1, 2]]
    assert [each.slot for records in told.values() for each in records] == [0, 1, 2, 3, 4]
    again = attached(bench, "ann", session_id, after=1)
    assert (again.answered, again.salt, again.open) == (3, SALT, True)
    assert again.stored(1, 1) == told["ann"][1:2]
    assert again.stored(0, 10) == told["ann"]
    assert ask(again, 2, ASKED["ann"][1]) == told["ann"][1]
    payload = read_session_receipt(told["ann"][2].envelope)
    assert (payload.session, payload.analyst, payload.sequence) == (session_id, "ann", 3)

    closed = bench.sessions.close(session_id, "close", "olga")
    assert closed.state is RoundState.SEALED
    assert again.ended.result(PATIENCE) is None
    with pytest.raises(WrongState, match="takes no more statements"):
        again.ask(4, statement_to_bytes(COLOUR == "red"))
    late = attached(bench, "ann", session_id)
    assert (late.answered, late.open) == (3, False)
    assert late.ended.result(0) is None
    assert late.stored(0, 10) == told["ann"]
    assert bench.charged() == charged

    bench.rounds.lifecycle.run(session_id, "run")
    assert bench.wait(session_id).complete
    bench.rounds.lifecycle.release(session_id, "release")
    bench.clock.move(60)
    assert bench.charged() == {DATA: (charged[DATA][1], charged[DATA][1])}
    for analyst, records in told.items():
        live = [answers_from_chunk(each.chunk) for each in records]
        released = [
            chunk_from_bytes(each) for each in bench.rounds.analyst_views.results(analyst, session_id, 0, 10)
        ]
        assert flat_chunks(live) == flat_chunks(released)
    assert [each.id for each in bench.sessions.list_for_analyst("ann")[0]] == [session_id]
    with bench.store.read() as connection:
        assert {row.analyst: row.statements for row in connection.execute(select(submissions))} == {
            "ann": 3,
            "bob": 2,
        }

    delete_analyst(bench.rounds.operations, "bob", "delete")
    with bench.store.read() as connection:
        assert set(connection.execute(select(asked.c.analyst)).scalars()) == {"ann"}
        assert set(connection.execute(select(attached_table.c.analyst)).scalars()) == {"ann"}
    bench.clock.move(31 * 86_400)
    bench.rounds.schedule.keep()
    assert answered(bench) == []
    with pytest.raises(WrongState, match="no longer kept"):
        attached(bench, "ann", session_id)


def test_a_session_takes_no_workloads_and_a_round_no_statements(on_sqlite: Bench) -> None:
    bench = on_sqlite
    plain = bench.opened()
    with pytest.raises(NotFound):
        attached(bench, "ann", plain)
    with pytest.raises(NotFound):
        bench.sessions.close(plain, "close")
    bench.rounds.lifecycle.abort(plain, "not needed", "abort")
    session_id = bench.sessions.open(ONLINE, "open").id
    workload = workload_to_bytes([COLOUR == "red"])
    for call in (
        lambda: bench.rounds.submissions.submit("ann", session_id, "1", workload, SALT),
        lambda: bench.rounds.submissions.withdraw("ann", session_id, "2"),
    ):
        with pytest.raises(WrongState, match="session"):
            call()


def test_what_would_be_asked_in_a_session_can_be_tried(on_sqlite: Bench) -> None:
    bench = on_sqlite
    opened = bench.sessions.open(ONLINE, "open")
    session_id, plan, before = opened.id, opened.plan, bench.charged()
    tried = bench.rounds.submissions.dry_run(
        "ann", session_id, workload_to_bytes([COLOUR == "red", Marginal(("size",))])
    )
    assert (tried.expected_error, tried.max_half_width) == (plan.expected_error, plan.max_half_width)
    assert (tried.statements, tried.queries) == (2, 1 + 4)
    assert bench.charged() == before
    with pytest.raises(BudgetExhausted):
        bench.rounds.submissions.dry_run("ann", session_id, workload_to_bytes([COLOUR == "red"] * 1_000))
    with pytest.raises(NotFound):
        bench.rounds.submissions.dry_run("cyd", session_id, workload_to_bytes([COLOUR == "red"]))


def test_what_cannot_be_asked_leaves_no_trace(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(ONLINE, "open").id
    before = bench.charged()
    with pytest.raises(NotFound):
        attached(bench, "cyd", session_id)
    with pytest.raises(WrongState, match="does not protect"):
        bench.sessions.attach("ann", session_id, 0, SALT, accept_unprotected=False)
    with pytest.raises(InvalidArgument, match="commitment_salt"):
        bench.sessions.attach("ann", session_id, 0, b"short", accept_unprotected=True)
    with pytest.raises(OutOfRange):
        attached(bench, "ann", session_id, after=1)
    stream = attached(bench, "ann", session_id)
    with pytest.raises(InvalidArgument, match=r"^statement.*no attribute 'shape'"):
        stream.ask(1, statement_to_bytes(attribute("shape") == "round"))  # of another dataset
    with pytest.raises(InvalidArgument, match=r"^statement"):
        stream.ask(1, b"no statement")
    for sequence in (0, 2):
        with pytest.raises(OutOfRange):
            stream.ask(sequence, statement_to_bytes(COLOUR == "red"))
    bob = attached(bench, "bob", session_id)
    ask(bob, 1, Marginal(("colour", "size")))
    with pytest.raises(BudgetExhausted, match="allows 4 more"):
        bob.ask(2, statement_to_bytes(Marginal(("colour", "size"))))
    assert ask(bob, 2, COLOUR == "red").sequence == 2
    with pytest.raises(AlreadyExists):
        bob.ask(2, statement_to_bytes(COLOUR == "green"))
    assert ask(bob, 3, COLOUR == "green").sequence == 3
    with pytest.raises(BudgetExhausted, match="3 statements"):
        bob.ask(4, statement_to_bytes(COLOUR == "green"))
    assert [(analyst, sequence) for analyst, sequence, _ in answered(bench)] == [("bob", 1), ("bob", 2), ("bob", 3)]
    newer = attached(bench, "bob", session_id)
    with pytest.raises(WrongState, match="attached elsewhere"):
        bob.ended.result(PATIENCE)
    with pytest.raises(WrongState, match="attached elsewhere"):
        bob.ask(3, statement_to_bytes(COLOUR == "green"))
    assert newer.answered == 3
    assert bench.charged() == before
    aborted = bench.rounds.lifecycle.abort(session_id, "a public reason", "abort it")
    bench.sessions.loops.look_after()
    assert newer.ended.result(PATIENCE) is None
    assert aborted.state is RoundState.ABORTED
    assert bench.charged() == {**before, DATA: (before[DATA][1], before[DATA][1])}
    # What was answered can be read as long as results are kept.
    assert len(attached(bench, "bob", session_id).stored(0, 10)) == 3
    bench.clock.move(31 * 86_400)
    bench.rounds.schedule.keep()
    assert answered(bench) == []


def test_no_analyst_can_ask_more_bytes_than_sealing_can_make_a_workload_of(
    on_sqlite: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes count, not only statements: one that names its category ten thousand times has a single cell."""
    session_id = on_sqlite.sessions.open(ONLINE, "open").id
    long = statement_to_bytes(COLOUR.isin(["red"] * 10_000))
    monkeypatch.setattr(pending_statements, "MAX_BYTES", 2 * len(long))
    stream = attached(on_sqlite, "ann", session_id)
    ask(stream, 1, COLOUR.isin(["red"] * 10_000))
    on_sqlite.restart()
    again = attached(on_sqlite, "ann", session_id)
    ask(again, 2, COLOUR.isin(["red"] * 10_000))
    with pytest.raises(TooLarge, match="your statements in this session"):
        again.ask(3, statement_to_bytes(COLOUR == "red"))
    with pytest.raises(TooLarge, match="the statement is larger than 65,536 bytes"):
        again.ask(3, statement_to_bytes(COLOUR.isin(["red"] * 20_000)))
    ask(attached(on_sqlite, "bob", session_id), 1, COLOUR == "red")


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        (replace(ONLINE, mechanism="equilibrium"), "mechanism"),
        (replace(TERMS, mechanism="online"), "mechanism"),
        (replace(TERMS, analyst_budget=None), "analyst_budget"),
        (replace(ONLINE, analyst_budget=Budget(1.0, 1e-4)), "analyst_budget"),
        (replace(ONLINE, session=SessionTerms(turn_seconds=1)), "session.turn_seconds"),
        (replace(BY_TURNS, session=SessionTerms(length=6)), "session.turn_seconds"),
        (replace(BY_TURNS, analyst_budget=None), "analyst_budget"),
        (replace(BY_TURNS, close_time=HandClock().now + timedelta(seconds=9)), "close_time"),
        (replace(BY_TURNS, close_time=HandClock().now + timedelta(seconds=71)), "close_time"),
        (replace(ONLINE, session=SessionTerms(length=1 << 41)), "session.length"),
        (replace(ONLINE, options={"length": 3}), "options"),
        (replace(ONLINE, shares=(Share("ann", 1, 2, sensitivity=1),)), "shares[0].sensitivity"),
    ],
)
def test_terms_that_make_no_session_are_refused_by_name(bench_once: Bench, terms: Terms, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        bench_once.rounds.opening.open(terms, "open")
    assert refused.value.field == field
    assert bench_once.charged() == {DATA: (0.0, 0.0)}


@pytest.fixture(scope="module")
def bench_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    place = tmp_path_factory.mktemp("bench")
    bench = Bench(place, f"sqlite:///{place / 'equipoise.db'}")
    yield bench
    bench.stop()
