"""What a simulation says at the end: to people, or as one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from equipoise_server.mechanisms.interface import Budget
from equipoise_server.simulation.measure import Errors, Run, mean_errors
from equipoise_server.simulation.simulate import Report

METHOD_NAMES = {"uncertified": "the synopsis, uncertified"}


def as_json(report: Report) -> dict[str, object]:
    """The object that `--json` prints. Errors are fractions of the records; what is infinite or nothing is null."""
    setting, plan, game = report.setting, report.plan, report.game
    return {
        "records": setting.records,
        "universe_size": setting.universe_size,
        "analysts": len(setting.shares),
        "statements": sum(share.statements for share in setting.shares),
        "queries": report.queries,
        "unit": setting.unit,
        "beta": setting.beta,
        "mechanism": plan.mechanism,
        "parameters": json.loads(plan.parameters),
        "data_cost": asdict(report.data_cost),
        "analyst_cost": None if report.analyst_cost is None else asdict(report.analyst_cost),
        "predicted": {
            "promised_error": plan.promised_error,
            "uncertified_at_most": plan.uncertified_at_most,
            "game_bound": None if game is None or math.isinf(game.error) else game.error,
            "game_mishandles_fewer_than": None if game is None else game.mishandled,
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
        },
        "uniform": asdict(report.uniform),
        "gaussian": {"max": report.gaussian_max, "mean": report.gaussian_mean},
        "mean_over_runs": means(report),
        "runs": [asdict(run) for run in report.runs],
        "peak_memory_bytes": report.peak_memory_bytes,
    }


def means(report: Report) -> dict[str, object]:
    """The mean over the runs of every number that each of them has."""
    runs, count = report.runs, len(report.runs)
    errors = {
        "synopsis": mean_errors([run.synopsis for run in runs]),
        "delivered": mean_errors([run.delivered for run in runs]),
        "certified": mean_errors([run.certified for run in runs]),
    }
    return {
        **{name: None if each is None else asdict(each) for name, each in errors.items()},
        "answered_by": answered_by(runs),
        "uncertified": sum(run.uncertified for run in runs) / count,
        "outside_bound": sum(run.outside_bound for run in runs) / count,
        "seconds": sum(run.seconds for run in runs) / count,
    }


def answered_by(runs: tuple[Run, ...]) -> Mapping[str, float]:
    """Queries by how they were answered, the mean over the runs."""
    methods = sorted({method for run in runs for method in run.answered_by})
    return {method: sum(run.answered_by.get(method, 0) for run in runs) / len(runs) for method in methods}


def print_report(console: Console, report: Report) -> None:
    """A table of errors, then costs, promises and how the queries were answered."""
    runs = report.runs
    title = f"{report.plan.mechanism}: error as a fraction of {report.setting.records:,} records"
    shown = Table(
        "answered by", box=box.SIMPLE, title=title if len(runs) == 1 else f"{title}, mean of {len(runs)} runs"
    )
    for column in ("largest", "99th percentile", "mean"):
        shown.add_column(column, justify="right")
    _row(shown, "the uniform guess", report.uniform)
    shown.add_row(
        "Gaussian noise on each (expected)", f"{report.gaussian_max:.4f}", "", f"{report.gaussian_mean:.5f}"
    )
    _row(shown, "the synopsis, before repair", mean_errors([run.synopsis for run in runs]))
    _row(shown, "what was delivered", mean_errors([run.delivered for run in runs]))
    _row(shown, "the certified part of it", mean_errors([run.certified for run in runs]))
    console.print(shown)
    for line in _lines(report):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _row(table: Table, name: str, errors: Errors | None) -> None:
    if errors is None:
        table.add_row(name, "none", "", "")
    else:
        table.add_row(name, f"{errors.max:.4f}", f"{errors.p99:.4f}", f"{errors.mean:.5f}")


def _lines(report: Report) -> list[str]:
    setting, runs = report.setting, report.runs
    answered = ", ".join(
        f"{METHOD_NAMES.get(method, method)} {count:,.0f}" for method, count in answered_by(runs).items()
    )
    lines = [
        f"{len(setting.shares)} analysts, {sum(share.statements for share in setting.shares):,} statements, "
        f"{report.queries:,} queries over {setting.universe_size:,} different records. Unit: {setting.unit}.",
        f"Answered by: {answered}. Answers outside their bound: {sum(run.outside_bound for run in runs)}.",
        f"Costs the people in the table {_pair(report.data_cost)}; "
        + (
            "the analysts are not protected from one another."
            if report.analyst_cost is None
            else f"one {setting.unit} of an analyst {_pair(report.analyst_cost)}, against all other analysts."
        ),
        f"Promised error of certified answers {report.plan.promised_error:.4f}; "
        f"at most {report.plan.uncertified_at_most:,} uncertified.",
    ]
    if report.game is not None:
        lines.append(
            f"The game's own bound, proven: {report.game.error:.3f} for all but fewer than "
            f"{report.game.mishandled:g} units."
        )
    lines.append(
        f"{sum(run.seconds for run in runs) / len(runs):.1f} s a run, "
        f"{report.peak_memory_bytes / 2**20:,.0f} MB at most. Parameters: {report.plan.parameters}"
    )
    return lines


def _pair(budget: Budget) -> str:
    return f"({budget.epsilon:.4g}, {budget.delta:.3g})"
