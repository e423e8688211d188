"""Whose people a table holds, as operators say it: by an option over the wire, and asked for on a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from harness.client_command import answered, refusal
from harness.dangers import LARGE_CAPS_TYPED
from harness.server_process import make_state, running

from equipoise.cli import main
from equipoise.profile.profile import Profile

SCHEMA = {"version": 1, "attributes": [{"name": "colour", "categories": ["red", "green"]}]}
REGISTER = ("operator", "dataset", "register")
PROGRAM = "from equipoise.cli import main; main()"
QUESTION = "Whose people does the table hold?"
SECONDS = 60


class Place:
    """A server with the tables `shop`, which is registered, and `newer`, which has one record more."""

    def __init__(self, directory: Path, profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._schema, self._profile, self._capsys = directory / "schema.json", profile, capsys

    def given(self, name: str) -> tuple[object, ...]:
        """The command that registers a table, without whose people it holds."""
        return (*REGISTER, name, "--source", f"{name}.csv", "--schema", self._schema)

    def run(self, *arguments: object) -> Any:
        """What a command answers."""
        return answered(self._capsys, self._profile, *arguments)

    def refused(self, *arguments: object) -> str:
        """What a command says that is refused."""
        return refusal(self._capsys, self._profile, *arguments)

    def registered(self) -> dict[str, str]:
        """The account of each dataset."""
        listed = [each["dataset"] for each in self.run("operator", "dataset", "list")["datasets"]]
        return {each["name"]: each["account"] for each in listed}

    def printed(self, *arguments: object) -> str:
        """What a command shows to people."""
        with pytest.raises(SystemExit):
            main([*map(str, arguments), "--profile", str(self._profile)])
        return self._capsys.readouterr().out

    @contextmanager
    def typed(self, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
        """A command whose standard input is a terminal, and what types on it."""
        keyboard, terminal = pty.openpty()
        command = [*map(str, arguments), "--profile", str(self._profile), "--json"]
        with (
            os.fdopen(keyboard, "w") as typing,
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *command],
                stdin=terminal,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            os.close(terminal)
            yield process, typing


CAPS = ("--data-epsilon", 20, "--data-delta", "1e-4", "--analyst-epsilon", 20, *LARGE_CAPS_TYPED)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    state = make_state(tmp_path / "state")
    for name, rows in (("shop", "red\ngreen\n" * 50), ("newer", "red\ngreen\n" * 50 + "red\n")):
        (state / "data" / f"{name}.csv").write_text(f"colour\n{rows}")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    profile = state / "profiles" / "operator"
    with running(state) as server:
        path = profile / "profile.toml"
        path.write_text(path.read_text().replace(Profile.load(profile).target, f"127.0.0.1:{server.port}"))
        made = Place(tmp_path, profile, capsys)
        # Nobody is asked before there is another table.
        with made.typed(*made.given("shop"), *CAPS) as (process, _):
            out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        assert (json.loads(out)["account"], QUESTION in err) == ("shop", False)
        yield made


@pytest.mark.full
def test_a_table_of_the_same_people_is_registered_by_an_option(place: Place) -> None:
    newer = place.given("newer")
    # Not a terminal: nothing is asked, and without an answer nothing is registered.
    assert "people: must say whose people the table holds" in place.refused(*newer, *CAPS)
    assert "people: there is no dataset 'other'" in place.refused(*newer, "--people", "same-as:other")
    same = ("--people", "same-as:shop")
    assert "data_cap: must not be set: the account of 'shop'" in place.refused(*newer, *CAPS, *same)
    assert place.registered() == {"shop": "shop"}
    assert place.run(*newer, *same)["account"] == "shop"
    assert place.registered() == {"newer": "shop", "shop": "shop"}
    names = [each["name"] for each in place.run("operator", "budget", "show", "newer")["accounts"]]
    assert names == ["data/shop"]


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize(("typed", "account"), [("shop", "shop"), ("new", "newer")])
def test_a_terminal_is_asked_whose_people_the_table_holds(place: Place, typed: str, account: str) -> None:
    caps = CAPS if typed == "new" else ()
    with place.typed(*place.given("newer"), *caps) as (process, typing):
        typing.write(f"{typed}\n")
        typing.flush()
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert "Registered: shop." in err
    assert QUESTION in err
    assert json.loads(out)["account"] == account
    assert place.registered() == {"newer": account, "shop": "shop"}


@pytest.mark.full
def test_a_command_that_is_killed_at_its_question_has_registered_nothing(place: Place) -> None:
    with place.typed(*place.given("newer")) as (process, _):
        assert process.stderr is not None
        shown = ""
        while QUESTION not in shown:
            character = process.stderr.read(1)
            assert character, shown
            shown += character
        process.kill()
    assert place.registered() == {"shop": "shop"}


@pytest.mark.full
def test_a_dataset_s_life_from_the_command_line(place: Place) -> None:
    """Versions, what is left, retirement, and a deletion that has to be confirmed."""
    version = place.run("operator", "dataset", "update", "shop", "--source", "newer.csv")
    assert (version["version"], version["records"], version["account"]) == (2, 101, "shop")
    shown = place.run("operator", "dataset", "show", "shop")
    assert [(each["version"], each["source_kind"]) for each in shown["versions"]] == [(1, "CSV"), (2, "CSV")]
    assert (shown["standing"]["state"], shown["standing"]["data"]["name"], shown["charges"]) == (
        "active",
        "data/shop",
        [],
    )
    assert "holds what version 2 of 'shop' holds already" in place.refused("operator", "dataset", "update", "shop")
    place.run("operator", "dataset", "retire", "shop")
    for confirmed in ((), ("--confirm", "Shop")):
        assert "must be 'shop'" in place.refused("operator", "dataset", "delete", "shop", *confirmed)
    place.run("operator", "dataset", "delete", "shop", "--confirm", "shop")
    (listed,) = place.run("operator", "dataset", "list")["datasets"]
    assert (listed["dataset"]["name"], listed["state"]) == ("shop", "deleted")
    assert "its name is not given again" in place.refused(*place.given("shop"), *CAPS, "--people", "new")
    for human in (("list",), ("show", "shop")):
        assert "deleted" in place.printed("operator", "dataset", *human)
