"""What answers to be beaten look like: the uniform guess, and independent Gaussian noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from equipoise.accounting import RHO_UNIT
from equipoise.workload import CompiledWorkload
from equipoise_server.mechanisms.budgets import usable_rho
from equipoise_server.mechanisms.interface import Budget
from equipoise_server.simulation.measure import Errors

FARTHEST = 12  # deviations: beyond, the tail of a normal is below 10^-32
POINTS = 12_001


def uniform_guess(workload: CompiledWorkload) -> NDArray[np.float64]:
    """Answers float64[k] as if all records of the universe were equally many."""
    universe = math.prod(workload.schema_sizes)
    return workload.counts(np.ones(universe, dtype=np.int64)) / universe


def gaussian_deviation(moved: int, records: int, budget: Budget) -> float:
    """The standard deviation, as a fraction of the records, of independent Gaussian noise on every answer.

    Noise of deviation s on counts of joint sensitivity l2 costs l2^2 / (2 s^2) zCDP (Bun & Steinke 2016,
    Proposition 1.6). The square of l2 is `moved`, by how many records all counts together may move in sum.
    """
    rho = usable_rho(budget) / RHO_UNIT
    return math.inf if rho == 0 else math.sqrt(moved / (2 * rho)) / records


def gaussian_errors(deviation: float, truth: NDArray[np.float64]) -> Errors:
    """What answers with that noise, each kept between 0 and 1, are expected to err by, for their truth float64[k].

    An answer errs by more than x downwards only where the truth is above x, upwards only where it is below 1 - x,
    each with the normal's tail. The mean is that of `min(|z|, room)` on either side, the largest error is at most x
    where no answer errs by more, and the percentile is where the mean tail is a hundredth.
    """
    down, up = np.sort(truth), np.sort(1 - truth)
    nearer = np.sort(np.minimum(truth, 1 - truth))
    points, step = np.linspace(0, min(1.0, FARTHEST * deviation), POINTS, retstep=True)
    tail = ndtr(-points / deviation)
    sides = _above(down, points) + _above(up, points)
    both = _above(nearer, points)
    none_beyond = (1 - 2 * tail) ** both * (1 - tail) ** (sides - 2 * both)
    return Errors(
        max=float(step * np.sum(1 - none_beyond)),
        p99=float(points[np.argmax(sides * tail <= 0.01 * len(truth))]),
        mean=float(deviation * np.mean(_mean_within(down / deviation) + _mean_within(up / deviation))),
    )


def _above(ascending: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many are above each point."""
    return len(ascending) - np.searchsorted(ascending, points, side="right")


def _mean_within(room: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of min(z, room) over the positive half of a standard normal: phi(0) - phi(a) + a Phi(-a)."""
    mean: NDArray[np.float64] = (1 - np.exp(-(room**2) / 2)) / math.sqrt(2 * math.pi) + room * ndtr(-room)
    return mean
