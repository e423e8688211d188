"""A grant by the commands alone: given, asked of, looked at, ended, and verified by its analyst and an auditor."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest
from harness.client_command import lines
from harness.shop_commands import Run, operator_of, register
from harness.waiting import until

from equipoise import Client, attribute
from equipoise.accounting import RHO_UNIT, in_rho
from equipoise.cli import main
from equipoise.errors import InvalidArgument, NotFound

GRANT = ("operator", "grant", "add", "shop")
LARGE = ("--data-epsilon", "8", "--data-delta", "1e-6")  # its counts err by less than a record
BUDGET = ("--data-epsilon", "0.5", "--data-delta", "1e-6")


def test_a_grant_by_the_commands_alone(
    place: Path, run: Run, refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    given = run("operator", *GRANT, "ann", *BUDGET)
    grant_id, total = given["round"]["id"], given["plan"]["data_cost"]["rho"]
    assert [each["round"]["id"] for each in run("operator", "operator", "grant", "list")["grants"]] == [grant_id]
    assert run("bob", "budget")["grants"] == []
    assert "no open grant" in refused("bob", "ask", "shop", place / "statements.json", "--error", "20")
    (mine,) = run("ann", "budget")["grants"]
    assert mine["grant"] == {"total": total, "spent": 0, "standing": ""}

    dry = run("ann", "ask", "shop", place / "statements.json", "--error", "40", "--dry-run")
    assert [each["rho"] for each in dry["statements"]] == [625_000_000, 312_500_000, 312_500_000]
    assert [each["standard_error"] for each in dry["statements"]] == pytest.approx([40.0] * 3)
    first = lines(capsys, place / "ann", "ask", "shop", place / "statements.json", "--error", "40")
    assert [len(each["answers"]) for each in first] == [8, 1, 1]
    assert all(cell["standard_error"] * 400 == pytest.approx(40) for each in first for cell in each["answers"])
    # The first statement is a table, whose cells tell a part of the others.
    spent = [each["cost"] for each in first]
    assert spent[0] == 625_000_000
    assert max(spent[1:]) <= 312_500_000
    assert spent == [each["cost"] for each in dry["statements"]]
    again = lines(capsys, place / "ann", "ask", grant_id, place / "statements.json", "--error", "40")
    assert [each["answers"] for each in again] == [each["answers"] for each in first]
    assert [each["cost"] for each in again] == [0, 0, 0] == priced_in_files(place, run, capsys)
    assert run("ann", "budget")["grants"][0]["grant"]["spent"] == sum(spent)
    assert "rho, in zCDP, or epsilon" in refused("ann", "ask", "shop", place / "statements.json")
    assert "is asked of it" in refused("ann", "ask", "shop", place / "statements.json", "--rho", "1")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["budget", "--profile", str(place / "ann")])
    assert in_rho(sum(spent)) in capsys.readouterr().out

    with Client.from_profile(place / "ann") as client:
        (answer,) = client.ask("shop", [attribute("colour") == "red"], rho=0.001)
        assert answer.standard_error == pytest.approx((1 / 0.002) ** 0.5 / 400)
        total_spent = sum(spent) + answer.cost
        with pytest.raises(NotFound):
            list(client.ask("elsewhere", [attribute("colour") == "red"], rho=0.001))
        run("operator", *GRANT, "ann", *BUDGET)
        with pytest.raises(InvalidArgument, match="the id of one of your grants"):
            list(client.ask("shop", [attribute("colour") == "red"], rho=0.001))

    ended = run("operator", "operator", "grant", "end", grant_id)
    assert ended["round"]["state"] == "released"
    assert run("operator", "operator", "grant", "end", grant_id)["round"] == ended["round"]
    history = run("operator", "operator", "budget", "history", "data/shop")["entries"]
    mine = [(each["action"], json.loads(each["events"])) for each in history if each["round_id"] == grant_id]
    assert [action for action, _ in mine] == ["reserve", "run", "reduce", "spend"]
    assert Fraction(mine[-1][1]["events"][0]["rho"]) == Fraction(total_spent, RHO_UNIT)
    run("ann", "wait", grant_id)
    run("ann", "bundle", grant_id, "--out", place / "grant.bundle")
    keys = place / "ann" / "log.vkey"
    checks = run("ann", "verify", place / "grant.bundle", "--key", keys)
    assert any(f"rho {in_rho(total_spent)} was paid" in str(each) for each in checks["checks"])
    assert "there is no such round" in refused("operator", "operator", "grant", "end", "00" * 16)


def priced_in_files(place: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> list[int]:
    """Dry runs of files with prices, and what is paid for one with weights."""
    document = json.loads((place / "statements.json").read_text())
    plain, own = document["statements"], ({"error": 20}, {"rho": 0.002}, {"epsilon": 0.05})
    document["statements"] = [each | price for each, price in zip(plain, own, strict=True)]
    (place / "priced.json").write_text(json.dumps(document))
    dry = run("ann", "ask", "shop", place / "priced.json", "--dry-run")["statements"]
    assert [each["rho"] for each in dry] == [2_500_000_000, 2_000_000_000, 1_250_000_000]
    document["statements"] = [each | {"weight": 1 + ("marginal" in each)} for each in plain]
    (place / "weighted.json").write_text(json.dumps(document))
    shared = run("ann", "ask", "shop", place / "weighted.json", "--rho", "0.001", "--dry-run")["statements"]
    assert [each["rho"] for each in shared] == [500_000_000, 250_000_000, 250_000_000]
    asked = lines(capsys, place / "ann", "ask", "shop", place / "weighted.json", "--rho", "0.0004")
    return [each["cost"] for each in asked]


@pytest.mark.full
def test_an_analyst_sees_its_own_world_and_asks_for_a_grant(
    place: Path, run: Run, refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    assert run("ann", "datasets")["datasets"] == []
    wished = run("ann", "request", "shop", "For the yearly report.", "--epsilon", "0.5")
    assert (wished["number"], wished["state"], wished["epsilon"]) == (1, "waiting", 0.5)
    run("ann", "request", "elsewhere", "Out of interest.")
    assert run("bob", "requests")["requests"] == []
    listed = run("operator", "operator", "grant", "requests")["requests"]
    assert [(each["analyst"], each["number"], each["dataset"]) for each in listed] == [
        ("ann", 2, "elsewhere"),
        ("ann", 1, "shop"),
    ]
    assert "'elsewhere' was asked for" in refused("operator", *GRANT, "ann", *BUDGET, "--request", "2")
    run("operator", "operator", "grant", "decline", "ann", "2", "There is no such dataset.")
    grant_id = run("operator", *GRANT, "ann", *BUDGET, "--request", "1")["round"]["id"]
    assert run("operator", "operator", "grant", "requests")["requests"] == []
    assert len(run("operator", "operator", "grant", "requests", "--all")["requests"]) == 2
    declined, granted = run("ann", "requests")["requests"]
    assert (declined["state"], declined["answer"]) == ("declined", "There is no such dataset.")
    assert (granted["state"], granted["grant_id"]) == ("granted", grant_id)
    assert "was granted before" in refused("operator", "operator", "grant", "decline", "ann", "1", "No.")

    (own,) = run("ann", "datasets")["datasets"]
    assert (own["dataset"]["name"], own["dataset"]["records"], own["dataset"]["account"]) == ("shop", 400, "")
    assert grant_id in own["open_grants"]
    assert (own["open_rounds"], own["open_sessions"], own["measured"]) == ([], [], [])
    assert run("bob", "datasets")["datasets"] == []
    asked = lines(capsys, place / "ann", "ask", grant_id, place / "statements.json", "--error", "40")
    spent = run("ann", "budget", grant_id)["statements"]
    assert [each["cost"] for each in spent] == [each["cost"] for each in asked]
    assert [each["rho"] for each in spent] == [625_000_000, 312_500_000, 312_500_000]
    assert "there is no such round" in refused("bob", "budget", grant_id)
    dry = ("ann", "ask", grant_id, place / "statements.json", "--dry-run")
    known = run(*dry, "--error", "40")
    own_grant = run("ann", "budget", grant_id)["grants"][0]["grant"]
    assert (known["at_most"], known["left"]) == (0, own_grant["total"] - own_grant["spent"])
    finer = run(*dry, "--rho", "0.01", "--weights", "2,1,1")
    assert [each["rho"] for each in finer["statements"]] == [5 * 10**9, 25 * 10**8, 25 * 10**8]
    assert "as many as there are" in refused(*dry, "--rho", "0.01", "--weights", "2,1")
    for said in (["datasets", "shop"], ["budget", grant_id], ["requests"]):
        with pytest.raises(SystemExit):
            main([*said, "--profile", str(place / "ann")])
    shown = capsys.readouterr().out
    assert all(each in shown for each in ("Nothing is measured", '{"marginal": ["colour", "size"]}', "yearly"))


def test_a_grant_is_planned_before_it_is_given(
    place: Path, run: Run, refused: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    planning = ("operator", "operator", "grant", "plan", "shop")
    planned = run(*planning, "ann", *BUDGET)
    assert "nobody" in refused(*planning, "nobody", *BUDGET)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*planning[1:], "ann", *BUDGET, "--profile", operator_of(place)])
    assert "could be given now" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([*planning[1:], "ann", *LARGE, "--profile", operator_of(place)])
    said = capsys.readouterr().out
    assert (ended.value.code, "needs --accept noise" in said, "if the dangers are accepted" in said) == (
        1,
        True,
        True,
    )
    with pytest.raises(SystemExit) as ended:
        main([*planning[1:], "ann", *LARGE, "--accept", "noise", "--profile", operator_of(place)])
    assert (ended.value.code, "noise" in refused("operator", *GRANT, "ann", *LARGE)) == (0, True)
    assert run("operator", "operator", "grant", "list")["grants"] == []
    given = run("operator", *GRANT, "ann", *BUDGET)
    assert planned["total"] == given["plan"]["data_cost"]["rho"]
    (one,) = [each for each in planned["shared"] if each["statements"] == 100]
    with Client.from_profile(place / "ann") as client:
        (answer,) = client.ask("shop", [attribute("colour") == "red"], rho=one["rho"] / RHO_UNIT)
    assert (answer.standard_error or 0) * 400 == pytest.approx(one["condition_error"], rel=1e-3)


@pytest.mark.slow
def test_the_plan_of_a_grant_shows_what_the_standing_measurement_tells(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    planning = ("grant", "plan", "shop", "ann", *BUDGET)
    assert run("operator", "operator", *planning)["measured"] == []
    run("operator", "operator", "dataset", "measure", "shop", *BUDGET, "--release-grid", "1")
    until(lambda: run("operator", "operator", *planning)["measured"])  # it is released a second later at most
    planned = run("operator", "operator", *planning)
    ((table,), (improved,)) = planned["measured"], planned["improved"]
    for error, paid in zip(improved, planned["shared"], strict=True):
        assert error**-2 == pytest.approx(table["standard_error"] ** -2 + paid["marginal_error"] ** -2)
    assert table["attributes"] == ["colour", "size"]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["operator", *planning, "--profile", operator_of(place)])
    assert "measured table" in capsys.readouterr().out
    run("operator", *GRANT, "ann", *BUDGET)
    (own,) = run("ann", "datasets", "shop")["datasets"]
    assert own["measured"] == [table]  # what its analyst is shown


@pytest.mark.full
def test_a_grant_is_asked_in_sql(place: Path, run: Run, refused: Callable[..., str]) -> None:
    register(run, place)
    grant_id = run("operator", *GRANT, "ann", *BUDGET)["round"]["id"]
    question = "SELECT COUNT(*) AS n FROM shop WHERE colour = 'red'"
    ((red,),) = run("ann", "sql", grant_id, question, "--rho", "0.001")["answers"]
    assert red["n_low"] <= red["n"] <= red["n_high"]
    assert "rho, in zCDP, or epsilon" in refused("ann", "sql", grant_id, question)
    ((same,),) = run("ann", "sql", "shop", question, "--epsilon", "0.01")["answers"]  # by the dataset's name
    assert (same, run("ann", "budget", "shop")["grants"][0]["grant"]["spent"]) == (red, 10**9)
    (expected,) = run("ann", "sql", "shop", f"EXPLAIN {question}", "--relative", "50%")["expected"]
    assert expected["unit"] == "records"
    assert "no open grant" in refused("bob", "sql", "shop", question, "--rho", "0.001")


@pytest.mark.full
def test_programs_of_one_analyst_ask_a_grant_at_the_same_time(place: Path, run: Run) -> None:
    register(run, place)
    grant_id = run("operator", *GRANT, "ann", *BUDGET)["round"]["id"]

    def program(number: int) -> list[tuple[int, int]]:
        told = []
        with Client.from_profile(place / "ann") as client:
            for size in "smlx":
                asked = attribute("size") == size
                (answer,) = client.ask(grant_id, [asked], rho=(number + 1) * 1e-6)
                assert answer.statement == asked
                told.append((answer.sequence, answer.cost))
        return told

    with ThreadPoolExecutor(3) as pool:
        told = [each for program_told in pool.map(program, range(3)) for each in program_told]
    assert sorted(sequence for sequence, _ in told) == list(range(1, 13))
    assert sum(cost for _, cost in told) == run("ann", "budget")["grants"][0]["grant"]["spent"] == 4 * 3 * 10**6


@pytest.mark.full
def test_statements_that_are_typed_say_their_own_prices(
    place: Path,
    run: Run,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    register(run, place)
    run("operator", *GRANT, "ann", *BUDGET)
    red = {"among": {"attribute": "colour", "categories": ["red"]}}
    typed = [{**red, "rho": 1e-6}, {**red, "error": 300}, red, {"marginal": ["colour"], "epsilon": 0.01}]
    monkeypatch.setattr("sys.stdin", StringIO("\n".join(map(json.dumps, typed))))
    assert len(lines(capsys, place / "ann", "ask", "shop", "--rho", "0.002")) == len(typed)
    spent = run("ann", "budget", "shop")["statements"]
    assert [each["rho"] for each in spent] == [10**6, 5_555_556, 2 * 10**9, 5 * 10**7]
    monkeypatch.setattr("sys.stdin", StringIO("\n".join(map(json.dumps, typed))))
    dry = run("ann", "ask", "shop", "--rho", "0.002", "--dry-run")["statements"]
    assert [each["rho"] for each in dry] == [each["rho"] for each in spent]
    monkeypatch.setattr("sys.stdin", StringIO())
    assert "one a line" in refused("ann", "ask", "shop", "--rho", "0.002", "--dry-run")
    for wrong, said in (({**red, "weight": 2}, "weight"), ({**red, "rho": 1, "error": 1}, "one price")):
        monkeypatch.setattr("sys.stdin", StringIO(json.dumps(wrong)))
        assert said in refused("ann", "ask", "shop", "--rho", "0.002")


@pytest.mark.nightly
def test_the_sql_of_a_grant_is_committed_to_kept_and_verified(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    grant_id = run("operator", *GRANT, "ann", *BUDGET)["round"]["id"]
    question = "SELECT COUNT(*) AS n FROM shop WHERE colour = 'red'"
    ((red,),) = run("ann", "sql", grant_id, question, "--rho", "0.001")["answers"]
    same = "SELECT COUNT(*) AS reds FROM shop WHERE colour IN ('red')"
    ((again,),) = run("ann", "sql", grant_id, same, "--rho", "0.001")["answers"]
    assert [again["reds"], again["reds_low"]] == [red["n"], red["n_low"]]
    run("ann", "sql", grant_id, question, "--rho", "0.001")
    with Client.from_profile(place / "ann") as client:
        list(client.ask(grant_id, [attribute("colour") == "red"], rho=0.001))
    assert [each["cost"] for each in run("ann", "budget", grant_id)["statements"]] == [10**9, 0, 0, 0]
    kept = sorted((place / "ann" / "sql").iterdir(), key=lambda path: "reds" in path.read_text())
    assert [path.name.startswith(f"{grant_id}.") for path in kept] == [True, True]
    run("operator", "operator", "grant", "end", grant_id)
    run("ann", "wait", grant_id)
    run("ann", "bundle", grant_id, "--out", place / "grant.bundle")

    def verified(*options: object) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main(["verify", str(place / "grant.bundle"), "--profile", str(place / "ann"), *map(str, options)])
        return capsys.readouterr().out

    honest = verified()
    assert "; 3 translated from your own questions, as they commit to" in honest
    assert "All 13 checks hold" in honest
    assert "; 2 translated from your own questions" in verified("--statements", kept[0])
    text = kept[1].read_text()
    kept[1].write_text(text.replace(" AS reds", " AS blues"))
    assert f"no statement of the session commits to {kept[1]}: other questions were asked" in verified()
    comments, _, _ = text.partition("\n\n")
    kept[1].write_text(f"{comments}\n\nSELECT COUNT(*) AS reds FROM shop WHERE colour = 'green'")
    assert "which come to other statements" in verified()
