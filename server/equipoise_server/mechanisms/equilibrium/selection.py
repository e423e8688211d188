"""Choosing the game of a round: its play, its part of the data's budget, and its parameters.

Every play and a few splits between game and repair are ranked by what an answer is expected to err; the best is
settled under the exact accounting. Options force single parameters, and the others follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from equipoise.accounting import RHO_UNIT
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise_server.game.parameters import GameParameters, Play
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.equilibrium import cost_model, search
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.forecast import Numbers, Sketch, expected_error
from equipoise_server.mechanisms.equilibrium.search import Proposal
from equipoise_server.mechanisms.equilibrium.unprotected import propose_unprotected
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.options import real, whole
from equipoise_server.mechanisms.repair import analyst_repair_plan, statement_repair_plan
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces

MIN_OF_STATEMENTS = (4.0,)  # records of a synopsis, where statements are repaired
MIN_OF_ANALYSTS = (
    4.0,
    256.0,
    1024.0,
    4096.0,
)  # with few, a game of few analysts learns; with many, thresholds are low
REPAIRED_PART = 0.1  # of a game's expected error counts, where all may be answered afresh
SHARES = (0.1, 0.2, 0.35, 0.5, 0.7)  # of the data budget, that the game may have


@dataclass(frozen=True)
class Choice:
    """A game, and the setting in which it was found: its analysts' budget is what the repair places leave."""

    game: GameParameters
    playing: PublicParameters


@dataclass(frozen=True)
class _Ranked:
    """A proposed game with what it was ranked by."""

    expected: float
    playing: PublicParameters
    share: float
    proposal: Proposal


def choose(setting: PublicParameters, places: RepairPlaces | None) -> Choice:
    """Return the game expected to serve best within both budgets.

    Raises `BudgetExhausted` where there is none, and where what is forced costs more; `InvalidArgument` where it
    cannot be played.
    """
    check_forced(setting)
    ranked, settings = [], []
    for play in plays(setting):
        playing = replace(setting, options={**setting.options, "play": play})
        if places is not None:
            playing = analyst_repair_plan.game_setting(playing, places)
        settings.append(playing)
        forced = cost_model.forced_share(setting)
        for share in SHARES if forced is None else (forced,):
            for fewest in MIN_OF_STATEMENTS if places is None else MIN_OF_ANALYSTS:
                ranked += _ranked(playing, play, share, places, fewest)
    # The sort is stable, so that equals are taken in a fixed order.
    for each in sorted(ranked, key=lambda each: each.expected):
        game = search.settle(each.proposal, each.playing, each.share)
        if game is not None:
            return Choice(checked(force_rates(game, each.playing), each.playing), each.playing)
    return forced_choice(settings)


def plays(setting: PublicParameters) -> tuple[str, ...]:
    """Return the plays to choose from: the forced one, or both; only sampled play where no analyst is protected."""
    forced = setting.options.get("play")
    if forced is not None:
        return (str(forced),)
    return ("mixed", "sampled") if setting.protects_analysts else ("sampled",)


def _ranked(
    playing: PublicParameters, play: str, share: float, places: RepairPlaces | None, fewest: float
) -> list[_Ranked]:
    """Return the best game of one play and split, ranked; none where there is none.

    Without repair its expected error counts. With repair, what a certified answer is promised, and as much more as
    the game is expected to err beyond the threshold of its tests; a part of its error where all may be repaired.
    """
    size = Size.of(playing)
    if play == "sampled" and not playing.protects_analysts:
        proposal = propose_unprotected(playing, share)
    else:
        proposal = search.propose(playing, play, share, fewest, lambda sketch: _weigh(sketch, playing, size, share))
    if proposal is None:
        return []
    game = search.in_rounds(proposal, size, playing.options)
    expected = float(expected_error(proposal.sketch, size)[0])
    if share < 1:
        left = Fraction(usable_rho(playing.data_budget), RHO_UNIT) * Fraction(1 - share)
        try:
            promised = _promised(playing, game, places, left)
        except BudgetExhausted:
            return []
        beyond = max(0.0, expected - cost_model.sampling_error(game, size, playing.beta / 4))
        all_repaired = places is not None and places.cap >= size.units
        expected = promised + (REPAIRED_PART * expected if all_repaired else beyond)
    return [_Ranked(expected, playing, share, proposal)]


def _weigh(sketch: Sketch, setting: PublicParameters, size: Size, share: float) -> Numbers:
    """Return what a game alone adds to the errors: with repair, at least the threshold of the tests."""
    expected = expected_error(sketch, size)
    if share == 1:
        return expected
    drawing = np.sqrt(math.log(2 * size.queries / (setting.beta / 4)) / (2 * sketch.records))
    return np.asarray(np.maximum(expected, drawing))


def _promised(
    setting: PublicParameters, game: GameParameters, places: RepairPlaces | None, left: Fraction
) -> float:
    """Return the largest half-width of a certified answer, with `left` rho for repair."""
    threshold = cost_model.sampling_error(game, Size.of(setting), setting.beta / 4)
    if places is not None:
        return analyst_repair_plan.promised(
            analyst_repair_plan.plan_analyst_repair(setting, threshold, places, left)
        )
    repair = statement_repair_plan.plan_statement_repair(setting, threshold, left)
    return statement_repair_plan.largest_half_width(repair) / 2.0**GRID_BITS


def force_rates(game: GameParameters, setting: PublicParameters) -> GameParameters:
    """Return the game with the learning rates that the options force."""
    size, options = Size.of(setting), setting.options
    if not {"query_rate", "data_rate"} & set(options):
        return game
    query_rate = real(options, "query_rate", game.query_rate(size.records))
    return cost_model.with_steps(game, query_rate, real(options, "data_rate", game.data_rate), size.records)


def forced_choice(settings: Sequence[PublicParameters]) -> Choice:
    """A game all of whose parameters are forced, where the search found none: in the first play that allows it."""
    if not {"rounds", "batch", "density", "query_rate", "data_rate"} <= set(settings[0].options):
        raise BudgetExhausted("no game of this size fits both budgets; raise them or ask for less")
    *others, last = settings
    for playing in others:
        with suppress(BudgetExhausted):
            return Choice(checked(force_rates(forced_structure(playing), playing), playing), playing)
    return Choice(checked(force_rates(forced_structure(last), last), last), last)


def forced_structure(setting: PublicParameters) -> GameParameters:
    """Return a game without learning rates, of what the options force."""
    options = setting.options
    play: Play = "mixed" if options.get("play", "mixed") == "mixed" else "sampled"
    return GameParameters(
        play,
        whole(options, "rounds", 1),
        whole(options, "batch", 1),
        whole(options, "draws", 1),
        real(options, "density", 1.0),
        0,
        0,
    )


def check_forced(setting: PublicParameters) -> None:
    """Refuses what is forced where no game can be played with it, whatever the rest."""
    problem = forced_structure(setting).problem(setting.records, Size.of(setting).units)
    if problem:
        raise InvalidArgument("options", problem)


def checked(game: GameParameters, setting: PublicParameters) -> GameParameters:
    """Return the same game; refused where it cannot be played, or not within the budgets."""
    size = Size.of(setting)
    problem = game.problem(size.records, size.units)
    if problem:
        raise InvalidArgument("options", problem)
    if not cost_model.within_budgets(game, size, setting, cost_model.forced_share(setting) or 1.0):
        raise BudgetExhausted("options: the game that they force costs more than its part of the round's budgets")
    return game
