"""What operators type about budgets."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from equipoise.auditing.ledger_export import exported
from equipoise.clients.operator import Operator
from equipoise.commands.dangers import Accept
from equipoise.commands.dataset_columns import ACCOUNTS, JOURNAL
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RequestId
from equipoise.commands.printing import print_json, print_list, print_rows
from equipoise.model.accounts import Budget

budget_app = typer.Typer(help="Budgets: what is spent, what is left, and caps.", no_args_is_help=True)

AccountName = Annotated[str, typer.Argument(help="The account's name, as budget show prints it.")]


@budget_app.command("show")
def show_budgets(
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Show the budget accounts of a dataset: its data account and each analyst's, with their caps.

    "committed" is what is spent or reserved by rounds that are sealed. Epsilons are at the cap's delta. "counted"
    says how much divergence and how much delta is committed where rounds add, of which limits, and at which Renyi
    order; or that only the worst round counts. A round must fit within both limits.
    """
    with Operator.from_profile(profile) as operator:
        print_list("accounts", list(operator.accounts(dataset)), ACCOUNTS, as_json)


@budget_app.command("history")
def history(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show every journal entry of one account: its caps, and what each round reserved, spent or released."""
    with Operator.from_profile(profile) as operator:
        print_list("entries", list(operator.account_history(account)), JOURNAL, as_json)


@budget_app.command("export")
def export(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Write the privacy events of an account's charges as JSON, for an accountant such as dp_accounting.

    docs/mechanisms/equilibrium.md has ten lines that add them up again.
    """
    with Operator.from_profile(profile) as operator:
        document = exported(account, operator.account_history(account))
    if as_json:
        print_json(document)
    else:
        print(json.dumps(document, indent=1))


@budget_app.command("set-cap")
def set_cap(
    account: AccountName,
    epsilon: Annotated[float, typer.Option(help="The largest epsilon that all rounds together may cost.")],
    delta: Annotated[float, typer.Option(help="The delta of that epsilon.")],
    accept: Accept = None,
    request_id: RequestId = None,
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    """Change the cap of an account. The journal keeps every cap and the time from which it holds.

    A cap below what is spent or reserved already is refused, and so is one too small for the rounds that are open.
    One that protects nobody is refused, as a new dataset's is, unless its dangers are named.
    """
    with Operator.from_profile(profile) as operator:
        changed = operator.set_cap(account, Budget(epsilon, delta), request_id, tuple(accept or ()))
    if as_json:
        print_json(changed)
    else:
        print_rows(ACCOUNTS, [changed])
