"""Plans of `equilibrium` from a prior: the prior alone, and play that starts from it.

The data's budget is divided among the prior, play and tests; the dataset's standing measurement leaves all of it
to play and tests. Play is left out where it is not expected to improve on the prior, which is nearly always: a
synopsis of drawn records errs by what drawing them errs by, and a prior by less.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, Cost, PrivacyEvent, rounded_up
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_server.conversion import epsilon_for
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.budget_rounding import usable_delta, usable_rho
from equipoise_server.mechanisms.equilibrium import cost_model
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.costs import analyst_parts, data_parts
from equipoise_server.mechanisms.equilibrium.forecast import (
    Sketch,
    expected_parts,
    predicted_memory,
    predicted_seconds,
)
from equipoise_server.mechanisms.equilibrium.options import forces_a_game
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters, PriorStart
from equipoise_server.mechanisms.equilibrium.selection import choose
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.prior.choice import OF_PRIOR, STANDING
from equipoise_server.mechanisms.prior.forecast import expected_largest, expected_mean
from equipoise_server.mechanisms.prior.plan import PriorParameters, plan_prior, standing_prior
from equipoise_server.mechanisms.repair.final_tests import plan_final_tests
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds

SHARE = Fraction(4, 5)  # of the data's budget, for the prior and play; tests have the rest
PLAYED = Fraction(1, 4)  # of that share, for play where there is any
LAID_OUT = 1 << 18  # records along a prior: more change no answer by as much as its noise
GAIN = 0.95  # play must be expected to leave less than this part of the prior's error
ESTIMATE_SECONDS = 4e-6  # of a query's interval from the measurement


def plan_from_prior(name: str, setting: PublicParameters, prior: str) -> MechanismPlan:
    """Return the plan of a prior alone, or of play from a prior where that is forced or expected to improve on it.

    Args:
        name: the mechanism's.
        setting: the public parameters.
        prior: `OWN`, measured with a part of the data's budget, or `STANDING`.

    Raises:
        InvalidArgument: there is nothing that such a prior could be made of, or no game can be played.
        BudgetExhausted: the budget is too small.
    """
    if forces_a_game(setting):
        return plan_played(name, setting, prior)
    alone = plan_alone(name, setting, prior)
    with suppress(InvalidArgument, BudgetExhausted):
        played = plan_played(name, setting, prior)
        if played.expected_error < GAIN * alone.expected_error:
            return played
    return alone


def plan_alone(name: str, setting: PublicParameters, prior: str) -> MechanismPlan:
    """Plan a prior, which is laid out, and tests of it. Nothing is played, and the analysts are charged nothing.

    Args:
        name: under which the mechanism is charged.
        setting: of the round.
        prior: which prior is measured.
    """
    return _plan(name, setting, _prior(setting, prior, _share(setting)), None, setting)


def plan_played(name: str, setting: PublicParameters, prior: str) -> MechanismPlan:
    """Plan a prior, a game that starts from it, and tests.

    Args:
        name: under which the mechanism is charged.
        setting: of the round.
        prior: which prior is measured.

    Raises:
        InvalidArgument: there are fewer than 2 units.
    """
    if Size.of(setting).units < 2:
        raise InvalidArgument("shares", "the game needs at least 2 units; leave its parameters to the planner")
    share = _share(setting)
    rho = int(usable_rho(setting.data_budget) * share * PLAYED)
    epsilon = epsilon_for(Cost(rho=rho), usable_delta(setting.data_budget))
    options = {name: value for name, value in setting.options.items() if name not in OF_PRIOR} | {"game_share": 1}
    playing = replace(setting, data_budget=Budget(epsilon, setting.data_budget.delta), options=options)
    choice = choose(playing, None)
    return _plan(name, setting, _prior(setting, prior, share * (1 - PLAYED)), choice.game, choice.playing)


def _prior(setting: PublicParameters, prior: str, share: Fraction) -> PriorParameters:
    if prior == STANDING:
        return standing_prior(setting)
    return plan_prior(setting, Fraction(usable_rho(setting.data_budget), RHO_UNIT) * share)


def _share(setting: PublicParameters) -> Fraction:
    forced = cost_model.forced_share(setting)
    return SHARE if forced is None else Fraction(forced)


def _plan(
    name: str,
    setting: PublicParameters,
    prior: PriorParameters,
    game: GameParameters | None,
    playing: PublicParameters,
) -> MechanismPlan:
    """Plan a game from the prior, if there is one, and tests with what is left of the data's budget."""
    size, allowed = Size.of(setting), Fraction(usable_rho(setting.data_budget), RHO_UNIT)
    mean, largest = expected_mean(prior, setting), expected_largest(prior, setting)
    spent, laid_out = rounded_up(prior.rho, RHO_UNIT), LAID_OUT
    if game is not None:
        spent += rounded_up(cost_model.data_rho(game, size), RHO_UNIT)
        laid_out, reached = combined(game, size, largest)
        mean, largest = mean * reached / largest, reached
    left = Fraction(0)
    if cost_model.forced_share(setting) != 1:
        left = allowed - Fraction(spent, RHO_UNIT)
        if left <= 0:
            raise BudgetExhausted("data_budget: leaves too little for tests; raise it or ask for less")
    tests = plan_final_tests(setting, largest, left, released=prior.released is not None)
    parameters = EquilibriumParameters(game, None, PriorStart(prior, laid_out, tests))
    on_analysts: list[PrivacyEvent] = []
    if setting.protects_analysts:
        on_analysts = analyst_parts(parameters, size, setting, playing.analyst_budget.epsilon)
    seconds = prior.seconds() + 2 * counting_seconds(setting) + ESTIMATE_SECONDS * setting.queries
    return make_plan(
        name,
        setting,
        parameters,
        data_parts(parameters, size, setting),
        on_analysts,
        max_half_width=tests.limit / 2**GRID_BITS,
        expected_error=mean,
        max_uncertified=size.queries,
        seconds=seconds + (0.0 if game is None else predicted_seconds(game, size)),
        memory_bytes=prior.memory_bytes() + (counting_bytes(setting) if game is None else predicted_memory(size)),
    )


def combined(game: GameParameters, size: Size, largest: float) -> tuple[int, float]:
    """Return how many records are laid out along the prior beside those drawn, and the error expected of both.

    A synopsis with a part `w` of drawn records errs by `(1 - w)` of the prior's error, `w` of what the game leaves
    of it, and `w` of the drawing's noise. So `w = prior^2 / (prior^2 + noise^2)`, which is best where the game
    learns a good part: with so many records laid out both err alike.

    Args:
        game: what is played.
        size: the round's public numbers.
        largest: the prior's largest error that is expected.
    """
    parts = expected_parts(Sketch.of(game, size), size, largest)
    noise, unlearnt = float(parts.noise[0]), float(parts.unlearnt[0])
    drawn = game.rounds * game.batch
    laid_out = min(LAID_OUT, max(1, round(drawn * (noise / largest) ** 2)))
    part = drawn / (drawn + laid_out)
    return laid_out, min(1.0, ((1 - part) * largest + part * unlearnt) + part * noise)
