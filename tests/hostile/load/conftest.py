"""How much load there is: `make load` gives the full size, `make test` a part of it."""

from __future__ import annotations

import pytest

UNREAD, CANCELLED = 200, 600


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--unread` and `--cancelled`."""
    parser.addoption("--unread", type=int, default=UNREAD, help="how many streams nobody reads")
    parser.addoption("--cancelled", type=int, default=CANCELLED, help="how many streams are cancelled")


@pytest.fixture(scope="session")
def unread(request: pytest.FixtureRequest) -> int:
    """What `--unread` says; few where all tests run, since pytest reads this file too late to ask."""
    number: int = request.config.getoption("--unread", UNREAD)
    return number


@pytest.fixture(scope="session")
def cancelled(request: pytest.FixtureRequest) -> int:
    """What `--cancelled` says, likewise."""
    number: int = request.config.getoption("--cancelled", CANCELLED)
    return number
