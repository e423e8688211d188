"""`equipoise`: for people who talk to a server. The machine that holds the data has `equipoise-server`."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.commands.program import LazyCommand, program, run

app = program(
    "Ask a private table many questions, without telling the other analysts which.\n\n"
    "A first result, with a profile that `equipoise enroll` made and your operator admitted:\n\n"
    "    export EQUIPOISE_PROFILE=my-profile\n\n"
    "    equipoise rounds\n\n"
    "    equipoise schema DATASET\n\n"
    "    equipoise submit ROUND statements.json\n\n"
    "    equipoise wait ROUND\n\n"
    "    equipoise results ROUND --out results.csv",
    {
        "enroll": LazyCommand(
            "equipoise.commands.enrolment:enroll",
            "Make a profile: a key and a signing request for your operator, then the bundle that comes back.",
        ),
        "login": LazyCommand(
            "equipoise.commands.login:login",
            "Get a short-lived certificate by your company's login; makes the profile, or renews its certificate.",
        ),
        "whoami": LazyCommand(
            "equipoise.commands.enrolment:whoami",
            "Show your name and role on the server, and when your certificate expires. Use it to try a new "
            "profile.",
        ),
        "authority": LazyCommand(
            "equipoise.commands.enrolment:authority",
            "Follow your deployment's authority to its new key, if the one that your profile trusts has signed it.",
        ),
        "rounds": LazyCommand(
            "equipoise.commands.analyst:rounds",
            "List the rounds in which you have a share, newest first.",
        ),
        "show": LazyCommand(
            "equipoise.commands.analyst:show",
            "Show one round or session: its state, its budgets, your share, and how much of a session is answered.",
        ),
        "schema": LazyCommand(
            "equipoise.commands.analyst:schema",
            "Show the schema of a dataset: its attributes and their categories.",
        ),
        "dry-run": LazyCommand(
            "equipoise.commands.analyst:dry_run",
            "Check a statements file against a round and predict its error. The server keeps nothing of it.",
        ),
        "submit": LazyCommand(
            "equipoise.commands.analyst:submit",
            "Submit a statements file; until the round is sealed, submitting again replaces it.",
        ),
        "withdraw": LazyCommand(
            "equipoise.commands.analyst:withdraw",
            "Withdraw your workload, as long as the round is open. No other analyst learns that there was one.",
        ),
        "wait": LazyCommand(
            "equipoise.commands.analyst:wait",
            "Wait until the results of a round can be read; exits with 1 if it was aborted instead.",
        ),
        "results": LazyCommand(
            "equipoise.commands.results:results",
            "Read your results: value, interval, and how each was answered. Reading again is free.",
        ),
        "synopsis": LazyCommand(
            "equipoise.commands.results:synopsis",
            "Download the synopsis of a released round: a table of synthetic records, for further questions.",
        ),
        "sql": LazyCommand(
            "equipoise.commands.sql:sql",
            "Ask in SQL: submit to an open round, read a released one's answers, or ask in sessions or of grants.",
        ),
        "dummy": LazyCommand(
            "equipoise.commands.dummy:dummy",
            "Write a random table of a dataset's schema, to try questions on. It says nothing about the real one.",
        ),
        "sessions": LazyCommand(
            "equipoise.commands.asking:sessions",
            "List the online sessions in which you have a share, newest first.",
        ),
        "ask": LazyCommand(
            "equipoise.commands.asking:ask",
            "Ask statements of a grant or in a session, one after the other; each answer is printed as it arrives.",
        ),
        "datasets": LazyCommand(
            "equipoise.commands.own_world:datasets",
            "List the datasets that you may ask about: those of your rounds, sessions and grants.",
        ),
        "budget": LazyCommand(
            "equipoise.commands.own_world:budget",
            "Show your open grants: what each allows, what you have spent of it, and what is left, in zCDP.",
        ),
        "request": LazyCommand(
            "equipoise.commands.own_world:request",
            "Ask your operators for a grant. No other analyst learns of it; `equipoise requests` shows what comes.",
        ),
        "requests": LazyCommand(
            "equipoise.commands.own_world:requests",
            "List your requests for grants, newest first, with what became of them.",
        ),
        "bundle": LazyCommand(
            "equipoise.commands.verification:bundle",
            "Write all evidence of your part in an ended round to one file, and verify it with what your "
            "profile keeps.",
        ),
        "verify": LazyCommand(
            "equipoise.commands.verification:verify_bundle",
            "Verify a bundle offline by thirteen numbered checks, one a line, up to the first that fails.",
        ),
        "accept-loss": LazyCommand(
            "equipoise.commands.losses:accept_loss",
            "Show what part of its log the custodian admits to have lost; with ROOT, accept that your checkpoint "
            "is in it.",
        ),
        "console": LazyCommand(
            "equipoise.console.command:console",
            "Open the console: pages in your browser for all that your role may do. Interrupt it to end it.",
        ),
        "operator": LazyCommand(
            "equipoise.commands.operator:operator_app",
            "For operators: data, analysts, rounds, sessions, grants, budgets.",
        ),
        "audit": LazyCommand(
            "equipoise.commands.audit:audit_app",
            "For auditors: download every record, verify it offline, add randomness to rounds.",
        ),
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    run(app, arguments)


if __name__ == "__main__":
    main()
