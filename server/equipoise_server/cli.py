"""`equipoise-server`: for the machine that holds the data. People who talk to a server use `equipoise`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from equipoise.commands.program import LazyCommand, lazy_app, program, run

# What the extra `server` brings, by the names under which it is imported. A client's installation has none of it.
SERVER_PACKAGES = (
    "scipy",
    "sqlalchemy",
    "alembic",
    "duckdb",
    "pydantic",
    "structlog",
    "prometheus_client",
    "grpc_health",
    "dp_accounting",
)

data_app = lazy_app(
    "Look at tables before they are registered.",
    {
        "check": LazyCommand(
            "equipoise_server.commands.tables:check_table",
            "Check that a table fits a schema, and count its records in each category.",
        ),
        "suggest": LazyCommand(
            "equipoise_server.commands.tables:suggest",
            "Suggest a schema for a table, and write it to a file for you to edit.",
        ),
    },
)
identity_app = lazy_app(
    "Admit, renew and revoke operators and auditors.",
    {
        "add": LazyCommand(
            "equipoise_server.commands.certifying:add",
            "Admit an operator or auditor who has made a request with: equipoise enroll.",
        ),
        "renew": LazyCommand(
            "equipoise_server.commands.certifying:renew",
            "Issue another certificate to an operator or auditor, after: equipoise enroll --renew.",
        ),
        "revoke": LazyCommand(
            "equipoise_server.commands.certifying:revoke",
            "Revoke an identity: new calls are refused at once, open calls end within a minute.",
        ),
        "list": LazyCommand(
            "equipoise_server.commands.certifying:list_all",
            "List operators, auditors and analysts, and when their newest certificates expire.",
        ),
    },
)
login_app = lazy_app(
    "Logging in with the company's identity provider.",
    {
        "allow": LazyCommand(
            "equipoise_server.commands.logins:allow",
            "Let an operator, auditor or analyst log in with an account of the identity provider.",
        ),
        "publish": LazyCommand(
            "equipoise_server.commands.logins:publish",
            "Write the file that people log in with: addresses, authority, the log's keys, the provider.",
        ),
    },
)
certificate_app = lazy_app(
    "The server's own certificate.",
    {
        "renew": LazyCommand(
            "equipoise_server.commands.certifying:renew_server",
            "Issue a new key and certificate to the server; servers may run meanwhile.",
        ),
    },
)
ca_app = lazy_app(
    "The deployment's certificate authority.",
    {
        "rotate": LazyCommand(
            "equipoise_server.commands.authority:rotate",
            "Exchange the authority's key in place; servers may run meanwhile, and certificates keep working.",
        ),
        "retire": LazyCommand(
            "equipoise_server.commands.authority:retire",
            "Retire the previous authority: what it signed is refused from now on; servers may run meanwhile.",
        ),
    },
)
clock_app = lazy_app(
    "The clock of this machine, where a server does not trust it.",
    {
        "confirm": LazyCommand(
            "equipoise_server.commands.clock:confirm",
            "Say that this machine's clock is right, where a server does not trust it; servers may run meanwhile.",
        ),
    },
)
ledger_app = lazy_app(
    "Check and repair the budget ledger, while no server runs.",
    {
        "verify": LazyCommand(
            "equipoise_server.commands.ledger:verify_ledger",
            "Recompute the journal's chain and every account from it, and all records and the log; compare with "
            "the guard.",
        ),
        "write-off": LazyCommand(
            "equipoise_server.commands.ledger:write_off",
            "Repair a store that was restored from an older copy, so that a server can start on it again.",
        ),
    },
)
keys_app = lazy_app(
    "The keys that sign the log, and the auditors' keys.",
    {
        "show": LazyCommand(
            "equipoise_server.commands.log:show_keys",
            "Show every key that signs or signed the log, and the auditors' keys, to which seeds are sealed.",
        ),
        "add": LazyCommand(
            "equipoise_server.commands.log:add_key",
            "Add a key of the log or of an auditor to those in force; servers may run meanwhile.",
        ),
        "retire": LazyCommand(
            "equipoise_server.commands.log:retire",
            "Retire a key; servers may run meanwhile. The private part of a key of the log is deleted.",
        ),
    },
)
log_app = lazy_app(
    "The transparency log.",
    {
        "export": LazyCommand(
            "equipoise_server.commands.log:export",
            "Write the log to files, as C2SP's specification tlog-tiles has them: checkpoint, tiles of hashes, "
            "entries.",
        ),
    },
)
audit_app = lazy_app(
    "Test the promises: replay rounds, audit mechanisms.",
    {
        "replay": LazyCommand(
            "equipoise_server.commands.auditing:replay",
            "Compute a released round again from its data and seed, and compare every message with what was "
            "released.",
        ),
        "empirical": LazyCommand(
            "equipoise_server.commands.auditing:empirical",
            "Run a mechanism on neighbouring inputs, and certify lower bounds of its epsilons.",
        ),
    },
)
app = program(
    "Hold a private table and answer many analysts' questions about it, in rounds that protect the people "
    "in the table and the analysts who ask.\n\nBegin with: equipoise-server init, then equipoise-server serve. "
    "To see a whole round first: equipoise-server demo.",
    {
        "init": LazyCommand(
            "equipoise_server.commands.deployment:init",
            "Make a state directory with a certificate authority, keys, an empty store and a configuration file.",
        ),
        "check": LazyCommand(
            "equipoise_server.commands.deployment:check",
            "Check configuration, keys, certificates, store and journal, without serving.",
        ),
        "ping": LazyCommand(
            "equipoise_server.commands.deployment:ping",
            "Ask the running server whether it answers. For health checks of containers and service managers.",
        ),
        "serve": LazyCommand(
            "equipoise_server.commands.deployment:serve",
            "Serve until interrupted (Ctrl+C or SIGTERM); open calls may end first.",
        ),
        "demo": LazyCommand(
            "equipoise_server.commands.deployment:demo",
            "Run a whole round on a public table, with airlines that hide their questions from one another.",
        ),
        "backup": LazyCommand(
            "equipoise_server.commands.backups:backup",
            "Back up the store, the configuration and the keys to a new directory; servers may run meanwhile.",
        ),
        "restore": LazyCommand(
            "equipoise_server.commands.backups:restore",
            "Put a backup's store in the place of the deployment's, while no server runs.",
        ),
        "plan": LazyCommand(
            "equipoise_server.commands.plan:plan",
            "Compare what every mechanism would promise, cost and take for a round, and show which one auto "
            "chooses.",
        ),
        "simulate": LazyCommand(
            "equipoise_server.commands.simulate:simulate",
            "Run a mechanism on a public table, and compare every answer with the truth.",
        ),
    },
)
app.add_typer(data_app, name="data")
app.add_typer(identity_app, name="identity")
app.add_typer(login_app, name="login")
app.add_typer(certificate_app, name="certificate")
app.add_typer(ca_app, name="ca")
app.add_typer(clock_app, name="clock")
app.add_typer(ledger_app, name="ledger")
app.add_typer(keys_app, name="keys")
app.add_typer(log_app, name="log")
app.add_typer(audit_app, name="audit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    missing = [name for name in SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        needed = "pip install 'equipoise[server]'"
        sys.exit(
            f"error: equipoise-server needs packages of its own: {needed}. Not installed: {', '.join(missing)}"
        )
    run(app, arguments)


if __name__ == "__main__":
    main()
