"""A real server that is used in every way for a long time does not grow, and keeps its promises.

    make soak MINUTES=30 STORE=postgresql PULSE=0

Analysts submit, replace, take back, try out, watch and read, and hang up in the middle; operators open, seal, run,
release and abort rounds and sessions, and plan others. Analysts ask in sessions, hang up and attach again; some are
revoked and renewed. Each verifies its part, and an auditor all of it. Now and then the server is ended, by SIGTERM
or by SIGKILL, and started again. After each end the ledger is checked, and every word that its clients were told.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from harness.soak.soaking import LIVES, Life, RestartedServer, Soak, tell_growth

from equipoise_lab.demo.process import free_address
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.new_state import create_state


@pytest.mark.nightly
def test_a_server_neither_grows_nor_breaks_a_promise(
    tmp_path: Path, soak_store: str, soak_seconds: float, soak_pulse: float
) -> None:
    server = RestartedServer(tmp_path / "state")
    create_state(server.state, listen=free_address(), store=soak_store, release_grid_seconds=1)
    soak = Soak(server, tmp_path, random.Random(1), soak_pulse)
    lives = soak.live([Life(soak_seconds * life.seconds, life.ending) for life in LIVES])

    print(f"{soak.rounds} rounds, {soak.calls} calls; growth in an hour:")
    grown = [
        each for number, life in enumerate(lives, start=1) if life for each in tell_growth(f"life {number}", life)
    ]
    grown += tell_growth("all lives, each from its own level", *lives)
    grown += tell_growth("the run as a whole", [point for life in lives for point in life])
    assert grown == []
    assert soak.compare() == soak.rounds > 0
    check_state(server.state)
    assert _unexpected(server) == []


def _unexpected(server: RestartedServer) -> list[str]:
    """Lines of the log that say of an error, or are not the log's."""
    lines = (server.state / "server.log").read_text().splitlines()
    return [line for line in lines if not line.startswith("{") or json.loads(line)["level"] == "error"]
