"""A store that was damaged or changed: nothing of it is delivered, computed from or charged for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from harness import rounds_bench
from harness.rounds_bench import ANN, BOB, SALT, Bench
from harness.stores import allow_changes
from sqlalchemy import text

from equipoise.errors import DataLoss, EquipoiseError
from equipoise.model.rounds import RoundState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.admin.new_state import create_state
from equipoise_server.rounds.store.committed_content import check_all, check_synopsis
from equipoise_server.rpc.services.evidence_stream import workload_pieces

BOBS = "(SELECT workload FROM submissions WHERE analyst = 'bob')"
EXCHANGED = f"UPDATE submissions SET workload = {BOBS} WHERE analyst = 'ann'"


@pytest.fixture
def bench(on_sqlite: Bench) -> Bench:
    return on_sqlite


def alter(bench: Bench, statement: str, **values: object) -> None:
    """Change a store as somebody with access to the file may."""
    with bench.store.write() as connection:
        if "result_chunks" in statement:
            allow_changes(connection, "result_chunks")
        assert connection.execute(text(statement), values).rowcount > 0


def is_whole(bench: Bench) -> bool:
    """What `check` and `ledger verify` find of the content of rounds."""
    try:
        with bench.store.read() as connection:
            return check_all(connection) > 0
    except DataLoss:
        return False


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


def evidence_of(bench: Bench, round_id: str, analyst: str) -> bytes:
    """The workload that comes with an analyst's evidence."""
    return b"".join(workload_pieces(bench.rounds.analyst_views, analyst, round_id))


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


def test_damaged_pages_end_in_one_line(tmp_path: Path) -> None:
    state = tmp_path / "state"
    create_state(state)
    database = state / "equipoise.db"
    whole, draws = database.read_bytes(), random.Random(23)
    refused = 0
    for start in range(0, len(whole), 4096):
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
    assert refused > 10
