"""The plan of `pooled`, from public facts: the family, the noise on the demand, the floors, and the half-widths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, PrivacyEvent, ZcdpEvent
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import COUNT, FRACTION, REAL, canonical_object, codec_of, key, optional
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.mechanisms.budget_rounding import usable_rho, with_samplers
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.choice import NEAR
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.pooled.allocation import shares_of
from equipoise_server.mechanisms.pooled.demand import NO_VOTES, Demand, demand_parts, plan_demand
from equipoise_server.mechanisms.pooled.family import MAX_RESIDUAL_SETS, MAX_SETS, Family, table_cells
from equipoise_server.mechanisms.pooled.options import Options, over_universe, read_options
from equipoise_server.mechanisms.pooled.outside import (
    budget_beside,
    places_for,
    plan_repair,
    repair_analyst_parts,
    repair_data_parts,
    repair_promise,
    uncertified_outside,
)
from equipoise_server.mechanisms.pooled.residual_plan import (
    plan_residuals,
    residuals_expected_error,
    residuals_half_width,
)
from equipoise_server.mechanisms.pooled.tables_plan import tables_expected_error, tables_half_width
from equipoise_server.mechanisms.repair.parameters import REPAIR, Repair
from equipoise_server.mechanisms.running_time import (
    DRAW_SECONDS,
    PROCESS_BYTES,
    counting_seconds,
    listed_bytes,
    listed_seconds,
    table_bytes,
    table_seconds,
)
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

SLACK = 1 + 1e-5  # on promises: more than doubles and the units of answers can err
NO_LARGER = 1 << GRID_BITS
# Measured once, good to a factor of 3.
FIT_STEPS = 45
STEP_SECONDS = 4e-8  # of one step, for each cell of the universe
TABLE_SECONDS = 2.5e-5  # of one step, for each table
SET_SECONDS = 1.2e-4  # of one step, for each set whose residual is measured
VOTER_SECONDS = 2e-4
ESTIMATE_SECONDS = 1e-5  # of one query that is answered from the measured tables alone
FITTED_BYTES = 80
ANSWER_BYTES = 140


@canonical_object
class PooledParameters(Parameters):
    """All public parameters of one run.

    `rho`: of all tables together, in units of 10^-12. `floor`: the part of it that each of the family's largest
    tables gets at least. `chance`: that one estimate errs beyond its reach. `certified`: the largest half-width
    of an answer certified by the tables, in units of 2^-40. `synopsis`: records of the synthetic table.
    `residuals`: what is measured instead of tables, and its noise; there are no votes then, and `rho` is all that
    it costs. `repair`: how statements outside the family are answered; None where they stay uncertified.
    """

    family: Family = key("family", codec_of(Family))
    demand: Demand = key("demand", codec_of(Demand))
    rho: int = key("rho", COUNT)
    floor: Fraction = key("floor", FRACTION)
    chance: float = key("chance", REAL)
    certified: int = key("certified_half_width", COUNT)
    synopsis: int = key("synopsis_records", COUNT)
    residuals: ResidualNoise | None = key("residuals", optional(codec_of(ResidualNoise)))
    repair: Repair | None = key("repair", optional(REPAIR))

    def rhos(self, noisy_demand: Sequence[int]) -> dict[Axes, Fraction]:
        """The rho of every table that is measured, given the demand for each set; they add up to at most `rho`."""
        family = self.family
        if not family.sets:
            return {}
        always = [axes in family.largest for axes in family.sets]
        parts = shares_of(noisy_demand, self.demand.least, always, self.floor)
        whole = Fraction(self.rho, RHO_UNIT)
        return {axes: part * whole for axes, part in zip(family.sets, parts, strict=True) if part}


def plan_pooled(name: str, setting: PublicParameters) -> MechanismPlan:
    """Parameters from public things; refused where a budget would be exceeded.

    `max_half_width`. With probability `1 - beta` (or half of it, where some is kept for what is outside the
    family), every estimate of a cell of the family's tables is within its reach `w`, and so is that of every
    predicate: a union bound over all cells of the family, which does not grow with the analysts, and over all
    declared statements (`deviations_of_reach`). So the truth lies in the interval of half-width `w` around the
    estimate, whatever value the synopsis gives. The reach is public: as each of the family's largest tables gets at
    least its floor of rho, whatever the demand, `w` is at most what the floors give (`estimated_variance`), and an
    answer with a larger one, which no cell of a whole table has, is not certified.
    """
    check_setting(setting)
    options = read_options(setting)
    family = family_of(setting, options)
    places = places_for(setting) if options.repair_share else None
    hiding = places is not None and places.epsilon > 0
    demand = plan_demand(setting, len(family.sets), budget_beside(setting, places), hiding, options.least)
    whole = usable_rho(setting.data_budget)
    rho = whole - math.ceil(options.repair_share * whole)
    if rho == 0:
        raise BudgetExhausted("data_budget: is too small to measure any table; raise it")
    floor = options.floor / max(1, len(family.largest))
    chance = chance_of(setting, family, 2 if options.repair_share else 1)
    within = Fraction(rho, RHO_UNIT)
    expected, noise = measured_by(setting, options, family, rho)
    # Of a statement with several answers that are no cells, each has a part of the statement's chance. Where they
    # are many they add up few cells each, so that two of them reach furthest.
    sharing = 2 if any(share.queries > share.statements for share in setting.shares) else 1
    limits = chance, options.summed, sharing
    if noise is None:
        widest = tables_half_width(family, within * floor, *limits) if family.sets else 0.0
    else:
        widest = residuals_half_width(noise, family, *limits)
        demand, rho, floor = NO_VOTES, math.ceil(Fraction(noise.rho()) * RHO_UNIT), Fraction(1)
    certified = min(NO_LARGER, math.ceil(widest / setting.records * SLACK * NO_LARGER) + 16)
    promised, repairs = certified / 2.0**GRID_BITS, None
    uncertified = uncertified_answers(setting, family, options)
    if options.repair_share:
        repairs = plan_repair(setting, places, 2 * promised, Fraction(whole, RHO_UNIT) - within)
        conditions = 0 if family.covers(options.summed) else setting.queries
        uncertified = min(setting.queries, conditions + uncertified_outside(setting, repairs))
        promised = max(promised, repair_promise(repairs))
    parameters = PooledParameters(family, demand, rho, floor, chance, certified, options.synopsis, noise, repairs)
    return make_plan(
        name,
        setting,
        parameters,
        data_parts(parameters, setting),
        analyst_parts(parameters, setting),
        max_half_width=promised,
        expected_error=expected,
        max_uncertified=uncertified,
        seconds=predicted_seconds(setting, family, noise),
        memory_bytes=predicted_memory(setting, family),
    )


def measured_by(
    setting: PublicParameters, options: Options, family: Family, rho: int
) -> tuple[float, ResidualNoise | None]:
    """Return the expected error and the noise of residuals where these are expected to err less than tables.

    Or nearly as little, by the rule of `auto`: no vote decides residuals, so they cost the analysts nothing. An
    option may force either.
    """
    tables = tables_expected_error(setting, family, Fraction(rho, RHO_UNIT))
    if options.residuals is False or not family.sets:
        return tables, None
    # One unit of 10^-12 is left for rounding the charge up.
    noise = plan_residuals(setting, family, Fraction(rho - 1, RHO_UNIT))
    expected = residuals_expected_error(setting, noise, family)
    return (expected, noise) if options.residuals or expected <= tables * (1 + NEAR) else (tables, None)


def data_parts(parameters: PooledParameters, setting: PublicParameters) -> list[PrivacyEvent]:
    """Return what the round costs the data: all tables together at their cap, and repair at its own.

    The tables' rhos add up to at most `rho` (`accounting.tables_rho` of the variances drawn), and which ones they
    are depends on the demand alone, not on the data. Residuals cost what their noise does (`ResidualNoise.rho`).
    The noise of both is exact; only repair's is truncated.
    """
    name = "tables" if parameters.residuals is None else "residuals"
    parts: list[PrivacyEvent] = [ZcdpEvent(name, Fraction(parameters.rho, RHO_UNIT))]
    if parameters.repair is None:
        return parts
    repairing, truncated = repair_data_parts(setting, parameters.repair)
    return [*parts, *with_samplers(repairing, truncated, setting.data_budget.epsilon)]


def analyst_parts(parameters: PooledParameters, setting: PublicParameters) -> list[PrivacyEvent]:
    """Return what the round costs one unit of the analysts: its votes, and hiding who gets a repair place."""
    if not setting.protects_analysts:
        return []
    parts = demand_parts(parameters.demand, len(parameters.family.sets), setting.analyst_budget.epsilon)
    return parts if parameters.repair is None else [*parts, *repair_analyst_parts(setting, parameters.repair)]


def uncertified_answers(setting: PublicParameters, family: Family, options: Options) -> int:
    """At most how many answers have no interval, where nothing is repaired.

    Those to statements outside the family, which all may be; and those that add up too many cells. That may be any
    but the cells of whole tables, and a statement may have many of them.
    """
    return 0 if family.complete and family.covers(options.summed) else setting.queries


def family_of(setting: PublicParameters, options: Options) -> Family:
    """Return the family. Raises where it cannot be measured."""
    if not setting.attributes:
        raise InvalidArgument(
            "attributes", "must be given: pooled measures tables of attributes, and needs the size of each"
        )
    family = Family(setting.attributes, options.ways, options.cells)
    family.check(MAX_SETS if over_universe(setting) else MAX_RESIDUAL_SETS)
    return family


def chance_of(setting: PublicParameters, family: Family, parts: int) -> float:
    """Beta's part, divided evenly over all cells of all tables of the family and all predicates there may be."""
    cells = sum(table_cells(family.sizes, axes) for axes in family.sets)
    return setting.beta / parts / (cells + setting.statements)


def predicted_seconds(setting: PublicParameters, family: Family, noise: ResidualNoise | None) -> float:
    """Return a rough prediction of a run on one ordinary core: votes, counting and answering, and the fit."""
    if not over_universe(setting):
        answering = VOTER_SECONDS * len(setting.shares) + ESTIMATE_SECONDS * setting.queries
        drawing = DRAW_SECONDS[DiscreteGaussian] * len(family.sets)
        return table_seconds(setting, len(family.sets)) + drawing + listed_seconds(len(family.largest)) + answering
    measured = TABLE_SECONDS * len(family.largest) if noise is None else SET_SECONDS * len(family.sets)
    steps = FIT_STEPS * (STEP_SECONDS * setting.universe_size + measured)
    return counting_seconds(setting) + VOTER_SECONDS * len(setting.shares) + steps


def predicted_memory(setting: PublicParameters, family: Family) -> int:
    """Return a rough prediction of the peak, in bytes."""
    if over_universe(setting):
        held = FITTED_BYTES * setting.universe_size
    else:
        held = table_bytes(setting) + listed_bytes(len(family.largest), len(setting.attributes))
    return PROCESS_BYTES + held + ANSWER_BYTES * setting.queries
