"""Which seeds are kept too long: those of all rounds that have ended, once the window is over, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, create_engine

from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise_server.rounds.seeds import kept_too_long
from equipoise_server.storage.tables import metadata
from equipoise_server.storage.tables.transparency import records, sealed_seeds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW, MOMENT = timedelta(days=7), timedelta(microseconds=1)


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Of tables in memory, in which rows may stand alone."""
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def stepped(connection: Connection, round_id: str, kind: Kind, time: datetime, *, kept: bool = True) -> None:
    """A round whose seed is kept or not, with the record of a step that everybody may know from a time on."""
    step = {"kind": kind.value, "dataset": "", "round_id": round_id, "root": b"", "leaf": b""}
    connection.execute(records.insert().values(publish_time=to_microseconds(time), **step))
    if kept:
        connection.execute(sealed_seeds.insert().values(round_id=round_id, key_id="key", sealed=b"sealed"))


@pytest.mark.parametrize("ending", [Kind.ROUND_RELEASED, Kind.ROUND_ABORTED])
def test_a_seed_is_kept_until_the_window_after_its_round_is_over(connection: Connection, ending: Kind) -> None:
    stepped(connection, "ended", ending, NOW)
    assert kept_too_long(connection, NOW + WINDOW - MOMENT, WINDOW) == []
    assert kept_too_long(connection, NOW + WINDOW, WINDOW) == ["ended"]


@pytest.mark.parametrize("ending", [Kind.ROUND_RELEASED, Kind.ROUND_ABORTED])
def test_without_a_window_seeds_are_kept_for_ever(connection: Connection, ending: Kind) -> None:
    stepped(connection, "ended", ending, NOW)
    assert kept_too_long(connection, NOW + timedelta(days=99999), timedelta(0)) == []


@pytest.mark.parametrize("step", [Kind.ROUND_OPENED, Kind.ROUND_SEALED])
def test_the_seed_of_a_round_that_goes_on_is_kept(connection: Connection, step: Kind) -> None:
    stepped(connection, "going", step, NOW)
    stepped(connection, "ended", Kind.ROUND_RELEASED, NOW, kept=False)
    assert kept_too_long(connection, NOW + 9 * WINDOW, WINDOW) == []
