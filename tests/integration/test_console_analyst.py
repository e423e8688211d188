"""An analyst's pages on a real server: from the first question to a verified answer, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.console_pages import Browser
from harness.shop_commands import Run, open_round, register

SQL = "SELECT colour, size, COUNT(*) FROM shop GROUP BY colour, size"
pytestmark = pytest.mark.full


@pytest.fixture
def opened(run: Run, place: Path) -> Iterator[tuple[Browser, str]]:
    """Ann's console, and an open round."""
    register(run, place)
    round_id = open_round(run)
    with Browser.of(place / "ann") as browser:
        yield browser, round_id


def release(run: Run, round_id: str) -> None:
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    run("ann", "wait", round_id)


def test_from_a_question_to_a_verified_answer(opened: tuple[Browser, str], run: Run, place: Path) -> None:
    ann, round_id = opened
    here = f"/rounds/{round_id}"
    assert round_id in ann.get("/").text
    composed = ann.post(f"{here}/ask", do="compose", by=["colour", "size"]).text
    assert "SELECT colour AS colour, size AS size, COUNT(*)" in composed
    checked = ann.post(f"{here}/ask", do="check", sql=SQL).text
    assert "Understood as" in checked
    assert "nothing was charged" in checked
    assert "Your receipt is kept" not in ann.get(here).text
    assert "8 queries accepted" in ann.post(f"{here}/ask", do="send", sql=SQL).text
    assert "You have withdrawn" in ann.post(f"{here}/withdraw").text
    ann.post(f"{here}/ask", do="send", sql=SQL)
    assert ann.get(f"{here}/results").status_code == 409
    release(run, round_id)

    statements = place / "asked.json"
    statements.write_text('{"version": 1, "statements": [{"marginal": ["colour", "size"]}]}')
    for kind in ("csv", "json", "parquet"):
        of_command = place / f"results.{kind}"
        run("ann", "results", round_id, "--statements", statements, "--out", of_command)
        assert ann.get(f"{here}/results/results.{kind}").content == of_command.read_bytes()
    of_command = place / "synopsis.csv"
    run("ann", "synopsis", round_id, "--out", of_command)
    assert ann.post(f"{here}/synopsis", kind="csv").content == of_command.read_bytes()
    of_command = place / "answer.csv"
    run("ann", "sql", round_id, SQL, "--out", of_command)
    assert ann.post(f"{here}/tables", sql=SQL, file="0.csv").content == of_command.read_bytes()

    page = ann.get(f"{here}/results?counts=yes").text
    assert page.count('class="bar"') == 8
    assert "statement 0: red / s" in page
    assert "Understood" not in page
    assert ann.post(f"{here}/tables", sql=SQL).text.count("<tbody>") == 1
    verified = ann.finish(ann.post(f"{here}/verify"))
    assert "All 13 checks hold" in verified.text
    assert verified.text.count('<li class="passed">') == 13
    assert "accepted at" in ann.get("/receipts").text


def test_what_is_refused_is_said_where_it_was_typed(opened: tuple[Browser, str]) -> None:
    ann, round_id = opened
    typed = "SELECT colour, SECRET(<b>) FROM shop"
    page = ann.post(f"/rounds/{round_id}/ask", do="send", sql=typed)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "SELECT colour, SECRET(&lt;b&gt;) FROM shop" in page.text
    assert ann.post(f"/rounds/{round_id}/ask", do="check").status_code == 400
    too_many = ";".join(f"SELECT COUNT(*) FROM shop WHERE size = '{size}'" for size in "smlx")
    assert "share" in ann.post(f"/rounds/{round_id}/ask", do="send", sql=too_many).text
    assert "Your receipt is kept" not in ann.get(f"/rounds/{round_id}").text
    for path in ("/rounds/0", f"/rounds/{'0' * 32}", f"/rounds/{'0' * 32}/results", "/jobs/1"):
        assert ann.get(path).status_code == 404


@pytest.mark.nightly
def test_the_same_form_sent_twice_is_one_submission(opened: tuple[Browser, str], run: Run) -> None:
    ann, round_id = opened
    page = ann.get(f"/rounds/{round_id}").text
    token = re.findall(r'name="request_id" value="([0-9a-f]{32})"', page)[0]
    for _ in range(2):
        assert ann.post(f"/rounds/{round_id}/ask", do="send", sql=SQL, request_id=token).status_code == 200
    release(run, round_id)
    assert ann.get(f"/rounds/{round_id}/results").status_code == 200
