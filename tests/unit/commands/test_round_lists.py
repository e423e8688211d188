"""The lists of rounds: their dates, which sort as texts do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from harness.shown_rounds import PLAN, ROUND

from equipoise.commands.round_lists import GRANTS, OWN_GRANTS, OWN_ROUNDS, OWN_SESSIONS, ROUNDS, SESSIONS
from equipoise.console.rendering import table_of
from equipoise.model.rounds import Progress, RoundDetail, RoundState

DATES = ["opened (UTC)", "closes (UTC)", "released (UTC)"]


def test_every_list_has_dates() -> None:
    for columns in (ROUNDS, SESSIONS, OWN_ROUNDS, OWN_SESSIONS):
        assert [name for name in columns if "UTC" in name] == DATES
    for grants in (GRANTS, OWN_GRANTS):
        assert "given (UTC)" in grants


def test_dates_sort_as_times_do_and_are_empty_where_there_is_none() -> None:
    begun = datetime(2029, 12, 31, 23, 59, 58, tzinfo=UTC)
    times = [begun + timedelta(seconds=each) for each in (0, 1, 2, 60 * 60, 40 * 24 * 60 * 60)]
    rounds = [replace(ROUND, open_time=each) for each in times]
    dates = [OWN_ROUNDS["opened (UTC)"](each) for each in rounds]
    assert dates == sorted(set(map(str, dates)))
    closing = replace(ROUND, terms=replace(ROUND.terms, close_time=times[1]), release_time=times[2])
    assert [OWN_ROUNDS[name](closing) for name in DATES] == [
        "2026-01-02 00:00:00",
        "2029-12-31 23:59:59",
        "2030-01-01 00:00:00",
    ]
    table = table_of(OWN_ROUNDS, [ROUND])
    assert table.rows[0][3:6] == ["open", "2026-01-02 00:00:00", "2"]
    assert [name for name in table.heads if "UTC" in name] == ["opened (UTC)"]


def test_statements_of_a_grant_are_counted_while_it_is_open() -> None:
    for state, progress, shown in (
        (RoundState.OPEN, Progress("answering", 1132, 1 << 20, 0.0, False, 0), "1,132"),
        (RoundState.RELEASED, Progress("released", 1, 1, 0.0, True, 0), ""),
    ):
        assert GRANTS["statements"](RoundDetail(replace(ROUND, state=state), PLAN, progress)) == shown
