"""Rounds of a mechanism that answers each analyst alone: no synopsis, and nothing to charge the analysts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.rounds_bench import ANALYSTS, TERMS, Bench
from sqlalchemy import select, text

from equipoise.accounting import Cost
from equipoise.errors import OutOfRange, WrongState
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import RoundState
from equipoise.model.synopsis import Synopsis
from equipoise.wire.results import chunk_from_bytes
from equipoise_server.conversion import epsilon_for
from equipoise_server.ledger.replay import check_accounts
from equipoise_server.rpc.services import synopsis_stream
from equipoise_server.rpc.services.synopsis_stream import RECORDS_A_MESSAGE, Synopses
from equipoise_server.storage.tables.round import rounds, synopses

DATA = "data/shop"
GAUSSIAN = replace(TERMS, mechanism="gaussian", options={})


@pytest.mark.full
def test_analysts_are_charged_nothing_and_find_no_synopsis(bench: Bench) -> None:
    round_id = bench.completed(GAUSSIAN)
    analysts = {f"analyst/shop/query/{name}" for name in ANALYSTS[:2]}
    reserved = bench.charged()
    assert reserved.keys() == {DATA, *analysts}
    assert all(reserved[name] == (0.0, 0.0) for name in analysts)
    plan = bench.rounds.views.get(round_id).plan
    assert (bench.on_data().spent, bench.on_data().committed) == (Cost(), bench.due(plan))
    assert 0 < epsilon_for(plan.data_cost, TERMS.data_budget.delta) <= TERMS.data_budget.epsilon
    # As if the server had died before the worker's last message.
    first = stored(bench)
    with bench.store.write() as connection:
        connection.execute(text("UPDATE runs SET complete_time = NULL"))
    bench.restart()
    assert bench.wait(round_id).complete
    assert stored(bench) == first
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    bench.restart()
    assert bench.state(round_id) is RoundState.RELEASED
    assert bench.charged()[DATA] == (reserved[DATA][1],) * 2
    assert all(bench.charged()[name] == (0.0, 0.0) for name in analysts)
    entries, _ = bench.rounds.budgets.journal()
    zero = [entry for entry in entries if entry.account in analysts and entry.action != "open-account"]
    assert [entry.action for entry in zero] == ["reserve"] * 2 + ["spend"] * 2
    assert {(entry.cost, entry.events) for entry in zero} == {(Cost(), '{"events":[],"mechanism":"gaussian"}')}
    with bench.store.read() as connection:
        check_accounts(connection)
    columns = chunk_from_bytes(bench.rounds.analyst_views.results("ann", round_id, 0, 10)[0])
    assert set(columns.answers.methods.tolist()) == {AnswerMethod.GAUSSIAN.value}
    with pytest.raises(WrongState, match="gaussian makes none; equilibrium, pooled and standing make one"):
        list(Synopses(bench.rounds.analyst_views, bench.store).pages("ann", round_id, 0))


def test_an_aborted_round_gives_nothing_back_to_the_analysts(bench: Bench) -> None:
    round_id = bench.sealed(replace(GAUSSIAN, unit="analyst"))
    assert bench.charged()[DATA][1] > 0
    bench.rounds.lifecycle.abort(round_id, "a test", "abort")
    assert all(amounts == (0.0, 0.0) for amounts in bench.charged().values())
    with bench.store.read() as connection:
        check_accounts(connection)


def test_a_long_synopsis_is_read_in_pages_from_anywhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is put into the store here is not what was released; the server would refuse it.
    monkeypatch.setattr(synopsis_stream, "check_synopsis", lambda *_: None)
    round_id = bench.released(GAUSSIAN).id
    cells = np.arange(150_000, dtype=np.int64) ** 2 % 8
    with bench.store.write() as connection:
        run_id = connection.execute(select(rounds.c.run_id).where(rounds.c.id == round_id)).scalar_one()
        longer = synopses.update().where(synopses.c.run_id == run_id)
        # The dataset's next version has other attributes, which the round was not about.
        connection.exec_driver_sql(
            "INSERT INTO dataset_versions SELECT dataset, 2, source, "
            """'{"a": 300, "b": 2, "c": 2}', records, person, person_mode, person_records, create_time """
            "FROM dataset_versions WHERE version = 1"
        )
        connection.execute(longer.values(cells=Synopsis.of_cells(cells, (2, 4)).to_bytes()))
    shared = Synopses(bench.rounds.analyst_views, bench.store)
    expected = np.stack(np.unravel_index(cells, (2, 4)), axis=1)
    for after in (0, 1, 65_536, 149_999, 150_000):
        pages = list(shared.pages("bob", round_id, after))
        assert all(page.records == 150_000 and len(page.cells) <= 2 * RECORDS_A_MESSAGE for page in pages)
        read = np.array([number for page in pages for number in page.cells]).reshape(-1, 2)
        np.testing.assert_array_equal(read, expected[after:])
    with pytest.raises(OutOfRange, match="the synopsis ends at 150000"):
        next(shared.pages("bob", round_id, 150_001))
    # Results that are removed while somebody reads are not there any more, in the same words as later.
    going_on = shared.pages("bob", round_id, 0)
    for _ in range(65_536 // RECORDS_A_MESSAGE):
        next(going_on)
    with bench.store.write() as connection:
        connection.execute(rounds.update().where(rounds.c.id == round_id).values(run_id=None))
    with pytest.raises(WrongState, match="no longer kept"):
        next(going_on)


def stored(bench: Bench) -> list[tuple[str, int, bytes]]:
    """Every message in the store, whether it may be read or not."""
    with bench.store.read() as connection:
        query = "SELECT analyst, sequence, chunk FROM result_chunks ORDER BY analyst, sequence"
        return [(row.analyst, row.sequence, row.chunk) for row in connection.execute(text(query))]
