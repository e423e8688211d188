"""What becomes of registered tables: versions, retirement, deletion, and how much of their budgets is left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from equipoise.clients.operator import Operator
from equipoise.commands.dataset_columns import ACCOUNTS, CHARGES, DATASETS, VERSIONS
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_facts, print_json, print_line, print_list, print_rows
from equipoise.commands.progress import ShownProgress
from equipoise.errors import InvalidArgument
from equipoise.queries.schema_file import read_schema_file
from equipoise.wire.printable import printable

Name = Annotated[str, typer.Argument(help="The dataset's name.")]


def update(
    name: Name,
    source: Annotated[
        str,
        typer.Option(
            help="The newer table in the server's data directory. [default: where the newest version's lies]",
            show_default=False,
        ),
    ] = "",
    schema: Annotated[
        Path | None,
        typer.Option(help="The schema file. [default: the newest version's schema]", show_default=False),
    ] = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Register another version of a dataset: a newer snapshot of its table, or the table under another schema.

    The version holds the people of the dataset, and its account pays for it: no budget is given anew. New rounds,
    sessions and measurements are about the newest version. Those that there are stay about theirs, so leave an
    older table where it is until its rounds have ended. A table of other people is registered under another name.
    """
    with Operator.from_profile(profile) as operator:
        read_by = None if schema is None else read_schema_file(schema)
        with ShownProgress("reading the table") as progress:
            version = operator.update_dataset(name, source, read_by, request_id, progress.follow)
    if as_json:
        print_json(version)
    else:
        size = version.schema.universe_size
        number = f"version {version.version} of {version.name}"
        print_line(f"Registered {number}: {version.records:,} records in a universe of {size:,}.")
        print_line(f"It shares the account of {version.account}: what was spent for earlier versions counts.")


def retire(
    name: Name,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Retire a dataset, for good: no new rounds, sessions, measurements or versions.

    Rounds that are open continue. Results and budgets stay as they are, and the log says when it was retired.
    """
    with Operator.from_profile(profile) as operator:
        retired = operator.retire_dataset(name, request_id)
    if as_json:
        print_json(retired)
    else:
        print_line(f"Retired {retired.name}.")


def delete(
    name: Name,
    confirm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name once more, as nothing brings the dataset back. [default: asked on a terminal]",
            show_default=False,
        ),
    ] = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Delete a dataset, for good: the server erases the results, measurements and seeds of its rounds.

    The table's own file is left alone: it is yours to remove. What was spent stays spent, and the records, the
    receipts and the workloads stay, with which analysts and auditors verify. The name is never given again, and the
    server still recognises the table. Refused while a round is open, or has results that are not out yet.
    """
    if confirm is None and sys.stdin.isatty():
        question = f"Nothing brings it back. Type {printable(name)} to delete it"
        confirm = typer.prompt(question, default="", show_default=False, err=True)
    if confirm != name:
        raise InvalidArgument("confirm", f"must be {name!r}, the name of what is deleted for good")
    with Operator.from_profile(profile) as operator:
        deleted = operator.delete_dataset(name, request_id)
    if as_json:
        print_json(deleted)
    else:
        print_line(f"Deleted {deleted.name}. What was spent for its people stays spent.")


def list_datasets(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the registered tables: their newest versions, their states, and what is left of both budgets.

    Of the analysts' accounts, the one of each unit of which least is left.
    """
    with Operator.from_profile(profile) as operator:
        print_list("datasets", list(operator.datasets()), DATASETS, as_json)


def show(name: Name, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show a dataset: its versions, its budgets, and what each round, session and measurement took of them.

    Rounds on other datasets of the same people are shown, too, as they take from the same budgets. "people" and
    "each analyst" say what a round means alone, as a pair at the cap's delta, and what is counted of it.
    """
    with Operator.from_profile(profile) as operator:
        history = operator.dataset_history(name)
        charges = list(operator.dataset_charges(name))
    standing, dataset = history.standing, history.standing.dataset
    if as_json:
        print_json({"standing": standing, "versions": history.versions, "charges": charges})
        return
    ended = dataset.delete_time or dataset.retire_time
    print_facts(
        [
            ("dataset", dataset.name),
            ("state", standing.state if ended is None else f"{standing.state} since {ended:%Y-%m-%d %H:%M:%S} UTC"),
            ("newest version", f"{dataset.version}, with {dataset.records:,} records"),
            ("account", dataset.account),
        ]
    )
    print_rows(VERSIONS, history.versions)
    print_rows(ACCOUNTS, [standing.data, *standing.analysts])
    print_rows(CHARGES, charges)
