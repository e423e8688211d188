"""What operators type about data and budgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from equipoise.auditing.ledger_export import exported
from equipoise.clients.operator import Operator
from equipoise.commands.analyst import read_text
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import pair, print_journal, print_json, print_line, print_table
from equipoise.model.accounts import Account, Budget
from equipoise.queries.schema import Schema

dataset_app = typer.Typer(help="Tables that rounds may be run on.", no_args_is_help=True)
budget_app = typer.Typer(help="What is spent and what is left.", no_args_is_help=True)

AccountName = Annotated[str, typer.Argument(help="The account's name, as budget show prints it.")]


@dataset_app.command("register")
def register(
    name: Annotated[str, typer.Argument(help="The name under which rounds and analysts will know it.")],
    source: Annotated[str, typer.Option(help="The .csv or .parquet file in the server's data directory.")],
    schema: Annotated[Path, typer.Option(help="The schema file, JSON; try it with: equipoise-server data check.")],
    data_epsilon: Annotated[float, typer.Option(help="The most all rounds may cost the people in the table.")],
    data_delta: Annotated[float, typer.Option(help="Its delta; well below 1 / records.")],
    analyst_epsilon: Annotated[float, typer.Option(help="The most all rounds may cost any analyst.")],
    analyst_delta: Annotated[float, typer.Option(help="Its delta.")] = 1e-6,
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
            help="The table is another dataset's, too: give its records budgets besides.",
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
        found = operator.register_dataset(
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
        print_json(found)
    else:
        size = found.schema.universe_size
        print_line(f"Registered {found.name}: {found.records:,} records in a universe of {size:,}.")


@dataset_app.command("retire")
def retire(
    name: Annotated[str, typer.Argument(help="The dataset's name.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Allow no new rounds on a table. Rounds that are open go on; results and budgets stay as they are."""
    with Operator.from_profile(profile) as operator:
        found = operator.retire_dataset(name, request_id)
    if as_json:
        print_json(found)
    else:
        print_line(f"Retired {found.name}.")


@dataset_app.command("list")
def list_datasets(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List the registered tables."""
    with Operator.from_profile(profile) as operator:
        found = list(operator.datasets())
    if as_json:
        print_json({"datasets": found})
        return
    print_table(
        ("dataset", "records", "universe", "retired", "attributes"),
        (
            (
                each.name,
                f"{each.records:,}",
                f"{each.schema.universe_size:,}",
                "" if each.retire_time is None else f"{each.retire_time:%Y-%m-%d %H:%M} UTC",
                ", ".join(each.schema.names),
            )
            for each in found
        ),
    )


@budget_app.command("show")
def show_budgets(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show both ledgers of a table: what the people in it and each analyst have spent, and their caps.

    "committed" is what is spent or reserved by rounds that are sealed. Epsilons are at the cap's delta. "counts"
    says at which Renyi order rounds add, how much divergence is committed, and the most; or that only the worst
    round counts.
    """
    with Operator.from_profile(profile) as operator:
        found = list(operator.accounts(dataset))
    if as_json:
        print_json({"accounts": found})
        return
    print_accounts(found)


@budget_app.command("history")
def history(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show every journal entry of one account: its caps, and what each round reserved, spent or gave back."""
    with Operator.from_profile(profile) as operator:
        found = list(operator.account_history(account))
    if as_json:
        print_json({"entries": found})
    else:
        print_journal(found)


@budget_app.command("export")
def export(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Write an account's charges as JSON, part by part, for another accountant such as dp_accounting.

    docs/mechanisms.md has ten lines that add them up again.
    """
    with Operator.from_profile(profile) as operator:
        found = exported(account, operator.account_history(account))
    if as_json:
        print_json(found)
    else:
        print(json.dumps(found, indent=1))


@budget_app.command("set-cap")
def set_cap(
    account: AccountName,
    epsilon: Annotated[float, typer.Option(help="The most that all rounds together may cost.")],
    delta: Annotated[float, typer.Option(help="Its delta.")],
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Change the cap of an account; the journal keeps who could spend how much, and from when on.

    A cap below what is spent or reserved already is refused, and so is one too small for the rounds that are open.
    """
    with Operator.from_profile(profile) as operator:
        found = operator.set_cap(account, Budget(epsilon, delta), request_id)
    if as_json:
        print_json(found)
    else:
        print_accounts([found])


def print_accounts(found: list[Account]) -> None:
    """A line for each account."""
    print_table(
        ("account", "spent", "committed", "cap", "counts"),
        ((each.name, pair(each.spent), pair(each.committed), pair(each.cap), _counts(each)) for each in found),
    )


def _counts(account: Account) -> str:
    if account.order is None:
        return "the worst round"
    return f"at Renyi order {account.order:g}: {account.divergence:.4g} of {account.max_divergence:.4g}"
