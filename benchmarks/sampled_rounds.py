"""Seconds a round of sampled play, against a straightforward NumPy game that goes over all records every round.

    python benchmarks/sampled_rounds.py [--universe-bits 20] [--queries 100000]
    python benchmarks/sampled_rounds.py --universe-bits 26 --without-reference      # peak memory of the game alone

Both play with the same parameters on the same queries and data; they draw from the same laws, not the same numbers.
The reference holds the category of every record of the universe in columns; in each round it adds the drawn actions
to its potential mask by mask, normalises exp over the universe, and looks every query up at every drawn record.
Both use one thread, and processor seconds are counted, so that what else runs disturbs little. Quote the ratio.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.game.data_player import table_lifetime
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import EXPONENT_BITS, GameParameters
from equipoise_server.game.query_player import Units, project
from equipoise_server.randomness.stream import KeyedStream

RECORDS = 1_000_000
CATEGORIES = 16


@dataclass(frozen=True)
class Predicates:
    """Query q holds for a record whose category of attribute `axes[q, i]` is in `members[q, i]`, for both i."""

    sizes: tuple[int, ...]
    axes: NDArray[np.int64]
    members: NDArray[np.bool_]

    @classmethod
    def chosen(cls, sizes: tuple[int, ...], count: int) -> Predicates:
        """Dense conditions on two attributes each."""
        choose = np.random.default_rng(1)
        axes = np.array([choose.choice(len(sizes), 2, replace=False) for _ in range(count)])
        members = choose.random((count, 2, CATEGORIES)) < 0.6
        members[:, :, 0] |= ~members[:, :, : min(sizes)].any(axis=2)
        return cls(sizes, axes, members)

    def statements(self) -> list[Statement]:
        """The same, to be compiled."""

        def among(query: int, place: int) -> Among:
            axis = int(self.axes[query, place])
            inside = np.flatnonzero(self.members[query, place, : self.sizes[axis]])
            return Among(f"a{axis}", tuple(str(value) for value in inside))

        return [among(query, 0) & among(query, 1) for query in range(len(self.axes))]

    def at(self, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which queries hold for which records, given by their categories, int64[attributes, records]."""
        queries = np.arange(len(self.axes))[:, None]
        first, second = (self.members[queries, place, categories[self.axes[:, place]]] for place in (0, 1))
        held: NDArray[np.bool_] = first & second
        return held


def main() -> None:
    """Prints the sizes, then seconds a round of the reference and of ours, the ratio, and our peak memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--universe-bits", type=int, default=20)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=8, help="records drawn a round")
    parser.add_argument("--draws", type=int, default=64, help="actions drawn a round")
    parser.add_argument("--data-rate", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--reference-rounds", type=int, default=10)
    parser.add_argument("--without-reference", action="store_true")
    options = parser.parse_args()
    bits = options.universe_bits
    sizes = (CATEGORIES,) * (bits // 4) + ((1 << bits % 4,) if bits % 4 else ())
    predicates = Predicates.chosen(sizes, options.queries)
    game = game_of(predicates, options)
    parameters = game.parameters
    lifetime = table_lifetime(1 << bits, parameters.batch, parameters.draws, parameters.data_step)
    print(
        f"|X| = 2^{bits}, {options.queries} predicates, {parameters.batch} records and {parameters.draws} actions"
    )
    print(f"a round, data rate {parameters.data_rate:.2f}; a table of proposals lives {lifetime} rounds")
    streams = KeyedStream.derive(bytes(32), "records"), KeyedStream.derive(bytes(32), "actions")
    ours = seconds(lambda: game.play(*streams, lambda done, total: None)) / parameters.rounds
    print(f"equipoise: {ours:.5f} s a round over {parameters.rounds} rounds")
    print(f"peak memory so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    if not options.without_reference:
        reference = seconds(lambda: play(predicates, game, options.reference_rounds)) / options.reference_rounds
        print(f"reference: {reference:.5f} s a round over {options.reference_rounds} rounds")
        print(f"ratio: {reference / ours:.1f}")


def game_of(predicates: Predicates, options: argparse.Namespace) -> Game:
    """The game on skewed data."""
    schema = Schema(
        tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(predicates.sizes))
    )
    workload = compile_workload(predicates.statements(), schema)
    choose = np.random.default_rng(2)
    columns = [np.minimum(size, choose.geometric(0.4, RECORDS)) - 1 for size in predicates.sizes]
    cells = np.ravel_multi_index(columns, predicates.sizes)
    histogram = np.bincount(cells, minlength=schema.universe_size).astype(np.int64, copy=False)
    parameters = GameParameters(
        play="sampled",
        rounds=options.rounds,
        batch=options.batch,
        draws=options.draws,
        density=options.queries / 4,
        query_step=int(0.1 * 2**EXPONENT_BITS / (RECORDS * options.batch)),
        data_step=int(options.data_rate * 2**EXPONENT_BITS / options.draws),
    )
    return Game(parameters, workload, Units(workload.statement_offsets, 0), workload.counts(histogram), RECORDS)


def play(predicates: Predicates, game: Game, rounds: int) -> None:
    """The reference: plain NumPy floats."""
    choose, parameters = np.random.default_rng(3), game.parameters
    truth = game.counts / game.records
    universe = int(np.prod(predicates.sizes))
    columns = [axis.astype(np.uint8) for axis in np.unravel_index(np.arange(universe), predicates.sizes)]
    potential, payoffs = np.zeros(universe), np.zeros(len(truth))
    for _ in range(rounds):
        law = np.exp(potential - potential.max())
        cells = choose.choice(universe, parameters.batch, p=law / law.sum())
        payoffs += truth - predicates.at(np.array(np.unravel_index(cells, predicates.sizes))).mean(axis=1)
        exponents = parameters.query_rate(game.records) * payoffs
        positive, negative = np.exp(exponents), np.exp(-exponents)
        masses = project((positive + negative) / 2, parameters.density)
        queries = choose.choice(len(truth), parameters.draws, p=masses / masses.sum())
        is_query = choose.random(parameters.draws) * (positive + negative)[queries] < positive[queries]
        for query, sign in zip(queries.tolist(), np.where(is_query, 1, -1).tolist(), strict=True):
            first, second = (
                predicates.members[query, place][columns[predicates.axes[query, place]]] for place in (0, 1)
            )
            potential += sign * parameters.data_rate / parameters.draws * (first & second)


def seconds(run: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
