"""The pages without a server: every template escapes what it shows, and forms without a token are refused."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from equipoise.clients.connection import Connection
from equipoise.console import app
from equipoise.console.access import Access
from equipoise.console.asked import Asked
from equipoise.console.charts import interval_bars
from equipoise.console.desk import Desk, part_of, stretch_of
from equipoise.console.jobs import Finding, Job
from equipoise.console.operator.datasets import read_schema
from equipoise.console.rendering import Stretch, environment, plain_table, rendered
from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.identities import Caller, Role
from equipoise.model.rounds import Round, RoundState

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e{{ 7*7 }}\x1b[31m"
TEMPLATES = Path(app.__file__).parent / "templates"
NAN = float("nan")


class Nowhere:
    """A connection that leads nowhere: these tests ask no server."""

    target = HOSTILE


def desk_of(name: str = HOSTILE, role: Role = Role.ANALYST) -> Desk:
    end = datetime(2030, 1, 31, tzinfo=UTC)
    return Desk(Path("profile"), cast(Connection, Nowhere()), Caller(name, role), end, Access(8042))


def harmless(page: str) -> None:
    """Nothing of the hostile text is markup, and what would turn the line round is shown as an escape."""
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "49" not in page.replace("2049", "")
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


def test_a_hostile_name_is_text() -> None:
    harmless(bytes(desk_of().refused(WrongState(HOSTILE)).body).decode())


def test_a_hostile_table_and_chart_are_text() -> None:
    parts = environment().get_template("parts.html").module
    table = plain_table([HOSTILE], [[HOSTILE]], [f"/{HOSTILE}"])
    harmless(parts.table(table, HOSTILE))  # type: ignore[attr-defined]
    harmless(parts.bars(interval_bars([HOSTILE], [0.5], [0.4], [0.6]), HOSTILE))  # type: ignore[attr-defined]
    harmless(parts.facts([(HOSTILE, HOSTILE)]))  # type: ignore[attr-defined]


def test_every_page_of_a_role_marks_where_it_stands_in_the_menu() -> None:
    for path in [each for role in Role for each in (TEMPLATES.parent / role.value).glob("*.py")]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "show":
                assert "section" in {each.arg for each in call.keywords}, (path, call.lineno)


def test_a_list_of_choices_is_as_wide_as_its_longest_words() -> None:
    parts = cast(Any, environment().get_template("parts.html").module)
    for longest, kind in ((24, "<div><label"), (25, '<div class="double">'), (49, '<div class="row">')):
        words = "c" * longest
        for drawn in (parts.names("a", "A", ["b", words], "b"), parts.choice("a", "A", [("b", words)], "")):
            assert kind in drawn


def test_a_round_says_from_when_it_is() -> None:
    dates = environment().get_template("parts.html").module.dates  # type: ignore[attr-defined]
    opened, later = datetime(2030, 1, 31, tzinfo=UTC), datetime(2030, 2, 28, tzinfo=UTC)
    shown = SimpleNamespace(open_time=opened, release_time=None, terms=SimpleNamespace(close_time=later))
    shown.state = RoundState.OPEN
    assert "Opened 2030-01-31 00:00:00 UTC; closes by itself 2030-02-28 00:00:00 UTC." in dates(shown)
    shown.state = RoundState.ABORTED
    assert "Opened 2030-01-31 00:00:00 UTC." in dates(shown)
    shown.release_time = later
    assert "released 2030-02-28 00:00:00 UTC." in dates(shown)


def test_numbers_stand_to_the_right_and_neither_ids_nor_times_do_whatever_they_begin_with() -> None:
    first = ["1" * 32, "1,200", "ann", "2026-01-31 18:00", "2026-01-31", "-0.25"]
    second = ["0a" * 16, "3", "2nd", "2030-02-28T06:05:04Z", "2030-02-28", "12 of 40"]
    table = plain_table(["round", "queries", "name", "opened", "day", "left"], [first, second])
    assert table.numeric == (False, True, False, False, False, True)


def test_hostile_findings_are_text() -> None:
    job = Job(HOSTILE, "/", HOSTILE)
    job.tell(HOSTILE)
    job.findings.append(Finding(HOSTILE, HOSTILE, "failed", HOSTILE))
    harmless(rendered("job_state.html", {"base": "", "job": job}))
    job.ended, job.error = True, WrongState(HOSTILE)
    harmless(rendered("job_state.html", {"base": "", "job": job}))


def test_what_was_typed_keeps_its_lines() -> None:
    template = environment().from_string("<textarea>{{ sql | as_typed }}</textarea>")
    assert template.render(sql="SELECT 1\n</textarea>") == "<textarea>SELECT 1\n&lt;/textarea&gt;</textarea>"


def test_no_template_leaves_a_text_unescaped_or_carries_a_script_or_style_of_its_own() -> None:
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape|Markup|style=|<style|\son\w+=|javascript:", text), path
        assert all("src=" in each for each in re.findall(r"<script[^>]*>", text)), path
        assert not re.search(r"(https?:)?//\w", text), path


def test_every_form_that_changes_something_carries_the_token() -> None:
    for path in TEMPLATES.rglob("*.html"):
        for form in re.findall(r"<form method=\"post\".*?</form>", path.read_text(encoding="utf-8"), re.DOTALL):
            assert "parts.token(form_token" in form, path


def browser_of(desk: Desk) -> TestClient:
    browser = TestClient(app.pages_of(desk), base_url=f"http://{desk.access.authority}", follow_redirects=False)
    assert browser.get(desk.access.address).status_code == 303
    return browser


def paths_of(role: Role, method: str) -> list[str]:
    return [re.sub("{[a-z_]+}", "x", path) for each, path, _ in app.PAGES[role] if each == method]


# Whatever a page did would need a server, which there is not.
@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_a_form_without_its_token_does_nothing(role: Role) -> None:
    desk = desk_of("ann", role)
    browser = browser_of(desk)
    for path in paths_of(role, "POST"):
        for token in ([], ["wrong"], ["", ""]):
            data = {"form_token": token}
            answer = browser.post(desk.base + path, data=data, headers={"sec-fetch-site": "same-origin"})
            assert answer.status_code == 403, path
            assert "nothing was done" in answer.text


@pytest.mark.slow
@pytest.mark.parametrize("role", Role)
def test_no_page_is_shown_to_another_site_or_to_who_has_not_opened_the_console(role: Role) -> None:
    desk = desk_of("ann", role)
    own, token = browser_of(desk), {"form_token": desk.access.form_token}
    thief = TestClient(app.pages_of(desk), base_url=f"http://{desk.access.authority}", follow_redirects=False)
    assert thief.get(desk.access.address).status_code == 403
    for browser, site in ((own, "cross-site"), (own, "same-site"), (thief, "same-origin")):
        headers = {"sec-fetch-site": site}
        for path in paths_of(role, "GET"):
            assert browser.get(desk.base + path, headers=headers).status_code == 403, path
        for path in paths_of(role, "POST"):
            assert browser.post(desk.base + path, data=token, headers=headers).status_code == 403, path


def test_pages_that_are_not_there() -> None:
    desk = desk_of("ann")
    browser = browser_of(desk)
    for path, status in {
        "/nowhere": 404,
        "/static/../app.py": 404,
        "/static/console.css": 200,
        "/jobs/0": 404,
    }.items():
        assert browser.get(desk.base + path).status_code == status, path


@pytest.mark.parametrize("page", ["0", "-1", "1e3", "x", "", "1_0", "\u0661", "99999999999999999"])
def test_pages_are_counted_in_digits(page: str) -> None:
    with pytest.raises(InvalidArgument):
        part_of([], Asked({}, {"page": page}))


def test_a_list_is_read_only_as_far_as_it_is_shown() -> None:
    endless = iter(range(10**9))
    part = part_of(endless, Asked({}, {"page": "3"}))
    assert (list(part.items), part.more) == (list(range(100, 150)), True)
    assert next(endless) == 151


def opened(number: int) -> Round:
    return cast(Round, SimpleNamespace(id=f"{number:032x}"))


def test_a_stretch_of_rounds_is_read_from_where_the_last_one_ended() -> None:
    asked: list[tuple[str, int]] = []

    def read(after: str, page: int) -> list[Round]:
        asked.append((after, page))
        return [opened(number) for number in range(120) if f"{number:032x}" > after or not after]

    query: dict[str, str] = {}
    stretches: list[Stretch[Round]] = []
    while not stretches or stretches[-1].older:
        stretches.append(stretch_of(read, Asked({}, query)))
        query = dict([stretches[-1].older.removeprefix("?").split("=")] if stretches[-1].older else ())
    assert [len(each.items) for each in stretches] == [50, 50, 20]
    assert [each.newest for each in stretches] == [True, False, False]
    assert [each.id for stretch in stretches for each in stretch.items] == [
        opened(place).id for place in range(120)
    ]
    assert asked == [("", 51), (f"{49:032x}", 51), (f"{99:032x}", 51)]


def test_bars_span_round_scales_with_zero_on_them() -> None:
    chart = interval_bars(["a", "b", "c"], [0.31, -0.02, NAN], [0.28, NAN, 0.1], [0.34, NAN, 0.2])
    assert [each.label for each in chart.ticks] == ["-0.1", "0", "0.1", "0.2", "0.3", "0.4"]
    thousands = interval_bars(["a"], [2_100.0], [2_000.0], [2_200.0])
    assert [each.label for each in thousands.ticks] == ["0", "500", "1,000", "1,500", "2,000", "2,500"]
    assert chart.bars[0].text == "0.31 (0.28 to 0.34)"
    assert chart.bars[1].interval is None
    assert chart.bars[2].text.startswith("no number")
    assert all(0 <= each.span.start <= each.span.end <= 100 for each in chart.bars)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"[]", b'{"version": 1}'])
def test_a_schema_that_cannot_be_read_is_named_as_it_was_sent(content: bytes) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_schema(content)
    assert refused.value.field.startswith("schema")
    assert "/" not in refused.value.message
