"""`equipoise`: for people who talk to a server. The machine that holds the data has `equipoise-server`."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.commands.program import LazyCommand, lazy_app, run

app = lazy_app(
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
            "Get a profile: make a key here and a request for your operator, then install the bundle that comes "
            "back.",
        ),
        "whoami": LazyCommand(
            "equipoise.commands.enrolment:whoami",
            "Say who the server takes you for, and until when your certificate is good. A way to try a new "
            "profile.",
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
            "Show what can be asked about: the attributes of a dataset and their categories.",
        ),
        "dry-run": LazyCommand(
            "equipoise.commands.analyst:dry_run",
            "Check a statements file against a round and predict its error. Leaves no trace, costs nothing.",
        ),
        "submit": LazyCommand(
            "equipoise.commands.analyst:submit",
            "Submit a statements file; until the round is sealed, submitting again replaces it.",
        ),
        "withdraw": LazyCommand(
            "equipoise.commands.analyst:withdraw",
            "Take your workload back, as long as the round accepts workloads. Nobody learns that there was one.",
        ),
        "wait": LazyCommand(
            "equipoise.commands.analyst:wait",
            "Wait until the results of a round can be read; exits with 1 if it was aborted instead.",
        ),
        "results": LazyCommand(
            "equipoise.commands.results:results",
            "Read your results: value, error bound, and how each was answered. Reading again is free.",
        ),
        "synopsis": LazyCommand(
            "equipoise.commands.results:synopsis",
            "Download the synopsis of a released round as a table of made-up records, to ask further questions of.",
        ),
        "sessions": LazyCommand(
            "equipoise.commands.asking:sessions",
            "List the online sessions in which you have a share, newest first.",
        ),
        "ask": LazyCommand(
            "equipoise.commands.asking:ask",
            "Ask in a session, one statement after the other; each answer is printed as it comes.",
        ),
        "bundle": LazyCommand(
            "equipoise.commands.verification:bundle",
            "Write your part in a round that has ended to one file, and verify it against what your profile has "
            "kept.",
        ),
        "verify": LazyCommand(
            "equipoise.commands.verification:verify_bundle",
            "Verify a bundle, without any server: thirteen numbered checks, each a line, up to the first that "
            "fails.",
        ),
        "operator": LazyCommand(
            "equipoise.commands.operator:operator_app",
            "For operators: data, analysts, rounds, sessions, budgets.",
        ),
        "audit": LazyCommand(
            "equipoise.commands.audit:audit_app",
            "For auditors: download every record, verify it offline, have a part in rounds' randomness.",
        ),
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Exit codes: 0, 1 for a refusal or failure in one clear line, 2 for wrong usage."""
    run(app, arguments)


if __name__ == "__main__":
    main()
