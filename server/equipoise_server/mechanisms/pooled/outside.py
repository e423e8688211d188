"""Statements outside the family: answered from the synopsis if repair's tests allow it, otherwise with fresh noise.

Mechanisms section 5, for the part of every analyst's workload that no measured table covers. This part depends on
the analyst's own workload. Analysts influence each other only through the repair places, which hide them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import ApproximateDpEvent, PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.synopsis import Synopsis
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.budget_rounding import sampler_delta
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.repair import analyst_repair_plan, statement_repair_plan
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters, Served, repair_analysts
from equipoise_server.mechanisms.repair.parameters import Repair
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import SynopsisCounts, repair
from equipoise_server.mechanisms.repair.weights_hypothesis import starting_weights


def places_for(setting: PublicParameters) -> RepairPlaces | None:
    """Return who may be answered afresh, where whole analysts are repaired."""
    return analyst_repair_plan.plan_places(setting) if setting.unit == "analyst" else None


def budget_beside(setting: PublicParameters, places: RepairPlaces | None) -> Budget:
    """Return what hiding the repair places leaves of the analysts' budget."""
    return (
        setting.analyst_budget
        if places is None
        else analyst_repair_plan.game_setting(setting, places).analyst_budget
    )


def plan_repair(setting: PublicParameters, places: RepairPlaces | None, threshold: float, rho: Fraction) -> Repair:
    """Plan tests and answers within `rho` of the data's budget, and half of beta.

    Args:
        setting: of the round.
        places: of analysts who are answered afresh (unit = analyst); None: statements are.
        threshold: the error from which a place is worth it, as a fraction of the records.
        rho: what repair may cost the data.
    """
    half = replace(setting, beta=setting.beta / 2)
    if places is None:
        return statement_repair_plan.plan_statement_repair(half, threshold, rho)
    return analyst_repair_plan.plan_analyst_repair(half, threshold, places, rho)


def repair_promise(repairs: Repair) -> float:
    """Return the largest half-width of a certified answer outside the family."""
    if isinstance(repairs, AnalystRepairParameters):
        return analyst_repair_plan.promised(repairs)
    return max(repairs.certified_half_width, *repairs.noise_half_widths) / 2.0**GRID_BITS


def uncertified_outside(setting: PublicParameters, repairs: Repair) -> int:
    """At most how many answers outside the family end uncertified: nothing bounds what the synopsis errs there."""
    half = replace(setting, beta=setting.beta / 2)
    if isinstance(repairs, AnalystRepairParameters):
        return analyst_repair_plan.queries_without_places(half, repairs, len(setting.shares))
    return statement_repair_plan.queries_without_places(half, repairs)


def repair_data_parts(setting: PublicParameters, repairs: Repair) -> tuple[list[PrivacyEvent], Fraction]:
    """Return the parts of what repair costs the data, at its caps, and the total variation of its samplers."""
    size = Size.of(setting)
    if isinstance(repairs, AnalystRepairParameters):
        rho, truncated = analyst_repair_plan.repair_data_cost(repairs, size)
        return [ZcdpEvent("tests and answers", rho)], truncated
    return statement_repair_plan.repair_data_cost(repairs, size)


def repair_analyst_parts(setting: PublicParameters, repairs: Repair) -> list[PrivacyEvent]:
    """Return what hiding who gets a repair place costs one analyst; nothing where a statement is protected."""
    if not isinstance(repairs, AnalystRepairParameters) or not repairs.places.epsilon:
        return []
    places = repairs.places
    truncated = analyst_repair_plan.places_truncation(places, Size.of(setting))
    hidden = PureDpEvent("repair places", places.epsilon)
    slack = sampler_delta(truncated, setting.analyst_budget.epsilon, [hidden])
    beyond = analyst_repair_plan.places_delta(places, setting)
    return [hidden, ApproximateDpEvent("repair places", Fraction(0), slack + beyond)]


def repair_outside(
    repairs: Repair,
    setting: PublicParameters,
    data: Counts,
    outside: Mapping[str, CompiledWorkload],
    synopsis: Synopsis,
    seed: bytes,
) -> dict[str, Answers]:
    """Return the answers to what is outside the family, for each analyst in `outside`; its workload may be empty.

    Args:
        repairs: of the plan.
        setting: of the round.
        data: the table's counts.
        outside: the statements of each analyst that the family does not hold.
        synopsis: from which they are answered where that is good enough.
        seed: of the round, 32 bytes.
    """
    served = {
        name: Served(part, data.count(part), SynopsisCounts(synopsis.counts(part), len(synopsis)))
        for name, part in outside.items()
    }
    if isinstance(repairs, AnalystRepairParameters):
        analysts = [share.analyst for share in setting.shares]
        start = starting_weights(synopsis, setting.universe_size)
        return repair_analysts(repairs, analysts, served, setting.records, start, seed)
    return {
        name: repair(repairs, name, own.workload, own.counts, setting.records, own.synopsis, seed)
        for name, own in served.items()
    }
