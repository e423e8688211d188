"""`equipoise`: for people who talk to a server. The machine that holds the data has `equipoise-server`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from equipoise.commands import analyst, verification
from equipoise.commands.admission import analyst_app
from equipoise.commands.asking import ask, sessions
from equipoise.commands.audit import audit_app
from equipoise.commands.custody import budget_app, dataset_app
from equipoise.commands.enrolment import enroll, whoami
from equipoise.commands.operator_sessions import session_app
from equipoise.commands.printing import err
from equipoise.commands.rounds import round_app
from equipoise.errors import EquipoiseError, InvalidArgument

app = typer.Typer(
    help="Ask a private table many questions, without telling the other analysts which.\n\n"
    "A first result, with a profile that `equipoise enroll` made and your operator admitted:\n\n"
    "    export EQUIPOISE_PROFILE=my-profile\n\n"
    "    equipoise rounds\n\n"
    "    equipoise schema DATASET\n\n"
    "    equipoise submit ROUND statements.json\n\n"
    "    equipoise wait ROUND\n\n"
    "    equipoise results ROUND --out results.csv",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
operator_app = typer.Typer(help="For operators: data, analysts, rounds, sessions, budgets.", no_args_is_help=True)
operator_app.add_typer(dataset_app, name="dataset")
operator_app.add_typer(analyst_app, name="analyst")
operator_app.add_typer(round_app, name="round")
operator_app.add_typer(session_app, name="session")
operator_app.add_typer(budget_app, name="budget")

app.command("enroll")(enroll)
app.command("whoami")(whoami)
app.command("rounds")(analyst.rounds)
app.command("show")(analyst.show)
app.command("schema")(analyst.schema)
app.command("dry-run")(analyst.dry_run)
app.command("submit")(analyst.submit)
app.command("withdraw")(analyst.withdraw)
app.command("wait")(analyst.wait)
app.command("results")(analyst.results)
app.command("synopsis")(analyst.synopsis)
app.command("sessions")(sessions)
app.command("ask")(ask)
app.command("bundle")(verification.bundle)
app.command("verify")(verification.verify_bundle)
app.add_typer(operator_app, name="operator")
app.add_typer(audit_app, name="audit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    try:
        app(arguments)
    except EquipoiseError as error:
        err.print(f"error: {error.message}", style="red", markup=False, highlight=False, soft_wrap=True)
        if not isinstance(error, InvalidArgument):
            err.print(error.advice, markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
