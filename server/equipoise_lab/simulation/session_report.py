"""The report of a simulated session: for people, or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from equipoise.accounting import Cost
from equipoise.queries.universe_size import size_in_words
from equipoise_lab.options import records_in_words
from equipoise_lab.simulation.measure import mean_errors
from equipoise_lab.simulation.report import error_row, mean_counts, pair
from equipoise_lab.simulation.session_simulate import AFRESH, CERTIFIED, UNCERTIFIED, SessionReport


def as_json(report: SessionReport) -> dict[str, object]:
    """Return the object that `--json` prints. Errors are fractions of the records; what is nothing is null."""
    setting, plan, runs = report.setting, report.plan, report.runs
    certified = mean_errors([run.certified for run in runs])
    delivered = mean_errors([run.delivered for run in runs])
    return {
        "records": setting.records,
        "person_records": setting.person_records,
        "universe_size": setting.universe_size,
        "analysts": len(setting.shares),
        "statements": setting.statements,
        "queries": setting.queries,
        "length": setting.options["length"],
        "unit": setting.unit,
        "beta": setting.beta,
        "mechanism": plan.mechanism,
        "parameters": json.loads(plan.parameters),
        "data_cost": asdict(report.data_cost),
        "analyst_cost": None if report.analyst_cost is None else asdict(report.analyst_cost),
        "predicted": {
            "max_half_width": plan.max_half_width,
            "max_uncertified": plan.max_uncertified,
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
        },
        "alone": {name: None if errors is None else asdict(errors) for name, errors in report.alone.items()},
        "mean_over_runs": {
            "delivered": None if delivered is None else asdict(delivered),
            "certified": None if certified is None else asdict(certified),
            "statements": mean_counts([run.statements for run in runs]),
            "outside_interval": sum(run.outside_interval for run in runs) / len(runs),
            "seconds": sum(run.seconds for run in runs) / len(runs),
        },
        "runs": [asdict(run) for run in runs],
    }


def print_session(console: Console, report: SessionReport) -> None:
    """A table of errors, then a line each on what was asked, how it was answered, what it cost and promised."""
    runs, name = report.runs, report.plan.mechanism
    parts = report.plan.errors_are_parts_of
    title = f"Errors, as fractions of {records_in_words(report.setting) if parts == 'the records' else parts}"
    shown = Table(
        "answers of", box=box.SIMPLE, title=title if len(runs) == 1 else f"{title}: mean of {len(runs)} runs"
    )
    for column in ("largest", "99th percentile", "mean"):
        shown.add_column(column, justify="right")
    error_row(shown, "Laplace noise on each (expected)", report.alone["laplace"])
    error_row(shown, "Gaussian noise on each (expected)", report.alone["gaussian"])
    error_row(shown, f"{name}, all it delivered", mean_errors([run.delivered for run in runs]))
    error_row(shown, f"{name}, certified ones", mean_errors([run.certified for run in runs]))
    console.print(shown)
    for line, text in _lines(report):
        console.print(f"{line:<12}{text}", markup=False, highlight=False, soft_wrap=True)


def _lines(report: SessionReport) -> Iterator[tuple[str, str]]:
    setting, runs, plan = report.setting, report.runs, report.plan
    counts, asked = mean_counts([run.statements for run in runs]), setting.statements
    yield (
        "asked",
        f"{asked:,} statements ({setting.queries:,} queries) by {len(setting.shares):,} analysts in a session of "
        f"length {setting.options['length']:,}, over {size_in_words(setting.universe_size)} possible records",
    )
    yield (
        "answered",
        f"{counts[CERTIFIED] / asked:.1%} of the statements certified from the hypothesis, "
        f"{counts[AFRESH] / asked:.1%} afresh ({counts[AFRESH]:,.10g} that it learnt from), "
        f"{counts[UNCERTIFIED] / asked:.1%} uncertified",
    )
    yield "costs", f"{pair(report.data_cost)} the people in the table, of {pair(setting.data_budget)}"
    if len(setting.shares) == 1 and report.plan.analyst_cost in (None, Cost()):
        yield "", "there is one analyst, and nobody to protect it from"
    elif report.analyst_cost is None:
        yield "", "the analysts are not protected from one another"
    else:
        unit = "one statement of an analyst" if setting.unit == "query" else "all that one analyst asks"
        yield "", f"{pair(report.analyst_cost)} {unit}, against all other analysts"
    promise = f"no interval has a half-width above {plan.max_half_width:.4g} of {plan.errors_are_parts_of}"
    yield "promised", "nothing of any answer" if plan.max_half_width >= 1 else promise
    kept = sum(run.outside_interval == 0 for run in runs)
    yield (
        "kept",
        f"in {kept:,} of {len(runs):,} runs all truths lay in their intervals (beta {setting.beta:g} is the "
        "part of runs that may fail)",
    )
    seconds = sum(run.seconds for run in runs) / len(runs)
    yield "took", f"{seconds:.3g} s a run, {1000 * seconds / asked:.3g} ms a statement"
    yield "parameters", plan.parameters
