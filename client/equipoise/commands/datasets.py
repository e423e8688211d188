"""What operators type about datasets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.dangers import Accept
from equipoise.commands.dataset_life import delete, list_datasets, retire, show, update
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId, with_fields
from equipoise.commands.person_options import PersonOptions
from equipoise.commands.printing import print_json, print_line
from equipoise.commands.progress import RunProgress, ShownProgress
from equipoise.commands.rounds import act
from equipoise.commands.terms_options import Beta, DataDelta, Dataset, ReleaseGrid
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.datasets import NEW_PEOPLE, same_people_as
from equipoise.model.rounds import MEASUREMENT, RoundDetail, Terms
from equipoise.queries.schema_file import read_schema_file
from equipoise.wire.printable import printable

FAMILIES = ("pairs", "triples")  # that have a name; other tables are named one by one
dataset_app = typer.Typer(help="Tables that rounds may be run on.", no_args_is_help=True)
for life in (update, retire, delete, list_datasets, show):
    dataset_app.command("list" if life is list_datasets else None)(life)


@dataset_app.command("register")
@with_fields
def register(
    name: Annotated[str, typer.Argument(help="The dataset's name, which rounds and analysts use.")],
    source: Annotated[
        str,
        typer.Option(
            help="The table in the server's data directory: a .csv, .tsv or .parquet file, a .parquet directory, "
            "or a .database.toml or .spark.toml file. CSV files may have options: "
            "flights.csv?delimiter=;&encoding=latin-1."
        ),
    ],
    schema: Annotated[Path, typer.Option(help="The schema file, JSON; try it with: equipoise-server data check.")],
    whose: PersonOptions,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="new|same-as:DATASET",
            help="Whose people the table holds: nobody of a registered table, or those of DATASET, with which it "
            "then shares one account. [default: asked on a terminal; new for a server's first table]",
            show_default=False,
        ),
    ] = None,
    data_epsilon: Annotated[
        float | None,
        typer.Option(
            help="The largest epsilon that all rounds together may cost new people in the table.",
            show_default=False,
        ),
    ] = None,
    data_delta: Annotated[
        float | None,
        typer.Option(help="The delta of that epsilon; well below 1 / records.", show_default=False),
    ] = None,
    analyst_epsilon: Annotated[
        float | None,
        typer.Option(
            help="The largest epsilon that all rounds together may cost any one analyst.", show_default=False
        ),
    ] = None,
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
            help="Give new people budgets of their own although another dataset has, or may have, the same table.",
        ),
    ] = False,
    accept: Accept = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Register a table, and open an account for new people in it. Its caps hold for all rounds together, for ever.

    A table with people of a registered dataset has that dataset's account: what is spent for one counts for both,
    and no caps or orders are given. The answer is on record, and cannot be changed. A newer snapshot of a table is
    registered by dataset update.

    Without --person each row counts as a person. With it, the promise of privacy is for all rows of a person
    together; equipoise-server data check --person shows what each number of records would drop and cost.

    At which order an account counts can never be changed; docs/budgets.md says which one suits what.

    Rows that the schema does not allow are counted by attribute, and the table is refused.
    """
    with Operator.from_profile(profile) as operator:
        answer = _ask_people(operator) if people is None and sys.stdin.isatty() else people or ""
        with ShownProgress("reading the table") as progress:
            registered = operator.register_dataset(
                name,
                source,
                read_schema_file(schema),
                _cap("--data", data_epsilon, data_delta),
                None if analyst_epsilon is None else Budget(analyst_epsilon, analyst_delta),
                request_id,
                data_order,
                analyst_order,
                people=answer,
                new_budgets=new_budgets,
                person=whose.person or "",
                persons=whose.persons,
                accepted=tuple(accept or ()),
                on_progress=progress.follow,
            )
    if as_json:
        print_json(registered)
    else:
        size = registered.schema.universe_size
        print_line(f"Registered {registered.name}: {registered.records:,} records in a universe of {size:,}.")
        print_line(f"Whose privacy: {registered.persons.in_words()}.")
        if registered.account != registered.name:
            print_line(f"It shares the account of {registered.account}: what is spent for one counts for both.")


@dataset_app.command("measure")
def measure(
    dataset: Dataset,
    data_epsilon: Annotated[
        float, typer.Option(help="The largest epsilon that the measurement may cost the people in the table, once.")
    ],
    data_delta: DataDelta,
    family: Annotated[
        str,
        typer.Option(
            metavar="pairs|triples|A,B;C,D;...",
            help="Which tables are measured: all of two attributes, all of three, or those named: attributes with "
            "commas between them, tables with semicolons. Smaller tables of the same attributes come with them.",
        ),
    ] = "pairs",
    beta: Beta = 0.05,
    release_grid: ReleaseGrid = 0,
    accept: Accept = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Measure a dataset once, so that later rounds and sessions are answered at no cost to anybody.

    The measurement is a round in which nobody has a share. It is charged to the dataset's account and to nobody
    else, runs at once, and is on record like any round. From its release on, rounds and sessions can be opened with
    --mechanism standing: whatever one of the measured tables tells is answered in them, with intervals, and all
    their analysts can download its synthetic table.
    """
    named = family if family in FAMILIES else [table.split(",") for table in family.split(";")]
    terms = Terms(
        dataset=dataset,
        shares=(),
        data_budget=Budget(data_epsilon, data_delta),
        analyst_budget=None,
        beta=beta,
        mechanism=MEASUREMENT,
        options={"family": named},
        release_grid_seconds=release_grid,
        accepted=tuple(accept or ()),
    )

    def until_released(operator: Operator) -> RoundDetail:
        with ShownProgress("planning") as planning:
            opened = operator.open(terms, request_id, planning.follow)
        with RunProgress() as progress:
            last = opened
            for last in operator.watch(opened.round.id):
                progress(last)
            return last

    act(profile, as_json, until_released)


def _ask_people(operator: Operator) -> str:
    """Ask on the terminal whose people a table holds; nothing is asked before there is another table."""
    names = [each.dataset.name for each in operator.datasets()]
    if not names:
        return ""
    typer.echo(f"Registered: {', '.join(map(printable, names))}.", err=True)
    named: str = typer.prompt(
        "Whose people does the table hold? The name of a dataset that holds some of them, or new for nobody",
        err=True,
    )
    return NEW_PEOPLE if named == NEW_PEOPLE else same_people_as(named)


def _cap(option: str, epsilon: float | None, delta: float | None) -> Budget | None:
    """Return a cap, or None where neither part is given. Raises `InvalidArgument` where one is missing."""
    if epsilon is None and delta is None:
        return None
    if epsilon is None or delta is None:
        raise InvalidArgument(f"{option}-{'epsilon' if epsilon is None else 'delta'}", "is missing")
    return Budget(epsilon, delta)
