"""The baselines of a simulation: the uniform guess, and independent noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_lab.simulation.measure import Errors
from equipoise_server.mechanisms.budget_rounding import usable_rho

POINTS = 12_001


@dataclass(frozen=True)
class Noise:
    """A symmetric distribution of scale 1.

    `tail`: the probability above each point, from 0; `within`: the mean of `min(z, room)` over its positive half.
    Beyond `farthest` the tail is below 10^-20.
    """

    tail: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    within: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    farthest: float


def uniform_guess(workload: CompiledWorkload) -> NDArray[np.float64]:
    """Return the answers, float64[k], of the uniform distribution over the universe."""
    universe = math.prod(workload.schema_sizes)
    return workload.counts(np.ones(universe, dtype=np.int64)) / universe


def gaussian_deviation(l1_sensitivity: int, records: int, budget: Budget) -> float:
    """Return the standard deviation, as a fraction of the records, of independent Gaussian noise on every answer.

    Noise of deviation s on counts of joint sensitivity l2 costs l2^2 / (2 s^2) zCDP (Bun & Steinke 2016,
    Proposition 1.6). The square of l2 is `l1_sensitivity`, by how many records all counts together may move in sum.
    """
    rho = usable_rho(budget) / RHO_UNIT
    return math.inf if rho == 0 else math.sqrt(l1_sensitivity / (2 * rho)) / records


def gaussian_errors(deviation: float, truth: NDArray[np.float64]) -> Errors:
    """Return what answers with that Gaussian noise, each kept between 0 and 1, are expected to err by."""
    return noise_errors(GAUSSIAN, np.full(len(truth), deviation), truth)


def noise_errors(noise: Noise, scales: NDArray[np.float64], truth: NDArray[np.float64]) -> Errors:
    """Return what answers with noise of these scales, each kept between 0 and 1, are expected to err by.

    `scales`, `truth`: float64[k], of each answer. An answer errs by more than x downwards only where the truth is
    above x, upwards only where it is below 1 - x, each with the law's tail. The mean is that of `min(|z|, room)` on
    either side, the largest error is at most x where no answer errs by more, and the percentile is where the mean
    tail is a hundredth; of few answers it is the largest, as it is where they are measured.
    """
    points, step = np.linspace(0, min(1.0, noise.farthest * float(scales.max())), POINTS, retstep=True)
    none_beyond, expected, total = np.ones(POINTS), np.zeros(POINTS), 0.0
    for scale in np.unique(scales):
        own = truth[scales == scale]
        down, up, nearer = np.sort(own), np.sort(1 - own), np.sort(np.minimum(own, 1 - own))
        tail = noise.tail(points / scale)
        sides, both = _above(down, points) + _above(up, points), _above(nearer, points)
        none_beyond *= (1 - 2 * tail) ** both * (1 - tail) ** (sides - 2 * both)
        expected += sides * tail
        total += float(scale * np.sum(noise.within(down / scale) + noise.within(up / scale)))
    largest = float(step * np.sum(1 - none_beyond))
    percentile = float(points[np.argmax(expected <= 0.01 * len(truth))])
    return Errors(max=largest, p99=min(percentile, largest), mean=total / len(truth))


def _above(ascending: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many are above each point."""
    return len(ascending) - np.searchsorted(ascending, points, side="right")


def _gaussian_within(room: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the integral of min(z, a) over the positive half: phi(0) - phi(a) + a Phi(-a)."""
    mean: NDArray[np.float64] = (1 - np.exp(-(room**2) / 2)) / math.sqrt(2 * math.pi) + room * ndtr(-room)
    return mean


GAUSSIAN = Noise(lambda points: ndtr(-points), _gaussian_within, 12.0)
LAPLACE = Noise(lambda points: np.exp(-points) / 2, lambda room: (1 - np.exp(-room)) / 2, 46.0)
