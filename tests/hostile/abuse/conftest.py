"""One server for all the attacks, and a look at it after each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness.abuse.place import AUDITOR, Place, outcome, place

from equipoise.v1 import auditor_pb2


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


@pytest.fixture(scope="module")
def nothing_charged(here: Place) -> Iterator[None]:
    """Whatever is tried here, no budget and no analyst's workload has changed."""

    def journal() -> bytes:
        with here.channel(here.auditor) as channel:
            request = auditor_pb2.ListJournalRequest(page_size=1000).SerializeToString()
            return b"".join(outcome(channel, f"{AUDITOR}/ListJournal", [request]))

    before = journal()
    yield
    assert journal() == before
