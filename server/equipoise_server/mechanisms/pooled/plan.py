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
from equipoise_server.mechanisms.budget_rounding import usable_rho, with_samplers
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.expected_error import (
    COVERED,
    fitted_part,
    gaussian_mean,
    mean_over_queries,
    only_predicates,
)
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, GaussianNoise
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.pooled.allocation import shares_of
from equipoise_server.mechanisms.pooled.demand import Demand, demand_parts, plan_demand
from equipoise_server.mechanisms.pooled.family import Family, table_cells
from equipoise_server.mechanisms.pooled.measured import estimated_variance, reach
from equipoise_server.mechanisms.pooled.options import MAX_UNIVERSE, Options, read_options
from equipoise_server.mechanisms.pooled.outside import (
    budget_beside,
    places_for,
    plan_repair,
    repair_analyst_parts,
    repair_data_parts,
    repair_promise,
    uncertified_outside,
)
from equipoise_server.mechanisms.repair.parameters import REPAIR, Repair
from equipoise_server.mechanisms.running_time import PROCESS_BYTES, counting_seconds

SLACK = 1 + 1e-5  # on promises: more than doubles and the units of answers can err
PREDICATE_PART = 0.5  # of the direct estimate's error that the fit to all tables leaves, measured on Adult
NO_LARGER = 1 << GRID_BITS
# Measured once, good to a factor of 3.
FIT_STEPS = 45
STEP_SECONDS = 4e-8  # of one step, for each cell of the universe
TABLE_SECONDS = 2.5e-5  # of one step, for each table
VOTER_SECONDS = 2e-4
FITTED_BYTES = 80
ANSWER_BYTES = 140


@canonical_object
class PooledParameters(Parameters):
    """All public parameters of one run.

    `rho`: of all tables together, in units of 10^-12. `floor`: the part of it that each of the family's largest
    tables gets at least. `chance`: that one estimate errs beyond its reach. `certified`: the largest half-width
    of an answer certified by the tables, in units of 2^-40. `synopsis`: records of the synthetic table. `repair`:
    how statements outside the family are answered; None where they are refused.
    """

    family: Family = key("family", codec_of(Family))
    demand: Demand = key("demand", codec_of(Demand))
    rho: int = key("rho", COUNT)
    floor: Fraction = key("floor", FRACTION)
    chance: float = key("chance", REAL)
    certified: int = key("certified_half_width", COUNT)
    synopsis: int = key("synopsis_records", COUNT)
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
    declared statements. So the truth lies in the interval of half-width `w` around the estimate, whatever value the
    synopsis gives. The reach is public: as each of the family's
    largest tables gets at least its floor of rho, whatever the demand, `w` is at most what the floors give
    (`estimated_variance`), and an answer with a larger one, which only a predicate over many cells can have, is
    not certified.
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
    certified = certified_half_width(setting, family, Fraction(rho, RHO_UNIT) * floor, chance, options.summed)
    promised, repairs = certified / 2.0**GRID_BITS, None
    uncertified = uncertified_predicates(setting, family, options)
    if options.repair_share:
        repairs = plan_repair(setting, places, 2 * promised, Fraction(whole - rho, RHO_UNIT))
        uncertified = min(setting.queries, uncertified + uncertified_outside(setting, repairs))
        promised = max(promised, repair_promise(repairs))
    parameters = PooledParameters(family, demand, rho, floor, chance, certified, options.synopsis, repairs)
    return make_plan(
        name,
        setting,
        parameters,
        data_parts(parameters, setting),
        analyst_parts(parameters, setting),
        max_half_width=promised,
        expected_error=expected_error(setting, family, Fraction(rho, RHO_UNIT)),
        max_uncertified=uncertified,
        seconds=predicted_seconds(setting, family),
        memory_bytes=predicted_memory(setting),
    )


def data_parts(parameters: PooledParameters, setting: PublicParameters) -> list[PrivacyEvent]:
    """Return what the round costs the data: all tables together at their cap, and repair at its own.

    The tables' rhos add up to at most `rho` (`accounting.tables_rho` of the variances drawn), and which ones they
    are depends on the demand alone, not on the data. Their noise is exact; only repair's is truncated.
    """
    parts: list[PrivacyEvent] = [ZcdpEvent("tables", Fraction(parameters.rho, RHO_UNIT))]
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


def uncertified_predicates(setting: PublicParameters, family: Family, options: Options) -> int:
    """At most how many predicates add up too many cells to be certified: each statement may be such a one."""
    return 0 if covers_predicates(family, options.summed) else setting.statements


def covers_predicates(family: Family, summed: float) -> bool:
    """Whether sums of half of the largest table are certified: `j` of its cells err together like the others."""
    return 4 * summed >= max((table_cells(family.sizes, axes) for axes in family.sets), default=1)


def family_of(setting: PublicParameters, options: Options) -> Family:
    """Return the family. Raises where it cannot be measured."""
    if not setting.attributes:
        raise InvalidArgument(
            "attributes", "must be given: pooled measures tables of attributes, and needs the size of each"
        )
    if setting.universe_size > MAX_UNIVERSE:
        raise InvalidArgument(
            "universe_size",
            f"is {setting.universe_size:,} records; pooled visits each of them, and at most {MAX_UNIVERSE:,}",
        )
    family = Family(setting.attributes, options.ways, options.cells)
    family.check()
    return family


def chance_of(setting: PublicParameters, family: Family, parts: int) -> float:
    """Beta's part, divided evenly over all cells of all tables of the family and all predicates there may be."""
    cells = sum(table_cells(family.sizes, axes) for axes in family.sets)
    return setting.beta / parts / (cells + setting.statements)


def expected_error(setting: PublicParameters, family: Family, rho: Fraction) -> float:
    """Return the mean error that is expected where every one of the family's largest tables gets as much rho."""
    if not family.sets:
        return 0.0
    variance = float(GaussianNoise.within(rho / len(family.largest)).variance * MAX_MOVED)
    measured = [(axes, variance) for axes in family.largest]
    pairs: list[Axes] = [axes for axes in family.sets if len(axes) == 2]
    boxes = [
        gaussian_mean(COVERED * (1 - COVERED) * cells * estimated_variance(family.sizes, axes, measured))
        for axes in pairs or family.largest
        for cells in (table_cells(family.sizes, axes),)
    ]
    predicate = PREDICATE_PART * sum(boxes) / len(boxes) / setting.records
    deviation = math.sqrt(variance) / setting.records
    cells = sum(table_cells(family.sizes, axes) for axes in family.largest)
    cell = gaussian_mean(deviation**2) * fitted_part(deviation, len(family.largest), cells)
    return mean_over_queries(setting, lambda share: min(1.0, predicate if only_predicates(share) else cell))


def certified_half_width(
    setting: PublicParameters, family: Family, least_rho: Fraction, chance: float, summed: float
) -> int:
    """The largest reach of a certified answer, in units of 2^-40: see `plan_pooled`."""
    if not family.sets:
        return 4
    try:
        noise = GaussianNoise.within(least_rho)
        noise.law(MAX_MOVED)
    except ValueError:
        raise BudgetExhausted(
            "data_budget: is too small for so many tables; the noise would be coarser than its sampler can draw"
        ) from None
    predicates = summed > 1 or covers_predicates(family, summed)
    measured = [(axes, float(noise.variance * MAX_MOVED)) for axes in family.largest]
    widest = 0.0
    for axes in family.sets:
        variance, cells = estimated_variance(family.sizes, axes, measured), table_cells(family.sizes, axes)
        widest = max(
            widest,
            reach(variance * (1 - 1 / cells), chance),
            reach(variance * min(summed, cells / 4), chance) if predicates else 0.0,
        )
    return min(NO_LARGER, math.ceil(widest / setting.records * SLACK * NO_LARGER) + 16)


def predicted_seconds(setting: PublicParameters, family: Family) -> float:
    """Return a rough prediction of a run on one ordinary core: votes, counting and answering, and the fit."""
    steps = FIT_STEPS * (STEP_SECONDS * setting.universe_size + TABLE_SECONDS * len(family.largest))
    return counting_seconds(setting) + VOTER_SECONDS * len(setting.shares) + steps


def predicted_memory(setting: PublicParameters) -> int:
    """Return a rough prediction of the peak, in bytes."""
    return PROCESS_BYTES + FITTED_BYTES * setting.universe_size + ANSWER_BYTES * setting.queries
