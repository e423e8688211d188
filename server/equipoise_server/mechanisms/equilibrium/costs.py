"""What a run of `equilibrium` costs the data and the analysts: its privacy events."""

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
)
from equipoise_server.conversion import mixture_delta
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import with_samplers
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair import analyst_repair_plan, statement_repair_plan
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters


def data_parts(parameters: EquilibriumParameters, size: Size, setting: PublicParameters) -> list[PrivacyEvent]:
    """Return what the whole round costs the people in the table, where one record is replaced by another.

    It is charged at all caps: every step that could be taken, and the truncation of every sampler.

    Args:
        parameters: The plan's parameters.
        size: The round's public size.
        setting: The public parameters, with the data budget.
    """
    repairs, start, game = parameters.repair, parameters.start, parameters.game
    parts: list[PrivacyEvent] = []
    truncated = game_sampling_slack(game)
    if start is not None:
        parts += start.prior.events()
        truncated += start.prior.truncation()
    if game is not None:
        parts.append(ZcdpEvent("game", Fraction(cost_model.data_rho(game, size))))
    if start is not None:
        parts += start.tests.events(len(setting.shares))
        truncated += start.tests.truncation(len(setting.shares))
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
    """Return what the whole round costs the analysts, where one unit is replaced: a statement, or an analyst's all.

    They pay for the game, and for hiding who gets a repair place.

    Args:
        parameters: The plan's parameters.
        size: The round's public size.
        setting: The public parameters, with the unit and the analysts' budget.
        game_epsilon: The epsilon at which a sampled game is charged; no matter for a mixed one.

    The game costs a rho in mixed play, a mixture with its pair in sampled play, which is charged at `game_epsilon`.
    Where a statement is protected, repair costs nothing. A prior and its tests cost nothing for either unit: no
    workload has a part in the prior, and a test shows one analyst's errors to that analyst alone.
    """
    if parameters.game is None:
        return []
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


def game_sampling_slack(game: GameParameters | None) -> Fraction:
    """Total variation between the records' sampler and the exact law: 2^-128 a draw at most."""
    if game is None:
        return Fraction(0)
    return Fraction(game.rounds * game.batch, 2**128)
