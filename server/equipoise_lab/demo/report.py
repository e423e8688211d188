"""The report of the demo: for people, or as one JSON object."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from equipoise.commands.printing import print_table
from equipoise_lab.demo import proof
from equipoise_lab.demo.comparison import MAX_SECONDS, MechanismErrors
from equipoise_lab.demo.measure import AirlineErrors, MeasuredRound
from equipoise_lab.demo.play import ANALYST_BUDGET, BETA, DATA_BUDGET, DATASET, Played
from equipoise_lab.demo.proof import Proven
from equipoise_lab.demo.table import SCHEMA

AIRLINE_COLUMNS = ("airline", "queries", "no interval", "half-width", "mean error", "largest error", "epsilon")
MECHANISM_COLUMNS = ("mechanism", "expected", "mean", "promised", "largest", "no interval", "people", "airline")
NOT_MEASURED = "-"

_LEGEND = (
    "expected, mean     the error of an answer in the mean: what the plan expected, and what it was",
    "promised, largest  the largest half-width of an interval, and the largest error of any answer",
    f"no interval        the part of the answers without one; all others hold at once in {1 - BETA:.0%} of rounds",
    "people, airline    the epsilon that it costs the people in the table, and each airline's questions",
    f"-                  not run: it would take more than {MAX_SECONDS:g} s; or an interval that says nothing",
)
WHAT_IT_DOES = {
    "pooled": "noise on tables of attributes, once for all airlines; a fit to all of them",
    "histogram": "noise on the count of every possible record, once for all airlines",
    "projection": "noise on every answer; a distribution is fitted to each airline's answers",
    "multiplicative_weights": "noise on the answer that is served worst, again and again, for each airline",
    "gaussian": "independent Gaussian noise on every answer",
    "laplace": "independent Laplace noise on every answer",
    "small_db": "a small table for each airline, drawn to serve the airline's questions",
    "equilibrium": "the game of Hsu, Roth and Ullman (2012)",
    "equilibrium, prior none": "the game of Hsu, Roth and Ullman (2012), as printed: from nothing",
    "equilibrium, prior own": "the game, from a distribution that is first fitted to noisy public tables",
}


def as_json(
    played: Played, measured: MeasuredRound, proven: Proven, directory: Path, total_seconds: float
) -> dict[str, object]:
    """Return the object that `--json` prints. Errors are fractions of the records, times are seconds."""
    delivered = measured.delivered
    queries = sum(row.queries for row in measured.airlines)
    return {
        "records": measured.records,
        "universe_size": SCHEMA.universe_size,
        "analysts": len(measured.airlines),
        "queries": queries,
        "answered": queries - delivered.uncertified,
        "uncertified": delivered.uncertified,
        "outside_interval": delivered.outside_interval,
        "max_error": delivered.errors.max,
        "mean_error": delivered.errors.mean,
        "uniform_max_error": measured.uniform_max_error,
        "max_half_width": max(row.max_half_width for row in measured.airlines),
        "mechanism": played.detail.plan.mechanism,
        "why": measured.compared.why,
        "mechanisms": [asdict(each) for each in measured.compared.mechanisms],
        "refusals": dict(measured.compared.refusals),
        "epsilon_data": played.detail.plan.data_budget.epsilon,
        "delta_data": played.detail.plan.data_budget.delta,
        "epsilon_analyst": max(row.epsilon_analyst for row in measured.airlines),
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


def print_report(
    console: Console, played: Played, measured: MeasuredRound, proven: Proven, directory: Path
) -> None:
    """Print the tables, then the paths of the files and the next things to try."""

    def line(text: str = "") -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def block(texts: Iterable[str]) -> None:
        for text in texts:
            line(text)
        line()

    line(f"\nRound {played.detail.round.id}, what the airlines received. Errors are fractions of the flights.")
    print_table(AIRLINE_COLUMNS, map(_airline_cells, measured.airlines))
    block(_budget_lines(played, measured))
    line("Every mechanism on the same questions, for the same budgets. > marks what the airlines received.")
    print_table(
        MECHANISM_COLUMNS, (_mechanism_cells(row, played, measured) for row in measured.compared.mechanisms)
    )
    block(_LEGEND)
    block(_mechanism_lines(measured))
    block(proof.lines(proven))
    block(_next_lines(played, directory))


def _airline_cells(row: AirlineErrors) -> tuple[str, ...]:
    return (
        row.airline,
        f"{row.queries:,}",
        f"{row.measured.uncertified / row.queries:.0%}",
        _error(row.max_half_width),
        _error(row.measured.errors.mean),
        _error(row.measured.errors.max),
        f"{row.epsilon_analyst:.3f}",
    )


def _mechanism_cells(row: MechanismErrors, played: Played, measured: MeasuredRound) -> tuple[str, ...]:
    marked = "> " if row.mechanism == played.detail.plan.mechanism else "  "
    run = row.measured
    queries = sum(each.queries for each in measured.airlines)
    return (
        marked + row.mechanism,
        _error(row.expected),
        NOT_MEASURED if run is None else _error(run.errors.mean),
        _error(row.promised) if row.promised < 1 else NOT_MEASURED,
        NOT_MEASURED if run is None else _error(run.errors.max),
        NOT_MEASURED if run is None else f"{run.uncertified / queries:.0%}",
        f"{row.data_epsilon:.3f}",
        f"{row.analyst_epsilon:.3f}",
    )


def _mechanism_lines(measured: MeasuredRound) -> Iterator[str]:
    """Say what each mechanism does, and why one was chosen."""
    for row in measured.compared.mechanisms:
        yield f"{row.mechanism:<25}{WHAT_IT_DOES[row.mechanism]}"
    for mechanism, refusal in measured.compared.refusals.items():
        yield f"{mechanism:<25}cannot serve this round: {refusal}"
    yield f"{'the uniform guess':<25}errs by up to {measured.uniform_max_error:.4f} and costs nothing"
    yield f"Why auto chose so: {measured.compared.why}"


def _error(error: float) -> str:
    return f"{error:.5f}"


def _budget_lines(played: Played, measured: MeasuredRound) -> list[str]:
    data, counted = played.detail.plan.data_budget, played.data_account
    memory = played.detail.progress.peak_memory_bytes
    analyst = max(row.epsilon_analyst for row in measured.airlines)
    return [
        f"The people in the table spent ({data.epsilon:.4f}, {data.delta:.2g}) of the round's "
        f"({DATA_BUDGET.epsilon:g}, {DATA_BUDGET.delta:.2g}); their cap for all rounds is {counted.cap.epsilon:g}.",
        f"Their account, to which rounds add, counts {counted.in_words}.",
        f"Each airline's statements spent ({analyst:.4f}, {ANALYST_BUDGET.delta:.2g}) of "
        f"({ANALYST_BUDGET.epsilon:g}, {ANALYST_BUDGET.delta:.2g}), against all other airlines together.",
        f"Truths outside their intervals: {measured.delivered.outside_interval}. "
        f"The round took {played.seconds:.1f} s from seal to release, its worker {memory / 2**20:,.0f} MB.",
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
