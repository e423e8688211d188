"""Writes docs/sql-examples.md: questions of benchmarks and tutorials, answered beside the truth, or refused.

    python benchmarks/sql_examples.py [--out docs/sql-examples.md]

Every question is asked alone, of a trial (`Client.local`) with epsilon 1 and delta 1e-9, whose noise is independent
and Gaussian. The truth is DuckDB's answer to the same SQL on the table itself, so errors hold what bins hide, too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import duckdb
import numpy as np
from sql_example_tables import SCHEMAS, connected

from equipoise import Client
from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.local.client import LocalClient

EXAMPLES = Path(__file__).parent / "sql_examples.sql"
BEGINNING = """# SQL that people ask, and what becomes of it

Written by `benchmarks/sql_examples.py`, from `benchmarks/sql_examples.sql`. The questions are those of TPC-H (1 and
6), of ClickBench, of the six tutorials of Tumult Analytics, and of the introductions of SmartNoise SQL (OpenDP),
in our words and for one table each: all flights out of New York City in 2013, made tables of orders, visits and
borrowed books with 400,000 rows, and of members and of a census with 50,000, which have the columns of those
tutorials.

Each question is asked alone, with epsilon 1 and delta 1e-9, and is answered with independent Gaussian noise. A
round answers many at once; its mechanism shares the budget better. **Error** is the mean distance from the exact
answer to the same SQL on the table itself, beside the mean of these exact answers; so it holds what bins hide, too.
**Within** says how many of them lie in their intervals, which hold together with probability 95 %.
"""


def main() -> None:
    """Asks everything, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch, connected(Path(scratch)) as connection:
        clients = {
            name: Client.local(connection.table(name).to_arrow_table(), schema) for name, schema in SCHEMAS.items()
        }
        sections = [section(text, connection, clients) for text in EXAMPLES.read_text().split("\n-- # ")[1:]]
    page = BEGINNING + "\n".join(sections)
    if out is None:
        print(page)
    else:
        out.write_text(page)


def section(text: str, connection: duckdb.DuckDBPyConnection, clients: dict[str, LocalClient]) -> str:
    """One table of the page: the title's line, then questions, each after a line that says what it is."""
    title, *examples = text.split("\n-- ")
    lines = [f"\n## {title.strip()}\n"]
    for example in examples:
        said, _, sql = example.partition("\n")
        table = next(name for name in clients if f"FROM {name}" in sql)
        lines += [f"**{said.strip()}**\n", "```sql", sql.strip().rstrip(";"), "```\n"]
        lines.append(outcome(sql, connection, clients[table]) + "\n")
    return "\n".join(lines)


def outcome(sql: str, connection: duckdb.DuckDBPyConnection, client: LocalClient) -> str:
    """Returns the errors of a question's answers, or why it is refused."""
    try:
        questions = client.sql("examples", sql)
    except InvalidArgument as refusal:
        return f"Refused: {refusal.problem}."
    (frame,) = client.frames("examples", questions)
    truth = connection.execute(sql)
    names = [each[0] for each in truth.description or ()]
    lines = ["| number | error | mean truth | within |", "|---|---|---|---|"]
    lines += compared(frame, names, truth.fetchall())
    return "\n".join(lines)


def compared(frame: Frame, names: list[str], rows: list[tuple[object, ...]]) -> list[str]:
    """A line for each column of numbers."""
    numbers = [name for name in frame.names if f"{name}_low" in frame.columns]
    columns = {f"{name}{end}" for name in numbers for end in ("", "_low", "_high", "_method")}
    keys = [name for name in frame.names if name not in columns]
    own = {tuple(key(row[name]) for name in keys): row for row in frame.to_dicts()}
    places = {name.lower(): place for place, name in enumerate(names)}
    lines = []
    for name in numbers:
        pairs = [
            (own.get(tuple(key(row[places[each.lower()]]) for each in keys)), row[places[name.lower()]])
            for row in rows
        ]
        known = [
            (each, float(str(true)))
            for each, true in pairs
            if each is not None and true is not None and each[name] is not None
        ]
        errors = [abs(float(str(each[name])) - true) for each, true in known]
        within = [
            float(str(each[f"{name}_low"])) <= true <= float(str(each[f"{name}_high"]))
            for each, true in known
            if each[f"{name}_low"] is not None
        ]
        mean = float(np.mean([abs(true) for _, true in known]))
        lines.append(f"| `{name}` | {float(np.mean(errors)):,.4g} | {mean:,.4g} | {sum(within)} of {len(known)} |")
    return lines


def key(value: object) -> object:
    """A group's value as both tables have it; a bin by its lower end."""
    return float(value) if isinstance(value, int | float) else str(value).lstrip("[").partition(",")[0]


if __name__ == "__main__":
    main()
