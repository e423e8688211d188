"""Releases of one time are in the log by their rounds' openings: which was computed first says what was asked."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import create_engine

from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise_server.storage.tables import metadata
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.sequencing import due_records

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNUSED = dict.fromkeys(("dataset", "terms", "plan", "abort_reason"), "") | dict.fromkeys(
    ("dataset_version", "records", "universe_size", "peak_memory_bytes", "open_time"), 0
)


def test_releases_of_one_time_follow_their_openings_whichever_was_computed_first() -> None:
    engine = create_engine("sqlite://")  # in which rows may stand alone
    metadata.create_all(engine)
    with engine.connect() as connection:
        for name in ("first", "second", "third"):
            sealed = {"state": "running", "seed_commitment": b"", "sealed_seed": b""}
            connection.execute(rounds.insert().values(id=name, **UNUSED, **sealed))
        for name in ("third", "first", "second"):
            step = {"kind": Kind.ROUND_RELEASED.value, "dataset": "", "round_id": name, "root": b""}
            time = to_microseconds(NOW)
            connection.execute(records.insert().values(leaf=name.encode(), publish_time=time, **step))
        order = [leaf for _, leaf in due_records(connection, NOW)]
    engine.dispose()
    assert order == [b"first", b"second", b"third"]
