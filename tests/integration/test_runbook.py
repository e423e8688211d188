"""The runbook, carried out as it stands: a backup, a restore over what was spent since, the repair, going on."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.client_command import answered
from harness.dangers import LARGE_CAPS_TYPED
from harness.rounds_bench import RECORDS, SCHEMA, write_table
from harness.runbook_place import Place, block, said
from harness.stores import find_binaries

from equipoise.cli import main as client_main
from equipoise_lab.demo.process import free_address
from equipoise_server.ledger.caps import Cap, at_order, limits

PROGRAMS = {"equipoise-server": "equipoise_server.cli", "python3": None}
CAP = Cap(20.0, 1e-4)
STATEMENTS = {"version": 1, "statements": [{"marginal": ["colour", "size"]}]}


@pytest.fixture
def place(tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]) -> Place:
    programs, state = tmp_path / "programs", tmp_path / "state"
    programs.mkdir()
    for name, module in PROGRAMS.items():
        rest = "" if module is None else f" -c 'from {module} import main; main()'"
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{rest} "$@"\n')
        (programs / name).chmod(0o755)
    # A cluster's own programs first: another version's pg_dump may not understand it.
    path = [str(place) for place in (programs, find_binaries(), os.environ.get("PATH")) if place]
    variables = {
        "PATH": os.pathsep.join(path),
        "STATE": str(state),
        "BACKUP": str(tmp_path / "backup"),
        "DATASET": "shop",
    }
    place = Place(tmp_path, state, variables, capsys)
    store = "sqlite:///equipoise.db" if store_url.startswith("sqlite") else store_url
    place.done(f"equipoise-server init --state \"$STATE\" --listen {free_address()} --store '{store}'")
    write_table(state / "data")
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    (tmp_path / "statements.json").write_text(json.dumps(STATEMENTS))
    return place


def begun(place: Place) -> None:
    """A dataset and its analysts."""
    caps = [
        word
        for whose in ("data", "analyst")
        for word in (f"--{whose}-epsilon", CAP.epsilon, f"--{whose}-delta", CAP.delta)
    ] + [*LARGE_CAPS_TYPED]
    registered = place.operate(
        "dataset", "register", "shop", "--source", "shop.csv", "--schema", place.directory / "schema.json", *caps
    )
    assert registered["records"] == RECORDS
    for who in ("ann", "bob"):
        place.operate("analyst", "add", who, "--out", place.profile(who))


def lose_the_machine(place: Place) -> None:
    """What is left is the backup, the private table and the profiles; and PostgreSQL, on a machine of its own."""
    lost = place.state.rename(place.directory / "lost")
    assert "the guard" in place.failed(block("Restore"))
    # Where the store was a file of the machine, there is none to be kept.
    assert ("is kept as" in place.done(block("Restore", 1))) is not (lost / "equipoise.db").exists()
    (place.state / "data").rmdir()
    for name in ("data", "profiles"):
        (lost / name).rename(place.state / name)


@dataclass(frozen=True)
class Day:
    """What was there before the backup was put back: a round released before it, and one since."""

    kept: str
    answers: Any
    waiting: str
    receipts: Any
    spent: dict[str, Any]


def spend_after_a_backup(place: Place) -> Day:
    """A day with a backup in its middle, on a server that runs all the time."""
    with place.serving():
        begun(place)
        kept = place.opened()
        place.submitted(kept)
        answers = place.released(kept)
        waiting = place.opened()
        receipts = place.submitted(waiting)
        place.done(block("Backup"))
        # Since then budget was really spent: what waited in the copy was released, and has been read.
        place.released(waiting)
        place.ask("auditor", "audit", "verify")
        assert place.ask("ann", "bundle", waiting, "--out", place.directory / "lost.bundle")["verified"]
        place.operate("analyst", "add", "cyd", "--out", place.profile("cyd"))
        spent = place.charged()
        assert "store: " in place.failed(block("Restore", 1)), "restored under a server that runs"
    return Day(kept, answers, waiting, receipts, spent)


def go_on(place: Place, day: Day) -> None:
    """After the repair: nothing under-counted, nothing accepted or released lost, and rounds until the cap."""
    # To the last unit, though the copy knew only half of it.
    assert place.charged() == day.spent
    assert place.answers(day.kept) == day.answers
    # What was accepted before the backup was accepted, and the round is over for all to see.
    assert place.submitted(day.waiting) == day.receipts
    shown = place.ask("bob", "show", day.waiting)
    assert (shown["state"], shown["abort_reason"]) == ("aborted", "the server was restored from a backup")
    assert "the round is aborted" in place.refused("operator", "operator", "round", "run", day.waiting)
    assert "not, or no longer, in force" in place.refused("cyd", "whoami")
    place.operate("analyst", "add", "cyd", "--out", place.profile("cyd again"))
    assert place.ask("cyd again", "whoami")["name"] == "cyd"
    new = place.opened()
    place.submitted(new)
    assert place.released(new) != day.answers
    # As many rounds fit as if there had been no restore: two before it, one since, and no more than these.
    one = place.operate("budget", "history", "data/shop")["entries"][1]["cost"]["divergence"]
    for _ in range(3, limits(at_order("cap", CAP)).divergence // one):
        place.operate("round", "seal", place.opened())
    place.refuse_for_want_of_budget()


def accept_the_loss(place: Place, day: Day) -> None:
    """An auditor and an analyst who saw the lost part find it missing, are told how to go on, and do."""
    (failed,) = [each for each in audited(place)["checks"] if each["outcome"] == "failed"]
    assert failed["number"] == "A3"
    place.ask("auditor", *failed["detail"].rpartition(": ")[2].split()[1:])
    audit = audited(place)
    assert audit["passed"]
    assert any("has accepted that the log of size" in each for each in audit["remarks"])

    failed = verified(place, day)["checks"][-1]
    assert failed["number"] == 13
    assert place.ask("ann", *failed["found"].rpartition(": ")[2].split()[1:])["accepted"]
    assert verified(place, day)["verified"]


def audited(place: Place) -> Any:
    """What an audit of everything says, also where it does not pass."""
    return said_by(place, "auditor", "audit", "verify")


def verified(place: Place, day: Day) -> Any:
    """What ann's own verification of a round says that is left."""
    return said_by(place, "ann", "bundle", day.kept, "--out", str(place.directory / "kept.bundle"))


def said_by(place: Place, who: str, *words: str) -> Any:
    """What a check says, also where it fails."""
    with pytest.raises(SystemExit):
        client_main([*words, "--json", "--profile", str(place.profile(who))])
    return json.loads(place.capsys.readouterr().out)


def raise_the_cap(place: Place) -> None:
    """What was written off without a guard takes all of a data account's epsilon and delta."""
    place.refuse_for_want_of_budget()
    words = shlex.split(block("The guard is lost").replace("$DATASET", "shop"))
    assert (words[-4], words[-2]) == ("--epsilon", "--delta")
    raised = (*words[1:-3], 3 * CAP.epsilon, *LARGE_CAPS_TYPED, "--delta")
    assert "below what is spent" in place.refused("operator", *raised, CAP.delta / 2)
    # More of epsilon alone is not enough: nothing that costs any delta fits.
    place.ask("operator", *raised, CAP.delta)
    place.refuse_for_want_of_budget()
    place.ask("operator", *raised, 2 * CAP.delta)
    assert place.opened()
    *looks, _ = block("Moving a budget").replace("$DATASET", "shop").splitlines()
    for look in looks:
        place.ask("operator", *shlex.split(look)[1:])


@pytest.mark.nightly
def test_yesterdays_backup_over_today_is_refused_and_repaired(place: Place) -> None:
    write_off, verify, serve = block("A restored store is refused").splitlines()
    day = spend_after_a_backup(place)
    assert re.search(said("A restored store is refused", place.state), place.failed(block("Restore")))
    assert place.done(verify)
    assert "ledger write-off" in place.done(block("Restore", 1))
    for commands in (serve, verify):
        assert re.search(said("A restored store is refused", place.state), place.failed(commands))
    told = place.done(write_off)
    assert day.waiting in told
    assert "written off on data/shop: divergence " in told
    assert "all agree" in place.done(verify)
    with place.serving():
        go_on(place, day)
        accept_the_loss(place, day)
    lose_the_machine(place)
    assert re.search(said("The guard is lost", place.state), place.failed(serve.replace(" serve", " check")))
    assert "There was no guard" in place.done(write_off)
    with place.serving():
        raise_the_cap(place)


@pytest.mark.nightly
@pytest.mark.parametrize("empty_store", ["sqlite"], indirect=True)
def test_expiring_and_stolen_keys(place: Place) -> None:
    certify, check = block("The server's certificate").splitlines()
    # As after a crash between the two files: no server starts, and the same command repairs it.
    (place.state / "keys" / "server.key").write_bytes((place.state / "ca" / "authority.key").read_bytes())
    assert "equipoise-server certificate renew makes both anew" in place.held(check, code=1)
    place.held(certify)
    assert "All is well" in place.held(check)
    revoke, listed = block("Somebody must be kept out", 1).splitlines()
    renew, add = block("Keys of operators and auditors", 0), block("Keys of operators and auditors", 1)
    place.variables.update(WHO="operator", BUNDLE=str(place.directory / "bundle.json"))
    with place.serving():
        place.operate("analyst", "add", "ann", "--out", place.profile("ann"))
        place.ask("operator", *shlex.split(block("Somebody must be kept out").replace("$ANALYST", "ann"))[1:])
        assert "not, or no longer, in force" in place.refused("ann", "whoami")
        place.variables["REQUEST"] = place.ask("operator", "enroll", "--renew")["request"]
        place.held(revoke)
        assert "not, or no longer, in force" in place.refused("operator", "whoami")
        assert re.search(r"operator +operator +revoked", place.held(listed))
        place.held(renew)
        place.ask("operator", "enroll", "--bundle", place.variables["BUNDLE"])
        assert place.ask("operator", "whoami")["role"] == "operator"
        place.variables["REQUEST"] = place.ask("second", "enroll")["request"]
        place.held(add)
        place.ask("second", "enroll", "--bundle", place.variables["BUNDLE"])
        who = place.ask("second", "whoami")
        assert (who["name"], who["role"]) == ("second-operator", "operator")


@pytest.mark.full
@pytest.mark.parametrize("empty_store", ["sqlite"], indirect=True)
def test_the_authority_is_exchanged(place: Place) -> None:
    rotate, check = block("The authority").splitlines()
    follow = shlex.split(block("The authority", 1).replace('--profile "$PROFILE"', ""))[1:]
    with place.serving():
        place.held(rotate)
        assert "All is well" in place.held(check)
        assert "not all have used a certificate" in place.held(block("The authority", 2).strip(), code=1)
        for who in ("operator", "auditor"):
            assert answered(place.capsys, place.state / "profiles" / who, *follow)["changed"]
        place.held(block("The authority", 2).strip())
        assert place.ask("operator", "whoami")["role"] == "operator"
        assert "Confirmed 20" in place.held(block("The clock is not trusted").strip())
