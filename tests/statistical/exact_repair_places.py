"""The exact law of who is granted a repair place, from the shipped comparison and the shipped noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray

from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

Grant = Callable[[RepairPlaces, NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
LOST = 1e-7  # probability of noise beyond what is enumerated


def shipped(
    places: RepairPlaces, positive: NDArray[np.bool_], target: NDArray[np.int64], slots: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """What is shipped."""
    return places.grant(positive, target, slots)


def places_law(places: RepairPlaces, positive: tuple[bool, ...], seen: list[int], grant: Grant = shipped) -> Law:
    """The law of who has a place among the slots `seen`, by summing over all noises that matter."""
    noise = {z: float(p) for z, p in DiscreteLaplace(places.epsilon).law().items() if p > LOST / 100}
    values, chances = np.array(list(noise)), np.array(list(noise.values()))
    slots = len(positive) - 1  # the noise after the last slot decides nothing
    picks = np.stack(np.meshgrid(*[np.arange(len(values))] * (slots + 1), indexing="ij"), axis=-1).reshape(
        -1, slots + 1
    )
    drawn = values[picks]
    last = np.zeros((len(drawn), 1), dtype=np.int64)
    granted = grant(places, np.array(positive), drawn[:, :1], np.concatenate([drawn[:, 1:], last], axis=1))
    weights = np.prod(chances[picks], axis=1)
    codes = granted[:, seen] @ (1 << np.arange(len(seen)))
    totals = np.bincount(codes, weights=weights, minlength=1 << len(seen))
    return {(code,): float(total) for code, total in enumerate(totals) if total > 0}


def neighbours(slots: int) -> list[tuple[tuple[bool, ...], tuple[bool, ...], list[int]]]:
    """All pairs that differ in one slot, in both orders, with the slots of everybody else."""
    pairs = []
    for positive in product((False, True), repeat=slots):
        for flipped in range(slots):
            other = tuple(bad != (slot == flipped) for slot, bad in enumerate(positive))
            pairs.append((positive, other, [slot for slot in range(slots) if slot != flipped]))
    return pairs


def largest_delta(places: RepairPlaces, epsilon: float, grant: Grant = shipped, slots: int = 3) -> float:
    """The smallest delta at epsilon that covers all neighbours."""
    return max(
        hockey_stick(places_law(places, near, seen, grant), places_law(places, far, seen, grant), epsilon)
        for near, far, seen in neighbours(slots)
    )
