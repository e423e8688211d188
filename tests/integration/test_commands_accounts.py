"""Accounts and certificates by the commands alone: caps, charges, and who is let in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS_TYPED
from harness.server_process import make_state
from harness.shop_commands import BUDGETS, GAME, PLAN, TERMS, Run, operator_of, register

from equipoise.cli import main
from equipoise.model.accounts import counted_digits
from equipoise.profile.profile import Profile

MECHANISMS = Path(__file__).parents[2] / "docs" / "mechanisms" / "equilibrium.md"


@pytest.mark.full
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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
def test_accounts_count_as_they_were_registered(run: Run, refused: Callable[..., str], place: Path) -> None:
    given = ("--source", "shop.csv", "--schema", place / "schema.json")
    caps = ("--data-epsilon", 20, "--data-delta", "1e-4", "--analyst-epsilon", 20, *LARGE_CAPS_TYPED)
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
