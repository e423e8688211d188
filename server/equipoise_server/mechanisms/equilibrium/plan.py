"""The plan of `equilibrium`, from public facts: its parameters, both costs, and its half-width."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from equipoise.accounting import RHO_UNIT, PrivacyEvent, rounded_up
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.checking import check_enumerable, check_setting
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.costs import analyst_parts, data_parts
from equipoise_server.mechanisms.equilibrium.forecast import (
    expected_game_error,
    predicted_memory,
    predicted_seconds,
)
from equipoise_server.mechanisms.equilibrium.options import check_game_options, forces_a_game
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.equilibrium.prior_plan import plan_from_prior
from equipoise_server.mechanisms.equilibrium.selection import choose
from equipoise_server.mechanisms.expected_error import hypothesis_error
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.prior.choice import NONE, OWN, PRIOR, STANDING, Start, starts_of
from equipoise_server.mechanisms.repair import analyst_repair_plan, statement_repair_plan

MEAN_PART = 0.2  # of the largest error of dense predicates that the mean is, measured on Adult


def planned_starts(name: str, setting: PublicParameters) -> list[Start]:
    """Plan the round from every prior that it may start from, that of least expected error first.

    Without a prior it is the game as printed, as also where a game's parameters are forced and no prior is.

    Raises:
        InvalidArgument: an option or the setting cannot be served.
        BudgetExhausted: a budget would be exceeded.
    """
    check_setting(setting)
    check_game_options(setting)
    printed = forces_a_game(setting) and PRIOR not in setting.options
    ways: dict[str, Callable[[], MechanismPlan]] = {NONE: lambda: plan_printed(name, setting)}
    if not printed:
        ways |= {prior: partial(plan_from_prior, name, setting, prior) for prior in (OWN, STANDING)}
    return starts_of(setting, ways)


def plan_printed(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan the game from the uniform distribution, and repair, by `selection`, or as the options force them."""
    check_enumerable(f"{name} without a prior", setting)
    check_units(setting)
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
        parameters = EquilibriumParameters(game, None, None)
        max_half_width, uncertified = 1.0, size.queries
    elif places is not None:
        analyst_repair = analyst_repair_plan.plan_analyst_repair(
            setting, cost_model.sampling_error(game, size, setting.beta / 4), places, left
        )
        parameters = EquilibriumParameters(game, analyst_repair, None)
        max_half_width = analyst_repair_plan.promised(analyst_repair)
        uncertified = analyst_repair_plan.uncertified_queries(setting, analyst_repair, game, size)
        repair_seconds = analyst_repair_plan.repair_seconds(analyst_repair, size)
    else:
        repair = statement_repair_plan.plan_statement_repair(
            setting, cost_model.sampling_error(game, size, setting.beta / 4), left
        )
        parameters = EquilibriumParameters(game, repair, None)
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
        expected_error=expected_mean_error(game, setting),
        max_uncertified=uncertified,
        seconds=predicted_seconds(game, size) + repair_seconds,
        memory_bytes=predicted_memory(size),
    )


def expected_mean_error(game: GameParameters, setting: PublicParameters) -> float:
    """Return the mean error that is expected of the synopsis, from the largest that is.

    On Adult the mean is an eighth to a fifth of the expected largest error for dense predicates.
    """
    return hypothesis_error(setting, MEAN_PART * expected_game_error(game, Size.of(setting)))


def check_units(setting: PublicParameters) -> None:
    """Refuse settings in which no game can be played, naming the field."""
    if Size.of(setting).units < 2:
        protected = "analysts" if setting.unit == "analyst" else "statements in all"
        raise InvalidArgument("shares", f"the game needs at least 2 {protected}")
