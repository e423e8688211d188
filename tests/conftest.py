"""The options and fixtures of all tests: which stores they run on, how large they are, what is left out and why."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from harness.audit_size import SIZES, AuditSize
from harness.faults.disk import UNTOLD, can_fail
from harness.stores import KINDS, MISSING, Cluster, cluster, sqlite_file
from hypothesis import HealthCheck, settings
from sqlalchemy.engine import make_url

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
    collect_ignore.append("hostile/faults")

# The same examples every time, so that a run of the tests means the same everywhere; `explore` looks for new ones.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile(
    "explore", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """How large the statistical audit, the random kills, the load and the soak are."""
    parser.addoption("--audit-size", choices=sorted(SIZES), default="fast", help="how long the audit may take")
    parser.addoption("--other-numpy", default="", help="a directory with another numpy, to replay rounds with")
    parser.addoption("--kills", type=int, default=20, help="how often a server is killed on each store")
    parser.addoption("--kills-seed", default="1", help="what the moments of the kills are drawn from")
    parser.addoption("--unread", type=int, default=200, help="how many streams nobody reads")
    parser.addoption("--cancelled", type=int, default=600, help="how many streams are cancelled")
    parser.addoption("--soak-minutes", type=float, default=0.1, help="how long a server is soaked")
    parser.addoption("--soak-store", choices=("sqlite", "postgresql"), default="sqlite", help="with which store")


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


@pytest.fixture(scope="session")
def audit_size(request: pytest.FixtureRequest) -> AuditSize:
    """What `--audit-size` names."""
    return SIZES[request.config.getoption("--audit-size")]


@pytest.fixture(scope="session")
def other_numpy(request: pytest.FixtureRequest) -> str:
    """What `--other-numpy` names, or nothing."""
    directory: str = request.config.getoption("--other-numpy")
    return directory


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """What `--kills` says."""
    number: int = request.config.getoption("--kills")
    return number


@pytest.fixture
def drawn(request: pytest.FixtureRequest, store_url: str) -> random.Random:
    """What the moments of the kills are drawn from, other ones on each store."""
    return random.Random(f"{request.config.getoption('--kills-seed')} {make_url(store_url).drivername}")


@pytest.fixture(scope="session")
def unread(request: pytest.FixtureRequest) -> int:
    """What `--unread` says."""
    number: int = request.config.getoption("--unread")
    return number


@pytest.fixture(scope="session")
def cancelled(request: pytest.FixtureRequest) -> int:
    """What `--cancelled` says."""
    number: int = request.config.getoption("--cancelled")
    return number


@pytest.fixture
def soak_seconds(request: pytest.FixtureRequest) -> float:
    """What `--soak-minutes` says."""
    minutes: float = request.config.getoption("--soak-minutes")
    return 60 * minutes


@pytest.fixture
def soak_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of the kind that `--soak-store` says, as a server is configured with it."""
    if request.config.getoption("--soak-store") == "sqlite":
        yield "sqlite:///equipoise.db"
    else:
        with request.getfixturevalue("postgresql").database(tmp_path) as url:
            yield url


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out."""
    if "postgresql" not in KINDS:
        terminalreporter.write_line(MISSING, yellow=True)
    if not can_fail():
        terminalreporter.write_line(UNTOLD, yellow=True)
