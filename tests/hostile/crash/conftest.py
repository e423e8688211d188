"""The options that make the random kills many: `make crash-full` gives them, `make test` does not."""

from __future__ import annotations

import random

import pytest
from sqlalchemy.engine import make_url

FEW, SEED = 20, "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--kills` and `--kills-seed`."""
    parser.addoption("--kills", type=int, default=FEW, help="how often a server is killed on each store")
    parser.addoption("--kills-seed", default=SEED, help="what the moments of the kills are drawn from")


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """What `--kills` says; few where all tests run, since pytest reads this file too late to ask."""
    number: int = request.config.getoption("--kills", FEW)
    return number


@pytest.fixture
def drawn(request: pytest.FixtureRequest, store_url: str) -> random.Random:
    """What the moments are drawn from, other ones on each store."""
    return random.Random(f"{request.config.getoption('--kills-seed', SEED)} {make_url(store_url).drivername}")
