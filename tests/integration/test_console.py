"""A whole life in a real browser: from the registration of a table to the audit, with hostile labels everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.console_browser import LOOKS, TWO_LOOKS, Looks, Person, browser_is_here, chromium, console_of
from harness.shop_commands import Run

from equipoise.profile.enrolment import REQUEST, Bundle, begin, install

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not browser_is_here(), reason="needs Chromium and the group `browser`"),
]
HOSTILE = "<script>alert(1)</script>"
IMAGE = "\"'><img src=x onerror=alert(2)>"
COLOURS, SIZES = [HOSTILE, "green"], [IMAGE, "m", "l"]
SCHEMA = {
    "version": 1,
    "attributes": [{"name": "colour", "categories": COLOURS}, {"name": "size", "categories": SIZES}],
}
SQL = "SELECT colour, size, COUNT(*) FROM shop GROUP BY colour, size"
STATEMENTS = {"version": 1, "statements": [{"marginal": ["colour", "size"]}]}


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize(
    "looks", [pytest.param(TWO_LOOKS, id="two"), pytest.param(LOOKS, id="all", marks=pytest.mark.nightly)]
)
def test_a_whole_life(browser: Any, place: Path, run: Run, looks: Looks) -> None:
    profiles = place / "state" / "profiles"
    quoted = [[json.dumps(label).replace('\\"', '""') for label in labels] for labels in (COLOURS, SIZES)]
    rows = [f"{quoted[0][row % 3 % 2]},{quoted[1][row * row % 5 % 3]}" for row in range(4000)]
    (place / "state" / "data" / "hostile.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    (place / "hostile.json").write_text(json.dumps(SCHEMA))
    with console_of(profiles / "operator") as address:
        operator = Person(browser, address, looks)
        register(operator, place)
        for name in ("ann", "bob"):
            admit(operator, place, name)
        round_id = plan_and_open(operator)
        for name in ("ann", "bob"):
            with console_of(place / name) as own:
                ask_by_keyboard(Person(browser, own, looks), round_id)
        for step in ("Seal", "Run", "Release"):
            operator.go(f"/rounds/{round_id}")
            operator.check()
            operator.click(step)
            if step == "Run":
                operator.click("Back to the round", "link")
        forms = ("/sessions/new", "/grants/new?dataset=shop")
        for path in ("/", "/datasets", "/datasets/shop", "/sessions", *forms, "/health", "/analysts", "/nowhere"):
            operator.go(path)
            # A page that is missing is an error to the browser, too.
            operator.troubles = [each for each in operator.troubles if "404" not in each]
            operator.check()
    run("ann", "wait", round_id)
    with console_of(place / "ann") as own:
        read_and_verify(Person(browser, own, looks), round_id, run, place)
    with console_of(profiles / "auditor") as own:
        audit(Person(browser, own, looks), round_id)


def test_a_stolen_address_and_another_site_are_refused(browser: Any, place: Path) -> None:
    with console_of(place / "state" / "profiles" / "operator") as address:
        operator = Person(browser, address)
        operator.go("/rounds/new")
        thief = browser.new_context().new_page()
        assert thief.goto(address).status == 403
        assert "stop the console" in thief.content()
        # In the very browser that has the cookie, a page of another site sends a form to the console.
        other = operator.context.new_page()
        target = f"{operator.base}/analysts/revoke"
        other.goto(f"data:text/html,<form method=post action='{target}'><button>win</button></form>")
        with other.expect_navigation() as going:
            other.get_by_role("button").click()
        assert going.value.status == 403
        operator.go("/")
        operator.check()


def register(operator: Person, place: Path) -> None:
    operator.go("/datasets/new")
    operator.check()
    fields = {"name": "shop", "source": "hostile.csv", "data_epsilon": "10", "data_delta": "1e-5"}
    for name, value in {**fields, "analyst_epsilon": "10", "analyst_delta": "1e-4"}.items():
        operator.page.fill(f"#{name}", value)
    operator.page.set_input_files("#schema_file", place / "hostile.json")
    operator.click("Read the table and register it for good")
    assert "4,000 records" in operator.page.content()
    assert operator.page.get_by_text(HOSTILE).first.is_visible()
    operator.check()


def admit(operator: Person, place: Path, name: str) -> None:
    begin(place / name)
    operator.go("/analysts")
    if not operator.page.is_visible("#admit-name"):
        operator.page.get_by_text("Admit an analyst", exact=True).click()
    operator.check()
    operator.page.fill("#admit-name", name)
    operator.page.set_input_files("#admit-file", place / name / REQUEST)
    operator.page.get_by_role("button", name="Read the request").first.click()
    operator.check()
    install(place / name, Bundle.from_json(operator.save("It is the same", "button").decode()))


def plan_and_open(operator: Person) -> str:
    operator.go("/rounds/new")
    operator.page.fill("#shares", "ann=4/20\nbob=4/20")
    operator.page.fill("#data_epsilon", "2")
    operator.page.fill("#data_delta", "1e-6")
    operator.click("Compare the mechanisms")
    assert operator.page.get_by_role("img", name="Expected error and promise").is_visible()
    operator.check()
    operator.click("Open this round with")
    operator.page.wait_for_url("**/rounds/*")
    return str(operator.page.url.rsplit("/", 1)[1])


def ask_by_keyboard(analyst: Person, round_id: str) -> None:
    """Nothing is clicked."""
    analyst.check()
    analyst.tab_to(round_id, "link")
    analyst.page.keyboard.press("Enter")
    analyst.page.wait_for_url(f"**/rounds/{round_id}")
    analyst.check()
    analyst.tab_to("Questions in SQL", "textbox")
    analyst.page.keyboard.type(SQL)
    analyst.tab_to("Check without asking")
    analyst.page.keyboard.press("Enter")
    analyst.page.get_by_text("Nothing was asked").wait_for()
    analyst.check()
    analyst.tab_to("Submit these questions")
    analyst.page.keyboard.press("Enter")
    analyst.page.get_by_text("Your receipt is kept").wait_for()
    analyst.check()


def read_and_verify(ann: Person, round_id: str, run: Run, place: Path) -> None:
    (place / "asked.json").write_text(json.dumps(STATEMENTS))
    ann.go(f"/rounds/{round_id}")
    ann.click("Read my results", "link")
    assert ann.page.get_by_role("img", name="Answers with their intervals").is_visible()
    assert ann.page.locator("svg rect.bar").count() == 6
    ann.check()
    for kind, name in {"csv": "CSV", "parquet": "Parquet"}.items():
        of_command = place / f"results.{kind}"
        run("ann", "results", round_id, "--statements", place / "asked.json", "--out", of_command)
        assert ann.save(f"Download {name}") == of_command.read_bytes()
    ann.page.fill("#sql", SQL)
    ann.click("Show the answers as tables")
    ann.check()
    for path in ("table", "results?counts=yes"):
        ann.go(f"/rounds/{round_id}/{path}")
        ann.check()
    ann.go("/receipts")
    ann.check()
    ann.go(f"/rounds/{round_id}")
    ann.check()
    ann.click("Verify my part")
    ann.page.get_by_text("All 13 checks hold.").wait_for()
    ann.check()


def audit(auditor: Person, round_id: str) -> None:
    for path in ("/", f"/rounds/{round_id}", "/journal", "/log", "/audit"):
        auditor.go(path)
        auditor.check()
    auditor.click("Download all records and check them")
    auditor.page.get_by_text("All that was checked is in order.").wait_for(timeout=120_000)
    auditor.check()
    auditor.click("Read the report", "link")
    auditor.check()
    assert b"# Audit report" in auditor.save("Download the report")
