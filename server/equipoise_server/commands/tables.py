"""Looking at tables before they are registered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from equipoise.queries.universe_size import size_in_words
from equipoise_server.admin.checks import count_table
from equipoise_server.commands.printing import OUT, AsJson, print_json


def check_table(
    table: Annotated[
        Path,
        typer.Option(
            help="The table: a .csv, .tsv or .parquet file, a .parquet directory, or a .database.toml file. "
            "CSV files may have options: flights.csv?delimiter=;&encoding=latin-1."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema: a JSON file of attributes.")],
    as_json: AsJson = False,
) -> None:
    """Check that a table fits a schema, and count its records in each category.

    Prints the size of the universe (how many different records can exist), the number of records, and how many
    fall into each category. If there are values that the schema does not allow, counts them and exits with 1.
    The counts are exact and private: only the custodian may see them.
    """
    counted = count_table(table, schema)
    if as_json:
        print_json({"universe_size": counted.universe_size, "records": counted.records, "counts": counted.counts})
        return
    shown = Table("attribute", "category", "records")
    for attribute, counts in counted.counts.items():
        for category, count in counts.items():
            shown.add_row(attribute, category, f"{count:,}")
    OUT.print(shown)
    OUT.print(
        f"{counted.records:,} records in a universe of {size_in_words(counted.universe_size)}.", highlight=False
    )
