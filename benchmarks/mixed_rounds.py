"""Seconds a round of mixed play on all three-way marginals of 14 attributes, against one gather for each table.

    python benchmarks/mixed_rounds.py [--rounds 10]

The reference knows the marginals as tables, but nothing of how they hang together: for each of the 364 it holds
which cell every record of the universe falls into (prepared beforehand, not counted; 3 GB for the larger
universe), and adds up one gather of |X| numbers a table in each round, with plain NumPy floats and everything else
anew. It draws from the same law, but not the same numbers. Machines are noisy: quote the ratio.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.game.query_player import Units
from equipoise_server.randomness.stream import KeyedStream

# The 14 attributes of the Adult census table, each binned coarsely so that the universe can be enumerated.
UNIVERSES = ((4, 3, 3, 3, 3, 2, 2, 2, 2, 3, 2, 2, 2, 3), (5, 4, 4, 4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 4))


def main() -> None:
    """Prints a table: universe, cells, seconds a round of the reference and of ours, and the ratio."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--rounds", type=int, default=10)
    rounds = arguments.parse_args().rounds
    print(f"mixed play, all 3-way marginals of 14 attributes, {rounds} rounds")
    print(f"{'|X|':>9} {'queries':>8} {'reference s/round':>18} {'equipoise s/round':>18} {'ratio':>7}")
    for sizes in UNIVERSES:
        workload, histogram = instance(sizes)
        query_step, data_step = (
            400_000_000,
            1 << 18,
        )  # a payoff of one moves its action by 0.85 nats, and its records by 0.25
        parameters = GameParameters("mixed", rounds, 2, 1, 91.0, query_step, data_step)
        units = Units(workload.statement_offsets, 0)
        game = Game(parameters, workload, units, workload.counts(histogram), int(histogram.sum()))
        streams = KeyedStream.derive(bytes(32), "records"), KeyedStream.derive(bytes(32), "actions")
        replace(game, parameters=replace(parameters, rounds=1)).play(*streams, lambda done, total: None)
        fast = seconds(lambda: game.play(*streams, lambda done, total: None)) / rounds  # noqa: B023
        cells = cells_of_records(workload)
        slow = seconds(lambda: reference(cells, histogram, game)) / rounds  # noqa: B023
        numbers = f"{histogram.size:>9} {workload.query_count:>8}"
        print(f"{numbers} {slow:>18.5f} {fast:>18.5f} {slow / fast:>7.1f}", flush=True)


def instance(sizes: tuple[int, ...]) -> tuple[CompiledWorkload, NDArray[np.int64]]:
    """All three-way marginals, and skewed data whose attributes go together."""
    schema = Schema(tuple(Attribute(f"a{i}", tuple(map(str, range(size)))) for i, size in enumerate(sizes)))
    workload = compile_workload([Marginal(names) for names in itertools.combinations(schema.names, 3)], schema)
    choose = np.random.default_rng(1)
    common = choose.random(45_000)
    codes = [(size * (common + choose.random(common.size) ** 2) / 2).astype(np.int64) for size in sizes]
    return workload, np.bincount(np.ravel_multi_index(codes, sizes), minlength=math.prod(sizes)).astype(np.int64)


def cells_of_records(workload: CompiledWorkload) -> list[NDArray[np.int64]]:
    """For each table, the query that every record of the universe satisfies: int64[|X|]."""
    sizes, made = workload.schema_sizes, []
    for marginal in workload.marginals:
        numbers = np.zeros((1,) * len(sizes), dtype=np.int64)
        for axis in marginal.axes:
            shape = [1] * len(sizes)
            shape[axis] = sizes[axis]
            numbers = numbers * sizes[axis] + np.arange(sizes[axis], dtype=np.int64).reshape(shape)
        made.append(marginal.first_query + np.broadcast_to(numbers, sizes).reshape(-1))
    return made


def reference(cells: list[NDArray[np.int64]], histogram: NDArray[np.int64], game: Game) -> None:
    """Plain NumPy: dense multiplicative weights over the actions, a gather over the universe for each table."""
    choose, parameters, records = np.random.default_rng(2), game.parameters, game.records
    truth, starts, sizes = game.counts / records, game.units.offsets[:-1], np.diff(game.units.offsets)
    potential, payoffs = np.zeros(histogram.size), np.zeros(len(truth))
    for _ in range(parameters.rounds):
        law = np.exp(potential - potential.max())
        drawn = choose.choice(histogram.size, parameters.batch, p=law / law.sum())
        payoffs += truth
        for table in cells:
            np.subtract.at(payoffs, table[drawn], 1 / parameters.batch)
        exponents = parameters.query_rate(records) * payoffs
        positive, negative = np.exp(exponents), np.exp(-exponents)
        means = np.add.reduceat(positive + negative, starts) / (2 * sizes)
        shares = projected(means, parameters.density) / (2 * sizes * means)
        step = parameters.data_rate * np.repeat(shares, sizes) * (positive - negative)
        for table in cells:
            potential += step.take(table)


def projected(weights: NDArray[np.float64], density: float) -> NDArray[np.float64]:
    """The capped masses, by sorting."""
    descending = np.sort(weights)[::-1]
    rest = descending[::-1].cumsum()[::-1]
    capped = np.arange(min(math.ceil(density), len(weights)))
    scales = (density - capped) / rest[capped]
    scale = scales[int(np.argmax(scales * descending[capped] <= 1))]
    masses: NDArray[np.float64] = np.minimum(1, scale * weights) / density
    return masses


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
