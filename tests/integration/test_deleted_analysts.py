"""What is left of a deleted analyst: its name, shares and charges, and nothing that it asked or was told."""

from __future__ import annotations

from typing import Any

import pytest
from harness.rounds_bench import ANN, BOB, SALT, TERMS, Bench, compute
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError

from equipoise.errors import AlreadyExists, InvalidArgument, NotFound, WrongState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.storage.tables.identity import requests
from equipoise_server.storage.tables.round import result_chunks, submissions


def analysts(connection: Connection, table: Any) -> set[str]:
    return set(connection.execute(select(table.c.analyst)).scalars())


def test_after_the_last_round_questions_and_answers_go_and_charges_stay(bench: Bench) -> None:
    waiting = bench.opened()
    for name, asked in (("ann", ANN), ("bob", BOB)):
        bench.rounds.submissions.submit(name, waiting, name, workload_to_bytes(asked), SALT)
    for step in (lambda: bench.rounds.lifecycle.seal(waiting, "seal"), lambda: compute(bench, waiting)):
        with pytest.raises(WrongState, match=f"ann has a share in the round {waiting}"):
            delete_analyst(bench.rounds.operations, "ann", "d1")
        step()
    bench.rounds.lifecycle.release(waiting, "release")
    with pytest.raises(WrongState, match="whose results are not out"):
        delete_analyst(bench.rounds.operations, "ann", "d1")
    with pytest.raises(WrongState, match="whose results are not out"):
        delete_analyst(bench.rounds.operations, "ann", "d1")
    bench.clock.move(60)
    bobs, charged = bench.rounds.analyst_views.results("bob", waiting, 0, 100), bench.charged()
    assert charged["analyst/shop/query/ann"][0] > 0
    for _ in range(2):
        delete_analyst(bench.rounds.operations, "ann", "d1")
    with bench.store.read() as connection:
        assert analysts(connection, submissions) == analysts(connection, result_chunks) == {"bob"}
        check_accounts(connection)
    assert bench.charged() == charged
    assert [share.analyst for share in bench.rounds.views.get(waiting).terms.shares] == ["ann", "bob"]
    # What was released to those who are there stays as it was.
    with pytest.raises(IntegrityError, match="append-only"), bench.store.write() as connection:
        connection.execute(text("DELETE FROM result_chunks"))
    assert bench.rounds.analyst_views.results("bob", waiting, 0, 100) == bobs


def test_an_aborted_round_is_over_at_once(bench: Bench) -> None:
    aborted = bench.opened()
    bench.rounds.submissions.submit("ann", aborted, "1", workload_to_bytes(ANN), SALT)
    bench.rounds.lifecycle.abort(aborted, "a test", "abort")
    delete_analyst(bench.rounds.operations, "ann", "d1")
    with bench.store.read() as connection:
        assert analysts(connection, submissions) == set()
        # Receipts hold a workload's salt and digest.
        callers = set(connection.execute(select(requests.c.caller)).scalars())
    assert callers == {"operator/"}


def test_the_deleted_are_in_no_further_round_and_no_name_is_found_twice(bench: Bench) -> None:
    delete_analyst(bench.rounds.operations, "ann", "d1")
    with pytest.raises(InvalidArgument, match=r"^shares\[0\]\.analyst: 'ann' is not a registered analyst"):
        bench.opened()
    for name in ("ann", "nobody"):
        with pytest.raises(NotFound, match=r"^there is no such analyst$"):
            delete_analyst(bench.rounds.operations, name, f"d2 {name}")
    with pytest.raises(AlreadyExists, match="request_id"):
        delete_analyst(bench.rounds.operations, "bob", "d1")


def test_who_is_deleted_while_a_round_is_planned_is_not_in_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the plan, which takes long, and the transaction that opens the round."""
    opening = bench.rounds.opening
    compared = type(opening)._compared

    def plan_then_delete(own: Any, terms: Any, progress: Any) -> Any:
        found = compared(own, terms, progress)
        delete_analyst(bench.rounds.operations, "ann", "d1")
        return found

    monkeypatch.setattr(type(opening), "_compared", plan_then_delete)
    with pytest.raises(InvalidArgument, match="'ann' is not a registered analyst"):
        opening.open(TERMS, "open")
    assert bench.rounds.views.page() == ([], "")
