"""The commands for operators."""

from __future__ import annotations

from equipoise.commands.program import LazyCommand, lazy_app

operator_app = lazy_app(
    "For operators: data, analysts, rounds, sessions, grants, budgets.",
    {
        "dataset": LazyCommand(
            "equipoise.commands.datasets:dataset_app",
            "Tables that rounds may be run on.",
        ),
        "analyst": LazyCommand(
            "equipoise.commands.admission:analyst_app",
            "Analysts: admit, renew, revoke, delete, list.",
        ),
        "round": LazyCommand(
            "equipoise.commands.rounds:round_app",
            "Rounds, from opening to release: open, (analysts submit), seal, run, release.",
        ),
        "session": LazyCommand(
            "equipoise.commands.operator_sessions:session_app",
            "Online sessions, in which statements are answered one at a time: open, (analysts ask), close. "
            "`equipoise operator round run` and `release` then give their results once more, as those of a round, "
            "with all that can be verified.",
        ),
        "grant": LazyCommand(
            "equipoise.commands.operator_grants:grant_app",
            "Grants: parts of a dataset's budget that analysts spend statement by statement, at any time.",
        ),
        "budget": LazyCommand(
            "equipoise.commands.budgets:budget_app",
            "Budgets: what is spent, what is left, and caps.",
        ),
    },
)
