"""Looking at tables before they are registered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from equipoise.commands.progress import ShownProgress
from equipoise.errors import AlreadyExists
from equipoise.model.persons import EACH_ROW
from equipoise.queries.universe_size import size_in_words
from equipoise_server.admin.checks import count_table
from equipoise_server.admin.person_check import PersonsFound, find_persons
from equipoise_server.admin.schema_suggestion import schema_of, suggest_schema
from equipoise_server.commands.printing import OUT, AsJson, print_json

TableOption = Annotated[
    Path,
    typer.Option(
        help="The table: a .csv, .tsv or .parquet file, a .parquet directory, or a .database.toml file. "
        "CSV files may have options: flights.csv?delimiter=;&encoding=latin-1."
    ),
]


def check_table(
    table: TableOption,
    schema: Annotated[Path, typer.Option(help="The schema: a JSON file of attributes.")],
    person: Annotated[
        str | None,
        typer.Option(
            help="The column with the id of each row's person: also count how many rows persons have, and what "
            "each number of records a person would drop and cost.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a table fits a schema, and count its records in each category.

    Prints the size of the universe (how many different records can exist), the number of records, and how many
    fall into each category. If there are values that the schema does not allow, counts them and exits with 1.
    The counts are exact and private: only the custodian may see them.
    """
    with ShownProgress("reading the table") as progress:
        counted = count_table(table, schema, progress)
    found = None if person is None else find_persons(table, person)
    if as_json:
        facts = {"universe_size": counted.universe_size, "records": counted.records, "counts": counted.counts}
        print_json(facts | {"persons": None if found is None else asdict(found)})
        return
    shown = Table("attribute", "category", "records")
    for attribute, counts in counted.counts.items():
        for category, count in counts.items():
            shown.add_row(attribute, category, f"{count:,}")
    OUT.print(shown)
    size = size_in_words(counted.universe_size)
    OUT.print(f"{counted.records:,} records in a universe of {size}.", highlight=False)
    if found is None:
        OUT.print(f"Without --person, {EACH_ROW.in_words()}.", highlight=False)
    else:
        _print_persons(found)


def _print_persons(found: PersonsFound) -> None:
    quantiles = Table("of the persons", "have at most")
    for part, rows in found.quantiles.items():
        quantiles.add_row(f"{part:.1%}", f"{rows:,} {'row' if rows == 1 else 'rows'}")
    OUT.print(quantiles)
    choices = Table("--records", "persons cut", "rows dropped by events", "records of nothing", "noise on a count")
    for each in found.choices:
        choices.add_row(
            f"{each.records:,}",
            f"{each.cut:,} ({each.cut / found.persons:.1%})",
            f"{each.dropped:,} ({each.dropped / found.rows:.1%})",
            f"{each.nothing:,}",
            f"{each.records:,} times",
        )
    OUT.print(choices)
    OUT.print(f"{found.persons:,} persons with {found.rows:,} rows.", highlight=False)


def suggest(
    table: TableOption,
    out: Annotated[Path, typer.Option(help="The file to write the schema to; it must not exist.")],
    as_json: AsJson = False,
) -> None:
    """Suggest a schema for a table, and write it to a file for you to edit.

    Labels, round edges and whether values are missing are looked up in the private table, and a schema is public:
    remove whatever nobody may learn, such as a rare label. Columns that the file does not name are ignored.
    """
    if out.exists():
        raise AlreadyExists(f"{out} exists already")
    with ShownProgress("reading the table"):
        suggestions = suggest_schema(table)
    schema = schema_of(suggestions)
    out.write_text(schema.to_json(), encoding="utf-8")
    if as_json:
        left_out = {each.column: each.reason for each in suggestions if each.attribute is None}
        print_json({"schema": str(out), "universe_size": schema.universe_size, "left_out": left_out})
        return
    shown = Table("column", "looked up", "categories")
    for each in suggestions:
        size = f"{each.attribute.size:,}" if each.attribute is not None else "left out"
        shown.add_row(each.column, each.reason, size)
    OUT.print(shown)
    size = size_in_words(schema.universe_size)
    OUT.print(f"Wrote {out}: a universe of {size}. Edit it: it will be public.", highlight=False)
