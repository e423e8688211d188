"""What the reader is told: every command has help, and what the README shows exists."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import equipoise.cli
import equipoise_server.cli
from equipoise.queries.schema import Schema
from equipoise.queries.statements_file import statements_from_json, statements_to_json

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Commands are Any: of which library typer makes them differs between its versions.
COMMANDS: dict[str, Any] = {
    "equipoise": typer.main.get_command(equipoise.cli.app),
    "equipoise-server": typer.main.get_command(equipoise_server.cli.app),
}


def blocks(language: str, page: str = README) -> list[str]:
    """A page's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def below(command: Any, name: str) -> Any:
    """The command of this name in a group."""
    return command.resolve_command(typer.Context(command), [name])[1]


def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and all below it, with their full names."""
    yield name, command
    for each in getattr(command, "commands", {}):
        yield from walk(f"{name} {each}", below(command, each))


FIRST_ROUND = (ROOT / "docs" / "first-round.md").read_text(encoding="utf-8")
ENROLMENT = (ROOT / "docs" / "enrolment.md").read_text(encoding="utf-8")
SESSIONS = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
SHELL = [
    line
    for page in (README, FIRST_ROUND, ENROLMENT, SESSIONS)
    for block in blocks("sh", page)
    for line in block.replace("\\\n", " ").splitlines()
]


@pytest.mark.slow
def test_every_command_says_what_it_does_and_can_speak_json() -> None:
    named = [pair for name, command in COMMANDS.items() for pair in walk(name, command)]
    lacking = [name for name, command in named if len(command.help or "") <= 10]
    for name, command in named:
        lacking += [f"{name} {parameter.name}" for parameter in command.params if not parameter.help]
    assert not lacking, "these have no help"
    silent = [
        name
        for name, command in named
        if not hasattr(command, "commands") and not any("--json" in each.opts for each in command.params)
    ]
    assert not silent, "these have no --json"


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("equipoise")])
def test_the_commands_of_the_pages_are_understood(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = COMMANDS[name]
    while hasattr(command, "commands"):
        command, arguments = below(command, arguments[0]), arguments[1:]
    command.make_context(command.name, arguments)


def test_the_readme_begins_with_five_lines_and_then_its_two_commands() -> None:
    assert README.index("## Five lines") == README.index("## ")
    assert [block.splitlines() for block in blocks("sh")[:2]] == [
        ["pip install '.[analyst]'"],
        ["make demo", "make test"],
    ]
    assert len([line for line in blocks("python")[0].splitlines() if line]) == 5


def test_the_readme_is_read_in_one_sitting() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 116 and not line.startswith("|")] == []


@pytest.mark.parametrize("target", re.findall(r"`?make ([a-z]+)`?", README))
def test_the_readme_s_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, SESSIONS], ids=["README", "sessions"])
def test_the_pages_python_runs_up_to_the_server(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a picture may be drawn
    (block,) = blocks("python", page)
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
    exec(compile(block, "a page", "exec"), {})


def test_the_files_of_the_first_round_are_read() -> None:
    schema, statements = blocks("json", FIRST_ROUND)
    assert Schema.from_json(schema).names == ("origin", "month", "carrier", "dep_delay")
    asked = statements_from_json(statements)
    assert statements_from_json(statements_to_json(asked)) == asked


@pytest.mark.parametrize("path", re.findall(r"[`(]((?:server|client|docs|protos)/[\w./-]+)[`)]", README))
def test_the_readme_s_paths_exist(path: str) -> None:
    assert (ROOT / path).exists()


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_no_page_was_left_in_the_middle_of_a_merge(page: Path) -> None:
    assert not re.search(r"^(<{7} .*|={7}|>{7} .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)


LINKS = [
    (page.relative_to(ROOT).as_posix(), target)
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "deploy" / "RUNBOOK.md")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_every_link_leads_to_a_page_and_a_heading(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    linked = (ROOT / page).parent / path if path else ROOT / page
    assert linked.exists()
    headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
    assert not anchor or anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_pages_name_files_that_exist(page: Path) -> None:
    folders = ("client", "server", "tests", "benchmarks", "tools")
    modules = {path.name for folder in folders for path in (ROOT / folder).rglob("*.py")}
    named = re.findall(r"`([\w/{},]+\.py)`", page.read_text(encoding="utf-8"))
    for each in named:
        assert (ROOT / each).exists() or each.rpartition("/")[2] in modules or "{" in each, each
    for path in re.findall(r"`[^`\n]* (tests/[\w/]+\.py)[^`\n]*`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path
    for folder in re.findall(
        r"`((?:server|client|tests|docs|mechanisms)/[\w/]+)/?`", page.read_text(encoding="utf-8")
    ):
        assert any((ROOT / base / folder).exists() for base in (".", "server/equipoise_server")), folder
    for inside in re.findall(r"`[\w/]*\{([\w,]+)\}\.py", page.read_text(encoding="utf-8")):
        assert {f"{name}.py" for name in inside.split(",")} <= modules, inside


THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
OF_THE_STATE = {"ca/", "keys/", "ca/authority.key", "keys/storage.key"}
CITED = re.findall(r"`([\w./-]+/(?:[\w-]+\.\w+)?)(?:::(\w+))?`", THREATS)


@pytest.mark.parametrize(("path", "test"), sorted(each for each in set(CITED) if each[0] not in OF_THE_STATE))
def test_what_the_threat_model_cites_exists(path: str, test: str) -> None:
    outside = path.startswith(("client/", "tests/", "docs/"))
    cited = (ROOT if outside else ROOT / "server" / "equipoise_server") / path
    assert cited.exists()
    assert not test or re.search(rf"^(async )?def {test}\(", cited.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_threat_model_cites_a_test_for_each_claim() -> None:
    rows = [row for row in THREATS.splitlines() if row.startswith("| ") and "::test_" in row]
    assert len(rows) > 20
    assert all("`" in row.split("|")[2] for row in rows)
