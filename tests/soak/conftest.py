"""The option that makes the soak long: `make soak` gives it, `make test` does not."""

from __future__ import annotations

import pytest

MOMENT = 0.15  # enough to see that the soak itself works


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--soak-minutes`."""
    parser.addoption("--soak-minutes", type=float, default=MOMENT, help="how long a server is soaked on each store")


@pytest.fixture
def soak_seconds(request: pytest.FixtureRequest) -> float:
    """What `--soak-minutes` says; a moment where all tests run, since pytest reads this file too late to ask."""
    minutes: float = request.config.getoption("--soak-minutes", MOMENT)
    return 60 * minutes
