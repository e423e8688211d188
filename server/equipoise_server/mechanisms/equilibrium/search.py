"""The search for a game: totals proposed by closed forms of the costs, then settled under the exact accounting.

Grids of totals over the rounds (see `forecast`) are weighed at once, then finer ones around the best. What is
proposed is made a game, whose learning rates the exact accounting cuts until it keeps to both budgets. The search
sees public numbers only, draws nothing, and always finds the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.accounting import RHO_UNIT
from equipoise_server.game.parameters import MAX_EXPONENT, GameParameters, Play
from equipoise_server.mechanisms.budget_rounding import usable_delta, usable_rho
from equipoise_server.mechanisms.equilibrium import cost_limits, cost_model
from equipoise_server.mechanisms.equilibrium.cost_limits import Numbers
from equipoise_server.mechanisms.equilibrium.cost_model import Size
from equipoise_server.mechanisms.equilibrium.forecast import RECORD_SECONDS, Sketch, round_seconds, sketch_seconds
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.options import real, whole

ROUNDS = 100  # more change little: costs and errors depend on totals
MAX_SECONDS = 600.0  # that a game may be expected to take
GAIN_OF_A_MINUTE = 0.05  # the part of the error that a minute of playing must save
MAX_DRAWN = 2.0**20  # records, and actions, in all
MAX_QUERY_TRAVEL = MAX_EXPONENT * 0.999
MAX_DATA_TRAVEL = 2.0**14 * 0.999
MAX_PART = 0.99  # of the units, that the density may be
MAX_ROUNDS = 2.0**15  # of HRU's own play
MAX_CUTS, CUT = 200, 0.01  # of a proposed rate, until the exact accounting agrees
POINTS, FINER_POINTS, ZOOMS = 9, 7, 4  # more find games that are expected to err at most 0.2 % less

Weigh = Callable[[Sketch], Numbers]  # smaller is better


@dataclass(frozen=True)
class Proposal:
    """A game by its totals, what it was ranked by, and at most how many rounds it takes.

    `play`: mixed, sampled, or hru, which has as many rounds as records.
    """

    play: str
    sketch: Sketch
    weight: float
    rounds: int = ROUNDS


def propose(setting: PublicParameters, play: str, share: float, fewest: float, weigh: Weigh) -> Proposal | None:
    """The totals of least weight whose costs, in closed form, keep to `share` of the data budget and the analysts'.

    Args:
        setting: public facts.
        play: mixed, sampled, or hru: sampled with one record and one action a round.
        share: the part of the data budget for the game, above 0 and at most 1.
        fewest: records of the synopsis.
        weigh: what is minimised, as a function of a sketch's totals.

    Returns:
        The best proposal, or None where no game is left.
    """
    spans = _spans(setting, play, fewest)
    axes = [np.geomspace(low, high, POINTS) if high > low else np.array([low]) for low, high in spans]
    ratios = [(high / low) ** (1 / (POINTS - 1)) for low, high in spans]
    finer = np.linspace(-1, 1, FINER_POINTS)
    best: Proposal | None = None
    for _ in range(1 + ZOOMS):
        mesh = np.meshgrid(*axes, indexing="ij")
        sketch = _affordable(setting, play, share, mesh)
        played = sketch.data_travel * sketch.query_travel > 0
        weights = np.where(played, weigh(sketch) * (1 + _haste(sketch, setting, play)), math.inf)
        place = int(np.argmin(weights))
        weight = float(weights.flat[place])
        if weight == math.inf:
            break
        if best is None or weight < best.weight:
            best = Proposal(play, sketch.at(place), weight)
        axes = [
            np.unique(np.clip(points.flat[place] * ratio**finer, low, high))
            for points, ratio, (low, high) in zip(mesh, ratios, spans, strict=True)
        ]
        ratios = [ratio ** (2 / (FINER_POINTS - 1)) for ratio in ratios]
    return best


def _haste(sketch: Sketch, setting: PublicParameters, play: str) -> Numbers:
    """Return how much less a game must be expected to err for the time that it takes."""
    rounds = sketch.records if play == "hru" else np.minimum(ROUNDS, sketch.records)
    seconds = sketch_seconds(sketch, Size.of(setting), rounds, mixed=play == "mixed")
    return np.asarray(GAIN_OF_A_MINUTE * seconds / 60)


def _spans(setting: PublicParameters, play: str, fewest: float) -> list[tuple[float, float]]:
    """Smallest and largest records, actions, density and data travel that are worth a look."""
    size, options = Size.of(setting), setting.options
    most_records = min(MAX_DRAWN, max(4.0, MAX_SECONDS / 2 / (RECORD_SECONDS * size.queries)))
    if play == "hru":
        most_records = min(most_records, max(4.0, MAX_SECONDS / round_seconds(size, mixed=False)), MAX_ROUNDS)
    # Mixed play draws no actions, and HRU's own as many as records.
    actions = (1.0, MAX_DRAWN) if play == "sampled" else (1.0, 1.0)
    records = (fewest, max(fewest, most_records))
    densities = (1.0, max(1.0, MAX_PART * size.units))
    rounds = real(options, "rounds", 0.0)
    if rounds:
        records = (max(rounds, records[0]), max(rounds, records[1]))
        if "batch" in options:
            records = (rounds * real(options, "batch", 1.0),) * 2
        if "draws" in options and play == "sampled":
            actions = (max(1.0, (rounds - 1) * real(options, "draws", 1.0)),) * 2
        if play == "hru":
            records = (rounds, rounds)
    if "density" in options:
        densities = (real(options, "density", 1.0),) * 2
    return [records, actions, densities, (0.01, MAX_DATA_TRAVEL)]


def _affordable(setting: PublicParameters, play: str, share: float, totals: Sequence[Numbers]) -> Sketch:
    """These totals with `E_D` cut to what analysts allow, and the `E_Q` that the data's budget then allows."""
    records, actions, density, travel = totals
    if play == "hru":
        actions = records
    if play == "mixed":
        actions = np.full_like(records, math.inf)
    allowed = allowed_data_travel(setting, play == "mixed", records, actions, density)
    if "data_rate" in setting.options:
        # A forced rate is never cut: what it is too large for is no game.
        rounds = real(setting.options, "rounds", 0.0) or (records if play == "hru" else np.minimum(ROUNDS, records))
        forced = np.maximum(1e-9, real(setting.options, "data_rate", 0.0) * rounds)
        travel = np.where(forced <= allowed, forced, 0.0)
    travel = np.minimum(travel, allowed)
    size, data_rho = Size.of(setting), share * usable_rho(setting.data_budget) / RHO_UNIT
    if play == "mixed":
        query_travel = cost_limits.mixed_query_travel(records, np.maximum(travel, 1e-9), data_rho, size)
    else:
        query_travel = cost_limits.sampled_query_travel(actions, data_rho, size)
    return Sketch(records, actions, density, travel, np.minimum(query_travel, MAX_QUERY_TRAVEL))


def allowed_data_travel(
    setting: PublicParameters, mixed: bool, records: Numbers, actions: Numbers, density: Numbers
) -> Numbers:
    """Return the `E_D` that the analysts' budget allows, nearly.

    Args:
        setting: public facts.
        mixed: whether play is mixed; else it is sampled.
        records: drawn in all.
        actions: drawn in all; not read in mixed play.
        density: of the query player's distributions. All three arrays have one shape, which the result has, too.
    """
    size, budget = Size.of(setting), setting.analyst_budget
    if not setting.protects_analysts:
        return np.full_like(records, MAX_DATA_TRAVEL)
    if mixed:
        return cost_limits.mixed_data_travel(records, density, usable_rho(budget) / RHO_UNIT, size)
    # What one differing draw may cost depends on actions and density alone: solved once for each pair.
    drawn, first = np.unique(actions.ravel(), return_inverse=True)
    densities, second = np.unique(density.ravel(), return_inverse=True)
    pairs, place = np.unique(first * len(densities) + second, return_inverse=True)
    first, second = np.divmod(pairs, len(densities))
    solved = cost_limits.rho_of_one(drawn[first], densities[second], budget.epsilon, usable_delta(budget), size)
    return np.asarray(actions * np.sqrt(2 * solved[place.ravel()].reshape(actions.shape) / records))


def settle(proposal: Proposal, setting: PublicParameters, share: float) -> GameParameters | None:
    """Return the proposal as a game that keeps to `share` of the data budget and to the analysts', or None.

    Args:
        proposal: the totals.
        setting: public facts, whose options may force single parameters.
        share: the part of the data budget for the game.
    """
    size = Size.of(setting)
    game = in_rounds(proposal, size, setting.options)
    actions = math.inf if game.play == "mixed" else (game.rounds - 1) * game.draws
    totals = (np.array([float(total)]) for total in (game.rounds * game.batch, actions, game.density))
    allowed = float(allowed_data_travel(setting, game.play == "mixed", *totals)[0])
    data_rate = real(
        setting.options, "data_rate", min(float(proposal.sketch.data_travel[0]), allowed) / game.rounds
    )
    for _ in range(MAX_CUTS):
        rated = with_query_rate(game, data_rate, setting, size, share)
        if rated is None or rated.problem(size.records, size.units) is not None:
            return None
        if cost_model.within_budgets(rated, size, setting, share):
            return rated
        data_rate *= 1 - CUT
    return None


def in_rounds(proposal: Proposal, size: Size, options: Mapping[str, object]) -> GameParameters:
    """Return the proposal dealt over rounds, with its rates as proposed; `options` may force single parameters."""
    sketch, mixed = proposal.sketch, proposal.play == "mixed"
    records, actions, density = (float(of[0]) for of in (sketch.records, sketch.actions, sketch.density))
    if proposal.play == "hru":
        rounds = whole(options, "rounds", max(2, round(records)))
        batch = draws = 1
    else:
        affordable = MAX_SECONDS / round_seconds(size, mixed=mixed)
        most = max(2, int(min(proposal.rounds, records, actions + 1, affordable)))
        # Few records in all: rather some rounds more or fewer than records that nobody paid for.
        batch = whole(options, "batch", max(1, round(records / whole(options, "rounds", most))))
        rounds = whole(options, "rounds", max(2, round(records / batch)))
        draws = 1 if mixed else whole(options, "draws", max(1, round(actions / max(1, rounds - 1))))
    play: Play = "mixed" if mixed else "sampled"
    game = GameParameters(play, rounds, batch, draws, density, 1, 1)
    travels = float(sketch.query_travel[0]) / rounds, float(sketch.data_travel[0]) / rounds
    return cost_model.with_steps(game, *travels, size.records)


def with_query_rate(
    game: GameParameters, data_rate: float, setting: PublicParameters, size: Size, share: float
) -> GameParameters | None:
    """Return the game with this `eta_D`, and the largest `eta_Q` that `share` of the data budget allows.

    Args:
        game: whose rates are replaced.
        data_rate: `eta_D`, in nats for each whole unit of payoff.
        setting: public facts.
        size: of the same setting.
        share: the part of the data budget for the game.

    Returns:
        The game, or None where it keeps to that part at no rate.
    """
    allowed = share * usable_rho(setting.data_budget)

    def fits(query_rate: float) -> bool:
        rated = cost_model.with_steps(game, query_rate, data_rate, size.records)
        return cost_model.data_rho(rated, size) * RHO_UNIT <= allowed

    low, high = 0.0, MAX_QUERY_TRAVEL / game.rounds
    if fits(high):
        low = high
    elif not fits(low):
        return None
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return cost_model.with_steps(game, low, data_rate, size.records)
