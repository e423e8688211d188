"""The runbook, carried out as it stands: a backup, a restore over what was spent since, the repair, going on."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration.client_command import answered, refusal
from integration.rounds_bench import RECORDS, SCHEMA, write_table
from sqlalchemy.engine import make_url
from stores import find_binaries

from equipoise_server.demo.process import free_address, serving
from equipoise_server.ledger.caps import Cap, limits

RUNBOOK = (Path(__file__).parents[2] / "deploy" / "RUNBOOK.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))
PROGRAMS = {"equipoise-server": "equipoise_server.cli", "python3": None}
CAP = Cap(20.0, 1e-4)
TERMS = ("shop", "--share", "ann=2/9", "--share", "bob=2/9", "--data-epsilon", 8, "--data-delta", 1e-4)
OPTIONS = ("--analyst-epsilon", 8, "--options", '{"rounds": 2, "play": "mixed"}', "--release-grid", 1)
STATEMENTS = {"version": 1, "statements": [{"marginal": ["colour", "size"]}]}


def block(section: str, number: int = 0) -> str:
    """A block of commands of a section."""
    found: list[str] = re.findall(r"^```sh\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)
    return found[number]


def said(section: str, state: Path) -> str:
    """What a section quotes as an error, as a regular expression for any numbers."""
    quoted = " ".join(re.findall(r"^    (.+)$", SECTIONS[section], re.MULTILINE))
    return re.sub(r"\d+", r"\\d+", re.escape(quoted).replace("STATE", re.escape(str(state))))


@dataclass(frozen=True)
class Place:
    """A deployment as the runbook sees it, and its people."""

    directory: Path
    state: Path
    variables: dict[str, str]
    capsys: pytest.CaptureFixture[str]

    def shell(self, commands: str) -> subprocess.CompletedProcess[str]:
        """Carry out commands of the runbook up to the first that fails."""
        return subprocess.run(
            ["sh", "-euc", commands],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def done(self, commands: str) -> str:
        """What commands print that must succeed."""
        ended = self.shell(commands)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def serving(self) -> AbstractContextManager[None]:
        """The server, as the command starts it."""
        return serving(self.state, self.directory / "server.log")

    def profile(self, who: str) -> Path:
        """Of the operator, or of an analyst."""
        return self.state / "profiles" / who if who == "operator" else self.directory / who

    def ask(self, who: str, *arguments: object) -> Any:
        """What `equipoise` answers."""
        return answered(self.capsys, self.profile(who), *arguments)

    def refused(self, who: str, *arguments: object) -> str:
        """What `equipoise` says that is refused."""
        return refusal(self.capsys, self.profile(who), *arguments)

    def operate(self, *arguments: object) -> Any:
        """What `equipoise operator` answers."""
        return self.ask("operator", "operator", *arguments)

    def opened(self) -> str:
        """The id of a new round."""
        return str(self.operate("round", "open", *TERMS, *OPTIONS)["round"]["id"])

    def submitted(self, round_id: str) -> Any:
        """The receipts of ann and bob, who send the same requests however often."""
        request = ("submit", round_id, self.directory / "statements.json", "--request-id", round_id)
        return [self.ask(who, *request) for who in ("ann", "bob")]

    def released(self, round_id: str) -> Any:
        """The answers of a round that is brought to its end."""
        for step in ("seal", "run", "release"):
            self.operate("round", step, round_id)
        assert self.ask("ann", "wait", round_id)["state"] == "released"
        return self.answers(round_id)

    def answers(self, round_id: str) -> Any:
        """What ann and bob read."""
        request = ("results", round_id, "--statements", self.directory / "statements.json")
        return [self.ask(who, *request)["answers"] for who in ("ann", "bob")]

    def charged(self) -> dict[str, Any]:
        """Every account as it is shown."""
        return {each["name"]: each for each in self.operate("budget", "show", "shop")["accounts"]}


@pytest.fixture
def place(tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]) -> Place:
    programs, state = tmp_path / "programs", tmp_path / "state"
    programs.mkdir()
    for name, module in PROGRAMS.items():
        rest = "" if module is None else f" -c 'from {module} import main; main()'"
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{rest} "$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "backup").mkdir(mode=0o700)
    url = make_url(store_url).set(drivername="postgresql")
    path = [str(programs), os.environ.get("PATH", ""), *filter(None, [str(find_binaries() or "")])]
    variables = {
        "PATH": os.pathsep.join(path),
        "STATE": str(state),
        "BACKUP": str(tmp_path / "backup"),
        "NAME": url.database or "",
        "DATABASE": url.render_as_string(hide_password=False),
        "SERVER": url.set(database="postgres").render_as_string(hide_password=False),
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
    ]
    registered = place.operate(
        "dataset", "register", "shop", "--source", "shop.csv", "--schema", place.directory / "schema.json", *caps
    )
    assert registered["records"] == RECORDS
    for who in ("ann", "bob"):
        place.operate("analyst", "add", who, "--out", place.profile(who))


def lose_the_machine(place: Place, store: int) -> None:
    """What is left is the backup, the private table and the profiles; and PostgreSQL, on a machine of its own."""
    lost = place.state.rename(place.directory / "lost")
    place.done('mkdir -m 700 "$STATE" && tar -C "$STATE" -xf "$BACKUP/state.tar"')
    for name in ("data", "profiles"):
        (lost / name).rename(place.state / name)
    if store == 0:
        place.done(block("Restore").splitlines()[-1])


def test_yesterdays_backup_over_today_is_refused_and_repaired(place: Place, store_url: str) -> None:
    store = ("sqlite", "postgresql").index(make_url(store_url).get_backend_name())
    with place.serving():
        begun(place)
        kept = place.opened()
        place.submitted(kept)
        answers = place.released(kept)
        waiting = place.opened()
        receipts = place.submitted(waiting)
        for commands in (block("Backup", store), block("Backup", 2)):
            place.done(commands)
        # Since then budget was really spent: what waited in the copy was released, and ann has read it.
        place.released(waiting)
        place.operate("analyst", "add", "cyd", "--out", place.profile("cyd"))
        spent = place.charged()
        assert place.shell(block("Restore", store)).returncode != 0, "restored under a server that runs"
    place.done(block("Restore", store))
    write_off, verify, serve = block("A restored store is refused").splitlines()
    for commands in (serve, verify):
        refused = place.shell(commands)
        assert refused.returncode == 1
        assert re.search(said("A restored store is refused", place.state), refused.stderr), refused.stderr
        assert "Traceback" not in refused.stderr
    assert waiting in place.done(write_off)
    assert "all agree" in place.done(verify)
    with place.serving():
        # To the last unit, though the copy knew only half of it.
        assert place.charged() == spent
        assert place.answers(kept) == answers
        # What was accepted before the backup was accepted, and the round is over for all to see.
        assert place.submitted(waiting) == receipts
        shown = place.ask("bob", "show", waiting)
        assert (shown["state"], shown["abort_reason"]) == ("aborted", "the server was restored from a backup")
        assert "the round is aborted" in place.refused("operator", "operator", "round", "run", waiting)
        assert "not, or no longer, in force" in place.refused("cyd", "whoami")
        place.operate("analyst", "add", "cyd", "--out", place.profile("cyd again"))
        assert place.ask("cyd again", "whoami")["name"] == "cyd"
        # A new round is answered; more of them follow until the cap, which counts those before the restore.
        new = place.opened()
        place.submitted(new)
        assert place.released(new) != answers
        reserved = place.operate("budget", "history", "data/shop")["entries"][1]
        one = reserved["cost"]["rho"]
        fit = limits(CAP).rho // one
        for _ in range(3, fit):
            place.operate("round", "seal", place.opened())
        assert "account data/shop" in place.refused("operator", "operator", "round", "open", *TERMS, *OPTIONS)
    lose_the_machine(place, store)
    refused = place.shell(serve.replace(" serve", " check"))
    assert refused.returncode == 1
    assert re.search(said("The guard is lost", place.state), refused.stderr), refused.stderr
    assert "There was no guard" in place.done(write_off)
    with place.serving():
        assert "account data/shop" in place.refused("operator", "operator", "round", "open", *TERMS, *OPTIONS)
        words = shlex.split(block("The guard is lost").replace("$DATASET", "shop"))
        assert (words[-4], words[-2]) == ("--epsilon", "--delta")
        for delta, enough in ((CAP.delta, False), (2 * CAP.delta, True)):
            raised = (*words[1:-3], 3 * CAP.epsilon, "--delta", delta)
            if enough:
                place.ask("operator", *raised)
            else:
                assert "below what is spent" in place.refused("operator", *raised)
        assert place.opened()
        *looks, _ = block("Moving a budget").replace("$DATASET", "shop").splitlines()
        for look in looks:
            place.ask("operator", *shlex.split(look)[1:])
