"""The options that make the soak long: `make soak` gives them, `make test` does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

MOMENT, SQLITE = 0.1, "sqlite"  # enough to see that the soak itself works


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--soak-minutes` and `--soak-store`."""
    parser.addoption("--soak-minutes", type=float, default=MOMENT, help="how long a server is soaked")
    parser.addoption("--soak-store", choices=(SQLITE, "postgresql"), default=SQLITE, help="with which store")


@pytest.fixture
def soak_seconds(request: pytest.FixtureRequest) -> float:
    """What `--soak-minutes` says; a moment where all tests run, since pytest reads this file too late to ask."""
    minutes: float = request.config.getoption("--soak-minutes", MOMENT)
    return 60 * minutes


@pytest.fixture
def soak_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store of the kind that `--soak-store` says, as a server is configured with it."""
    if request.config.getoption("--soak-store", SQLITE) == SQLITE:
        yield "sqlite:///equipoise.db"
    else:
        with request.getfixturevalue("postgresql").database(tmp_path) as url:
            yield url
