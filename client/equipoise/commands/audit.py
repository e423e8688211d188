"""What auditors type."""

from __future__ import annotations

import json

import typer

from equipoise.auditor_client import Auditor
from equipoise.commands.custody import AccountName
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile
from equipoise.commands.printing import print_journal, print_json
from equipoise.commands.rounds import print_rounds
from equipoise.ledger_export import exported

audit_app = typer.Typer(help="For auditors: read every record, change nothing.", no_args_is_help=True)


@audit_app.command("rounds")
def rounds(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """List all rounds with their plans and shares, newest first."""
    with Auditor.from_profile(profile) as auditor:
        found = list(auditor.rounds())
    if as_json:
        print_json({"rounds": found})
    else:
        print_rounds(found)


@audit_app.command("journal")
def journal(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Show the budget journal: every reservation and charge, each line covering all before it by its digest."""
    with Auditor.from_profile(profile) as auditor:
        found = list(auditor.journal())
    if as_json:
        print_json({"entries": found})
        return
    print_journal(found)


@audit_app.command("export")
def export(account: AccountName, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    """Write an account's charges as JSON, part by part, for another accountant such as dp_accounting.

    docs/mechanisms.md has ten lines that add them up again.
    """
    with Auditor.from_profile(profile) as auditor:
        found = exported(account, (each for each in auditor.journal() if each.account == account))
    if as_json:
        print_json(found)
    else:
        print(json.dumps(found, indent=1))
