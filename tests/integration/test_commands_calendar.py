"""Schedules by the commands: made, listed, stopped; grants that renew themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.shop_commands import BUDGETS, TERMS, Run, register

SCHEDULE = ("operator", "operator", "round", "schedule", *TERMS, *BUDGETS, "--mechanism", "gaussian")
YEAR = ("--yearly-epsilon", "19", "--yearly-delta", "1e-3")
GIVE = ("operator", "operator", "grant", "add", "shop", "ann", "--data-epsilon", "0.5", "--data-delta", "1e-6")


@pytest.mark.full
def test_schedules_by_the_commands(place: Path, run: Run, refused: Callable[..., str]) -> None:
    register(run, place)
    made = run(*SCHEDULE, "--every", "monthly", "--first", "2099-01-31T06:00Z", "--open-for", "3d", *YEAR)
    assert (made["period"], made["open_seconds"]) == ("monthly", 3 * 86_400)
    assert "such as 3d" in refused(
        *SCHEDULE, "--every", "daily", "--first", "2099-01-31T06:00Z", "--open-for", "x", *YEAR
    )
    given = run(*GIVE, "--renew", "monthly", "--yearly-epsilon", "3", "--yearly-delta", "1e-4")
    renewing, listed = run("operator", "operator", "round", "schedules")["schedules"]
    assert listed == made
    assert renewing["round_ids"] == [given["round"]["id"]]
    assert (renewing["terms"]["mechanism"], renewing["next_time"]) == (
        "grant",
        given["round"]["terms"]["close_time"],
    )
    assert "needs --yearly-epsilon" in refused(*GIVE, "--renew", "monthly")
    assert "names '00'" in refused(*GIVE, "--measurement", "00")
    assert "each takes the newest" in refused(*GIVE, "--renew", "monthly", *YEAR, "--measurement", "00")
    assert "yearly_budget" in refused(
        *GIVE, "--renew", "daily", "--yearly-epsilon", "0.2", "--yearly-delta", "1e-6"
    )
    assert len(run("operator", "operator", "grant", "list")["grants"]) == 1
    stopped = run("operator", "operator", "round", "unschedule", renewing["id"])
    assert stopped["next_time"] is None
