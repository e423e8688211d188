"""The exact law of what the game releases, by enumeration through the real players' integers.

Every step calls the code that is shipped (both players, `payoff`, `unit_weights`, `action_weights`); only the draws
are replaced by a sum over all their outcomes.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.game.query_player import DenseMultiplicativeWeights, Units, action_weights, unit_weights

Law = dict[tuple[int, ...], float]


def schema(size: int) -> Schema:
    """A universe of `size` records: one attribute."""
    return Schema((Attribute("x", tuple(str(value) for value in range(size))),))


def masks_workload(masks: Sequence[int], size: int) -> CompiledWorkload:
    """One predicate for each mask; bit `x` says whether record `x` satisfies it. 0 < mask < 2^size."""
    statements: list[Statement] = [
        Among("x", tuple(str(x) for x in range(size) if mask >> x & 1)) for mask in masks
    ]
    return compile_workload(statements, schema(size))


def table_workload(masks: Sequence[int], size: int) -> CompiledWorkload:
    """The whole marginal as the first statement, then one predicate for each mask."""
    marginal = compile_workload([Marginal(("x",))], schema(size))
    return concatenate([marginal, masks_workload(masks, size)])


def game_of(
    parameters: GameParameters,
    workload: CompiledWorkload,
    histogram: NDArray[np.int64],
    padding: int = 0,
    sizes: Sequence[int] = (),
) -> Game:
    """A game on a workload whose units are its statements, or groups of as many queries as `sizes` say."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) if sizes else workload.statement_offsets
    units = Units(offsets, padding)
    return Game(parameters, workload, units, workload.counts(histogram), int(histogram.sum()))


def records_law(game: Game, potential: NDArray[np.int64]) -> NDArray[np.float64]:
    """The law of one record given the data player's potential."""
    exponents = game.data_player().exponents(potential)
    weights = np.exp((exponents - exponents.max()) / 2.0**48)
    return np.asarray(weights / weights.sum())


def released_law(game: Game, universe: int) -> Law:
    """The probability of every synopsis."""
    law: Law = {}
    start = {(0,) * universe: 1.0}
    _play(game, universe, (), np.zeros(game.queries.query_count, np.int64), start, law)
    return law


def _play(
    game: Game,
    universe: int,
    drawn: tuple[int, ...],
    payoffs: NDArray[np.int64],
    potentials: dict[tuple[int, ...], float],
    law: Law,
) -> None:
    """`potentials`: the joint probability of what was drawn and each potential the data player may hold."""
    parameters = game.parameters
    laws = {potential: records_law(game, np.array(potential)) for potential in potentials}
    for cells in itertools.product(range(universe), repeat=parameters.batch):
        after = {
            potential: chance * math.prod(laws[potential][cell] for cell in cells)
            for potential, chance in potentials.items()
        }
        released = drawn + cells
        if len(released) == parameters.rounds * parameters.batch:
            law[released] = sum(after.values())
            continue
        seen = payoffs + game.payoff(np.array(cells, dtype=np.int64))
        if parameters.play == "mixed":
            response = game.queries.transpose(query_player(game, seen).mixed_action())
            moved = {tuple((np.array(p) + response).tolist()): chance for p, chance in after.items()}
        else:
            moved = _after_draws(game, universe, seen, after)
        _play(game, universe, released, seen, moved, law)


def _after_draws(
    game: Game, universe: int, payoffs: NDArray[np.int64], potentials: dict[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
    actions = actions_law(game, universe, payoffs)
    for _ in range(game.parameters.draws):
        moved: dict[tuple[int, ...], float] = defaultdict(float)
        for potential, chance in potentials.items():
            for action, weight in actions.items():
                moved[tuple(p + a for p, a in zip(potential, action, strict=True))] += chance * weight
        potentials = dict(moved)
    return potentials


def query_player(game: Game, payoffs: NDArray[np.int64]) -> DenseMultiplicativeWeights:
    """The query player after these payoffs."""
    player = game.query_player()
    player.gain(payoffs)
    return player


def actions_law(game: Game, universe: int, payoffs: NDArray[np.int64]) -> dict[tuple[int, ...], float]:
    """The law of one drawn action, as what it adds to the potential."""
    weights = query_player(game, payoffs).weights()
    chosen = unit_weights(weights, game.parameters.density)
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for unit, weight in enumerate((chosen / chosen.sum()).tolist()):
        if unit >= game.units.count - game.units.padding:
            law[(0,) * universe] += weight
            continue
        start = int(game.units.offsets[unit])
        inside = action_weights(weights, game.units, np.array([unit]))
        size = len(inside) // 2
        for action, part in enumerate((inside / inside.sum()).tolist()):
            added = game.queries.transpose_sparse(
                np.array([start + action % size]), np.array([1 if action < size else -1])
            )
            law[tuple(added.tolist())] += weight * part
    return dict(law)


def hockey_stick(law: Law, other: Law, epsilon: float) -> float:
    """The smallest delta at epsilon that covers `law` against `other`."""
    return math.fsum(max(0.0, chance - math.exp(epsilon) * other.get(key, 0.0)) for key, chance in law.items())


def renyi(law: Law, other: Law, order: float) -> float:
    """The Renyi divergence of an order above 1."""
    # In logarithms: a strong game's ratios to a high power leave the range of a double.
    terms = [
        order * math.log(chance) - (order - 1) * math.log(other[key]) for key, chance in law.items() if chance > 0
    ]
    largest = max(terms)
    return (largest + math.log(math.fsum(math.exp(term - largest) for term in terms))) / (order - 1)
