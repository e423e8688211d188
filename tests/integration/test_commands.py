"""A whole round by the commands alone, and what they say to wrong input: one clear line, and the server goes on."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS_TYPED
from harness.shop_commands import BUDGETS, STATEMENTS, TERMS, Run, open_round, register

from equipoise import Client
from equipoise.cli import main


def test_a_whole_round(run: Run, place: Path) -> None:
    register(run, place)
    known = run("ann", "whoami")
    assert (known["name"], known["role"]) == ("ann", "analyst")
    (listed, _) = run("operator", "operator", "analyst", "list")["analysts"]
    assert (listed["name"], listed["certified_until"]) == ("ann", known["certified_until"])
    assert run("operator", "operator", "dataset", "list")["datasets"][0]["dataset"]["name"] == "shop"
    assert run("operator", "operator", "round", "plan", *TERMS, *BUDGETS)["plan"]["max_half_width"] > 0
    round_id = open_round(run)
    assert run("ann", "rounds")["rounds"][0]["terms"]["shares"][0] == {
        **{"analyst": "ann", "statements": 3, "queries": 10},
        **{"sensitivity": 0, "support": 0, "ways": 0},
    }
    assert [each["name"] for each in run("ann", "schema", "shop")["attributes"]] == ["colour", "size"]
    statements = place / "statements.json"
    assert run("ann", "dry-run", round_id, statements)["queries"] == 10
    first = run("ann", "submit", round_id, statements, "--request-id", "once")
    assert run("ann", "submit", round_id, statements, "--request-id", "once") == first
    assert run("ann", "withdraw", round_id)["withdrawn"]
    run("ann", "submit", round_id, statements)
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    assert run("ann", "wait", round_id)["state"] == "released"
    answers = run("ann", "results", round_id, "--statements", statements)["answers"]
    assert [each["statement"] for each in answers] == [0] * 8 + [1, 2]
    assert answers[3]["cell"] == "red / x"
    out = place / "results.csv"
    run("ann", "results", round_id, "--statements", statements, "--out", out)
    counts = run("ann", "results", round_id, "--counts", "--statements", statements)["answers"]
    assert [row["value"] for row in counts] == [400 * row["value"] for row in answers]
    with out.open(newline="") as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == [each["value"] for each in answers]
    table = place / "synopsis.csv"
    records = run("bob", "synopsis", round_id, "--out", table)["records"]
    assert len(table.read_text().splitlines()) == records + 1
    accounts = run("operator", "operator", "budget", "show", "shop")["accounts"]
    assert all(each["spent"] == each["committed"] for each in accounts)
    assert 0 < accounts[0]["spent"]["epsilon"] <= 8
    assert 0 < accounts[-1]["divergence"] < accounts[-1]["max_divergence"]
    assert run("operator", "operator", "round", "watch", round_id)["round"]["state"] == "released"
    assert run("operator", "operator", "round", "show", round_id)["round"]["state"] == "released"
    assert run("operator", "operator", "round", "list")["rounds"][0]["round"]["id"] == round_id
    history = run("operator", "operator", "budget", "history", "data/shop")["entries"]
    assert [each["action"] for each in history] == ["open-account", "reserve", "run", "spend"]
    assert json.loads(history[1]["events"])["mechanism"] == "equilibrium"
    raised = run(
        "operator",
        "operator",
        "budget",
        "set-cap",
        "data/shop",
        "--epsilon",
        30,
        "--delta",
        "1e-4",
        *LARGE_CAPS_TYPED,
    )
    assert raised["cap"] == {"epsilon": 30, "delta": 1e-4}
    assert run("operator", "operator", "dataset", "retire", "shop")["retire_time"] is not None
    assert run("auditor", "audit", "rounds")["rounds"][0]["round"]["id"] == round_id
    actions = [each["action"] for each in run("auditor", "audit", "journal")["entries"]]
    assert {"reserve", "spend"} <= set(actions)


@pytest.mark.nightly
def test_a_round_with_a_closing_time_needs_no_operator(run: Run, place: Path) -> None:
    register(run, place)
    close = (datetime.now(UTC) + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    detail = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, "--close", close, "--release-grid", 2)
    assert detail["round"]["terms"]["close_time"] == close.replace("Z", "+00:00")
    assert detail["round"]["terms"]["release_grid_seconds"] == 2
    run("bob", "submit", detail["round"]["id"], place / "statements.json")
    assert run("bob", "wait", detail["round"]["id"])["state"] == "released"
    assert run("bob", "results", detail["round"]["id"])["queries"] == 10


@pytest.mark.nightly
def test_people_get_tables(run: Run, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register(run, place)
    round_id = open_round(run)
    statements = str(place / "statements.json")
    said = {}
    for who, *arguments in (
        ("ann", "whoami"),
        ("ann", "rounds"),
        ("ann", "show", round_id),
        ("ann", "schema", "shop"),
        ("ann", "dry-run", round_id, statements),
        ("ann", "submit", round_id, statements),
        ("operator", "operator", "dataset", "list"),
        ("operator", "operator", "round", "show", round_id),
        ("operator", "operator", "round", "seal", round_id),
        ("operator", "operator", "round", "run", round_id),
        ("operator", "operator", "round", "release", round_id),
        ("ann", "wait", round_id),
        ("ann", "results", round_id, "--statements", statements),
        ("operator", "operator", "budget", "show", "shop"),
        ("operator", "operator", "budget", "history", "data/shop"),
        ("operator", "operator", "budget", "export", "data/shop"),
        (
            "operator",
            "operator",
            "budget",
            "set-cap",
            "data/shop",
            "--epsilon",
            "30",
            "--delta",
            "1e-4",
            *LARGE_CAPS_TYPED,
        ),
        ("auditor", "audit", "export", "data/shop"),
        ("auditor", "audit", "journal"),
    ):
        profiles = place if (place / who).is_dir() else place / "state" / "profiles"
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--profile", str(profiles / who)])
        printed = capsys.readouterr()
        assert not ended.value.code, printed.err
        said[arguments[-1] if who == "auditor" else arguments[0]] = printed.out
        said["everything"] = said.get("everything", "") + printed.out
    assert "ann, analyst" in said["whoami"]
    assert round_id in said["rounds"]
    assert "red, green" in said["schema"]
    assert "green / x" in said["results"]
    assert "data/shop" in said["operator"]
    assert "analyst/shop/query/bob" in said["journal"]
    assert said["everything"].count('"event": "ZCDpEvent"') >= 2
    # What the operator has to do next is said.
    for step in ("seal", "run", "release"):
        assert f"waits for: equipoise operator round {step} {round_id}" in said["everything"]
    assert "3 statements, 10 queries" in said["everything"]
    assert "cap (30, 0.0001)" in said["journal"]


@pytest.mark.full
def test_wrong_input_is_named_and_costs_nothing(run: Run, refused: Callable[..., str], place: Path) -> None:
    register(run, place)
    round_id = open_round(run)
    statements = place / "statements.json"

    def asking(*asked: object) -> Path:
        path = place / "wrong.json"
        path.write_text(json.dumps({"version": 1, "statements": asked}))
        return path

    unknown = asking({"among": {"attribute": "taste", "categories": ["sweet"]}})
    assert "taste" in refused("ann", "submit", round_id, unknown)
    category = asking({"among": {"attribute": "colour", "categories": ["blue"]}})
    assert "blue" in refused("ann", "submit", round_id, category)
    assert "statements: must be a list, and not empty" in refused("ann", "submit", round_id, asking())
    assert "share" in refused("ann", "submit", round_id, asking(*STATEMENTS, {"marginal": ["size"]}))
    assert "cannot be read" in refused("ann", "submit", round_id, place / "nothing.json")
    assert "no such round" in refused("ann", "show", "nonsense")
    assert "no such account" in refused("operator", "operator", "budget", "export", "data/nonsense")
    assert "no such account" in refused("auditor", "audit", "export", "data/nonsense")
    assert "role" in refused("ann", "operator", "round", "list")
    assert "must end in" in refused("ann", "results", round_id, "--out", "results.xls")
    assert "--share" in refused(
        "operator", "operator", "round", "plan", "shop", "--share", "ann", *TERMS[3:], *BUDGETS
    )
    assert "shares[0].sensitivity" in refused(
        "operator", "operator", "round", "plan", "shop", "--share", "ann=3/10/7", *TERMS[3:], *BUDGETS
    )
    (place / "schema.json").write_text('{"version": 1, "attributes": [{"name": "colour", "edges": [1]}]}')
    schema = ("--source", "shop.csv", "--schema", place / "schema.json")
    caps = ("--data-epsilon", 1, "--data-delta", "1e-4", "--analyst-epsilon", 1)
    assert "schema.attributes[0].edges" in refused(
        "operator", "operator", "dataset", "register", "x", *schema, *caps
    )
    assert "exists already" in refused("operator", "operator", "analyst", "add", "ann", "--out", place / "ann")
    assert refused("operator", "operator", "analyst", "add", "ann", "--out", place / "ann2")
    assert not (place / "ann2").exists()
    run("ann", "submit", round_id, statements)
    run("operator", "operator", "round", "seal", round_id)
    assert "no longer accepts" in refused("ann", "submit", round_id, statements)
    run("operator", "operator", "round", "abort", round_id, "--reason", "a test")
    assert "a test" in refused("ann", "wait", round_id)
    accounts = run("operator", "operator", "budget", "show", "shop")["accounts"]
    assert [each["committed"]["epsilon"] for each in accounts] == [0] * len(accounts)


@pytest.mark.nightly
def test_a_round_of_independent_noise(run: Run, refused: Callable[..., str], place: Path) -> None:
    register(run, place)
    noise = (*TERMS, *BUDGETS, "--mechanism", "gaussian")
    choice = run("operator", "operator", "round", "plan", *noise)
    assert (choice["because"], choice["candidates"]) == ("", [])
    planned = choice["plan"]
    assert (planned["mechanism"], planned["analyst_budget"]["epsilon"]) == ("gaussian", 0)
    opened = run("operator", "operator", "round", "open", *noise)
    assert (opened["plan"], opened["round"]["terms"]["mechanism"]) == (planned, "gaussian")
    round_id = opened["round"]["id"]
    tried = run("ann", "dry-run", round_id, place / "statements.json")
    assert (tried["sensitivity"], tried["support"], tried["max_half_width"]) == (4, 4, planned["max_half_width"])
    run("ann", "submit", round_id, place / "statements.json")
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    run("ann", "wait", round_id)
    assert run("ann", "results", round_id)["methods"] == {"gaussian": 10}
    table = place / "synopsis.csv"
    assert "no synopsis: the mechanism gaussian makes none" in refused("ann", "synopsis", round_id, "--out", table)
    assert not list(place.glob("synopsis*"))
    accounts = {each["name"]: each for each in run("operator", "operator", "budget", "show", "shop")["accounts"]}
    assert accounts["analyst/shop/query/ann"]["committed"]["epsilon"] == 0
    assert accounts["data/shop"]["spent"]["epsilon"] > 0
    exported = run("operator", "operator", "budget", "export", "analyst/shop/query/ann")
    assert [charge["events"] for charges in exported["sums"] for charge in charges] == [[]]


@pytest.mark.nightly
def test_people_see_what_auto_chose(run: Run, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register(run, place)
    profile = str(place / "state" / "profiles" / "operator")
    choice = run("operator", "operator", "round", "plan", *TERMS, *BUDGETS)
    chosen = choice["plan"]
    for step in ("plan", "open"):
        with pytest.raises(SystemExit) as ended:
            main(["operator", "round", step, *TERMS, *BUDGETS, "--profile", profile])
        assert not ended.value.code
        shown = capsys.readouterr().out
        assert f"{chosen['mechanism']}, chosen by auto" in shown
        assert f"{chosen['max_half_width']:.4g} of the records" in shown
        assert (choice["because"] in shown) is (step == "plan")
        for each in choice["candidates"] if step == "plan" else ():
            told = each["forecast"]
            rows = [line for line in shown.splitlines() if line.rstrip().endswith("GiB")]
            (line,) = [row for row in rows if each["mechanism"] in row.split()]
            assert f"{told['expected_error']:.3g}" in line
            assert f" {min(1.0, told['max_half_width']):.3g} " in line
            assert line.startswith(" > ") is (each["mechanism"] == chosen["mechanism"])


@pytest.mark.full
def test_sql_from_submission_to_answers(run: Run, refused: Callable[..., str], place: Path) -> None:
    register(run, place)
    round_id = open_round(run)
    text = "SELECT colour, COUNT(*) AS n FROM shop GROUP BY colour"
    (expected,) = run("ann", "sql", round_id, f"EXPLAIN {text}")["expected"]
    assert expected["statement"] == "SELECT colour, COUNT(*) FROM shop GROUP BY colour"
    assert 0 < expected["expected_error"] < expected["half_width"]
    assert "there is none yet" in refused("ann", "sql", round_id, text, "--out", place / "a.csv")
    asked = run("ann", "sql", round_id, text)
    assert asked["understood"] == [text.replace("colour,", "colour AS colour,", 1)]
    assert asked["receipt"]["statements"] == 1
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    run("ann", "wait", round_id)
    ((first, *_),) = run("ann", "sql", round_id, text)["answers"]
    assert list(first) == ["colour", "n", "n_low", "n_high", "n_method"]
    assert first["n_low"] <= first["n_high"]
    assert run("ann", "sql", round_id, f"{text}; {text}", "--out", place / "a.csv")["files"] == [
        str(place / f"a-{number}.csv") for number in (1, 2)
    ]
    assert (place / "a-1.csv").read_bytes() == (place / "a-2.csv").read_bytes()
    other = "SELECT size, COUNT(*) FROM shop GROUP BY size"
    with Client.from_profile(place / "ann") as real:
        (frame,) = real.frames(round_id, real.sql(round_id, text))
    trial = Client.local(place / "state" / "data" / "shop.csv", place / "schema.json")
    (alike,) = trial.frames(round_id, trial.sql(round_id, text))
    assert alike.to_arrow().schema == frame.to_arrow().schema
    assert alike["colour"] == frame["colour"]
    (truth,) = trial.truth(trial.sql(round_id, text))
    assert all(float(str(each)).is_integer() for each in truth["n"])
    assert run("ann", "dummy", "shop", "--out", place / "dummy.csv", "--records", "9")["records"] == 9
    assert Client.local(place / "dummy.csv", place / "schema.json").records == 9
    assert "must end in" in refused("ann", "dummy", "shop", "--out", "dummy.xls")
    assert "not the questions that were submitted" in refused("ann", "sql", round_id, other)


@pytest.mark.full
def test_sql_is_kept_with_the_receipt_and_compared_with_what_was_used(
    run: Run, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    round_id = open_round(run)
    text = "SELECT colour, COUNT(*) AS n FROM shop GROUP BY colour"
    (understood,) = run("ann", "sql", round_id, text)["understood"]
    for step in ("seal", "run", "release"):
        run("operator", "operator", "round", step, round_id)
    run("ann", "wait", round_id)
    run("ann", "bundle", round_id, "--out", place / "b.json")
    (kept,) = (place / "ann" / "sql").iterdir()
    assert kept.read_text().splitlines() == [f"-- understood as: {understood}", "", text]

    def verified(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(["verify", str(place / "b.json"), "--profile", str(place / "ann"), *arguments])
        return capsys.readouterr().out

    capsys.readouterr()
    honest = verified()
    assert "the same as your own; translated from your own questions, as the receipt commits to" in honest
    assert "All 13 checks hold" in honest
    (place / "own.sql").write_text(text)
    assert "All 13 checks hold" in verified("--statements", str(place / "own.sql"))
    # Other questions that come to the same statements: only the receipt tells.
    (place / "own.sql").write_text(text.replace(" n ", " m "))
    assert "the receipt is of other questions than yours" in verified("--statements", str(place / "own.sql"))
    kept.write_text(kept.read_text().replace("AS n", "AS m", 1))
    assert "the receipt is of other questions than yours" in verified()
    (place / "other.sql").write_text("SELECT size, COUNT(*) FROM shop GROUP BY size")
    assert "another than your statements" in verified("--statements", str(place / "other.sql"))
    kept.write_text("SELECT COUNT(*) FROM shop WHERE colour = 'red'")
    assert "another than your statements" in verified()
