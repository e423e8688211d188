"""Fixtures of all tests: the stores that they run on; and what is left out where a tool is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from harness.faults.disk import UNTOLD, can_fail
from harness.stores import KINDS, MISSING, Cluster, cluster, sqlite_file

# What is about PostgreSQL alone.
collect_ignore = (
    []
    if "postgresql" in KINDS
    else [
        "unit/storage/test_claims.py",
        "unit/storage/test_postgresql.py",
        "integration/test_several_servers.py",
        "integration/test_shared_rounds.py",
    ]
)
if not can_fail():
    collect_ignore.append("faults")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """The PostgreSQL of these tests; started by the first test that needs it."""
    with cluster() as started:
        yield started


@pytest.fixture(params=KINDS)
def empty_store(request: pytest.FixtureRequest) -> Callable[[Path], AbstractContextManager[str]]:
    """Makes empty stores, each for a context; what is a file lies in the directory. Runs a test on both kinds."""
    if request.param == "sqlite":
        return sqlite_file
    started: Cluster = request.getfixturevalue("postgresql")
    return started.database


@pytest.fixture
def store_url(empty_store: Callable[[Path], AbstractContextManager[str]], tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store; every test that takes it runs on both kinds."""
    with empty_store(tmp_path) as url:
        yield url


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out."""
    if "postgresql" not in KINDS:
        terminalreporter.write_line(MISSING, yellow=True)
    if not can_fail():
        terminalreporter.write_line(UNTOLD, yellow=True)
