"""A disk that is full, or fails, from each call on: nothing is acknowledged, and all goes on after the repair."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.asking import CAP, LARGER, SCHEMA, Contents, check_image, make_deployment, requests
from faults.disk import ALL, NAMES, WRITES, Disk, nothing, traced_disk
from integration.server_process import running
from integration.test_server_life import command

from equipoise.errors import Unavailable
from equipoise.operator_client import Operator
from equipoise_server.checking import check_state
from equipoise_server.repairing import verify

FULL, BROKEN = (errno.ENOSPC, WRITES | NAMES), (errno.EIO, ALL)
MOST_CALLS = 60  # of one request


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that tell of a refusal, and do not ask again by themselves."""
    monkeypatch.setattr("equipoise.connection.ATTEMPTS", 1)


def insist(disk: Disk, fault: tuple[int, int], ask: Callable[[], Any]) -> tuple[Any, int]:
    """What a request answers that is repeated with a failure of every call in turn; how often it was refused."""
    for after in range(MOST_CALLS):
        disk.break_down(*fault, after)
        try:
            return ask(), after
        except Unavailable:
            pass
        finally:
            failed = disk.repair()
        assert failed
    raise AssertionError("the request is refused however late the disk fails")


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


@pytest.mark.parametrize("fault", [FULL, BROKEN], ids=["full", "broken"])
def test_a_server_whose_disk_failed_stops_cleanly_and_starts_again(tmp_path: Path, fault: tuple[int, int]) -> None:
    state = tmp_path / "state"
    make_deployment(state)
    with traced_disk(state, tmp_path) as disk:
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register")
            disk.break_down(*fault)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    operator.set_cap("data/shop", LARGER, "cap")
            # What was there can be read.
            assert [account.cap for account in operator.accounts("shop")] == [CAP]
        assert server.process.returncode == 0
        refused = command("serve", "--state", str(state))
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), refused.stderr
        assert "the store cannot be used now" in refused.stderr
        disk.repair()
        check_state(state)
        with running(state) as server, Operator.from_profile(state / "profiles" / "operator") as operator:
            assert operator.set_cap("data/shop", LARGER, "cap").cap == LARGER
            assert operator.set_cap("data/shop", LARGER, "cap").cap == LARGER
        assert server.process.returncode == 0
