"""Replays of released rounds: what agrees, by which rule, where the seed is from, and what cannot be replayed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from harness.released_rounds import CHECKS, QUERY, ROUNDS, Released, by_units, release

from equipoise.auditing.replay_checks import read_replay_report
from equipoise.errors import InvalidArgument, NotFound, VerificationFailed, WrongState
from equipoise.model.results import AnswerMethod
from equipoise.records.record import key_id
from equipoise.records.sealed_seeds import SEED_BYTES, open_committed
from equipoise_server.cli import main
from equipoise_server.clock import system_clock
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.replay.seed import unsealed
from equipoise_server.storage.store import open_store, read_only
from equipoise_server.storage.tables.identity import identities

RELIED_ON = {"dataset-registered", "round-opened", "round-sealed", "round-released"}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return release(tmp_path_factory.mktemp("released"), ROUNDS)


def rows(database: Path) -> dict[str, list[tuple[object, ...]]]:
    """All that a store holds, by table."""
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}


@pytest.mark.parametrize("name", ROUNDS[:1])
def test_a_replay_tells_under_which_record_the_seed_was_read(
    released: Released, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that an audit finds a reading that never came to the log."""
    copy = released.copy(tmp_path / "copy")
    round_id = copy.rounds[name]
    opened = tmp_path / "seed"
    opened.write_text(opened_seed(copy, name).hex())
    for way, kinds in (
        (("--auditor-key", str(copy.key_file)), {"seed-read"}),
        (("--seed-file", str(opened)), set()),
    ):
        code, out, _ = ended(capsys, round_id, "--state", str(copy.state), "--json", *way)
        assert code == 0
        (tmp_path / "report").write_text(out)
        report = read_replay_report(tmp_path / "report")
        assert (report.round_id, report.agrees) == (round_id, True)
        assert {*report.records} == RELIED_ON | kinds
        with closing(sqlite3.connect(copy.database)) as connection:
            on_record = dict(connection.execute("SELECT root, kind FROM records").fetchall())
        assert [on_record[root] for root in report.records.values()] == [*report.records]


def opened_seed(released: Released, name: str) -> bytes:
    """The commitment's salt and the seed of a round, without a record of it."""
    round_id, found = released.rounds[name], b""
    with closing(sqlite3.connect(released.database)) as connection:
        query = "SELECT sealed, seed_commitment FROM sealed_seeds, rounds WHERE id = round_id AND id = ?"
        for sealed, commitment in connection.execute(query, [round_id]).fetchall():
            with suppress(VerificationFailed):  # it is sealed to the first auditor's key, too
                found = open_committed(released.key, round_id, sealed, commitment)
    return found


@pytest.mark.parametrize("name", ROUNDS)
def test_an_honest_round_agrees_and_only_the_reading_of_its_seed_is_written(released: Released, name: str) -> None:
    before = rows(released.database)
    found = released.replay(name)
    assert found.difference is None
    assert [check.name for check in found.checks] == CHECKS
    allowed = 0 if name == "equilibrium" else 2**20
    assert sum(answers for answers, _, _ in found.ways.values()) == 15
    assert all(furthest <= tolerance == allowed for _, furthest, tolerance in found.ways.values())
    assert (AnswerMethod.PROJECTION in found.ways) == (name == "projection")
    after = rows(released.database)
    changed = {table for table in after if after[table] != before[table]}
    assert changed == {"records", "record_items"}
    items = after["record_items"][len(before["record_items"]) :]
    (read,) = [json.loads(content) for *_, content in items if isinstance(content, bytes)]
    public = released.key.public_key().public_bytes_raw()
    assert (read["item"], read["round"]) == ("access", released.rounds[name])
    assert read["auditor"] == f"replay by the key {key_id(public)}"


def test_a_replay_with_the_seed_in_a_file_writes_nothing(
    released: Released, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_id = released.rounds["equilibrium"]
    file = tmp_path / "seed"
    file.write_text(opened_seed(released, "equilibrium").hex())
    before = rows(released.database)
    code, out, _ = ended(capsys, round_id, "--state", str(released.state), "--seed-file", str(file))
    assert code == 0, out
    assert rows(released.database) == before


def test_the_seed_of_a_round_that_goes_on_is_not_opened(released: Released, tmp_path: Path) -> None:
    """Who knew it could choose a nonce, or a workload, by it."""
    copy = released.copy(tmp_path / "copy")
    round_id = copy.rounds["equilibrium"]
    with copy.opened() as connection:
        connection.execute("UPDATE rounds SET release_time = ? WHERE id = ?", [2**51, round_id])
    url, guard = f"sqlite:///{copy.database}", Guard(copy.state / GUARD_FILE)
    before = rows(copy.database)
    with pytest.raises(WrongState, match="has not ended"):
        unsealed(url, guard, round_id, copy.key, bytes(32), system_clock())
    assert rows(copy.database) == before


def test_a_server_may_write_meanwhile(released: Released, tmp_path: Path) -> None:
    copy = released.copy(tmp_path / "copy")
    store = open_store(f"sqlite:///{copy.database}")
    try:
        with store.write() as connection:
            connection.execute(identities.update().values(created=1))
            assert copy.replay("projection", opened_seed(copy, "projection")[-SEED_BYTES:]).difference is None
    finally:
        store.close()


def test_rounds_that_cannot_be_replayed_are_refused(released: Released, tmp_path: Path) -> None:
    copy = released.copy(tmp_path / "copy")
    with pytest.raises(NotFound):
        replace(copy, rounds={"none": "0" * 32}).replay("none")
    with copy.opened() as connection:
        connection.execute("UPDATE rounds SET state = 'running', release_time = NULL")
    with pytest.raises(WrongState, match="has not been released"):
        copy.replay("equilibrium")
    copy = released.copy(tmp_path / "older")
    with copy.opened() as connection:
        connection.execute("UPDATE rounds SET run_id = NULL")
        connection.execute("DELETE FROM sealed_seeds WHERE round_id = ?", [copy.rounds["pooled"]])
        connection.execute("UPDATE records SET round_id = '' WHERE round_id = ?", [copy.rounds["projection"]])
    for name, problem in (
        ("equilibrium", "no longer kept"),
        ("pooled", "not sealed to this key, or was destroyed"),
        ("projection", "is not on record"),
    ):
        with pytest.raises(WrongState, match=problem):
            copy.replay(name)


def test_a_store_that_is_not_there_or_not_of_this_version_is_refused(released: Released, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is not there"), read_only(f"sqlite:///{tmp_path / 'none.db'}"):
        pass
    assert not (tmp_path / "none.db").exists()
    copy = released.copy(tmp_path / "copy")
    with copy.opened() as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(InvalidArgument, match="a server that starts updates it"):
        copy.replay("equilibrium")


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it prints on either stream."""
    with pytest.raises(SystemExit) as exit_of:
        main(["audit", "replay", *arguments])
    assert isinstance(exit_of.value.code, int)
    return exit_of.value.code, *capsys.readouterr()


def test_the_command_prints_numbered_lines_and_json(
    released: Released, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    copy = released.copy(tmp_path / "copy")
    options = (copy.rounds["equilibrium"], "--state", str(copy.state), "--auditor-key", str(copy.key_file))
    code, out, _ = ended(capsys, *options)
    assert code == 0
    copy.key_file.chmod(0o640)
    assert "can be read by other users" in ended(capsys, *options)[2]
    copy.key_file.chmod(0o600)
    assert [line.split()[:3] for line in out.splitlines()[:8]] == [
        [str(number), "ok", f"{name}:"] for number, name in enumerate(CHECKS, start=1)
    ]
    assert "were compared exactly" in out

    # By default the key of the first auditor, to which nothing was sealed here.
    code, _, problem = ended(capsys, *options[:3])
    assert (code, "was not sealed to this key" in problem) == (1, True)

    with copy.opened() as connection:
        by_units(-1)(connection, copy.rounds["equilibrium"])
    code, out, _ = ended(capsys, *options, "--json")
    told = json.loads(out)
    assert code == 1
    assert (told["agrees"], told["failed"]) == (False, "answers")
    assert told["difference"]["analyst"] == "ann"
    assert (told["difference"]["message"], told["difference"]["query"]) == (1, QUERY)
    assert int(told["difference"]["expected"]) - int(told["difference"]["recorded"]) == 1
    code, out, _ = ended(capsys, *options)
    assert code == 1
    assert out.splitlines()[5].startswith(f" 6 FAIL answers: analyst ann, message 1, query {QUERY}, value")


def test_a_seed_can_come_from_a_file(
    released: Released, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = (
        released.rounds["equilibrium"],
        "--state",
        str(released.state),
        "--seed-file",
        str(tmp_path / "seed"),
    )
    (tmp_path / "seed").write_text("00" * 64 + "\n")
    code, out, _ = ended(capsys, *options, "--json")
    assert (code, json.loads(out)["failed"]) == (1, "seed")
    (tmp_path / "seed").write_text("00" * 63)
    code, _, problem = ended(capsys, *options)
    assert (code, "must hold 128 hexadecimal digits" in problem) == (1, True)
    code, _, problem = ended(capsys, *options, "--auditor-key", str(released.key_file))
    assert (code, "give one of them" in problem) == (1, True)
