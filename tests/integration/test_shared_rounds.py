"""Two servers' services on one PostgreSQL: who runs a round, what the other says, and who takes over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.rounds_bench import COLOUR, DEPLOYMENT, KEY, SALT, SEED, Bench, log_of
from harness.session_terms import BY_TURNS, ONLINE, answered, ask, attached
from harness.stores import Cluster, change_directly
from harness.waiting import PATIENCE, until
from sqlalchemy import select

from equipoise.errors import NotFound, Unavailable, WrongState
from equipoise.model.rounds import RoundState
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.ledger import journal
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.services import RoundServices, round_services
from equipoise_server.rounds.store.results import RunDiscarded, Runs
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables.round import result_chunks, runs

# What holds a server's claims; its other connections go on.
CUT_CLAIMS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE locktype = 'advisory' AND datname = current_database()
"""
ELSEWHERE = f"the round is run by another server, process {os.getpid()} on "


@dataclass(frozen=True)
class Pair:
    """A bench, and a second service on its store and data."""

    bench: Bench
    store: Store
    other: RoundServices


@pytest.fixture
def pair(tmp_path: Path, postgresql: Cluster) -> Iterator[Pair]:
    url = postgresql.create()
    bench = Bench(tmp_path, url)
    store = open_store(url)
    other = round_services(
        store,
        tmp_path / "data",
        KEY,
        clock=bench.clock,
        seed_source=lambda: SEED,
        guard=bench.guard,
        sequencer=log_of(tmp_path, store, bench.guard, bench.clock()),
        deployment=DEPLOYMENT,
    )
    yield Pair(bench, store, other)
    other.lifecycle.close()
    store.close()
    bench.stop()
    postgresql.drop(url)


def wait(rounds: RoundServices, round_id: str) -> None:
    until(lambda: rounds.views.progress(round_id).complete)


def streams(rounds: RoundServices, round_id: str) -> dict[str, list[bytes]]:
    return {analyst: rounds.analyst_views.results(analyst, round_id, 0, 100) for analyst in ("ann", "bob")}


@pytest.mark.both_stores
def test_one_server_runs_a_round_and_the_other_says_which(pair: Pair) -> None:
    rounds, other = pair.bench.rounds, pair.other
    round_id = pair.bench.sealed()
    rounds.lifecycle.run(round_id, "run")
    with pytest.raises(WrongState, match="the round is running"):
        other.lifecycle.run(round_id, "again")
    assert other.views.progress(round_id).phase.startswith(ELSEWHERE)
    other.lifecycle.take_over()
    assert other.views.runner.process_id(round_id) is None
    pair.bench.wait(round_id)
    rounds.lifecycle.release(round_id, "release")
    pair.bench.clock.move(60)
    assert streams(other, round_id) == streams(rounds, round_id)
    assert other.views.progress(round_id).phase == "released"


def test_a_refused_run_claims_nothing(pair: Pair) -> None:
    round_id = pair.bench.opened()
    with pytest.raises(WrongState, match="the round is open, so it cannot be run"):
        pair.bench.rounds.lifecycle.run(round_id, "early")
    with pytest.raises(NotFound):
        pair.bench.rounds.lifecycle.run("nowhere", "nowhere")
    assert pair.other.views.runner.claim(round_id)
    assert pair.other.views.runner.claim("nowhere")


def test_an_abort_at_one_server_ends_the_worker_of_the_other(pair: Pair) -> None:
    round_id = pair.bench.sealed()
    pair.bench.rounds.lifecycle.run(round_id, "run")
    process_id = pair.bench.rounds.views.runner.process_id(round_id)
    assert process_id is not None
    assert pair.other.lifecycle.abort(round_id, "too slow", "abort").state is RoundState.ABORTED
    pair.bench.rounds.lifecycle.take_over()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_a_round_of_a_server_that_stopped_is_run_by_the_other(pair: Pair) -> None:
    round_id = pair.bench.sealed()
    pair.bench.rounds.lifecycle.run(round_id, "run")
    before = pair.bench.charged()
    pair.other.lifecycle.take_over()
    assert pair.other.views.progress(round_id).phase.startswith(ELSEWHERE)
    pair.bench.rounds.lifecycle.close()
    pair.other.lifecycle.take_over()
    wait(pair.other, round_id)
    assert pair.bench.charged() == before
    assert pair.other.lifecycle.release(round_id, "release").state is RoundState.RELEASED
    pair.bench.clock.move(60)
    assert all(streams(pair.other, round_id).values())


def test_what_one_server_computed_is_released_by_the_other(pair: Pair) -> None:
    round_id = pair.bench.completed()
    assert pair.other.views.progress(round_id).complete
    with pytest.raises(WrongState, match="has run and waits for its release"):
        pair.other.lifecycle.run(round_id, "again")
    pair.bench.rounds.lifecycle.close()
    pair.other.lifecycle.take_over()
    assert pair.other.views.runner.process_id(round_id) is None
    assert pair.other.lifecycle.release(round_id, "release").state is RoundState.RELEASED
    pair.bench.clock.move(60)
    assert all(streams(pair.other, round_id).values())


def test_the_guard_knows_of_a_run_before_another_server_takes_it_over(pair: Pair) -> None:
    """The first server may die between the commit that makes a round RUNNING and the guard."""
    round_id = pair.bench.sealed()
    before = pair.bench.guard.path.read_bytes()
    pair.bench.rounds.lifecycle.run(round_id, "run")
    pair.bench.rounds.lifecycle.close()
    pair.bench.guard.path.write_bytes(before)
    pair.other.lifecycle.take_over()
    assert pair.other.views.runner.process_id(round_id) is not None
    snapshot = pair.bench.guard.read()
    with pair.store.read() as connection:
        assert snapshot is not None
        assert snapshot.sequence == journal.head(connection).sequence


@pytest.mark.both_stores
def test_of_a_round_that_two_servers_computed_one_run_is_kept(pair: Pair) -> None:
    """A server that had lost its claim without a word goes on; after the release nothing of its run stays."""
    round_id = pair.bench.completed()
    late = Runs(pair.store, pair.bench.clock)
    run_id = late.begin(round_id)
    late.keep(run_id, "ann", 1, [b"the same"])
    pair.bench.rounds.lifecycle.release(round_id, "release")
    with pytest.raises(RunDiscarded):
        late.keep(run_id, "ann", 2, [b"bytes"])
    with pair.store.read() as connection:
        kept = list(connection.execute(select(runs.c.id)).scalars())
        assert len(kept) == 1
        assert set(connection.execute(select(result_chunks.c.run_id)).scalars()) == set(kept) != {run_id}


def test_a_round_whose_worker_failed_waits_for_an_operator_at_its_server(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pair.bench.directory / "data" / "shop.csv"
    content = table.read_text()
    round_id = pair.bench.sealed()
    table.write_text("colour,size\nred,s\n")
    # As if the table had changed only after the server had looked at it.
    with monkeypatch.context() as unseen:
        unseen.setattr(Datasets, "check_unchanged", lambda *_: None)
        pair.bench.rounds.lifecycle.run(round_id, "run")
    assert pair.bench.wait(round_id).phase.startswith("failed: the table has 1 records")
    table.write_text(content)
    for rounds in (pair.bench.rounds, pair.other):
        rounds.lifecycle.take_over()
        assert rounds.views.runner.process_id(round_id) is None
    pair.bench.rounds.lifecycle.run(round_id, "again")
    assert pair.bench.wait(round_id).complete


def test_one_server_answers_a_session_and_another_goes_on_with_it(pair: Pair) -> None:
    bench, other = (
        pair.bench,
        Sessions(pair.other.context, pair.other.opening, pair.other.lifecycle, pair.bench.guard),
    )
    session_id = bench.sessions.open(ONLINE, "open").id
    first = ask(attached(bench, "ann", session_id), 1, COLOUR == "red")
    with pytest.raises(Unavailable, match="another server"):
        other.attach("bob", session_id, 0, SALT, accept_unprotected=True)
    bench.sessions.loops.stop()
    stream = other.attach("ann", session_id, 0, SALT, accept_unprotected=True)
    assert stream.stored(0, 10) == [first]
    assert ask(stream, 2, COLOUR == "green").slot == 1
    other.loops.stop()


def test_a_server_that_another_took_for_dead_answers_nothing_more_in_its_session(pair: Pair) -> None:
    """It has lost its claim without a word: what it would answer takes no account of what the other answered."""
    bench, other = (
        pair.bench,
        Sessions(pair.other.context, pair.other.opening, pair.other.lifecycle, pair.bench.guard),
    )
    session_id = bench.sessions.open(BY_TURNS, "open").id
    stream = attached(bench, "ann", session_id)
    first = stream.ask(1, statement_to_bytes(COLOUR == "red"))
    bench.clock.move(10)
    until(lambda: len(answered(bench)) == 1)
    bench.clock.move(10)
    assert first.result(PATIENCE).slot == 0
    change_directly(bench.url, CUT_CLAIMS)
    bobs = other.attach("bob", session_id, 0, SALT, accept_unprotected=True)
    bobs.ask(1, statement_to_bytes(COLOUR == "red"))
    bench.clock.move(10)
    until(lambda: len(answered(bench)) == 2)
    late = stream.ask(2, statement_to_bytes(COLOUR == "green"))
    bench.clock.move(10)
    with pytest.raises(Unavailable):
        late.result(PATIENCE)
    assert [analyst for analyst, *_ in answered(bench)] == ["ann", "bob"]
    other.loops.stop()
