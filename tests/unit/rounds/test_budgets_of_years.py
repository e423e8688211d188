"""A yearly budget counts all that its schedule has opened in the calendar year, from its first instant on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import create_engine

from equipoise.model.times import to_microseconds
from equipoise_server.rounds import yearly_budget
from equipoise_server.storage.tables import metadata
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.session import scheduled_rounds

YEAR, MOMENT = datetime(2026, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
OPENED = {
    "last year's": ("ours", YEAR - MOMENT),
    "the first": ("ours", YEAR),
    "another's": ("other", YEAR),
    "a later one": ("ours", YEAR + timedelta(days=200)),
}
UNUSED = dict.fromkeys(("dataset", "terms", "abort_reason"), "") | dict.fromkeys(
    ("dataset_version", "records", "universe_size", "peak_memory_bytes"), 0
)


@pytest.mark.parametrize(
    "due",
    [
        YEAR + timedelta(days=300),
        datetime(2027, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))),  # not yet 2027 in UTC
        datetime(2025, 12, 31, 23, 30, tzinfo=timezone(timedelta(hours=-1))),  # 2026 already
    ],
)
def test_a_year_begins_with_its_first_instant_in_utc(monkeypatch: pytest.MonkeyPatch, due: datetime) -> None:
    monkeypatch.setattr(yearly_budget, "plan_from_json", lambda text: text)
    engine = create_engine("sqlite://")  # in which rows may stand alone
    metadata.create_all(engine)
    with engine.connect() as connection:
        for number, (name, (schedule, time)) in enumerate(OPENED.items()):
            opened = {"id": name, "plan": name, "state": "open", "open_time": to_microseconds(time)}
            sealed = {"seed_commitment": b"", "sealed_seed": b""}
            connection.execute(rounds.insert().values(**UNUSED, **opened, **sealed))
            made = {"schedule_id": schedule, "number": number, "round_id": name}
            connection.execute(scheduled_rounds.insert().values(made))
        counted = yearly_budget.plans_of_year(connection, "ours", due)
    engine.dispose()
    assert sorted(map(str, counted)) == ["a later one", "the first"]
