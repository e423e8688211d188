"""`equipoise-server`: help for everything, one clear line for what fails, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from equipoise_server.cli import app, main

SCHEMA = {
    "version": 1,
    "attributes": [{"name": "carrier", "categories": ["AA", "UA"]}, {"name": "delay", "edges": [0, 15, 60]}],
}


def run(*arguments: str) -> int:
    """The exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def commands(group: typer.core.TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in group.commands:
        _, command, _ = group.resolve_command(typer.Context(group), [name])
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def all_commands() -> list[tuple[str, ...]]:
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return list(commands(group))


def test_the_commands() -> None:
    assert all_commands() == [
        ("init",),
        ("check",),
        ("ping",),
        ("serve",),
        ("demo",),
        ("backup",),
        ("restore",),
        ("plan",),
        ("simulate",),
        ("data", "check"),
        ("data", "suggest"),
        ("identity", "add"),
        ("identity", "renew"),
        ("identity", "revoke"),
        ("identity", "list"),
        ("login", "allow"),
        ("login", "publish"),
        ("certificate", "renew"),
        ("ca", "rotate"),
        ("ca", "retire"),
        ("clock", "confirm"),
        ("ledger", "verify"),
        ("ledger", "write-off"),
        ("keys", "show"),
        ("keys", "add"),
        ("keys", "retire"),
        ("log", "export"),
        ("audit", "replay"),
        ("audit", "empirical"),
    ]


def test_every_command_and_option_has_help() -> None:
    for path in all_commands():
        command: Any = typer.main.get_command(app)
        for name in path:
            assert isinstance(command, typer.core.TyperGroup)
            _, command, _ = command.resolve_command(typer.Context(command), [name])
        assert len((command.help or "").split()) > 8, path
        for parameter in command.params:
            assert getattr(parameter, "help", None), (path, parameter.name)
        assert CliRunner().invoke(app, [*path, "--help"]).exit_code == 0, path


def test_init_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    assert run("init", "--state", str(state), "--host", "db.example", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert Path(made["profiles"]["operator"], "key.pem").is_file()
    assert run("check", "--state", str(state), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["deployment"], found["identities"]) == (made["deployment"], 2)
    assert run("init", "--state", str(state)) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("equipoise.toml", "does not exist"),
        ("keys/storage.key", "cannot be read"),
        ("ca/authority.pem", "cannot be read"),
    ],
)
def test_check_names_what_is_missing_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, named: str
) -> None:
    state = tmp_path / "state"
    run("init", "--state", str(state))
    capsys.readouterr()
    (state / damage).unlink()
    assert run("check", "--state", str(state)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert damage in line
    assert named in line


def test_wrong_usage_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--nonsense") == 2
    assert "nonsense" in capsys.readouterr().err


def test_data_check_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "table.csv").write_text("carrier,delay\nAA,1\nAA,20\nUA,59\n")
    options = ("data", "check", "--table", str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.json"))
    assert run(*options, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "universe_size": 4,
        "records": 3,
        "counts": {"carrier": {"AA": 2, "UA": 1}, "delay": {"[0, 15)": 1, "[15, 60)": 2}},
        "persons": None,
    }
    assert run(*options) == 0
    assert "3 records in a universe of 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "schema", "named"),
    [
        ("carrier,delay\nXX,1\n,2\nAA,99\n", json.dumps(SCHEMA), "carrier: 1 null"),
        ("delay\n1\n", json.dumps(SCHEMA), "carrier"),
        ("carrier,delay\nAA,1\n", "{", "schema"),
        (None, json.dumps(SCHEMA), "table.csv"),
        ("carrier,delay\nAA,1\n", None, "schema.json"),
    ],
)
def test_data_check_refuses_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str | None, schema: str | None, named: str
) -> None:
    for name, content in (("table.csv", table), ("schema.json", schema)):
        if content is not None:
            (tmp_path / name).write_text(content)
    options = ("--table", str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.json"))
    assert run("data", "check", *options) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert named in line
