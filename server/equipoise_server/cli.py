"""`equipoise-server`: for the machine that holds the data. People who talk to a server use `equipoise`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise_server.commands import auditing, certifying, deployment, ledger, log, tables, trying
from equipoise_server.commands.printing import ERR

app = typer.Typer(
    help="Hold a private table and answer many analysts' questions about it, in rounds that protect the people "
    "in the table and the analysts who ask.\n\nBegin with: equipoise-server init, then equipoise-server serve. "
    "To see a whole round first: equipoise-server demo.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at tables before they are registered.", no_args_is_help=True)
identity_app = typer.Typer(help="Admit, renew and revoke operators and auditors.", no_args_is_help=True)
certificate_app = typer.Typer(help="The server's own certificate.", no_args_is_help=True)
audit_app = typer.Typer(help="Put what is promised to the proof.", no_args_is_help=True)
ledger_app = typer.Typer(help="Check and repair the budget ledger, while no server runs.", no_args_is_help=True)
keys_app = typer.Typer(help="The keys that sign the log, and auditors'.", no_args_is_help=True)
log_app = typer.Typer(help="The log of all that was recorded.", no_args_is_help=True)

for command in (deployment.init, deployment.check, deployment.serve, deployment.demo, trying.plan, trying.simulate):
    app.command()(command)
data_app.command("check")(tables.check_table)
app.add_typer(data_app, name="data")
identity_app.command("add")(certifying.add)
identity_app.command("renew")(certifying.renew)
identity_app.command("revoke")(certifying.revoke)
identity_app.command("list")(certifying.list_all)
app.add_typer(identity_app, name="identity")
certificate_app.command("renew")(certifying.renew_server)
app.add_typer(certificate_app, name="certificate")
ledger_app.command("verify")(ledger.verify_ledger)
ledger_app.command("write-off")(ledger.write_off)
app.add_typer(ledger_app, name="ledger")
keys_app.command("show")(log.show_keys)
keys_app.command("add")(log.add_key)
keys_app.command("retire")(log.retire)
app.add_typer(keys_app, name="keys")
log_app.command("export")(log.export)
app.add_typer(log_app, name="log")
audit_app.command("replay")(auditing.replay)
audit_app.command("empirical")(auditing.empirical)
app.add_typer(audit_app, name="audit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    try:
        app(arguments)
    except EquipoiseError as error:
        ERR.print(f"error: {error.message}", style="red", markup=False, highlight=False, soft_wrap=True)
        if not isinstance(error, InvalidArgument):
            ERR.print(error.advice, markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
