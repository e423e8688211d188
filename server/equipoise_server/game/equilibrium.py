"""The loop of the private equilibrium: a data player that draws records, a query player that finds fault.

HRU Algorithms 3 and 4 as one mechanism (mechanisms section 2): the data player plays sampled multiplicative
weights over the universe, the query player dense multiplicative weights over the submitted queries and their
complements. Only the drawn records leave this module; everything else of the game stays secret.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import COEFFICIENT_BITS, POTENTIAL_BITS
from equipoise.workload import CompiledWorkload
from equipoise_server.game.parameters import GameParameters
from equipoise_server.game.query_player import Units, action_weights, mixed_action, unit_weights, weigh
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential


@dataclass(frozen=True)
class Game:
    """One game: public parameters and units, the workload of all analysts, and its counts on the data.

    `counts`: int64[k], how many of the `records` records satisfy each query.
    """

    parameters: GameParameters
    workload: CompiledWorkload
    units: Units
    counts: NDArray[np.int64]
    records: int

    def data_exponents(self, potential: NDArray[np.int64]) -> NDArray[np.int64]:
        """The data player's log-weights over the universe, int64[|X|] in units of 2^-48, from its potential."""
        if self.parameters.play == "mixed":
            return (potential >> (COEFFICIENT_BITS - POTENTIAL_BITS)) * self.parameters.data_step
        return potential * self.parameters.data_step

    def payoff(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """What each query gains from one round's records: `q(D) - mean q(x)` in units of 1/(records batch).

        Positive where the records under-count: the query player is drawn to it, and pulls the data player up.
        """
        return self.parameters.batch * self.counts - self.records * self.workload.record_counts(cells)

    def mixed_response(self, payoffs: NDArray[np.int64]) -> NDArray[np.int64]:
        """What mixed play adds to the potential: int64[|X|] in units of 2^-44."""
        coefficients = mixed_action(payoffs * self.parameters.query_step, self.units, self.parameters.density)
        return self.workload.transpose(coefficients)

    def sampled_response(self, payoffs: NDArray[np.int64], stream: KeyedStream) -> NDArray[np.int64]:
        """What sampled play adds to the potential: int64[|X|], the sum of the drawn actions."""
        weights = weigh(payoffs * self.parameters.query_step, self.units)
        cumulative = np.cumsum(unit_weights(weights, self.parameters.density))
        queries, signs = [], []
        for _ in range(self.parameters.draws):
            unit = _draw(cumulative, stream)
            if unit >= self.units.count - self.units.padding:
                continue  # a padding unit: the constant query changes nothing
            start = int(self.units.offsets[unit])
            size = int(self.units.offsets[unit + 1]) - start
            action = _draw(np.cumsum(action_weights(weights, self.units, unit)), stream)
            queries.append(start + action % size)
            signs.append(1 if action < size else -1)
        return self.workload.transpose_sparse(np.array(queries, dtype=np.int64), np.array(signs, dtype=np.int64))

    def play(
        self, records_stream: KeyedStream, actions_stream: KeyedStream, progress: Callable[[int, int], None]
    ) -> NDArray[np.int64]:
        """The synopsis: all drawn records, int64[rounds batch] universe cells in the order drawn."""
        rounds = self.parameters.rounds
        potential = np.zeros(math.prod(self.workload.schema_sizes), dtype=np.int64)
        payoffs = np.zeros(self.workload.query_count, dtype=np.int64)
        drawn = []
        for played in range(rounds):
            cells = draw_exponential(self.data_exponents(potential), self.parameters.batch, records_stream)
            drawn.append(cells)
            progress(played + 1, rounds)
            if played + 1 == rounds:
                break  # the last round's payoffs would never be used
            payoffs += self.payoff(cells)
            if self.parameters.play == "mixed":
                potential += self.mixed_response(payoffs)
            else:
                potential += self.sampled_response(payoffs, actions_stream)
        return np.concatenate(drawn)


def _draw(cumulative: NDArray[np.int64], stream: KeyedStream) -> int:
    """An index drawn exactly from integer weights, given their running sums."""
    return int(np.searchsorted(cumulative, stream.below(int(cumulative[-1])), side="right"))
