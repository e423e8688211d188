"""The questions of docs/sql-examples.md are translated or refused as the page says."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.questions.sql import questions_from_sql

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/sql-examples.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^\*\*.*\*\*\n\n```sql\n(.*?)\n```\n\n(.*)$", re.MULTILINE | re.DOTALL)
BLOCKS = [f"**{each}" for each in re.split(r"^\*\*(?=[^\n]*\*\*\n\n```sql)", PAGE, flags=re.MULTILINE)[1:]]


def of_the_benchmark(name: str) -> object:
    """A module of benchmarks/, which is no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
        assert spec
        assert spec.loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def refusal_of(sql: str, schema: Schema, table: str) -> str:
    """What is said of a question that is refused; nothing of one that is translated."""
    try:
        questions_from_sql(sql, schema, table)
    except InvalidArgument as refusal:
        return refusal.problem
    return ""


@pytest.mark.slow
def test_every_question_is_on_the_page_and_is_answered_or_refused_as_it_says() -> None:
    schemas = of_the_benchmark("sql_example_tables").SCHEMAS  # type: ignore[attr-defined]
    seen = []
    for block in BLOCKS:
        found = EXAMPLE.match(block)
        assert found
        sql, outcome = found.groups()
        table = next(name for name in schemas if f"FROM {name}" in sql)
        seen.append(" ".join(sql.split()))
        refused = refusal_of(sql, schemas[table], table)
        assert outcome.startswith(f"Refused: {refused}." if refused else "| number |"), sql
    source = (ROOT / "benchmarks/sql_examples.sql").read_text(encoding="utf-8")
    asked = [" ".join(each.split()) for each in re.sub(r"^--.*$", "", source, flags=re.MULTILINE).split(";\n")]
    assert seen == [each for each in asked if each]
    assert len(seen) > 50


@pytest.mark.nightly
def test_the_page_is_what_the_benchmark_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["sql_examples.py", "--out", str(tmp_path / "page.md")])
    of_the_benchmark("sql_example_tables")
    of_the_benchmark("sql_examples").main()  # type: ignore[attr-defined]
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    numbers = re.compile(r"^(\| `[^`]*`).*", re.MULTILINE)  # whose last digits are a machine's
    assert numbers.sub(r"\1", written) == numbers.sub(r"\1", PAGE)
    within = re.findall(r"\| (\d+) of (\d+) \|", written)
    assert all(int(held) >= 0.9 * int(all_of) for held, all_of in within)
