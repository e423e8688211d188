"""What auditors type."""

from __future__ import annotations

import typer

from equipoise.auditor_client import Auditor
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile
from equipoise.commands.printing import print_journal, print_json
from equipoise.commands.rounds import print_rounds

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
