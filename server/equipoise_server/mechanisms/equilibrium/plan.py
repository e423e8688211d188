"""The plan of `equilibrium`, from public facts: its parameters, both costs, and its half-width."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    ZcdpEvent,
    rounded_up,
)
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.records.codec import (
    COUNT,
    REAL,
    Codec,
    canonical_object,
    key,
    object_codec,
    one_of,
    optional,
)
from equipoise_server.conversion import mixture_delta
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import usable_rho, with_samplers
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.forecast import predicted_memory, predicted_seconds
from equipoise_server.mechanisms.equilibrium.options import check_options
from equipoise_server.mechanisms.equilibrium.selection import choose
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.repair import analyst_repair_plan, statement_repair_plan
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.repair.parameters import REPAIR, Repair

GAME: Codec[GameParameters] = object_codec(
    GameParameters,
    {
        "play": ("play", one_of("mixed", "sampled")),
        "rounds": ("rounds", COUNT),
        "batch": ("batch", COUNT),
        "draws": ("draws", COUNT),
        "density": ("density", REAL),
        "query_step": ("query_step", COUNT),
        "data_step": ("data_step", COUNT),
    },
)


@canonical_object
class EquilibriumParameters(Parameters):
    """All public parameters of one run. `repair` is None where the game has the whole data budget."""

    game: GameParameters = key("game", GAME)
    repair: Repair | None = key("repair", optional(REPAIR))


def plan_equilibrium(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan the parameters by `selection`, or as the options force them. Raises where a budget would be exceeded."""
    check(setting)
    size, places = Size.of(setting), None
    if setting.unit == "analyst" and cost_model.forced_share(setting) != 1:
        places = analyst_repair_plan.plan_places(setting)
    choice = choose(setting, places)
    game, playing = choice.game, choice.playing
    game_rho = rounded_up(cost_model.data_rho(game, size), RHO_UNIT)
    allowed = usable_rho(setting.data_budget)
    if game_rho > allowed:
        raise BudgetExhausted("data_budget: is too small for the game alone; raise it or ask for less")
    left = Fraction(allowed - game_rho, RHO_UNIT)
    repair_seconds = 0.0
    if cost_model.forced_share(setting) == 1:
        # Nothing is tested or repaired, so nothing is certified, and no repair places need hiding.
        parameters = EquilibriumParameters(game, None)
        max_half_width, uncertified = 1.0, size.queries
    elif places is not None:
        analyst_repair = analyst_repair_plan.plan_analyst_repair(
            setting, cost_model.sampling_error(game, size, setting.beta / 4), places, left
        )
        parameters = EquilibriumParameters(game, analyst_repair)
        max_half_width = analyst_repair_plan.promised(analyst_repair)
        uncertified = analyst_repair_plan.uncertified_queries(setting, analyst_repair, game, size)
        repair_seconds = analyst_repair_plan.repair_seconds(analyst_repair, size)
    else:
        repair = statement_repair_plan.plan_statement_repair(
            setting, cost_model.sampling_error(game, size, setting.beta / 4), left
        )
        parameters = EquilibriumParameters(game, repair)
        max_half_width = statement_repair_plan.largest_half_width(repair) / 2**GRID_BITS
        uncertified = statement_repair_plan.uncertified_queries(setting, repair, game, size)
    on_analysts: list[PrivacyEvent] = []
    if setting.protects_analysts:
        on_analysts = analyst_parts(parameters, size, setting, playing.analyst_budget.epsilon)
    return make_plan(
        name,
        setting,
        parameters,
        data_parts(parameters, size, setting),
        on_analysts,
        max_half_width=max_half_width,
        max_uncertified=uncertified,
        seconds=predicted_seconds(game, size) + repair_seconds,
        memory_bytes=predicted_memory(size),
    )


def check(setting: PublicParameters) -> None:
    """Refuse settings that `equilibrium` cannot serve, naming the field."""
    check_setting(setting)
    check_options(setting)
    if Size.of(setting).units < 2:
        protected = "analysts" if setting.unit == "analyst" else "statements in all"
        raise InvalidArgument("shares", f"the game needs at least 2 {protected}")


def data_parts(parameters: EquilibriumParameters, size: Size, setting: PublicParameters) -> list[PrivacyEvent]:
    """What the whole round costs the data, at all caps: game, detection, answers, truncation of every sampler."""
    repairs = parameters.repair
    parts: list[PrivacyEvent] = [ZcdpEvent("game", Fraction(cost_model.data_rho(parameters.game, size)))]
    truncated = game_sampling_slack(parameters.game)
    if isinstance(repairs, AnalystRepairParameters):
        rho, more = analyst_repair_plan.repair_data_cost(repairs, size)
        parts, truncated = [*parts, ZcdpEvent("tests and answers", rho)], truncated + more
    elif repairs is not None:
        repairing, more = statement_repair_plan.repair_data_cost(repairs, size)
        parts, truncated = [*parts, *repairing], truncated + more
    return with_samplers(parts, truncated, setting.data_budget.epsilon)


def analyst_parts(
    parameters: EquilibriumParameters, size: Size, setting: PublicParameters, game_epsilon: float
) -> list[PrivacyEvent]:
    """Return what the whole round costs one unit of the analysts: the game, and hiding who gets a repair place.

    The game costs a rho in mixed play, a mixture with its pair in sampled play, which is charged at `game_epsilon`.
    Where a statement is protected, repair costs nothing.
    """
    truncated, beyond, hiding = game_sampling_slack(parameters.game), Fraction(0), Fraction(0)
    if isinstance(parameters.repair, AnalystRepairParameters):
        places = parameters.repair.places
        truncated += analyst_repair_plan.places_truncation(places, size)
        beyond, hiding = analyst_repair_plan.places_delta(places, setting), places.epsilon
    game: PrivacyEvent
    hidden: PrivacyEvent
    if parameters.game.play == "mixed":
        game = ZcdpEvent("game", Fraction(cost_model.analyst_rho(parameters.game, size)))
        hidden = PureDpEvent("repair places", hiding)
    else:
        # The game's epsilon rounded down to whole units, and delta at exactly that epsilon.
        epsilon = Fraction(math.floor(Fraction(game_epsilon) * RHO_UNIT), RHO_UNIT)
        mixture = cost_model.analyst_mixture(parameters.game, size)
        game = Mixture(
            "game",
            mixture.trials,
            Fraction(mixture.probability),
            Fraction(mixture.rho_of_one),
            epsilon,
            Fraction(mixture_delta(mixture, float(epsilon))),
        )
        hidden = ApproximateDpEvent("repair places", hiding, Fraction(0))
    parts = [game, *([hidden] if hiding else [])]
    return with_samplers(parts, truncated, setting.analyst_budget.epsilon, beyond)


def game_sampling_slack(game: GameParameters) -> Fraction:
    """Total variation between the records' sampler and the exact law: 2^-128 a draw at most."""
    return Fraction(game.rounds * game.batch, 2**128)
