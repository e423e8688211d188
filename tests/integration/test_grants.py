"""Grants from the giving to the release, on both stores: paid by statement, and given back what was not spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.rounds_bench import COLOUR, SIZE, Bench
from harness.session_terms import PATIENCE, attached, release
from harness.stores import allow_changes
from sqlalchemy import update

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument, Unavailable, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import RoundState
from equipoise.queries.statements import CountDistinct, Marginal, Statement
from equipoise.wire.results import answers_from_chunk
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.storage.tables.session import asked


# A bench on either store, each of whose seeds is another one, as auditors check.
@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    made = Bench(tmp_path, store_url, distinct_seeds=True)
    yield made
    made.stop()


DATA = "data/shop"
TERMS = grant_terms("shop", "ann", Budget(1.0, 1e-6), None, 0.05)
TABLE = Marginal(("colour", "size"))
SMALL = 10**9


def paid(stream: Attachment, sequence: int, statement: Statement, rho: int) -> StoredAnswer:
    """The answer to a statement that may cost so much."""
    return stream.ask(sequence, statement_to_bytes(statement, rho)).result(PATIENCE)


def test_a_grant_is_paid_by_statement_and_gives_back_what_is_left(bench: Bench) -> None:
    opened = bench.sessions.open(TERMS, "give", "olga")
    total = opened.plan.data_cost.rho
    assert (bench.on_data().spent, bench.on_data().committed) == (Cost(), bench.due(opened.plan))
    stream = attached(bench, "ann", opened.id)
    told = [
        paid(stream, 1, COLOUR == "red", SMALL),
        paid(stream, 2, TABLE, 2 * SMALL),
        paid(stream, 3, COLOUR == "red", SMALL),
        paid(stream, 4, COLOUR == "red", SMALL // 2),
        paid(stream, 5, COLOUR == "red", 3 * SMALL),
    ]
    assert [each.cost for each in told] == [SMALL, 2 * SMALL, 0, 0, 3 * SMALL]
    first, _, again, cheaper, dearer = (answers_from_chunk(each.chunk).answers for each in told)
    assert first.columns[0].tolist() == again.columns[0].tolist() == cheaper.columns[0].tolist()
    assert first.columns[0].tolist() != dearer.columns[0].tolist()
    shown = bench.sessions.grant(opened)
    assert shown is not None
    assert (shown.total, shown.spent, shown.left) == (total, 6 * SMALL, total - 6 * SMALL)
    with pytest.raises(BudgetExhausted, match="your grant has rho"):
        paid(stream, 6, SIZE == "s", total)
    assert paid(stream, 6, SIZE == "s", total - 6 * SMALL).cost == total - 6 * SMALL
    with pytest.raises(BudgetExhausted, match="your grant has rho 0 left"):
        paid(stream, 7, SIZE == "m", 1)
    assert paid(stream, 7, TABLE, 2 * SMALL).cost == 0
    stream.detach()
    bench.sessions.close(opened.id, "close")
    bench.rounds.lifecycle.abort(opened.id, "a public reason", "abort")
    assert bench.on_data().spent == bench.due(opened.plan)  # an abort gives nothing back

    second = bench.sessions.open(TERMS, "give again", "olga")
    stream = attached(bench, "ann", second.id)
    before = bench.on_data().spent
    paid(stream, 1, COLOUR == "red", SMALL)
    paid(stream, 2, COLOUR == "red", SMALL)
    release(bench, [second.id])
    history = bench.rounds.budgets.history(DATA)[0]
    assert [entry.action for entry in history if entry.round_id == second.id] == [
        "reserve",
        "run",
        "reduce",
        "spend",
    ]
    order = bench.on_data().cap.order
    assert order is not None
    assert bench.on_data().spent.divergence - before.divergence == int(order * SMALL)
    assert bench.on_data().spent == bench.on_data().committed
    with bench.store.read() as connection:
        check_accounts(connection)
    assert problems(audited(bench)) == []


def test_a_grant_goes_on_after_a_restart_and_bills_nothing_twice(bench: Bench) -> None:
    opened = bench.sessions.open(TERMS, "give", "olga")
    stream = attached(bench, "ann", opened.id)
    told = [paid(stream, 1, COLOUR == "red", SMALL), paid(stream, 2, TABLE, SMALL)]
    bench.restart()
    stream = attached(bench, "ann", opened.id)
    assert stream.stored(0, 10) == told
    again = paid(stream, 3, COLOUR == "red", SMALL)
    assert again.cost == 0
    assert answers_from_chunk(again.chunk).answers.columns[0].tolist() == (
        answers_from_chunk(told[0].chunk).answers.columns[0].tolist()
    )
    shown = bench.sessions.grant(opened)
    assert shown is not None
    assert shown.spent == 2 * SMALL


def test_nothing_spent_is_given_back_whole(on_sqlite: Bench) -> None:
    bench = on_sqlite
    opened = bench.sessions.open(TERMS, "give", "olga")
    release(bench, [opened.id])
    assert bench.on_data().committed == Cost()
    with bench.store.read() as connection:
        check_accounts(connection)
    assert problems(audited(bench)) == []


def test_what_cannot_be_paid_costs_nothing(on_sqlite: Bench) -> None:
    bench = on_sqlite
    opened = bench.sessions.open(TERMS, "give", "olga")
    stream = attached(bench, "ann", opened.id)
    with pytest.raises(InvalidArgument, match=r"statement\.rho: must be set"):
        stream.ask(1, statement_to_bytes(COLOUR == "red"))
    with pytest.raises(InvalidArgument, match="statistic"):
        stream.ask(1, statement_to_bytes(CountDistinct(("size",)), SMALL))
    with pytest.raises(InvalidArgument, match="attribute"):
        stream.ask(1, statement_to_bytes(Marginal(("shape",)), SMALL))
    shown = bench.sessions.grant(opened)
    assert shown is not None
    assert shown.spent == 0


def test_an_analyst_without_the_grant_sees_none(on_sqlite: Bench) -> None:
    bench = on_sqlite
    bench.sessions.open(TERMS, "give", "olga")
    assert bench.sessions.list_for_analyst("bob")[0] == []


def test_a_grant_is_of_one_analyst_and_has_no_options(on_sqlite: Bench) -> None:
    bench = on_sqlite
    two = (*TERMS.shares, replace(TERMS.shares[0], analyst="bob"))
    with pytest.raises(InvalidArgument, match="of one analyst"):
        bench.sessions.open(replace(TERMS, shares=two, analyst_budget=None), "two")
    with pytest.raises(InvalidArgument, match=r"options\.play"):
        bench.sessions.open(replace(TERMS, options={"play": 1}), "options")
    assert bench.on_data().committed == Cost()


def test_the_room_for_grants_is_known_when_one_is_given(on_sqlite: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = on_sqlite
    monkeypatch.setattr("equipoise_server.sessions.session_loops.MAX_GRANTS", 1)
    small = replace(TERMS, data_budget=Budget(0.1, 1e-6))
    bench.sessions.open(small, "give")
    with pytest.raises(WrongState, match="as many grants"):
        bench.sessions.open(small, "give one more")


def test_a_cost_that_was_changed_in_the_store_is_found(on_sqlite: Bench) -> None:
    bench = on_sqlite
    opened = bench.sessions.open(TERMS, "give")
    stream = attached(bench, "ann", opened.id)
    paid(stream, 1, COLOUR == "red", SMALL)
    stream.detach()
    with bench.store.write() as connection:
        allow_changes(connection, "asked")
        connection.execute(update(asked).values(cost=0))
    bench.restart()
    with pytest.raises((DataLoss, Unavailable)):
        attached(bench, "ann", opened.id)
    bench.sessions.close(opened.id, "close")
    bench.rounds.lifecycle.run(opened.id, "run")
    assert bench.wait(opened.id).complete
    with pytest.raises(DataLoss, match="do not cost what was counted"):
        bench.rounds.lifecycle.release(opened.id, "release")
    assert bench.rounds.views.get(opened.id).state is RoundState.RUNNING
