"""What operators type about datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.columns import DATASETS
from equipoise.commands.files import read_text
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_json, print_line, print_list
from equipoise.model.accounts import Budget
from equipoise.queries.schema import Schema

dataset_app = typer.Typer(help="Tables that rounds may be run on.", no_args_is_help=True)


@dataset_app.command("register")
def register(
    name: Annotated[str, typer.Argument(help="The dataset's name, which rounds and analysts use.")],
    source: Annotated[
        str,
        typer.Option(
            help="The .csv, .tsv or .parquet file in the server's data directory. CSV files "
            "may have options: flights.csv?delimiter=;&encoding=latin-1."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema file, JSON; try it with: equipoise-server data check.")],
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that all rounds together may cost the people in the table.")
    ],
    data_delta: Annotated[float, typer.Option(help="The delta of that epsilon; well below 1 / records.")],
    analyst_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that all rounds together may cost any one analyst.")
    ],
    analyst_delta: Annotated[float, typer.Option(help="The delta of that epsilon.")] = 1e-6,
    data_order: Annotated[
        float,
        typer.Option(
            help="The Renyi order at which the data account counts; 0: the one at which the cap allows most zCDP. "
            "For rounds of laplace only, a very large one, such as 100000."
        ),
    ] = 0,
    analyst_order: Annotated[
        float,
        typer.Option(
            help="The same for analysts' accounts of unit = analyst; for many rounds of sampled play a smaller one."
        ),
    ] = 0,
    new_budgets: Annotated[
        bool,
        typer.Option(
            "--new-budgets",
            help="Give the records budgets of their own although another dataset has, or may have, the same table.",
        ),
    ] = False,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Register a table and open its budget accounts. The caps hold for all rounds together, for ever.

    At which order an account counts can never be changed; docs/budgets.md says which one suits what.

    Rows that the schema does not allow are counted by attribute, and the table is refused.
    """
    with Operator.from_profile(profile) as operator:
        registered = operator.register_dataset(
            name,
            source,
            Schema.from_json(read_text(schema)),
            Budget(data_epsilon, data_delta),
            Budget(analyst_epsilon, analyst_delta),
            request_id,
            data_order,
            analyst_order,
            new_budgets=new_budgets,
        )
    if as_json:
        print_json(registered)
    else:
        size = registered.schema.universe_size
        print_line(f"Registered {registered.name}: {registered.records:,} records in a universe of {size:,}.")


@dataset_app.command("retire")
def retire(
    name: Annotated[str, typer.Argument(help="The dataset's name.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Retire a dataset: no new rounds on it. Open rounds continue; results and budgets stay as they are."""
    with Operator.from_profile(profile) as operator:
        retired = operator.retire_dataset(name, request_id)
    if as_json:
        print_json(retired)
    else:
        print_line(f"Retired {retired.name}.")


@dataset_app.command("list")
def list_datasets(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the registered tables."""
    with Operator.from_profile(profile) as operator:
        print_list("datasets", list(operator.datasets()), DATASETS, as_json)
