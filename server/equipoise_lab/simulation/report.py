"""The report of a simulation: for people, or as one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.universe_size import size_in_words
from equipoise_lab.options import records_in_words
from equipoise_lab.simulation.measure import Errors, Run, mean_errors
from equipoise_lab.simulation.simulate import Report
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters

METHOD_NAMES = {"uncertified": "left uncertified", "synopsis": "from the synopsis"}


def as_json(report: Report) -> dict[str, object]:
    """The object that `--json` prints. Errors are fractions of the records; what is infinite or nothing is null."""
    setting, plan, game = report.setting, report.plan, report.game
    return {
        "records": setting.records,
        "person_records": setting.person_records,
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
            "max_half_width": plan.max_half_width,
            "max_uncertified": plan.max_uncertified,
            "game_bound": None if game is None else _finite(game.error),
            "game_mishandles_fewer_than": None if game is None else game.mishandled,
            "seconds": plan.seconds,
            "memory_bytes": plan.memory_bytes,
        },
        "uniform": asdict(report.uniform),
        "gaussian": None if report.gaussian is None else asdict(report.gaussian),
        "mean_over_runs": means(report),
        "runs": [asdict(run) for run in report.runs],
        "peak_memory_bytes": report.peak_memory_bytes,
    }


def means(report: Report) -> dict[str, object]:
    """Return the mean over the runs of every number that each of them has."""
    runs, count = report.runs, len(report.runs)
    errors = {
        "synopsis": mean_errors([run.synopsis for run in runs]),
        "delivered": mean_errors([run.delivered for run in runs]),
        "certified": mean_errors([run.certified for run in runs]),
    }
    return {
        **{name: None if error is None else asdict(error) for name, error in errors.items()},
        "answered_by": mean_counts([run.answered_by for run in runs]),
        "analysts_with": mean_counts([run.analysts_with for run in runs]),
        "uncertified": sum(run.uncertified for run in runs) / count,
        "outside_interval": sum(run.outside_interval for run in runs) / count,
        "broken": sum(run.outside_interval > 0 for run in runs) / count,
        "seconds": sum(run.seconds for run in runs) / count,
    }


def mean_counts(counts: Sequence[Mapping[str, int]]) -> Mapping[str, float]:
    """Return the mean over the runs of every count; what a run does not count is 0 there."""
    names = sorted({name for each in counts for name in each})
    return {name: sum(each.get(name, 0) for each in counts) / len(counts) for name in names}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def print_report(console: Console, report: Report) -> None:
    """A table of errors, then a line each on what was asked, how it was answered, what it cost and promised."""
    runs = report.runs
    title = f"Errors, as fractions of {records_in_words(report.setting)}"
    shown = Table(
        "answers of", box=box.SIMPLE, title=title if len(runs) == 1 else f"{title}: mean of {len(runs)} runs"
    )
    for column in ("largest", "99th percentile", "mean"):
        shown.add_column(column, justify="right")
    error_row(shown, "the uniform guess", report.uniform)
    error_row(shown, "Gaussian noise on each (expected)", report.gaussian)
    error_row(shown, "the synopsis, before repair", mean_errors([run.synopsis for run in runs]))
    error_row(shown, f"{report.plan.mechanism}, all it delivered", mean_errors([run.delivered for run in runs]))
    error_row(shown, f"{report.plan.mechanism}, certified ones", mean_errors([run.certified for run in runs]))
    console.print(shown)
    for name, text in _lines(report):
        console.print(f"{name:<12}{text}", markup=False, highlight=False, soft_wrap=True)


def error_row(table: Table, name: str, errors: Errors | None) -> None:
    """A row of three errors, or of none. All have as many digits, so that no mean is shown above its largest."""
    if errors is None:
        table.add_row(name, "none", "", "")
    else:
        table.add_row(name, *(f"{error:.3g}" for error in (errors.max, errors.p99, errors.mean)))


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    setting, runs, plan = report.setting, report.runs, report.plan
    statements = sum(share.statements for share in setting.shares)
    yield (
        "asked",
        f"{report.queries:,} queries in {statements:,} statements by {len(setting.shares):,} analysts, "
        f"over {size_in_words(setting.universe_size)} possible records",
    )
    yield "answered", _answered(runs)
    yield "costs", f"{pair(report.data_cost)} the people in the table, of {pair(setting.data_budget)}"
    if report.analyst_cost is None:
        yield "", "the analysts are not protected from one another"
    else:
        unit = "one statement of an analyst" if setting.unit == "query" else "all that one analyst asks"
        budget = pair(setting.analyst_budget)
        yield "", f"{pair(report.analyst_cost)} {unit}, against all other analysts, of {budget}"
    yield "promised", _promised(plan, report.queries)
    game = report.game
    if game is not None and game.error < 1:
        yield "", f"the synopsis errs by {game.error:.3f} for all but fewer than {game.mishandled:g} units"
    broken = sum(run.outside_interval > 0 for run in runs)
    if all(run.certified is None for run in runs):
        yield "kept", "nothing was certified"
    else:
        yield (
            "kept",
            f"in {len(runs) - broken:,} of {len(runs):,} runs all truths lay in their intervals "
            f"(beta {setting.beta:g} is the part of runs that may fail)",
        )
    seconds = sum(run.seconds for run in runs) / len(runs)
    predicted = f"{plan.seconds:.3g} s predicted for full shares"
    yield "took", f"{seconds:.3g} s a run ({predicted}), {report.peak_memory_bytes / 2**20:,.0f} MB at most"
    if plan.mechanism == Equilibrium.name:
        yield "starts from", EquilibriumParameters.from_json(plan.parameters).in_words()
    yield "parameters", plan.parameters


def _answered(runs: tuple[Run, ...]) -> str:
    """Return how the queries were answered, and of how many analysts: means over the runs."""
    analysts = mean_counts([run.analysts_with for run in runs])
    parts = []
    for method, count in mean_counts([run.answered_by for run in runs]).items():
        name = METHOD_NAMES.get(method, f"by {method.replace('_', ' ')}")
        parts.append(f"{count:,.10g} {name} ({analysts[method]:,.10g} analysts)")
    return ", ".join(parts)


def _promised(plan: MechanismPlan, queries: int) -> str:
    if plan.max_half_width >= 1:
        promise = "nothing of any answer"
    else:
        promise = f"no interval has a half-width above {plan.max_half_width:.4f}"
    if plan.max_uncertified >= queries:
        return f"{promise}; all may stay uncertified"
    if plan.max_uncertified == 0:
        return f"{promise}; none stays uncertified"
    return f"{promise}; at most {plan.max_uncertified:,} stay uncertified"


def pair(budget: Budget) -> str:
    """Return an (epsilon, delta) pair, for people."""
    return f"({budget.epsilon:.4g}, {budget.delta:.3g})"
