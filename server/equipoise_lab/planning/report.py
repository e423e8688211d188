"""Prints a comparison of the mechanisms: for people, or as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace

from rich.console import Console

from equipoise.commands.planners import explained, print_candidates
from equipoise.queries.universe_size import size_in_words
from equipoise_lab.options import records_in_words
from equipoise_lab.planning.acceptance import Acceptance
from equipoise_lab.planning.request import in_words
from equipoise_server.mechanisms.choice import Candidate
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.forecasts import analyst_pair, data_pair, plan_candidates
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison

MAX_PARAMETERS = 400  # characters shown to people; JSON has all


def as_json(setting: PublicParameters, comparison: Comparison, accepted: Acceptance) -> dict[str, object]:
    """The object that `--json` prints. Errors are fractions of the records; what is infinite or nothing is null."""
    return {
        "records": setting.records,
        "person_records": setting.person_records,
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


def print_comparison(
    console: Console, setting: PublicParameters, comparison: Comparison, accepted: Acceptance
) -> None:
    """Print a row for each mechanism that can serve, a line for each that cannot, and the choice."""
    candidates = [
        replace(shown, refusal=_why_not(candidate))
        for shown, candidate in zip(plan_candidates(comparison), comparison.candidates, strict=True)
    ]
    chosen = "" if comparison.chosen is None else comparison.chosen.mechanism
    if any(each.forecast is not None for each in candidates):
        print_candidates(candidates, chosen, setting.queries)
    for name, text in (_round(setting), *explained(candidates), *_choice(comparison), *_accepted(accepted)):
        console.print(f"{name:<13}{text}", markup=False, highlight=False, soft_wrap=True)


def _accepted(accepted: Acceptance) -> Iterator[tuple[str, str]]:
    for charge, rounds in zip(accepted.charges, accepted.rounds, strict=True):
        often = "any number of such rounds fits" if rounds is None else f"such rounds that fit: {rounds:,}"
        yield "counts on", f"{charge.all_in_words}; {often}"
    yield "accepted", f"no: {accepted.refusal}" if accepted.refusal else "yes, by servers with such a table"


def _round(setting: PublicParameters) -> tuple[str, str]:
    return (
        "round",
        f"{setting.queries:,} queries in {setting.statements:,} statements by {len(setting.shares):,} analysts, "
        f"about {records_in_words(setting)} of {size_in_words(setting.universe_size)} possible ones; "
        f"unit {setting.unit}",
    )


def _choice(comparison: Comparison) -> Iterator[tuple[str, str]]:
    if comparison.chosen is None or comparison.chosen.plan is None:
        yield "chosen", "none: no mechanism can serve this round"
        return
    parameters = comparison.chosen.plan.parameters
    if len(parameters) > MAX_PARAMETERS:
        parameters = f"{parameters[:MAX_PARAMETERS]}... (all of them with --json)"
    yield "chosen", comparison.chosen.mechanism
    if because := why(comparison):
        yield "because", because
    if comparison.chosen.mechanism == Equilibrium.name:
        yield "starts from", EquilibriumParameters.from_json(comparison.chosen.plan.parameters).in_words()
    yield "parameters", parameters


def _why_not(candidate: Candidate) -> str:
    return "" if candidate.refusal is None else in_words(candidate.refusal).message
