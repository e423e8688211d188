"""Games chosen to leak nearly all that they are charged, and what they leak of an analyst."""

from __future__ import annotations

import numpy as np
from harness.exact_game import (
    Law,
    game_of,
    masks_workload,
    released_law,
    renyi,
)

from equipoise_server.game.parameters import EXPONENT_BITS, GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import Size

ORDERS = (1.25, 2.0, 4.0, 16.0, 64.0)
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)
ROUNDING = 1e-11  # of the enumeration's own sums in doubles


def parameters(
    play: str,
    rounds: int,
    batch: int,
    draws: int,
    density: float,
    query_rate: float,
    data_rate: float,
    records: int,
) -> GameParameters:
    """Parameters with the given learning rates."""
    unit = 2.0**-20 if play == "mixed" else draws / 2.0**EXPONENT_BITS
    return GameParameters(
        "mixed" if play == "mixed" else "sampled",
        rounds,
        batch,
        draws,
        density,
        int(query_rate * 2**EXPONENT_BITS / (records * batch)),
        int(data_rate / unit),
    )


def size_of(records: int, universe: int, units: int) -> Size:
    """The public numbers of an instance of predicates."""
    return Size(records, universe, units, units, 1)


def both_ways(law: Law, other: Law, order: float) -> float:
    """The larger of the two Renyi divergences."""
    return max(renyi(law, other, order), renyi(other, law, order))


def extreme_analyst_leak(game: GameParameters, rho: float, units: int) -> float:
    """The largest divergence, as a part of the charge, where all that one unit can do differs.

    Records 1 and 2 are in the data, 0 is not. All other units ask the constant query, so the changed unit holds
    as much as it may, and pulls record 1 in one world and record 2 in the other.
    """
    data = np.array([0, 1, 1], dtype=np.int64)
    law, near = (
        released_law(game_of(game, masks_workload([*[7] * (units - 1), mask], 3), data), 3) for mask in (2, 4)
    )
    return max(both_ways(law, near, order) / (order * rho) for order in ORDERS)


EXTREME = parameters("mixed", 4, 1, 1, 4.0, 30.0, 0.4, 2)


def instances(count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray, list[int], list[int]]]:
    """Random instances: neighbouring histograms over 3 records, and workloads of 3 masks differing in the last."""
    choose = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        data = np.bincount(choose.integers(0, 3, 3), minlength=3).astype(np.int64)
        other = data.copy()
        moved = int(choose.choice(np.flatnonzero(data)))
        other[moved] -= 1
        other[(moved + 1 + choose.integers(0, 2)) % 3] += 1
        masks = choose.integers(1, 7, 3).tolist()
        changed = [*masks[:2], int(choose.integers(1, 7))]
        made.append((data, other, masks, changed))
    return made
