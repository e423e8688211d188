"""The loop of the private equilibrium: a data player draws records, and a query player finds their errors.

HRU Algorithms 3 and 4 as one mechanism (mechanisms section 2): the data player plays sampled multiplicative
weights over a list of records (the universe, or a support), the query player dense multiplicative weights over the
submitted queries and their complements. Only the drawn records leave this module; everything else of the game stays
secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import COEFFICIENT_BITS, POTENTIAL_BITS
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise_server.game.data_player import MultiplicativeWeights, table_lifetime
from equipoise_server.game.parameters import GameParameters
from equipoise_server.game.query_player import DenseMultiplicativeWeights, Units
from equipoise_server.randomness.stream import KeyedStream


@dataclass(frozen=True)
class Game:
    """One game: public parameters and units, the queries of all analysts, and their counts on the data.

    `queries`: over the list of records that are drawn from. The guarantees hold for any list that is public: of the
    data, the game reads `counts` alone. `counts`: int64[k], how many of the `records` records satisfy each query.
    `start`: the data player's log-weights before the first round, int64[size of the list] in units of 2^-48, a
    public output; None: uniform.
    """

    parameters: GameParameters
    queries: WeighedQueries
    units: Units
    counts: NDArray[np.int64]
    records: int
    start: NDArray[np.int64] | None = None

    def data_player(self) -> MultiplicativeWeights:
        """The data player before the first round. Its gains: `mixed` in units of 2^-44, `sampled` in actions."""
        parameters = self.parameters
        if parameters.play == "mixed":
            dropped = COEFFICIENT_BITS - POTENTIAL_BITS
            return MultiplicativeWeights(self.queries, parameters.data_step, dropped, start=self.start)
        lifetime = table_lifetime(self.queries.size, parameters.batch, parameters.draws, parameters.data_step)
        return MultiplicativeWeights(self.queries, parameters.data_step, lifetime=lifetime, start=self.start)

    def query_player(self) -> DenseMultiplicativeWeights:
        """Return the query player before the first round. Its gains are in units of 1/(records batch)."""
        return DenseMultiplicativeWeights(self.units, self.parameters.query_step, self.parameters.density)

    def payoff(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what each query gains from one round's records: `q(D) - mean q(x)` in units of 1/(records batch).

        Positive where the records under-count: the query player is drawn to it, and pulls the data player up.
        """
        return self.parameters.batch * self.counts - self.records * self.queries.record_counts(places)

    def play(
        self, records_stream: KeyedStream, actions_stream: KeyedStream, progress: Callable[[int, int], None]
    ) -> NDArray[np.int64]:
        """Return the synopsis: all drawn records, int64[rounds batch] places in the list, in the order drawn.

        Args:
            records_stream: the randomness of the data player's draws.
            actions_stream: the randomness of the query player's draws; not read in mixed play.
            progress: called after each round with the rounds played and all rounds.
        """
        parameters, data_player, query_player = self.parameters, self.data_player(), self.query_player()
        drawn = []
        for played in range(parameters.rounds):
            places = data_player.draw(parameters.batch, records_stream)
            drawn.append(places)
            progress(played + 1, parameters.rounds)
            if played + 1 == parameters.rounds:
                break  # the last round's payoffs would never be used
            query_player.gain(self.payoff(places))
            if parameters.play == "mixed":
                data_player.gain(self.queries.transpose(query_player.mixed_action()))
            else:
                data_player.gain_queries(*query_player.draw(parameters.draws, actions_stream))
        return np.concatenate(drawn)
