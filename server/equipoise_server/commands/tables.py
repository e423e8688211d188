"""Looking at tables before they are registered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from equipoise.commands.printing import counted, print_line, print_table
from equipoise.commands.progress import ShownProgress
from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.persons import EACH_ROW
from equipoise.queries.universe_size import size_in_words
from equipoise_server.admin.checks import count_table
from equipoise_server.admin.person_check import PersonsFound, find_persons
from equipoise_server.admin.schema_suggestion import schema_of, suggest_schema
from equipoise_server.commands.printing import AsJson, print_json

TableOption = Annotated[
    Path,
    typer.Option(
        help="The table: a .csv, .tsv or .parquet file, a .parquet directory, or a .database.toml or .spark.toml "
        "file. CSV files may have options: flights.csv?delimiter=;&encoding=latin-1."
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
        held = count_table(table, schema, progress)
    found = None if person is None else find_persons(table, person)
    if as_json:
        facts = {
            "universe_size": held.universe_size,
            "records": held.records,
            "counts": held.counts,
        }
        print_json(facts | {"persons": None if found is None else asdict(found)})
        return
    rows = (
        (attribute, category, f"{count:,}")
        for attribute, counts in held.counts.items()
        for category, count in counts.items()
    )
    print_table(("attribute", "category", "records"), rows)
    size = size_in_words(held.universe_size)
    print_line(f"{held.records:,} records in a universe of {size}.")
    if found is None:
        print_line(f"Without --person, {EACH_ROW.in_words()}.")
    else:
        _print_persons(found)


def _print_persons(found: PersonsFound) -> None:
    quantiles = ((f"{part:.1%}", counted(rows, "row")) for part, rows in found.quantiles.items())
    print_table(("of the persons", "have at most"), quantiles)
    choices = (
        (
            f"{each.records:,}",
            f"{each.cut:,} ({each.cut / found.persons:.1%})",
            f"{each.dropped:,} ({each.dropped / found.rows:.1%})",
            f"{each.nothing:,}",
            f"{each.records:,} times",
        )
        for each in found.choices
    )
    titles = ("--records", "persons cut", "rows dropped by events", "records of nothing", "noise on a count")
    print_table(titles, choices)
    print_line(f"{found.persons:,} persons with {found.rows:,} rows.")


def suggest(
    table: TableOption,
    out: Annotated[Path, typer.Option(help="The file to write the schema to; it must not exist.")],
    lookup: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=FILE",
            help="The column holds codes, and this CSV file has a code and its label in each line. People see and "
            "ask by the labels. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Suggest a schema for a table, and write it to a file for you to edit.

    Labels, round edges and whether values are missing are looked up in the private table, and a schema is public:
    remove whatever nobody may learn, such as a rare label. Columns that the file does not name are ignored.
    """
    if out.exists():
        raise AlreadyExists(f"{out} exists already")
    lookups = {}
    for each in lookup or []:
        column, sign, file = each.partition("=")
        if not sign:
            raise InvalidArgument("--lookup", f"is {each!r}; name a column and a file: carrier=carriers.csv")
        lookups[column] = Path(file)
    with ShownProgress("reading the table"):
        suggestions = suggest_schema(table, lookups)
    schema = schema_of(suggestions)
    out.write_text(schema.to_json(), encoding="utf-8")
    if as_json:
        left_out = {each.column: each.reason for each in suggestions if each.attribute is None}
        print_json({"schema": str(out), "universe_size": schema.universe_size, "left_out": left_out})
        return
    rows = (
        (each.column, each.reason, "left out" if each.attribute is None else f"{each.attribute.size:,}")
        for each in suggestions
    )
    print_table(("column", "looked up", "categories"), rows)
    size = size_in_words(schema.universe_size)
    print_line(f"Wrote {out}: a universe of {size}. Edit it: it will be public.")
