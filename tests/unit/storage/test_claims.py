"""Claims: one server a round, free again when a server is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from harness.stores import Cluster
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from equipoise_server.storage.claims import SharedClaims

HOLD = """
import sys, time
from sqlalchemy.engine import make_url
from equipoise_server.storage.claims import SharedClaims
assert SharedClaims(make_url(sys.argv[1])).take("r")
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture
def url(postgresql: Cluster) -> Iterator[str]:
    url = postgresql.create()
    yield url
    postgresql.drop(url)


@pytest.fixture
def pair(url: str) -> Iterator[tuple[SharedClaims, SharedClaims]]:
    one, two = SharedClaims(make_url(url)), SharedClaims(make_url(url))
    yield one, two
    one.close()
    two.close()


def cut_connections(url: str) -> None:
    """What a restart of the database does to those who are connected."""
    with (
        create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection,
        suppress(OperationalError),
    ):
        cut = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
        connection.execute(text(f"{cut} AND pid <> pg_backend_pid()"))


def test_a_round_is_one_servers(pair: tuple[SharedClaims, SharedClaims]) -> None:
    one, two = pair
    assert one.take("r")
    assert one.take("r")
    assert not two.take("r")
    assert two.take("s")
    assert (one.holder("r"), two.holder("s")) == ("", "")
    assert f"process {os.getpid()} on " in two.holder("r")
    two.give_back("r")
    assert not two.take("r")
    one.give_back("r")
    assert one.holder("r") == ""
    assert two.take("r")


def test_closing_frees_everything(pair: tuple[SharedClaims, SharedClaims]) -> None:
    one, two = pair
    assert one.take("r")
    assert one.take("s")
    one.close()
    assert two.take("r")
    assert two.take("s")


def test_a_killed_servers_claims_are_free(url: str, pair: tuple[SharedClaims, SharedClaims]) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        assert not pair[0].take("r")
        assert str(process.pid) in pair[0].holder("r")
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    while not pair[0].take("r"):
        assert time.monotonic() < end, "the claim was not freed"
        time.sleep(0.02)


def test_a_broken_connection_takes_again_what_nobody_has(url: str, pair: tuple[SharedClaims, SharedClaims]) -> None:
    one, two = pair
    assert all(one.take(round_id) for round_id in ("r", "s", "t"))
    assert one.lost() == set()
    cut_connections(url)
    assert two.take("s")
    assert one.lost() == {"s"}
    assert one.lost() == set()
    assert [two.take(round_id) for round_id in ("r", "s", "t")] == [False, True, False]
    assert not one.take("s")
