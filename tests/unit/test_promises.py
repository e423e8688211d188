"""Every promise has tests, and the page that says which is complete: `docs/promises.md`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "docs/promises.md"
QUOTED = re.compile(r'([\w./-]+\.md): "([^"]+)"')
CITED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PROMISED_IN = {"README.md": "What is promised", "docs/threat-model.md": "What is promised"}
MIN_ROWS = {"README.md": 5, "docs/threat-model.md": 30}  # rows: of fewer this page was not read rightly


@dataclass(frozen=True)
class Entry:
    """A row of the page: the first words of the promise by page, and the tests that show it."""

    promise: str
    quotes: tuple[tuple[str, str], ...]
    tests: frozenset[tuple[str, str]]


def plain(text: str) -> str:
    """A text without marks of Markdown, its words apart by single spaces."""
    return " ".join(re.sub(r"[*`\\]", "", LINK.sub(r"\1", text)).split())


@cache
def page(path: str) -> str:
    """A page's text."""
    return (ROOT / path).read_text(encoding="utf-8")


def table_rows(path: str) -> list[tuple[str, list[str]]]:
    """The cells of all rows of a page's tables but their heads, each with the section of the second level."""
    section, rows, head = "", [], True
    for line in page(path).splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if not line.startswith("|"):
            head = True
            continue
        if re.fullmatch(r"[|\s:-]+", line):
            head = False
        elif not head:
            rows.append((section, [cell.strip() for cell in line.strip("|").split("|")]))
    return rows


ENTRIES = [
    Entry(cells[0], tuple(QUOTED.findall(cells[1])), frozenset(CITED.findall(cells[2])))
    for _, cells in table_rows(PAGE)
]
PROMISES = [
    (path, plain(cells[-1] if path == "README.md" else cells[0]), frozenset(CITED.findall(cells[-1])))
    for path, section in PROMISED_IN.items()
    for found, cells in table_rows(path)
    if found.startswith(section)
]


@cache
def defined_tests(path: str) -> frozenset[str]:
    """The tests that a file defines, also in classes; they are not run, nor is the file imported."""
    nodes = ast.walk(ast.parse(page(path)))
    return frozenset(each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", PROMISED_IN)
def test_the_tables_of_promises_are_found(path: str) -> None:
    assert len([each for each in PROMISES if each[0] == path]) >= MIN_ROWS[path]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.promise[:60])
def test_what_an_entry_quotes_is_promised_there(entry: Entry) -> None:
    assert entry.quotes
    for path, words in entry.quotes:
        assert words in plain(page(path)), f"{path} does not say: {words}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.promise[:60])
def test_the_tests_of_an_entry_exist(entry: Entry) -> None:
    assert entry.tests
    for path, name in entry.tests:
        assert (ROOT / path).exists(), path
        assert name in defined_tests(path), f"{path} has no {name}"


@pytest.mark.parametrize(
    ("path", "promise", "cited"), PROMISES, ids=[f"{path}: {words[:50]}" for path, words, _ in PROMISES]
)
def test_every_promise_has_an_entry(path: str, promise: str, cited: frozenset[tuple[str, str]]) -> None:
    quoting = [(entry, words) for entry in ENTRIES for where, words in entry.quotes if where == path]
    entries = [entry for entry, words in quoting if promise.startswith(words)]
    assert len(entries) == 1, f"{path} promises: {promise}"
    assert cited <= entries[0].tests
