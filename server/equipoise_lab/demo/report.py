"""The report of the demo: for people, or as one JSON object."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from rich.console import Console

from equipoise.commands.printing import print_table
from equipoise_lab.demo import proof
from equipoise_lab.demo.measure import Measured
from equipoise_lab.demo.play import ANALYST_BUDGET, DATA_BUDGET, DATASET, Played
from equipoise_lab.demo.proof import Proven
from equipoise_lab.demo.table import SCHEMA

_LEGEND = (
    "synopsis, noise     how many queries were answered in which way",
    "none                how many answers carry no interval",
    "half-width, largest the largest half-width of an interval, and the largest true error",
    "data, analyst       the epsilon spent of either budget: of the people in the",
    "                    table by all airlines together, and of the airline",
)


def as_json(
    played: Played, measured: Measured, proven: Proven, directory: Path, total_seconds: float
) -> dict[str, object]:
    """Return the object that `--json` prints. Errors are fractions of the records."""
    queries = sum(row.queries for row in measured.rows)
    uncertified = sum(row.uncertified for row in measured.rows)
    return {
        "records": measured.records,
        "universe_size": SCHEMA.universe_size,
        "analysts": len(measured.rows),
        "queries": queries,
        "answered": queries - uncertified,
        "answered_by_synopsis": sum(row.by_synopsis for row in measured.rows),
        "answered_with_noise": sum(row.with_noise for row in measured.rows),
        "uncertified": uncertified,
        "outside_interval": sum(row.outside_interval for row in measured.rows),
        "uniform_max_error": measured.uniform,
        "synopsis_max_error": measured.synopsis,
        "uniform_repaired_max_error": measured.uniform_repaired,
        "max_error": measured.delivered,
        "mean_error": measured.mean_error,
        "max_half_width": max(row.max_half_width for row in measured.rows),
        "gaussian_max_error": measured.gaussian,
        "mechanism": played.detail.plan.mechanism,
        "epsilon_data": played.detail.plan.data_budget.epsilon,
        "delta_data": played.detail.plan.data_budget.delta,
        "epsilon_analyst": max(row.epsilon_analyst for row in measured.rows),
        "delta_analyst": max(account.spent.delta for account in played.analyst_accounts.values()),
        "seconds": played.seconds,
        "total_seconds": total_seconds,
        "peak_memory_bytes": played.detail.progress.peak_memory_bytes,
        "resumed_after_cut": played.cut,
        "bundles_verified": 0 if proven.bundle_failure else proven.bundles,
        "audited": not proven.audit_failure,
        "replayed": not proven.replay_failure,
        "round_id": played.detail.round.id,
        "directory": str(directory),
    }


def print_report(console: Console, played: Played, measured: Measured, proven: Proven, directory: Path) -> None:
    """Print the tables, then the paths of the files and the next things to try."""

    def line(text: str = "") -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    line(f"\nRound {played.detail.round.id}, mechanism {played.detail.plan.mechanism}:")
    print_table(
        ("airline", "queries", "synopsis", "noise", "none", "half-width", "largest", "data", "analyst"),
        (
            (
                row.airline,
                f"{row.queries:,}",
                f"{row.by_synopsis:,}",
                f"{row.with_noise:,}",
                f"{row.uncertified:,}",
                f"{row.max_half_width:.4f}",
                f"{row.max_error:.4f}",
                f"{played.detail.plan.data_budget.epsilon:.3f}",
                f"{row.epsilon_analyst:.3f}",
            )
            for row in measured.rows
        ),
    )
    for text in _LEGEND:
        line(text)
    line("\nLargest error over all queries, as a fraction of the flights:")
    print_table(
        ("answered by", "largest error"),
        (
            ("the uniform guess", f"{measured.uniform:.4f}"),
            ("the synopsis, before repair", f"{measured.synopsis:.4f}"),
            ("the uniform guess, after the same repair", f"{measured.uniform_repaired:.4f}"),
            ("what was delivered", f"{measured.delivered:.4f}"),
        ),
    )
    for texts in (
        _budget_lines(played, measured),
        _gaussian_lines(measured),
        proof.lines(proven),
        _next_lines(played, directory),
    ):
        for text in (*texts, ""):
            line(text)


def _budget_lines(played: Played, measured: Measured) -> list[str]:
    data, counted = played.detail.plan.data_budget, played.data_account
    memory = played.detail.progress.peak_memory_bytes
    analyst = max(row.epsilon_analyst for row in measured.rows)
    outside = sum(row.outside_interval for row in measured.rows)
    return [
        f"The people in the table spent ({data.epsilon:.4f}, {data.delta:.2g}) of the round's "
        f"({DATA_BUDGET.epsilon:g}, {DATA_BUDGET.delta:.2g}); their cap for all rounds is {counted.cap.epsilon:g}.",
        f"Their account, to which rounds add, counts {counted.in_words}.",
        f"Each airline's statements spent ({analyst:.4f}, {ANALYST_BUDGET.delta:.2g}) of "
        f"({ANALYST_BUDGET.epsilon:g}, {ANALYST_BUDGET.delta:.2g}), against all other airlines together.",
        f"Truths outside their intervals: {outside}. Mean error {measured.mean_error:.4f}. "
        f"The round took {played.seconds:.1f} s from seal to release, its worker {memory / 2**20:,.0f} MB.",
    ]


def _gaussian_lines(measured: Measured) -> list[str]:
    better = "less" if measured.gaussian < measured.delivered else "more"
    return [
        "To be honest: independent Gaussian noise on all these queries, for the same data budget, would have a "
        f"largest error of about {measured.gaussian:.4f}, {better} than the {measured.delivered:.4f} delivered. "
        "It protects the airlines from one another, too, where their shares are fixed beforehand. The game is for "
        "far more queries, or larger sensitivities, than this."
    ]


def _next_lines(played: Played, directory: Path) -> list[str]:
    state, profiles, round_id = directory / "state", directory / "profiles", played.detail.round.id

    def command(name: str, *arguments: object) -> str:
        beside = Path(sys.executable).with_name(name)
        return "  " + shlex.join([str(beside) if beside.exists() else name, *map(str, arguments)])

    return [
        f"All files lie in {directory}: the server's state/, the airlines' profiles/, workloads/ and",
        f"{proof.BUNDLES}/, the auditor's {proof.ARCHIVE}/ and {proof.REPORT}, server.log.",
        "Try next, without a server. Verify an airline's part, all records, and the round itself from its data:",
        command("equipoise", "verify", proof.bundle_file(directory, "DL"), "--profile", profiles / "DL"),
        command(
            "equipoise", "audit", "verify", directory / proof.ARCHIVE, "--profile", state / "profiles" / "auditor"
        ),
        command("equipoise-server", "audit", "replay", round_id, "--state", state),
        "Start the server again, in a terminal of its own:",
        command("equipoise-server", "serve", "--state", state),
        "Read an airline's results again, which costs nothing:",
        command(
            "equipoise",
            *("results", round_id, "--profile", profiles / "DL"),
            *("--statements", directory / "workloads" / "DL.json", "--out", directory / "DL.csv"),
        ),
        "Look at both budgets as the operator, at the journal as the auditor:",
        command("equipoise", "operator", "budget", "show", DATASET, "--profile", state / "profiles" / "operator"),
        command("equipoise", "audit", "journal", "--profile", state / "profiles" / "auditor"),
    ]
