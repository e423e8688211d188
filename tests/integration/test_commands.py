"""A whole round by the commands alone, and what they say to wrong input: one clear line, and the server goes on."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from harness.client_command import answered, refusal
from harness.server_process import make_state, running

from equipoise.cli import main
from equipoise.model.accounts import counted_digits
from equipoise.profile.profile import Profile

SCHEMA = {
    "version": 1,
    "attributes": [
        {"name": "colour", "categories": ["red", "green"]},
        {"name": "size", "categories": list("smlx")},
    ],
}
STATEMENTS: list[object] = [
    {"marginal": ["colour", "size"]},
    {"among": {"attribute": "colour", "categories": ["red"]}},
    {"not": {"any": [{"among": {"attribute": "size", "categories": ["s", "m"]}}]}},
]
TERMS = ["shop", "--share", "ann=3/10", "--share", "bob=3/10", "--data-delta", "1e-4", "--analyst-delta", "1e-4"]
BUDGETS = ["--data-epsilon", "8", "--analyst-epsilon", "8"]
PLAN = ["operator", "round", "plan"]
GAME = [
    "--mechanism",
    "equilibrium",
    "--options",
    '{"prior": "none"}',
]  # which charges everybody and makes a synopsis

MECHANISMS = Path(__file__).parents[2] / "docs" / "mechanisms" / "equilibrium.md"

Run = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    state = make_state(tmp_path / "state")
    rows = [f"{('red', 'green')[row % 3 % 2]},{'smlx'[row * row % 7 % 4]}" for row in range(400)]
    (state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "statements.json").write_text(json.dumps({"version": 1, "statements": STATEMENTS}))
    with running(state) as server:
        for name in ("operator", "auditor"):
            profile = state / "profiles" / name
            target = Profile.load(profile).target
            path = profile / "profile.toml"
            path.write_text(path.read_text().replace(target, f"127.0.0.1:{server.port}"))
        yield tmp_path


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as `who` with --json and gives the object it prints."""

    def command(who: str, *arguments: object) -> Any:
        profiles = place / "state" / "profiles" if who in ("operator", "auditor") else place
        return answered(capsys, profiles / who, *arguments)

    return command


@pytest.fixture
def refused(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail with exit code 1, and gives what it says."""

    def command(who: str, *arguments: object) -> str:
        profiles = place / "state" / "profiles" if who in ("operator", "auditor") else place
        return refusal(capsys, profiles / who, *arguments)

    return command


def operator_of(place: Path) -> str:
    """The operator's profile."""
    return str(place / "state" / "profiles" / "operator")


def register(run: Run, place: Path, epsilon: int = 20) -> None:
    caps = ("--data-epsilon", epsilon, "--data-delta", "1e-4", "--analyst-epsilon", 20, "--analyst-delta", "1e-4")
    schema = ("--source", "shop.csv", "--schema", place / "schema.json")
    assert run("operator", "operator", "dataset", "register", "shop", *schema, *caps)["records"] == 400
    for name in ("ann", "bob"):
        run("operator", "operator", "analyst", "add", name, "--out", place / name)


def open_round(run: Run) -> str:
    detail = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, *GAME)
    return str(detail["round"]["id"])


def test_a_whole_round(run: Run, place: Path) -> None:
    register(run, place)
    known = run("ann", "whoami")
    assert (known["name"], known["role"]) == ("ann", "analyst")
    (listed, _) = run("operator", "operator", "analyst", "list")["analysts"]
    assert (listed["name"], listed["certified_until"]) == ("ann", known["certified_until"])
    assert run("operator", "operator", "dataset", "list")["datasets"][0]["name"] == "shop"
    assert run("operator", "operator", "round", "plan", *TERMS, *BUDGETS)["plan"]["max_half_width"] > 0
    round_id = open_round(run)
    assert run("ann", "rounds")["rounds"][0]["terms"]["shares"][0] == {
        **{"analyst": "ann", "statements": 3, "queries": 10},
        **{"sensitivity": 0, "support": 0},
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
    raised = run("operator", "operator", "budget", "set-cap", "data/shop", "--epsilon", 30, "--delta", "1e-4")
    assert raised["cap"] == {"epsilon": 30, "delta": 1e-4}
    assert run("operator", "operator", "dataset", "retire", "shop")["retire_time"] is not None
    assert run("auditor", "audit", "rounds")["rounds"][0]["round"]["id"] == round_id
    actions = [each["action"] for each in run("auditor", "audit", "journal")["entries"]]
    assert {"reserve", "spend"} <= set(actions)


def test_enrolling_renewing_and_leaving(run: Run, refused: Callable[..., str], place: Path) -> None:
    analyst = ("operator", "operator", "analyst")
    made = run("ann", "enroll")
    assert run("ann", "enroll") == made
    assert "profile.toml" in refused("ann", "whoami")
    admitted = run(*analyst, "add", "ann", "--request", made["request"], "--out", place / "ann.json")
    assert admitted["fingerprint"] == made["fingerprint"]
    # Sent again, the same request gets the same certificate; another one under the name gets none.
    bundle = (place / "ann.json").read_bytes()
    run(*analyst, "add", "ann", "--request", made["request"], "--out", place / "ann.json")
    assert (place / "ann.json").read_bytes() == bundle
    eve = run("eve", "enroll")
    assert "'ann' is already registered" in refused(*analyst, "add", "ann", "--request", eve["request"])
    assert "holds no key that this certificate is for" in refused("eve", "enroll", "--bundle", place / "ann.json")
    installed = run("ann", "enroll", "--bundle", place / "ann.json")
    assert (installed["name"], installed["authority"]) == ("ann", admitted["authority"])
    first = run("ann", "whoami")
    assert (first["name"], first["role"]) == ("ann", "analyst")
    assert "--renew" in refused("ann", "enroll")

    renewal = run("ann", "enroll", "--renew")
    assert renewal["fingerprint"] != made["fingerprint"]
    run(*analyst, "renew", "ann", "--request", renewal["request"], "--out", place / "new.json")
    assert run("ann", "whoami") == first
    shutil.copytree(place / "ann", place / "old")
    run("ann", "enroll", "--bundle", place / "new.json")
    assert run("ann", "whoami")["name"] == run("old", "whoami")["name"] == "ann"

    run(*analyst, "revoke", "ann")
    for who in ("ann", "old"):
        assert "not, or no longer, in force" in refused(who, "whoami")
    assert run(*analyst, "list")["analysts"][0]["certified_until"] is None
    run("again", "enroll")
    run(*analyst, "renew", "ann", "--request", place / "again" / "request.pem", "--out", place / "again.json")
    run("again", "enroll", "--bundle", place / "again.json")
    assert run("again", "whoami")["name"] == "ann"
    run(*analyst, "delete", "ann")
    assert "not, or no longer, in force" in refused("again", "whoami")
    assert run(*analyst, "list")["analysts"] == []
    assert "its name stays taken" in refused(*analyst, "add", "ann", "--request", eve["request"])
    for step in ("revoke", "delete"):
        assert "there is no such analyst" in refused(*analyst, step, "ann")


@pytest.mark.full
def test_exported_charges_add_up_to_what_is_shown(run: Run, place: Path) -> None:
    """By the script in the documentation, which knows nothing of ours but the exported file."""
    (script,) = re.findall(r"^```python\n(.*?)^```", MECHANISMS.read_text(), re.MULTILINE | re.DOTALL)
    register(run, place, epsilon=50)
    smaller = ["--data-epsilon", "4", "--analyst-epsilon", "4"]
    for options in (BUDGETS, smaller, [*BUDGETS, "--unit", "analyst"], [*smaller, "--unit", "analyst"]):
        detail = run("operator", "operator", "round", "open", *TERMS, *options, *GAME)
        round_id = detail["round"]["id"]
        run("ann", "submit", round_id, place / "statements.json")
        run("operator", "operator", "round", "seal", round_id)
        if options is smaller:
            run("operator", "operator", "round", "run", round_id)
            run("operator", "operator", "round", "release", round_id)
    last = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, "--unit", "analyst", *GAME)
    given_back = last["round"]["id"]
    run("ann", "submit", given_back, place / "statements.json")
    run("operator", "operator", "round", "seal", given_back)
    run("operator", "operator", "round", "abort", given_back, "--reason", "a test")
    shown = {each["name"]: each for each in run("operator", "operator", "budget", "show", "shop")["accounts"]}
    added = {}
    for name, account in shown.items():
        exported = run("operator", "operator", "budget", "export", name)
        assert run("auditor", "audit", "export", name) == exported
        told = subprocess.run(
            [sys.executable, "-c", script], input=json.dumps(exported), capture_output=True, text=True, check=True
        )
        assert float(told.stdout) == pytest.approx(account["committed"]["epsilon"], rel=1e-4)
        added[name] = [[(each["state"], each["mechanism"]) for each in charges] for charges in exported["sums"]]
    reserved, spent = ("reserved", "equilibrium"), ("spent", "equilibrium")
    assert added["data/shop"] == [[reserved, spent, reserved, reserved]]
    # The worst round of either unit is what an account shows whose statements live in one round only; the others'
    # rounds add, and are those that protect whole analysts.
    assert added["analyst/shop/query/ann"] == [[reserved], [spent], [reserved], [reserved]]
    assert added["analyst/shop/analyst/ann"] == [[reserved, reserved]]
    worst = shown["analyst/shop/query/ann"]
    assert worst["spent"]["epsilon"] <= 4 < worst["committed"]["epsilon"] <= 8
    assert shown["analyst/shop/analyst/ann"]["committed"]["epsilon"] > 8


def test_a_round_with_a_closing_time_needs_no_operator(run: Run, place: Path) -> None:
    register(run, place)
    close = (datetime.now(UTC) + timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    detail = run("operator", "operator", "round", "open", *TERMS, *BUDGETS, "--close", close, "--release-grid", 2)
    assert detail["round"]["terms"]["close_time"] == close.replace("Z", "+00:00")
    assert detail["round"]["terms"]["release_grid_seconds"] == 2
    run("bob", "submit", detail["round"]["id"], place / "statements.json")
    assert run("bob", "wait", detail["round"]["id"])["state"] == "released"
    assert run("bob", "results", detail["round"]["id"])["queries"] == 10


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
        ("operator", "operator", "budget", "set-cap", "data/shop", "--epsilon", "30", "--delta", "1e-4"),
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
    assert "--out" in refused("ann", "results", round_id, "--out", "results.xls")
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
            assert f"{told['expected_error']:.2g}" in line
            assert (f"{told['max_half_width']:.4f}" if told["max_half_width"] < 1 else " 1 ") in line
            assert line.startswith(" > ") is (each["mechanism"] == chosen["mechanism"])


def test_a_cap_that_is_too_small_is_named(
    run: Run, refused: Callable[..., str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place, epsilon=1)
    told = refused("operator", "operator", "round", "open", *TERMS, *BUDGETS)
    assert "account data/shop: no budget left for this round: it exceeds the limit of divergence" in told
    # A plan is shown whole and says the same, and its exit status says it too; nothing was opened by it.
    for form in (["--json"], []):
        with pytest.raises(SystemExit) as ended:
            main([*PLAN, *map(str, (*TERMS, *BUDGETS)), *form, "--profile", operator_of(place)])
        assert ended.value.code == 1
        shown = capsys.readouterr().out
        if form:
            planned = json.loads(shown)
            data, analyst = planned["plan"]["charges"]
            assert (data["account"], analyst["account"]) == ("data/shop", "analyst/shop/query/ann")
            assert data["refusal"] in told
            assert analyst["refusal"] == ""
            assert data["divergence"] > data["max_divergence"] > 0
            assert data["delta"] < data["max_delta"] == 5e-5
        else:
            assert f"admitted now           no: {data['refusal']}" in shown
            assert f"counts on              data/shop: divergence {counted_digits(data['divergence'])} of " in shown
    assert run("operator", "operator", "round", "list")["rounds"] == []
    assert len(run("operator", "operator", "budget", "show", "shop")["accounts"]) == 1


def test_a_plan_that_every_account_admits_says_so(
    run: Run, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register(run, place)
    with pytest.raises(SystemExit) as ended:
        main([*PLAN, *map(str, (*TERMS, *BUDGETS)), "--profile", operator_of(place)])
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert "admitted now           yes, by every account" in shown
    assert "analyst/shop/query/ann: only the worst round counts; alone (" in shown


def test_a_certificate_of_another_authority_is_refused(refused: Callable[..., str], place: Path) -> None:
    other = make_state(place / "other") / "profiles" / "operator"
    path = other / "profile.toml"
    known = Profile.load(place / "state" / "profiles" / "operator").target
    path.write_text(path.read_text().replace(Profile.load(other).target, known))
    shutil.copytree(other, place / "stranger")
    assert "not a server that this profile's authority certified" in refused("stranger", "whoami")
    # Even one who trusts our server is not let in with a certificate that it did not issue.
    shutil.copy(place / "state" / "profiles" / "operator" / "ca.pem", place / "stranger" / "ca.pem")
    assert "certificate.pem: was not issued by the authority in ca.pem" in refused("stranger", "whoami")
    (place / "stranger" / "key.pem").write_text("no key")
    assert "key.pem: is not a private key" in refused("stranger", "whoami")


def test_accounts_count_as_they_were_registered(run: Run, refused: Callable[..., str], place: Path) -> None:
    given = ("--source", "shop.csv", "--schema", place / "schema.json")
    caps = ("--data-epsilon", 20, "--data-delta", "1e-4", "--analyst-epsilon", 20)
    ask = ("operator", "operator", "dataset", "register", "shop", *given, *caps)
    assert "data_order" in refused(*ask, "--data-order", 0.5)
    run(*ask, "--data-order", 3, "--analyst-order", 0)
    (shown,) = run("operator", "operator", "budget", "show", "shop")["accounts"]
    assert (shown["order"], shown["divergence"]) == (3, 0)
    assert 0 < shown["max_divergence"] < 20
    assert (
        run("operator", "operator", "budget", "set-cap", "data/shop", "--epsilon", 9, "--delta", 1e-4)["order"] == 3
    )
    opened, _ = run("operator", "operator", "budget", "history", "data/shop")["entries"]
    assert json.loads(opened["events"])["order"] == 3
    again = (*ask[:4], "again", *given, *caps)
    assert "people: must be 'same-as:shop'" in refused(*again, "--people", "new")
    assert run(*again, "--people", "new", "--new-budgets")["account"] == "again"
    assert run("auditor", "audit", "export", "data/shop")["order"] == 3


SESSION = ["shop", "--share", "ann=5/40", "--share", "bob=5/40", "--data-epsilon", "8", "--data-delta", "1e-4"]


def lines(capsys: pytest.CaptureFixture[str], profile: Path, *arguments: object) -> list[Any]:
    """The objects that a command prints with --json, one a line."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--profile", str(profile), "--json"])
    printed = capsys.readouterr()
    assert not ended.value.code, printed.err
    return [json.loads(line) for line in printed.out.splitlines()]


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


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True
