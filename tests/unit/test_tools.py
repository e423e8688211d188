"""Common changes need few files, lines are counted of code alone, and the list of mutants fits the tree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
MAX_LINES = 250  # of a production module
TREE = {
    "client/equipoise/model/rounds.py": "class Round:\n    close_time: int = 0\n",
    "client/equipoise/prose.py": '"""Words: close_time."""\n\n# close_time\nNOTE = "close_time is late"\n',
    "client/equipoise/v1/types_pb2.py": "close_time = 1\n",
    "server/equipoise_server/rows.py": 'ROW = {"close_time": 1}\n',
    "server/equipoise_server/options.py": 'OPTION = "--close-time"\n',
    "server/equipoise_server/other.py": "from a.b import closing\n\nclosing(close_times=1)\n",
    "protos/types.proto": "message Round {\n  int64 close_time = 1;\n}\n",
    "protos/comment.proto": "// close_time\nmessage Other {}\n",
    "docs/rounds.md": "`close_time` is when it closes.\n",
    "tests/test_rounds.py": "close_time = 1\n",
}

# One function after the other that leaves something out, and some that leave out nothing.
FUNCTIONS = '''def silent(first: int, second: str) -> None: ...

def half(first: int, second: str) -> None:
    """Take `first`."""

def in_a_sentence(first: int, second: str) -> None:
    """Take `first` and `second`."""

def told_by_types(first: Terms, second: Schema) -> None: ...
def _of_this_module(first: int, second: str) -> None: ...

def renamed(first: int, second: str) -> None:
    """Take both.

    Args:
        first: a number.
        third: a name.
    """

def raising(first: int) -> None:
    """Take one.

    Args:
        first: a number.
    """
    raise ValueError("first: is too small")
'''
# Of which only the clients' are looked at.
METHODS = """class Public:
    def method(self, first: int, second: str) -> None: ...
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def told(script: str, *arguments: str) -> str:
    """What a script prints."""
    command = [sys.executable, str(TOOLS / script), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_no_kind_of_change_needs_more_files_than_its_limit() -> None:
    printed = told("touched_files.py")
    kinds = set()
    for change in tomllib.loads((TOOLS / "changes.toml").read_text(encoding="utf-8"))["change"]:
        files = [*change["edited"], *change.get("written", ())]
        assert len(set(files)) == len(files) <= change["limit"], change["title"]
        assert [path for path in change["edited"] if not (ROOT / path).is_file()] == []
        kinds.add(change["kind"])
        line = rf"^{change['kind']} +{len(files)} +{change['limit']} "
        assert re.search(line, printed, re.MULTILINE)
    assert len(kinds) == 6


def test_lines_are_counted_without_generated_code(tree: Path) -> None:
    printed = told("count_lines.py", "--tree", str(tree))
    assert [" ".join(line.split()) for line in printed.splitlines()] == [
        "client/equipoise 6 lines 2 files",
        "server/equipoise_server 5 lines 3 files",
        "the two packages together 11 lines 5 files",
    ]


@pytest.mark.full
def test_functions_say_what_they_take_where_types_do_not() -> None:
    assert told("undescribed.py") == "0 functions\n"


def test_what_a_docstring_leaves_out_is_found(tmp_path: Path) -> None:
    for folder in ("client/equipoise/clients", "server"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "client" / "equipoise" / "clients" / "client.py").write_text(METHODS, encoding="utf-8")
    (tmp_path / "server" / "functions.py").write_text(FUNCTIONS + METHODS, encoding="utf-8")
    assert told("undescribed.py", "--tree", str(tmp_path)).splitlines() == [
        "client/equipoise/clients/client.py:2 Public.method: does not say what first, second are",
        "server/functions.py:1 silent: does not say what first, second are",
        "server/functions.py:3 half: does not say what second are",
        "server/functions.py:12 renamed: Args: says first, third, the signature first, second",
        "server/functions.py:20 raising: says nothing of ValueError",
        "5 functions",
    ]


@pytest.mark.slow
def test_every_mutant_s_place_stands_once_and_its_tests_exist() -> None:
    """Whoever moves what a mutant replaces, or a test that notices it, says where it is now."""
    command = [sys.executable, str(TOOLS / "mutants.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)


def test_every_production_module_can_be_read_at_once() -> None:
    modules = [path for folder in ("client", "server") for path in (ROOT / folder).rglob("*.py")]
    lines = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in modules
        if path.parent.name != "v1"
    }
    assert len(lines) > 300
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
