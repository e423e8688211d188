"""Dummy tables, with which questions can be tried before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile
from equipoise.commands.printing import counted, print_json, print_line
from equipoise.errors import InvalidArgument
from equipoise.local.dummy import dummy_table
from equipoise.queries.schema_file import read_schema_file

TABLES = (".csv", ".parquet")


def dummy(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset's name, as `equipoise rounds` shows it, or a schema file that ends in .json."
        ),
    ],
    to: Annotated[Path, typer.Option("--out", help="Write the table to this file: .csv or .parquet.")],
    records: Annotated[int, typer.Option(help="How many records.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same one gives the same table.")] = 0,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Write a random table of a dataset's schema, to try questions on. It says nothing about the real one.

    Client.local(FILE, SCHEMA) asks it in Python without a server, with noise like a round's.
    """
    if to.suffix not in TABLES:
        raise InvalidArgument("--out", f"must end in {' or '.join(TABLES)}")
    if dataset.endswith(".json"):
        schema = read_schema_file(Path(dataset))
    else:
        with Client.from_profile(profile) as client:
            schema = client.dataset(dataset).schema
    dummy_table(schema, records, seed).write(to)
    if as_json:
        print_json({"file": to, "records": records, "seed": seed})
        return
    print_line(f"{counted(records, 'dummy record')} of {counted(len(schema.attributes), 'attribute')} in {to}.")
