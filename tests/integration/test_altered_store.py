"""A store that was damaged or changed: nothing of it is delivered, computed from or charged for."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from harness import rounds_bench
from harness.rounds_bench import ANN, BOB, SALT, Bench
from harness.session_terms import ASKED, ONLINE, ask, attached
from harness.stores import allow_changes
from sqlalchemy import text

from equipoise.errors import DataLoss, EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.admin.new_state import create_state
from equipoise_server.rounds.store.committed_content import check_all, check_synopsis, check_workloads
from equipoise_server.rpc.services.evidence_stream import workload_pieces

BOBS = "(SELECT workload FROM submissions WHERE analyst = 'bob')"
EXCHANGED = f"UPDATE submissions SET workload = {BOBS} WHERE analyst = 'ann'"


@pytest.fixture
def bench(on_sqlite: Bench) -> Bench:
    return on_sqlite


def alter(bench: Bench, statement: str, **values: object) -> None:
    """Change a store as somebody with access to the file may."""
    with bench.store.write() as connection:
        for table in ("result_chunks", "asked"):
            if f"UPDATE {table}" in statement or f"DELETE FROM {table}" in statement:
                allow_changes(connection, table)
        assert connection.execute(text(statement), values).rowcount > 0


def is_whole(bench: Bench) -> bool:
    """What `check` and `ledger verify` find of the content of rounds."""
    try:
        with bench.store.read() as connection:
            return check_all(connection) > 0
    except DataLoss:
        return False


@pytest.mark.sparse(5)
@pytest.mark.thin(6)
@pytest.mark.parametrize("read_before", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE result_chunks SET chunk = :other WHERE analyst = 'ann'",
        "DELETE FROM result_chunks WHERE analyst = 'ann' AND length(:other) > 0",
        "UPDATE result_chunks SET sequence = sequence + 1 WHERE analyst = 'ann' AND length(:other) > 0",
    ],
)
def test_an_altered_result_is_not_delivered(bench: Bench, change: str, read_before: bool) -> None:
    released = bench.released()
    results = bench.rounds.analyst_views.results
    (chunk,) = bench.rounds.analyst_views.results("bob", released.id, 0, 10)
    if read_before:
        assert results("ann", released.id, 0, 10)
    assert is_whole(bench)
    alter(bench, change, other=chunk)
    with pytest.raises(DataLoss, match="what is stored is not what is on record"):
        results("ann", released.id, 0, 10)
    assert not is_whole(bench)
    # Others' streams are what they were.
    assert results("bob", released.id, 0, 10) == [chunk]


def test_an_altered_synopsis_is_not_delivered(bench: Bench) -> None:
    released = bench.released()
    with bench.store.read() as connection:
        check_synopsis(connection, released.id)
    alter(bench, "UPDATE synopses SET cells = :cells", cells=bytes(400))
    with bench.store.read() as connection, pytest.raises(DataLoss, match="synopsis"):
        check_synopsis(connection, released.id)
    assert not is_whole(bench)


def test_an_altered_workload_is_not_computed_from(bench: Bench) -> None:
    round_id = bench.sealed()
    assert is_whole(bench)
    alter(bench, EXCHANGED)
    with pytest.raises(DataLoss, match="workloads"):
        bench.rounds.lifecycle.run(round_id, "run")
    assert not bench.rounds.views.progress(round_id).complete
    assert not is_whole(bench)


def test_a_workload_that_was_put_beside_the_sealed_ones_is_not_computed_from(bench: Bench) -> None:
    """Its analyst has no share, so nothing is on record of what it asks."""
    round_id = bench.sealed()
    with bench.store.read() as connection:
        check_workloads(connection, round_id)
    for table, columns in (
        ("shares", "position, statements, queries, sensitivity, support, ways"),
        ("submissions", "workload, digest, statements, queries, accept_time, salt, receipt"),
    ):
        values = columns.replace("position", "position + 2")
        own = f"SELECT round_id, 'cyd', {values} FROM {table} WHERE analyst = 'ann'"
        alter(bench, f"INSERT INTO {table} (round_id, analyst, {columns}) {own}")
    with bench.store.read() as connection, pytest.raises(DataLoss, match="workloads"):
        check_workloads(connection, round_id)
    with pytest.raises(DataLoss):
        bench.rounds.lifecycle.run(round_id, "run")
    assert not bench.rounds.views.progress(round_id).complete


def evidence_of(bench: Bench, round_id: str, analyst: str) -> bytes:
    """The workload that comes with an analyst's evidence."""
    return b"".join(workload_pieces(bench.rounds.analyst_views, analyst, round_id))


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("sealed", "change"),
    [
        (True, EXCHANGED),
        (True, "UPDATE submissions SET salt = zeroblob(32), digest = zeroblob(32) WHERE analyst = 'ann'"),
        (True, "DELETE FROM submissions WHERE analyst = 'ann'"),
        (False, EXCHANGED),  # there is no record of it yet
    ],
)
def test_an_altered_workload_is_not_given_as_evidence(bench: Bench, sealed: bool, change: str) -> None:
    round_id = bench.sealed() if sealed else bench.opened()
    for analyst, asked in () if sealed else (("ann", ANN), ("bob", BOB)):
        bench.rounds.submissions.submit(analyst, round_id, "1", workload_to_bytes(asked), SALT)
    bench.rounds.lifecycle.abort(round_id, "the power failed", "abort")
    assert evidence_of(bench, round_id, "ann") == workload_to_bytes(ANN)
    alter(bench, change)
    with pytest.raises(DataLoss, match="workloads"):
        evidence_of(bench, round_id, "ann")
    assert evidence_of(bench, round_id, "bob") == workload_to_bytes(BOB)
    assert evidence_of(bench, round_id, "cyd") == b""


@pytest.mark.sparse(4)
@pytest.mark.thin(4)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rounds SET plan = replace(plan, 'gaussian', 'laplace')",
        r"UPDATE rounds SET plan = replace(plan, 'y\"' || char(58), 'y\"' || char(58) || '1')",
        "UPDATE rounds SET terms = replace(terms, '0.', '0.1')",
        "UPDATE rounds SET records = records + 1",
        "UPDATE rounds SET universe_size = universe_size + 1",
        "UPDATE rounds SET close_time = 1",
        "UPDATE rounds SET seed_commitment = zeroblob(32)",
        "UPDATE shares SET statements = statements + 1 WHERE analyst = 'ann'",
        "UPDATE shares SET position = 1 - position WHERE position < 2",
        "UPDATE dataset_versions SET records = records + 1",
        "UPDATE dataset_versions SET schema = replace(schema, 'red', 'tan')",
    ],
)
def test_by_altered_terms_nothing_is_charged_or_computed(bench: Bench, change: str) -> None:
    round_id = bench.opened(replace(rounds_bench.TERMS, mechanism="gaussian", options={}))
    with bench.store.read() as connection:
        check_all(connection)
    charged = bench.charged()
    alter(bench, change)
    assert not is_whole(bench)
    with pytest.raises(DataLoss):
        bench.rounds.lifecycle.seal(round_id, "seal")
    assert bench.charged() == charged


def test_a_plan_that_is_altered_after_its_sealing_is_not_run(bench: Bench) -> None:
    round_id = bench.sealed()
    assert is_whole(bench)
    alter(bench, "UPDATE shares SET queries = queries + 1 WHERE analyst = 'bob'")
    with pytest.raises(DataLoss, match="terms"):
        bench.rounds.lifecycle.run(round_id, "run")
    assert not bench.rounds.views.progress(round_id).complete
    bench.rounds.lifecycle.abort(round_id, "the store is damaged", "abort")  # it can still be ended


@pytest.mark.sparse(9)
@pytest.mark.thin(10)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE asked SET chunk = (SELECT chunk FROM asked WHERE sequence = 2) WHERE sequence = 1",
        "UPDATE asked SET statement = (SELECT statement FROM asked WHERE sequence = 2) WHERE sequence = 1",
        "UPDATE asked SET envelope = (SELECT envelope FROM asked WHERE sequence = 2) WHERE sequence = 1",
        "UPDATE asked SET slot = slot + 7",
        "UPDATE asked SET due_time = due_time + 1",
        "UPDATE asked SET chain = zeroblob(32) WHERE sequence = 2",
        "UPDATE attached SET salt = zeroblob(32)",
        "DELETE FROM asked WHERE sequence = 1",
        "DELETE FROM asked WHERE sequence = 2",
        "UPDATE sessions SET answered = answered - 1",
    ],
)
def test_an_altered_answer_of_an_open_session_is_found(bench: Bench, change: str) -> None:
    session_id = bench.sessions.open(ONLINE, "open", "olga").id
    stream = attached(bench, "ann", session_id)
    for sequence, statement in enumerate(ASKED["ann"][:2], start=1):
        ask(stream, sequence, statement)
    with bench.store.read() as connection:
        check_all(connection)
    alter(bench, change)
    with bench.store.read() as connection, pytest.raises(DataLoss, match="answers of the round"):
        check_all(connection)


def test_another_storage_key_is_refused_at_start_and_before_any_charge(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_id = bench.opened()
    bench.rounds.submissions.submit("ann", round_id, "1", workload_to_bytes(ANN), SALT)
    charged = bench.charged()
    bench.stop()
    monkeypatch.setattr(rounds_bench, "KEY", bytes(32))
    bench.start()
    with pytest.raises(DataLoss, match="does not open with this storage key"):
        bench.rounds.lifecycle.recover()
    with pytest.raises(DataLoss, match="does not open with this storage key"):
        bench.rounds.lifecycle.seal(round_id, "seal")
    assert bench.state(round_id) is RoundState.OPEN
    assert bench.charged() == charged


@pytest.mark.sparse(4)
@pytest.mark.full
@pytest.mark.parametrize("first", range(4))
def test_damaged_pages_end_in_one_line(tmp_path: Path, first: int) -> None:
    """Of the pages, every fourth one."""
    state = tmp_path / "state"
    create_state(state)
    database = state / "equipoise.db"
    whole, draws = database.read_bytes(), random.Random(23)
    refused = 0
    for start in sorted([*range(first * 4096, len(whole), 4 * 4096)] * 2):  # each of them in two ways
        damaged = bytearray(whole)
        for place in draws.sample(range(start, min(start + 4096, len(whole))), 200):
            damaged[place] = draws.randrange(256)
        for beside in state.glob("equipoise.db-*"):
            beside.unlink()
        database.write_bytes(damaged)
        for command in (check_state, verify):
            try:
                command(state)
            except EquipoiseError:
                refused += 1
    assert refused > 3
