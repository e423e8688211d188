"""One server for all the attacks, and a look at it after each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness.abuse.place import Place, place


@pytest.fixture(scope="session")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The place under attack."""
    with place(tmp_path_factory.mktemp("abuse")) as made:
        yield made


@pytest.fixture(autouse=True)
def healthy_afterwards(here: Place) -> Iterator[None]:
    """After every attack another analyst is served, and the log tells of nothing unexpected."""
    yield
    here.check_health()
