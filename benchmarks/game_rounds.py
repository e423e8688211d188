"""Seconds a round of the game, against a straightforward reference with the full matrix of queries by records.

    python benchmarks/game_rounds.py [--queries 4000] [--rounds 20]

The reference holds every query as a row over the universe and recomputes everything in each round with plain
NumPy floats; it draws from the same law but not the same numbers. Machines are noisy: quote the ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.game.query_player import Units, project
from equipoise_server.randomness.stream import KeyedStream

SIZES = (16, 3, 12, 8, 6)
NAMES = "abcde"


def main() -> None:
    """Prints a table: play, seconds a round of the reference and of ours, and the ratio."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--queries", type=int, default=4000)
    arguments.add_argument("--rounds", type=int, default=20)
    options = arguments.parse_args()
    workload, histogram = instance(options.queries)
    matrix = dense(workload)
    print(f"|X| = {histogram.size}, {options.queries} predicates, {options.rounds} rounds")
    print(f"{'play':<8} {'reference s/round':>18} {'equipoise s/round':>18} {'ratio':>7}")
    for play, draws in (("mixed", 1), ("sampled", 64)):
        parameters = GameParameters(
            "mixed" if play == "mixed" else "sampled", options.rounds, 2, draws, options.queries / 4, 79_000_000, 1
        )
        game = Game(
            parameters,
            workload,
            Units(workload.statement_offsets, 0),
            workload.counts(histogram),
            int(histogram.sum()),
        )
        streams = KeyedStream.derive(bytes(32), "records"), KeyedStream.derive(bytes(32), "actions")
        slow = seconds(lambda: reference(matrix, histogram, game)) / options.rounds  # noqa: B023
        fast = seconds(lambda: game.play(*streams, lambda done, total: None)) / options.rounds  # noqa: B023
        print(f"{play:<8} {slow:>18.5f} {fast:>18.5f} {slow / fast:>7.1f}")


def instance(queries: int) -> tuple[CompiledWorkload, NDArray[np.int64]]:
    """Dense predicates over two attributes each, and skewed data."""
    choose = np.random.default_rng(1)
    schema = Schema(
        tuple(Attribute(name, tuple(str(v) for v in range(size))) for name, size in zip(NAMES, SIZES, strict=True))
    )

    def among(attribute: int) -> Among:
        chosen = np.flatnonzero(choose.random(SIZES[attribute]) < 0.6)
        return Among(NAMES[attribute], tuple(str(v) for v in chosen) or ("0",))

    statements: list[Statement] = []
    for _ in range(queries):
        first, second = choose.choice(len(SIZES), 2, replace=False)
        statements.append(among(int(first)) & among(int(second)))
    histogram = np.zeros(SIZES, np.int64)
    np.add.at(histogram, tuple(np.minimum(s - 1, choose.geometric(0.4, 300_000) - 1) for s in SIZES), 1)
    return compile_workload(statements, schema), histogram.ravel()


def dense(workload: CompiledWorkload) -> NDArray[np.float32]:
    """The matrix that Equipoise never builds: float32[k, |X|]."""
    rows = [workload.transpose_sparse(np.array([q]), np.array([1])) for q in range(workload.query_count)]
    return np.array(rows, dtype=np.float32)


def reference(matrix: NDArray[np.float32], histogram: NDArray[np.int64], game: Game) -> None:
    """Plain NumPy, everything anew in each round."""
    choose, records = np.random.default_rng(2), game.records
    parameters = game.parameters
    truth = matrix @ (histogram / records).astype(np.float32)
    potential, payoffs = np.zeros(histogram.size), np.zeros(len(matrix))
    for _ in range(parameters.rounds):
        law = np.exp(potential - potential.max())
        cells = choose.choice(histogram.size, parameters.batch, p=law / law.sum())
        payoffs += truth - matrix[:, cells].mean(axis=1)
        exponents = parameters.query_rate(records) * payoffs
        positive, negative = np.exp(exponents), np.exp(-exponents)
        masses = project((positive + negative) / 2, parameters.density)
        if parameters.play == "mixed":
            action = (masses * (positive - negative) / (positive + negative)).astype(np.float32)
        else:
            drawn = choose.choice(len(matrix), parameters.draws, p=masses / masses.sum())
            action = np.bincount(drawn, minlength=len(matrix)).astype(np.float32) / parameters.draws
        potential += parameters.data_rate * (action @ matrix)


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
