"""Prints a comparison of the mechanisms: for people, or as one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_lab.planning.acceptance import Acceptance
from equipoise_lab.planning.request import in_words
from equipoise_lab.simulation.simulate import analyst_pair
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.choice import Candidate
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison, why

COLUMNS = ("expected", "promise", "open", "eps_A", "time", "memory")
MAX_PARAMETERS = 400  # characters shown to people; JSON has all


def as_json(setting: PublicParameters, comparison: Comparison, accepted: Acceptance) -> dict[str, object]:
    """The object that `--json` prints. Errors are fractions of the records; what is infinite or nothing is null."""
    return {
        "records": setting.records,
        "universe_size": setting.universe_size,
        "attributes": list(setting.attributes),
        "analysts": len(setting.shares),
        "statements": setting.statements,
        "queries": setting.queries,
        "sensitivity": sum(share.l1_sensitivity for share in setting.shares),
        "support": setting.largest_support,
        "unit": setting.unit,
        "beta": setting.beta,
        "data_budget": asdict(setting.data_budget),
        "analyst_budget": asdict(setting.analyst_budget) if setting.protects_analysts else None,
        "mechanisms": [_fields(candidate, setting) for candidate in comparison.candidates],
        "choice": None if comparison.chosen is None else comparison.chosen.mechanism,
        "why": why(comparison) or None,
        "accounts": [
            asdict(charge) | {"rounds": rounds}
            for charge, rounds in zip(accepted.charges, accepted.rounds, strict=True)
        ],
        "refusal": accepted.refusal or None,
    }


def _fields(candidate: Candidate, setting: PublicParameters) -> dict[str, object]:
    plan = candidate.plan
    fields: dict[str, object] = {
        "mechanism": candidate.mechanism,
        "feasible": plan is not None,
        "why_not": _why_not(candidate) or None,
        "beyond_limits": candidate.beyond or None,
    }
    if plan is None:
        return fields
    on_data, on_analysts = data_pair(plan, setting), analyst_pair(plan, setting)
    return fields | {
        "expected_error": plan.expected_error,
        "alpha": candidate.alpha,
        "max_half_width": plan.max_half_width,
        "max_uncertified": plan.max_uncertified,
        "seconds": plan.seconds,
        "memory_bytes": plan.memory_bytes,
        "data_cost": asdict(on_data),
        "analyst_cost": None if on_analysts is None else asdict(on_analysts),
        "parameters": json.loads(plan.parameters),
    }


def data_pair(plan: MechanismPlan, setting: PublicParameters) -> Budget:
    """Return what the people in the table lose, at the budget's delta."""
    return Budget(epsilon_for(plan.data_cost, setting.data_budget.delta), setting.data_budget.delta)


def print_comparison(
    console: Console, setting: PublicParameters, comparison: Comparison, accepted: Acceptance
) -> None:
    """Print a row for each mechanism that can serve, a line for each that cannot, and the choice."""
    shown = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("mechanism", no_wrap=True)
    for column in COLUMNS:
        shown.add_column(column, justify="right", no_wrap=True)
    for candidate in comparison.candidates:
        if candidate.plan is not None:
            marked = "> " if candidate is comparison.chosen else "  "
            shown.add_row(marked + candidate.mechanism, *_cells(candidate.plan, setting))
    if shown.row_count:
        console.print(shown)
    for name, text in (*_lines(setting, comparison), *_accepted(accepted)):
        console.print(f"{name:<13}{text}", markup=False, highlight=False, soft_wrap=True)


def _accepted(accepted: Acceptance) -> Iterator[tuple[str, str]]:
    for charge, rounds in zip(accepted.charges, accepted.rounds, strict=True):
        often = "any number of such rounds fits" if rounds is None else f"such rounds that fit: {rounds:,}"
        yield "counts on", f"{charge.all_in_words}; {often}"
    yield "accepted", f"no: {accepted.refusal}" if accepted.refusal else "yes, by servers with such a table"


def _cells(plan: MechanismPlan, setting: PublicParameters) -> Iterator[str]:
    on_analysts = analyst_pair(plan, setting)
    yield f"{plan.expected_error:.2g}"
    yield _error(plan.max_half_width)
    yield f"{min(1.0, plan.max_uncertified / setting.queries):.2%}" if plan.max_uncertified else "none"
    yield "-" if on_analysts is None else f"{on_analysts.epsilon:.3g}"
    yield _duration(plan.seconds)
    yield f"{plan.memory_bytes / 2**30:,.1f} GiB"


def _lines(setting: PublicParameters, comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield (
        "round",
        f"{setting.queries:,} queries in {setting.statements:,} statements by {len(setting.shares):,} analysts, "
        f"about {setting.records:,} records of {setting.universe_size:,} possible ones; unit {setting.unit}",
    )
    for candidate in comparison.candidates:
        if candidate.plan is None:
            yield "cannot", f"{candidate.mechanism}: {_why_not(candidate)}"
        elif candidate.beyond:
            yield "beyond", f"{candidate.mechanism}: {candidate.beyond}"
    yield "expected", "the mean error over all queries that is expected; no promise rests on it"
    yield "promise", "the largest half-width of an interval"
    yield "open", "the part of the answers that may end without an interval, at most"
    if setting.protects_analysts:
        yield "eps_A", f"what the round costs an analyst, of {setting.analyst_budget.epsilon:g}"
    else:
        yield "eps_A", "the analysts are not protected from one another"
    if comparison.chosen is None or comparison.chosen.plan is None:
        yield "chosen", "none: no mechanism can serve this round"
        return
    parameters = comparison.chosen.plan.parameters
    if len(parameters) > MAX_PARAMETERS:
        parameters = f"{parameters[:MAX_PARAMETERS]}... (all of them with --json)"
    yield "chosen", comparison.chosen.mechanism
    yield "because", why(comparison)
    if comparison.chosen.mechanism == Equilibrium.name:
        yield "starts from", EquilibriumParameters.from_json(comparison.chosen.plan.parameters).in_words()
    yield "parameters", parameters


def _why_not(candidate: Candidate) -> str:
    return "" if candidate.refusal is None else in_words(candidate.refusal).message


def _error(error: float) -> str:
    return f"{error:.4f}" if error < 1 else "1"


def _duration(seconds: float) -> str:
    if not math.isfinite(seconds) or seconds >= 1e7:
        return "months"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.0f} h"
