"""A disk that is full, or fails, from each call on: nothing is acknowledged, and all goes on after the repair."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.crash.inspection import Inspection
from harness.dangers import LARGE_CAPS
from harness.faults.asking import (
    ASKED,
    CAP,
    LARGER,
    RUN_SECONDS,
    SCHEMA,
    TERMS,
    Contents,
    check_image,
    make_deployment,
    requests,
)
from harness.faults.disk import ALL, NAMES, WRITES, Disk, nothing, traced_disk
from harness.server_process import command, running
from harness.waiting import pauses
from sqlalchemy import select

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import Unavailable, WrongState
from equipoise.model.rounds import Progress, RoundState
from equipoise.model.times import to_microseconds
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.storage.store import read_only
from equipoise_server.storage.tables.transparency import checkpoints, records

FULL, BROKEN = (errno.ENOSPC, WRITES | NAMES), (errno.EIO, ALL)
MAX_CALLS = 200  # of one request
MANY_CALLS = 10**6  # more than any test makes


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that tell of a refusal, and do not ask again by themselves."""
    monkeypatch.setattr("equipoise.clients.connection.ATTEMPTS", 1)


def insist(disk: Disk, fault: tuple[int, int], ask: Callable[[], Any]) -> tuple[Any, int]:
    """What a request answers that is repeated with a failure of every call in turn; how often it was refused."""
    for after in range(MAX_CALLS):
        disk.break_down(*fault, after)
        try:
            return ask(), after
        except Unavailable:
            pass
        finally:
            failed = disk.repair()
        assert failed
    raise AssertionError("the request is refused however late the disk fails")


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [FULL, BROKEN], ids=["full", "broken"])
def test_whatever_fails_is_refused_and_done_when_asked_again(tmp_path: Path, fault: tuple[int, int]) -> None:
    state = tmp_path / "state"
    make_deployment(state)
    acknowledged: list[str] = []
    refusals = 0
    with traced_disk(state, tmp_path) as disk:
        with running(state) as server:
            asked = requests(state, tmp_path)
            request, ask = next(asked)
            while True:
                answer, refused = insist(disk, fault, ask)
                refusals += refused
                acknowledged.append(request)
                # A power loss now takes nothing away of what was just answered, whatever had failed before.
                disk.read()
                disk.write_image(tmp_path / request, nothing)
                try:
                    request, ask = asked.send(answer)
                except StopIteration:
                    break
        assert server.process.returncode == 0, server.log()
        assert "Traceback" not in server.log()
        assert refusals > len(acknowledged)
        final = Contents.of(state)
        for number, request in enumerate(acknowledged, start=1):
            check_image(tmp_path / request, acknowledged[:number], final)
    assert verify(state)["accounts"] == 3


@pytest.mark.nightly
@pytest.mark.parametrize("fault", [FULL, BROKEN], ids=["full", "broken"])
def test_a_server_whose_disk_failed_stops_cleanly_and_starts_again(tmp_path: Path, fault: tuple[int, int]) -> None:
    state = tmp_path / "state"
    make_deployment(state)
    with traced_disk(state, tmp_path) as disk:
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS)
            disk.break_down(*fault)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS)
            # What was there can be read.
            assert [account.cap for account in operator.accounts("shop")] == [CAP]
        assert server.process.returncode == 0
        refused = command("serve", "--state", str(state))
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), refused.stderr
        assert "the store is out of order now" in refused.stderr
        disk.repair()
        check_state(state)
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            assert operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS).cap == LARGER
            assert operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS).cap == LARGER
        assert server.process.returncode == 0


@pytest.mark.nightly
def test_results_that_cannot_be_stored_are_computed_again_to_the_same_bytes(tmp_path: Path) -> None:
    state = tmp_path / "state"
    make_deployment(state)
    with traced_disk(state, tmp_path) as disk:
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            for name in ASKED:
                operator.add_analyst(name, tmp_path / name)
            operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, accepted=LARGE_CAPS)
            # How many calls it takes to store what a run computes, when all is well.
            calm = sealed(operator, tmp_path)
            wait_for_the_log(state)
            operator.run(calm)
            disk.break_down(*BROKEN, MANY_CALLS)
            assert run_ended(operator, calm).complete
            calls = MANY_CALLS - disk.left()
            disk.repair()
            operator.release(calm)
            failing = sealed(operator, tmp_path)
            wait_for_the_log(state)
            for fault, after in ((FULL, 0), (BROKEN, calls // 2), (FULL, calls // 2)):
                disk.repair()
                operator.run(failing)
                disk.break_down(*fault, after)
                assert run_ended(operator, failing).phase.startswith("failed: the results could not be stored")
                with pytest.raises((WrongState, Unavailable)):
                    operator.release(failing)
                with Client.from_profile(tmp_path / "ann") as ann:
                    assert ann.round(failing).state is RoundState.SEALED
            # The last call fails, or the last but a few, or none: no two runs make exactly as many.
            disk.repair()
            operator.run(failing)
            disk.break_down(*BROKEN, calls - 1)
            run_ended(operator, failing)
            disk.break_down(*BROKEN)
        # It stops while the disk is broken.
        assert server.process.returncode == 0
        assert disk.repair()
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            # Run again by itself, or found complete where only the last sync had failed.
            assert run_ended(operator, failing).complete
            operator.release(failing, "release")
            disk.read()
            disk.write_image(tmp_path / "image", nothing)
        assert server.process.returncode == 0
        assert "Traceback" not in server.log()
    check_image(tmp_path / "image", ["release"], Contents.of(state))
    # Both rounds are what their computation gives undisturbed.
    assert Inspection(state, tmp_path).compare() == 2


def sealed(operator: Operator, profiles: Path) -> str:
    """The id of a new round in which everybody has asked."""
    round_id = operator.open(TERMS).round.id
    for name, statements in ASKED.items():
        with Client.from_profile(profiles / name) as analyst:
            analyst.submit(round_id, statements)
    operator.seal(round_id)
    return round_id


def wait_for_the_log(state: Path) -> None:
    """Until the log has all that is due, and is signed: what the server does for that is no part of a run."""
    newest = select(checkpoints.c.note).order_by(checkpoints.c.size.desc()).limit(1)
    pause = pauses(RUN_SECONDS)
    with read_only(open_deployment(state, system_clock()).config.store_url(state)) as store:
        while True:
            with store.read() as connection:
                due = records.c.publish_time <= to_microseconds(system_clock())
                waiting = select(records.c.position).where(due, records.c.log_index.is_(None))
                if connection.execute(waiting).first() is None and connection.execute(newest).scalar() is not None:
                    return
            time.sleep(next(pause))


def run_ended(operator: Operator, round_id: str) -> Progress:
    """How a run ended, well or badly."""
    pause = pauses(RUN_SECONDS)
    while True:
        progress = operator.round(round_id).progress
        if progress.complete or progress.phase.startswith("failed"):
            return progress
        time.sleep(next(pause))
