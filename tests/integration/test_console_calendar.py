"""An operator's pages for analysts' requests and for the calendar, on a real server, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.console_pages import Browser
from harness.shop_commands import Run, register

pytestmark = pytest.mark.full
HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
BUDGETS = {"dataset": "shop", "data_epsilon": "0.5", "data_delta": "1e-5", "beta": "0.05"}
YEARLY = {"yearly_epsilon": "5", "yearly_delta": "1e-4"}
SCHEDULE = {**BUDGETS, **YEARLY, "unit": "query", "shares": "ann=3/10\nbob=3/10", "mechanism": "gaussian"} | {
    "analyst_epsilon": "1",
    "analyst_delta": "1e-5",
    "options": "",
    "period": "monthly",
    "first": "2099-01-31T06:00",
    "open_for": "3d",
    "accept": ["delta", "noise", "promise"],
}


def test_requests_are_granted_or_declined_once(run: Run, place: Path) -> None:
    register(run, place)
    for reason in (HOSTILE, "Again."):
        run("ann", "request", "shop", reason, "--epsilon", "0.5")
    with Browser.of(place / "state" / "profiles" / "operator") as operator, Browser.of(place / "ann") as ann:
        listed = operator.get("/requests").text
        assert ESCAPED in listed
        assert HOSTILE not in listed
        assert "2 requests for grants" in operator.get("/").text
        asked = operator.get("/requests/ann/1").text
        assert ESCAPED in asked
        assert "request=1&amp;data_epsilon=0.5" in asked
        form = operator.get("/grants/new?dataset=shop&analyst=ann&request=1&data_epsilon=0.5").text
        assert all(f'value="{value}"' in form for value in ("ann", "1", "0.5"))
        for wrong in ({"request": "3"}, {"request": "1_0"}, {"analyst": "bob"}):
            refused = operator.post("/grants/new", **(BUDGETS | {"analyst": "ann", "request": "1"} | wrong))
            assert refused.status_code in (400, 404), wrong
            assert 'role="alert"' in refused.text
        assert "No grant of yours is open" in ann.get("/grants").text
        given = [operator.post("/grants/new", analyst="ann", request="1", **BUDGETS) for _ in range(2)]
        assert given[0].url == given[1].url
        assert str(given[0].url).rsplit("/", 1)[1] in ann.get("/grants").text
        assert operator.post("/requests/ann/2/decline", answer="").status_code == 400
        assert "No request waits for you" in operator.post("/requests/ann/2/decline", answer=HOSTILE).text
        assert operator.post("/requests/ann/2/decline", answer="No.").status_code == 400
        assert operator.post("/requests/ann/3/decline", answer="No.").status_code == 404
        assert "declined" in operator.get("/requests?decided=yes").text
        told = ann.get("/grants").text
        assert ESCAPED in told
        assert "declined" in told


def test_rounds_and_grants_by_the_calendar(run: Run, place: Path) -> None:
    register(run, place)
    with Browser.of(place / "state" / "profiles" / "operator") as operator:
        assert "Nothing is opened by the calendar" in operator.get("/calendar").text
        assert '<option value="shop" selected>' in operator.get("/calendar/new?dataset=shop").text
        for wrong in (
            {"first": ""},
            {"first": "soon"},
            {"period": "hourly"},
            {"open_for": "x"},
            {"yearly_epsilon": "0.1"},
            {"accept": ["none"]},
        ):
            refused = operator.post("/calendar/new", **(SCHEDULE | wrong))
            assert refused.status_code == 400, wrong
            assert 'role="alert"' in refused.text
        made = operator.post("/calendar/new", request_id="once", **SCHEDULE)
        assert "259,200 seconds" in made.text
        assert operator.post("/calendar/new", request_id="once", **SCHEDULE).url == made.url
        assert run("operator", "operator", "round", "schedules")["schedules"][0]["open_seconds"] == 3 * 86_400

        renewed = operator.post("/grants/new", analyst="ann", renew="monthly", **BUDGETS, **YEARLY)
        assert "End the grant" in renewed.text
        until = {"until": "2099-01-31T06:00"}
        assert (
            operator.post("/grants/new", analyst="ann", renew="daily", **until, **BUDGETS, **YEARLY).status_code
            == 400
        )
        assert operator.post("/grants/new", analyst="ann", renew="daily", **BUDGETS).status_code == 400
        schedules = run("operator", "operator", "round", "schedules")["schedules"]
        assert [each["terms"]["mechanism"] for each in schedules] == ["grant", "gaussian"]
        listed = operator.get("/calendar").text
        assert all(each["id"] in listed for each in schedules)
        assert "Grants on shop, monthly" in operator.get(f"/calendar/{schedules[0]['id']}").text
        stopped = operator.post(f"/calendar/{schedules[1]['id']}/stop").text
        assert "none: stopped" in stopped
        assert "Stop this schedule" not in stopped
        assert operator.get("/calendar/0").status_code == 404
        assert operator.post(f"/calendar/{'0' * 32}/stop").status_code == 404
