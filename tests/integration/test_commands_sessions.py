"""A whole session by the commands alone, from statements in a file and statements that are typed."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.client_command import lines
from harness.dangers import SMALL_TABLE_TYPED
from harness.shop_commands import BUDGETS, GAME, STATEMENTS, TERMS, Run, register

from equipoise import Client
from equipoise.cli import main

SESSION = [
    "shop",
    "--share",
    "ann=5/40",
    "--share",
    "bob=5/40",
    "--data-epsilon",
    "8",
    "--data-delta",
    "1e-4",
    *SMALL_TABLE_TYPED,
]


@pytest.mark.full
def test_a_session_by_the_commands_alone(
    place: Path,
    run: Run,
    refused: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register(run, place)
    plan = run("operator", "operator", "session", "plan", *SESSION, "--mechanism", "online")["plan"]
    assert plan["analyst_budget"] is None
    opened = run("operator", "operator", "session", "open", *SESSION, "--mechanism", "online", "--ending", "stop")
    session_id = opened["round"]["id"]
    assert opened["round"]["terms"]["session"] == {"length": 10, "turn_seconds": 0, "ending": "stop"}
    assert [each["round"]["id"] for each in run("operator", "operator", "session", "list")["sessions"]] == [
        session_id
    ]
    assert run("operator", "operator", "session", "show", session_id)["round"] == opened["round"]
    (listed,) = run("ann", "sessions")["sessions"]
    assert (listed["id"], listed["terms"]["analyst_budget"], listed["answered"]) == (session_id, None, 0)

    statements = place / "statements.json"
    assert "does not protect analysts from one another" in refused("ann", "ask", session_id, statements)
    ask = ("ask", session_id, "--accept-unprotected")
    first = lines(capsys, place / "ann", *ask, statements)
    assert [(each["sequence"], len(each["answers"])) for each in first] == [(1, 8), (2, 1), (3, 1)]
    assert first[0]["answers"][1]["cell"] == "red / m"
    assert lines(capsys, place / "ann", *ask, statements) == first
    assert lines(capsys, place / "bob", *ask, statements)[1]["slot"] > first[-1]["slot"]

    # Analysts see how many of their own have answers, operators how many there are of all.
    assert run("ann", "show", session_id)["answered"] == 3
    assert run("ann", "sessions")["sessions"][0]["answered"] == 3
    progress = run("operator", "operator", "session", "show", session_id)["progress"]
    assert (progress["phase"], progress["done"], progress["total"]) == ("answering", 6, 10)

    # What is piped in, or typed, comes after all that was asked.
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{json.dumps(STATEMENTS[1])}\n\n"))
    (piped,) = lines(capsys, place / "ann", *ask)
    assert piped["sequence"] == 4
    monkeypatch.setattr("sys.stdin", io.StringIO('{"among": {}}\n'))
    assert "statement.among" in refused("ann", *ask)
    monkeypatch.setattr(
        "sys.stdin", Terminal(f'nonsense\n{{"marginal": ["shape"]}}\n{json.dumps(STATEMENTS[2])}\n')
    )
    with pytest.raises(SystemExit) as ended:
        main([*ask, "--profile", str(place / "ann")])
    assert not ended.value.code
    shown = capsys.readouterr()
    assert "statement: is not JSON" in shown.err
    assert "shape" in shown.err
    assert re.search(r" 5 +[0-9.-]+ ", shown.out)
    assert "was asked before" in refused("ann", *ask, statements, "--after", 1)
    assert "your share allows 5 statements" in refused("ann", *ask, statements, "--after", 5)

    assert run("operator", "operator", "session", "close", session_id)["round"]["state"] == "sealed"
    assert "takes no more statements" in refused("bob", *ask, statements, "--after", 3)
    assert lines(capsys, place / "ann", *ask, statements) == first

    # Results have the labels of what was asked, however it was.
    run("operator", "operator", "round", "run", session_id)
    run("operator", "operator", "round", "release", session_id)
    run("ann", "wait", session_id)
    labelled = run("ann", "results", session_id)["answers"]
    assert [each["statement"] for each in labelled] == [0] * 8 + [1, 2, 3, 4]
    assert labelled[1]["cell"] == "red / m"

    round_id = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, *GAME)["round"]["id"]
    assert "is a round, not a session" in refused("operator", "operator", "session", "show", round_id)


@pytest.mark.nightly
def test_sql_is_asked_in_a_session_after_what_was_asked_there(
    place: Path, run: Run, refused: Callable[..., str]
) -> None:
    register(run, place)
    budget = (
        "--analyst-epsilon",
        "2",
        "--analyst-delta",
        "1e-4",
        "--mechanism",
        "online_private",
        "--turn-seconds",
        4,
    )
    opened = run("operator", "operator", "session", "open", *SESSION, *budget)
    session_id = opened["round"]["id"]
    counts = "SELECT colour, COUNT(*) AS n FROM shop GROUP BY colour"
    ((first, *others),) = run("ann", "sql", session_id, counts)["answers"]
    assert (list(first), len(others)) == (["colour", "n", "n_low", "n_high", "n_method"], 1)
    share = "SELECT ROUND(100.0 * COUNT_IF(size = 's') / COUNT(*), 1) AS small FROM shop WHERE colour = 'red'"
    ((small,),) = run("ann", "sql", session_id, share)["answers"]
    assert small["small"] is not None
    assert run("ann", "show", session_id)["answered"] == 3  # the marginal, and two counts
    explained = run("ann", "sql", session_id, f"EXPLAIN {share}")
    assert [0 < each["expected_error"] < each["half_width"] for each in explained["expected"]] == [True, True]
    assert [(each["number"], each["expected_error"] > 0) for each in explained["numbers"]] == [("small", True)]
    assert run("ann", "show", session_id)["answered"] == 3
    with Client.from_profile(place / "ann") as client:
        (frame,) = client.frames(session_id, client.sql(session_id, counts), fractions=True)
    trial = Client.local(place / "state" / "data" / "shop.csv", place / "schema.json")
    (alike,) = trial.frames("any", trial.sql("any", counts), fractions=True)
    assert alike.to_arrow().schema == frame.to_arrow().schema
    assert all(0 <= value <= 1 for value in np.asarray(frame["n"]))
    run("operator", "operator", "session", "close", session_id)
    assert "takes no more statements" in refused("ann", "sql", session_id, share)


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True
