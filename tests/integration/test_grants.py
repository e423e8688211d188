"""Grants from the giving to the release, on both stores: paid by statement, and given back what was not spent."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.released_rounds import SESSION_CHECKS, Released, state_directory
from harness.rounds_bench import COLOUR, SIZE, Bench, new_bench
from harness.session_terms import attached, release
from harness.stores import allow_changes
from harness.waiting import PATIENCE
from sqlalchemy import select, update

from equipoise.accounting import Cost
from equipoise.errors import (
    BudgetExhausted,
    DataLoss,
    InvalidArgument,
    Unavailable,
    VerificationFailed,
    WrongState,
)
from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import RoundState
from equipoise.queries.grant_account import Wanted
from equipoise.queries.statements import CountDistinct, Marginal, Statement
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.proven_round import proven_round
from equipoise.results import Results
from equipoise.verification.checks import VerifierInputs, verify
from equipoise.verification.grant_checks import check_noise, check_spending
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds import grant_ending
from equipoise_server.rounds.grant_ending import spent_by
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.storage.tables.session import asked, sessions


# A bench on either store, each of whose seeds is another one, as auditors check.
@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    made = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield made
    made.stop()


DATA = "data/shop"
TERMS = grant_terms("shop", "ann", Budget(1.0, 1e-6), None, 0.05)
TABLE = Marginal(("colour", "size"))
SMALL = 10**9


def paid(stream: Attachment, sequence: int, statement: Statement, rho: int) -> StoredAnswer:
    """The answer to a statement that may cost so much."""
    return stream.ask(sequence, statement_to_bytes(statement, rho)).result(PATIENCE)


@pytest.mark.full
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
    # The table's cells have SMALL each, so four of them a quarter of it; and the condition has SMALL by itself.
    more = 3 * SMALL - SMALL - SMALL // 4
    assert [each.cost for each in told] == [SMALL, 2 * SMALL, 0, 0, more]
    first, _, again, cheaper, dearer = (answers_from_chunk(each.chunk).answers for each in told)
    assert first.columns[0].tolist() == again.columns[0].tolist() == cheaper.columns[0].tolist()
    assert first.columns[0].tolist() != dearer.columns[0].tolist()
    shown = bench.sessions.grant(opened)
    assert shown is not None
    assert (shown.total, shown.spent, shown.left) == (total, 3 * SMALL + more, total - 3 * SMALL - more)
    with pytest.raises(BudgetExhausted, match="your grant has rho"):
        paid(stream, 6, SIZE == "s", total)
    left = total - 3 * SMALL - more
    known = SMALL // 2  # of two cells of the table
    assert paid(stream, 6, SIZE == "s", left + known).cost == left
    with pytest.raises(BudgetExhausted, match="your grant has rho 0 left"):
        paid(stream, 7, SIZE == "m", SMALL)
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


@pytest.mark.full
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


def test_nobody_waits_while_a_grant_that_ends_is_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = bench.sessions.open(TERMS, "give")
    stream = attached(bench, "ann", opened.id)
    paid(stream, 1, COLOUR == "red", SMALL)
    stream.detach()
    bench.sessions.close(opened.id, "close")
    bench.rounds.lifecycle.run(opened.id, "run")
    assert bench.wait(opened.id).complete
    written: list[str] = []

    def write() -> None:
        with bench.store.write() as connection:
            written.append(connection.execute(select(sessions.c.round_id)).scalar_one())

    def counted(total: int, statements: Iterable[Wanted]) -> int:
        other = threading.Thread(target=write, daemon=True)
        other.start()
        other.join(PATIENCE)
        return spent_by(total, statements)

    monkeypatch.setattr(grant_ending, "spent_by", counted)
    bench.rounds.lifecycle.release(opened.id, "release")
    assert written == [opened.id]
    order = bench.on_data().cap.order
    assert order is not None
    assert bench.on_data().spent.divergence == int(order * SMALL)


@pytest.mark.full
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


@pytest.mark.full
def test_a_grant_is_replayed_and_verified_offline(tmp_path: Path) -> None:
    with state_directory(tmp_path) as (bench, key):
        opened = bench.sessions.open(TERMS, "give", "olga")
        stream = attached(bench, "ann", opened.id)
        rhos = [SMALL, 2 * SMALL, SMALL, 3 * SMALL]
        said: list[Statement] = [COLOUR == "red", TABLE, COLOUR == "red", COLOUR == "red"]
        told = [paid(stream, i, each, rho) for i, (each, rho) in enumerate(zip(said, rhos, strict=True), start=1)]
        stream.detach()
        release(bench, [opened.id])
        assert problems(audited(bench)) == []
        evidence = bench.rounds.analyst_views.evidence("ann", opened.id, 0)
        assert evidence is not None
        mine = Bundle(
            Evidence.from_bytes(evidence),
            bench.rounds.analyst_views.submitted("ann", opened.id, 0, 1 << 20),
            tuple(bench.rounds.analyst_views.results("ann", opened.id, 0, 1000)),
            None,
        )
        with bench.store.read() as connection:
            trusted = bench.signer.verifier_keys(connection)
        found: list[str] = []
        inputs = VerifierInputs(trusted, told[-1].envelope, said)
        verify(mine.to_bytes(), inputs, lambda _, detail: found.append(detail))
        assert any("rho 0.00475 was paid" in detail for detail in found)
        proven = proven_round(mine.evidence)
        small = replace(proven, round=replace(proven.round, data_budget=Budget(1e-4, 1e-6)))
        statements = asked_from_bytes(mine.workload or b"")[0]
        with pytest.raises(VerificationFailed, match="and the grant was of"):
            check_spending(statements, small)
        results = Results.collect(opened.id, map(chunk_from_bytes, mine.stream))
        check_noise(statements, [1, 8, 1, 1], results, proven)
        cheaper = [statement_to_bytes(each, 2 * rho) for each, rho in zip(said, rhos, strict=True)]
        with pytest.raises(VerificationFailed, match="more noise than was paid for"):
            check_noise(cheaper, [1, 8, 1, 1], results, proven)
        with pytest.raises(VerificationFailed, match="what it may cost is missing"):
            check_spending([statement_to_bytes(TABLE)], proven)
        replayed = Released(bench.directory, {"grant": opened.id}, key).replay("grant")
        assert replayed.difference is None, replayed
        assert [check.name for check in replayed.checks] == SESSION_CHECKS
