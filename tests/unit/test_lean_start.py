"""Both programs answer at once: help imports nothing heavy, and what is missing is said in one line."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import typer

import equipoise
import equipoise.cli
import equipoise_server.cli
from equipoise.commands.operator import operator_app
from equipoise.commands.program import LazyCommand, LazyGroup
from equipoise_server.cli import SERVER_PACKAGES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HEAVY = {
    "alembic",
    "cryptography",
    "dp_accounting",
    "duckdb",
    "google",
    "grpc",
    "matplotlib",
    "numpy",
    "psycopg",
    "pyarrow",
    "scipy",
    "sqlalchemy",
    "structlog",
}
HELP = """
import json, sys
from {program}.cli import main
try:
    main({arguments!r})
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps(sorted(sys.modules)))
"""
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from equipoise_server.cli import main
main({arguments!r})
"""
APPS = [equipoise.cli.app, operator_app, equipoise_server.cli.app]
APPS += [each.typer_instance for each in equipoise_server.cli.app.registered_groups if each.typer_instance]


def imported_by(script: str) -> set[str]:
    """The top-level names of all modules that a fresh interpreter has loaded at the end of the script."""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout.splitlines()[-1])}


def without(missing: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """`equipoise-server` where these packages cannot be imported."""
    script = WITHOUT.format(missing=missing, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("equipoise", ["--help"]),
        ("equipoise", ["operator", "--help"]),
        ("equipoise_server", ["--help"]),
        ("equipoise_server", ["audit", "--help"]),
    ],
)
def test_help_imports_nothing_heavy(program: str, arguments: list[str]) -> None:
    assert imported_by(HELP.format(program=program, arguments=arguments)).isdisjoint(HEAVY)


def test_the_package_alone_imports_nothing_heavy() -> None:
    assert imported_by("import json, sys, equipoise; print(json.dumps(sorted(sys.modules)))").isdisjoint(HEAVY)


@pytest.mark.full
def test_a_command_s_own_help_imports_what_it_needs() -> None:
    """So the tests above would see it."""
    assert {"grpc", "numpy"} <= imported_by(HELP.format(program="equipoise", arguments=["rounds", "--help"]))
    loaded = imported_by(HELP.format(program="equipoise_server", arguments=["serve", "--help"]))
    assert {"grpc", "numpy", "sqlalchemy"} <= loaded


def listed() -> list[tuple[str, LazyCommand]]:
    """Every command that is imported when it is called, with its name."""
    groups = [app.info.cls for app in APPS]
    assert all(isinstance(group, type) and issubclass(group, LazyGroup) for group in groups)
    return [pair for group in groups for pair in group.lazy.items()]  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "command"), listed(), ids=[command.home for _, command in listed()])
def test_the_list_says_what_the_command_says(name: str, command: LazyCommand) -> None:
    loaded = command.load(name)
    first, *_ = loaded.help.split("\n\n")
    assert command.summary == " ".join(first.split())
    assert loaded.name == name or command.home.endswith("_app")


def test_only_the_called_command_is_loaded() -> None:
    group: Any = typer.main.get_command(equipoise_server.cli.app)
    context = typer.Context(group)
    assert [each.name for each in group.commands.values()] == group.list_commands(context)
    name, command, rest = group.resolve_command(context, ["init", "--state", "here"])
    assert (name, command.name, rest) == ("init", "init", ["--state", "here"])
    assert {"state", "listen", "store"} <= {parameter.name for parameter in command.params}


def test_every_public_name_is_where_type_checkers_are_told() -> None:
    """`import equipoise` imports a name when it is used; what is said to type checkers must be the same names."""
    source = ast.parse((ROOT / "client" / "equipoise" / "__init__.py").read_text(encoding="utf-8"))
    (choice,) = [node for node in source.body if isinstance(node, ast.If)]
    told = {
        alias.name: node.module for node in choice.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(told) == sorted(equipoise.__all__)
    for name, module in told.items():
        assert module is not None
        assert getattr(equipoise, name) is getattr(import_module(module), name)
    assert set(equipoise.__all__) <= set(dir(equipoise))


def test_another_name_is_not_public() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        equipoise.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["init"], []])
def test_a_client_s_installation_says_what_the_server_needs(arguments: list[str]) -> None:
    run = without(["scipy", "duckdb"], *arguments)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr == (
        "error: equipoise-server needs packages of its own: pip install 'equipoise[server]'. "
        "Not installed: scipy, duckdb\n"
    )


def test_with_everything_installed_the_server_s_help_is_printed() -> None:
    run = without([], "--help")
    assert run.returncode == 0
    assert "Hold a private table" in run.stdout


def test_what_is_looked_for_is_what_the_extra_brings() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core, wanted = (
        {re.split(r"[<>=!~\[ ]", each)[0].lower() for each in needed}
        for needed in (project["dependencies"], project["optional-dependencies"]["server"])
    )
    homes = packages_distributions()
    found = {each.lower().replace("_", "-") for name in SERVER_PACKAGES for each in homes[name]}
    assert found == wanted - core  # what every client has is narrowed for servers only
    assert len(SERVER_PACKAGES) == len(found)
